"""The handlers of `adapter.*` and `plugin.*`, added to a server's sessions.

`AdapterMethods` and `PluginMethods` add their handlers to those of an `AutomationService`, so that
all methods share one table, the connections and the sessions. Each handler first checks the
permissions of the plugin. `errors` maps its exceptions to errors of the protocol. All output of a
session passes the redactor of the `AutomationService`.

`AutomationServer` joins sessions, plugins, adapters and Lua workers: it is the server of
`telex serve`. It closes each part after the parts that use it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import UNSET

from telex.adapters import limits, plugin_permissions
from telex.adapters import manifest as manifests
from telex.adapters import protocol as spec
from telex.adapters.adapter import Adapters
from telex.adapters.classification import describe_plugin
from telex.adapters.context import split_status
from telex.adapters.errors import NotGranted, StillInUse, maps_errors
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.lua_plugin import read_plugin
from telex.adapters.plugin_permissions import require_permission
from telex.adapters.plugin_registry import Plugins
from telex.adapters.predicates import Predicates
from telex.automation import error_map, protocol, session_reader
from telex.automation.notices import Connection
from telex.automation.protocol import NoParams
from telex.automation.server import AutomationService, NamedWaits
from telex.rpc.errors import Condition, RpcError
from telex.terminal.redact import redact_values
from telex.terminal.waits.engine import WaitFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.adapters.adapter import Adapter
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.redaction import Redactor
    from telex.rpc.channel import Channel


WAIT_SECONDS: Final = 120.0
"""The default timeout of a wait. A turn of a coding agent may take minutes."""


class AdapterMethods:
    """The handlers of `adapter.*`: one per server, shared by its connections."""

    def __init__(
        self,
        automation: AutomationService,
        plugins: Plugins,
        adapters: Adapters,
        *,
        masks_states: bool = True,
    ) -> None:
        """Without `masks_states`, the states of results are as the plugin sees them; those of
        errors are masked in any case."""
        self.redactor = automation.redactor
        self._of_states = automation.redactor if masks_states else None
        self._automation = automation
        self._plugins = plugins
        self._adapters = adapters
        self._waits = NamedWaits()
        automation.add_handlers(self._handlers())

    # adapter.*

    def list(self, asked: NoParams, who: Connection) -> spec.PluginList:
        """Return the manifests of the server's plugins."""
        return spec.PluginList(
            plugin_permissions.redacted_manifests(self._plugins.all(), self.redactor)
        )

    def live(self, asked: NoParams, who: Connection) -> spec.LiveAdapters:
        """Return all open adapters, in the order of their ids."""
        return spec.LiveAdapters(
            tuple(
                spec.LiveAdapter(
                    adapter=one.id,
                    plugin=one.plugin.name,
                    session=one.session_id,
                    sequence=one.session.sequence,
                    finished=one.session.exit is not None,
                )
                for one in self._adapters.all()
            )
        )

    @maps_errors
    async def start(self, asked: spec.Start, who: Connection) -> spec.Started:
        """Start a program, and bind a plugin to its session."""
        plugin = self._plugins.find(asked.plugin)
        require_permission(plugin, "adapter.start")
        return await self._started(self._adapters.start(plugin, asked))

    @maps_errors
    async def resume(self, asked: spec.Resume, who: Connection) -> spec.Started:
        """Close a prior adapter if it is still open, then start a program with a plugin."""
        plugin = self._plugins.find(asked.plugin)
        require_permission(plugin, "adapter.resume")
        self._adapters.check(plugin, asked, instead_of=asked.prior_adapter)
        if asked.prior_adapter is not None and self._adapters.knows(asked.prior_adapter):
            await self._adapters.end(self._adapters.find(asked.prior_adapter))
            plugin = self._plugins.find(asked.plugin)  # it may have been unloaded meanwhile
        return await self._started(self._adapters.start(plugin, asked))

    @maps_errors
    async def attach(self, asked: spec.AttachTo, who: Connection) -> spec.Started:
        """Bind a plugin to an existing session, which other clients can still use."""
        plugin = self._plugins.find(asked.plugin)
        require_permission(plugin, "adapter.attach")
        return await self._started(self._adapters.attach(plugin, asked.session))

    @maps_errors
    async def state(self, asked: spec.OfAdapter, who: Connection) -> spec.StateReply:
        """Classify the screen now and return the state."""
        adapter = self._permitted(asked.adapter, "adapter.state")
        return spec.StateReply(await self._state(adapter, self._of_states))

    @maps_errors
    async def send(self, asked: spec.SendIntent, who: Connection) -> spec.StateReply:
        """Execute an intent of the plugin, and return the state after it."""
        adapter = self._permitted(asked.adapter, "adapter.send")
        with who.deferring_notices(adapter.session_id):
            async with adapter.input():
                await self._perform(adapter, asked, who, "adapter.send")
            return spec.StateReply(await self._state(adapter, self._of_states))

    @maps_errors
    async def wait(self, asked: spec.WaitFor, who: Connection) -> spec.AdapterMatched:
        """Wait until a wait matcher of the plugin matches."""
        adapter = self._permitted(asked.adapter, "adapter.wait")
        return await self._waits.run(asked.wait_id, adapter.id, self._wait(adapter, asked))

    @maps_errors
    async def turn(self, asked: spec.TakeTurn, who: Connection) -> spec.AdapterMatched:
        """Execute an intent and wait, without input of other clients in between."""
        adapter = self._permitted(asked.adapter, "adapter.turn")
        wait = asked.wait or spec.Waiting()

        async def both() -> spec.AdapterMatched:
            async with adapter.input():
                with who.deferring_notices(adapter.session_id):
                    await self._perform(adapter, asked.send, who, "adapter.turn")
                return await self._wait(adapter, wait)

        return await self._waits.run(wait.wait_id, adapter.id, both())

    def cancel_wait(
        self, asked: spec.CancelAdapterWait, who: Connection
    ) -> spec.AdapterWaitCancelled:
        """Cancel a wait by its id, from any connection. An unknown id is not an error."""
        if (adapter := self._waits.cancel(asked.wait_id)) is None:
            return spec.AdapterWaitCancelled(False)
        return spec.AdapterWaitCancelled(True, adapter, asked.wait_id)

    @maps_errors
    def snapshot(self, asked: spec.ReadAdapterScreen, who: Connection) -> protocol.ScreenSnapshot:
        """Return the visible screen."""
        adapter = self._permitted(asked.adapter, "adapter.snapshot")
        _, reader = self._automation.find(adapter.session_id)
        return reader.snapshot(asked.cells, self._redactor(asked))

    @maps_errors
    def transcript(
        self, asked: spec.ReadAdapterTranscript, who: Connection
    ) -> protocol.TranscriptText:
        """Return the printed text, as far back as the transcript is kept."""
        adapter = self._permitted(asked.adapter, "adapter.transcript")
        _, reader = self._automation.find(adapter.session_id)
        wanted = protocol.ReadTranscript(
            session=adapter.session_id, strip=asked.strip, cursor=asked.cursor
        )
        return reader.transcript(wanted, self._redactor(asked))

    @maps_errors
    async def inspect(self, asked: spec.ReadAdapter, who: Connection) -> spec.Inspection:
        """Return the context of the classifier, and the state it returns."""
        adapter = self._permitted(asked.adapter, "adapter.inspect")
        redactor = self._redactor(asked)
        session, reader = self._automation.find(adapter.session_id)
        state = await self._state(adapter, redactor)
        adapter.check_open()
        seen = reader.snapshot("none", redactor)
        body, status = split_status(seen.plain_text)
        tail = ""
        if "transcript.read" in adapter.plugin.permissions:
            begin = max(session.transcript.cursor - limits.INSPECTED_CHARS, 0)
            wanted = protocol.ReadTranscript(session=adapter.session_id, cursor=begin)
            tail = reader.transcript(wanted, redactor).text
        return spec.Inspection(
            adapter=adapter.id,
            plugin=adapter.plugin.name,
            session=adapter.session_id,
            state=state,
            plain_text=seen.plain_text,
            body_text=body,
            status_text=status,
            transcript_tail=tail,
            sequence=seen.sequence,
        )

    @maps_errors
    async def close_adapter(self, asked: spec.OfAdapter, who: Connection) -> protocol.Closed:
        """Close an adapter, and end its program if the adapter started it."""
        adapter = self._adapters.find(asked.adapter, ending=True)
        if adapter.owns:  # an attached adapter does not end the program
            require_permission(adapter.plugin, "adapter.close")
        with who.deferring_notices(adapter.session_id):
            await self._adapters.end(adapter)
            return protocol.Closed(True)

    # Shared by the handlers.

    def _permitted(self, id: str, method: str) -> Adapter:
        adapter = self._adapters.find(id)
        require_permission(adapter.plugin, method)
        return adapter

    async def _started(self, adapter: Adapter) -> spec.Started:
        try:
            state = await self._state(adapter, self._of_states)
        except BaseException:  # the client was cancelled, and no other client knows the id
            await self._adapters.end(adapter)
            raise
        return spec.Started(adapter.id, adapter.plugin.name, adapter.session_id, state)

    async def _perform(
        self, adapter: Adapter, asked: spec.Intent | spec.SendIntent, who: Connection, method: str
    ) -> None:
        if not adapter.owns:  # another connection may have the lease of the session
            self._automation.writable(adapter.session_id, who, method)
        await adapter.perform(asked.intent, _params(asked.params), method, who.identity)

    async def _wait(self, adapter: Adapter, asked: spec.Waiting) -> spec.AdapterMatched:
        timeout = WAIT_SECONDS if asked.timeout_ms is None else asked.timeout_ms / 1000
        function, params = asked.intent or spec.WAIT_MATCHER, _params(asked.params)
        _, reader = self._automation.find(adapter.session_id)
        try:
            found = await adapter.wait(
                function, params, timeout, reader.moment_keeper(self.redactor)
            )
        except WaitFailed as failed:
            data = error_map.wait_failure(failed)
            data = {**plugin_permissions.permitted_failure(data, adapter.plugin)}
            data["state"] = await self._state(adapter, self.redactor)
            what = f"{function!r} of the plugin {adapter.plugin.name}"
            sentence = f"{what} did not come within {data['elapsed_ms']} ms"
            if failed.moment.exit is not None:
                sentence = f"{what} did not come: the program {failed.moment.exit}"
            raise error_map.wait_failed(failed, data, sentence) from failed
        evidence = session_reader.evidence_data(found.evidence, found.moment, self.redactor)
        return spec.AdapterMatched(
            await self._state(adapter, self._of_states),
            plugin_permissions.permitted_match(evidence, adapter.plugin),
            UNSET if asked.wait_id is None else asked.wait_id,
        )

    async def _state(self, adapter: Adapter, redactor: Redactor | None) -> spec.AdapterState:
        """Classify the screen, and redact the state."""
        return plugin_permissions.redacted_state(await adapter.state(), redactor)

    def _redactor(self, asked: spec.ReadAdapter) -> Redactor | None:
        return session_reader.select_redactor(
            self._automation.redactor, asked.redact, asked.redaction
        )

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        return {
            "adapter.list": self.list,
            "adapter.live": self.live,
            "adapter.start": self.start,
            "adapter.resume": self.resume,
            "adapter.attach": self.attach,
            "adapter.state": self.state,
            "adapter.send": self.send,
            "adapter.wait": self.wait,
            "adapter.cancel_wait": self.cancel_wait,
            "adapter.turn": self.turn,
            "adapter.snapshot": self.snapshot,
            "adapter.transcript": self.transcript,
            "adapter.inspect": self.inspect,
            "adapter.close": self.close_adapter,
        }


def _params(asked: dict[str, Any] | None) -> dict[str, Any]:
    """Return the parameters; null means none. Raises RpcError if they are too large: otherwise the
    plugin would fail at its limits, and seem to be at fault."""
    params = asked or {}
    if len(msgspec.json.encode(params)) > limits.INTENT_PARAMS_BYTES:
        most = f"{limits.INTENT_PARAMS_BYTES:,} bytes"
        raise RpcError(Condition.PARAMS, f"params may be {most} of JSON; send less at once")
    return params


class PluginMethods:
    """The handlers of `plugin.*`: one per server, shared by its connections.

    `plugin.load` needs `--allow-plugin-load`: a client that may load a plugin makes the server read
    any Lua file below a manifest, and run it in a sandbox.
    """

    def __init__(
        self,
        automation: AutomationService,
        plugins: Plugins,
        predicates: Predicates,
        adapters: Adapters,
        *,
        may_load: bool,
    ) -> None:
        self.redactor = automation.redactor
        self._plugins = plugins
        self._predicates = predicates
        self._adapters = adapters
        self._may_load = may_load
        automation.add_handlers(self._handlers())

    def capabilities(self, asked: NoParams, who: Connection) -> spec.PluginCapabilities:
        """Return the supported permissions and runtimes, and the builtin plugins."""
        manifests = plugin_permissions.redacted_manifests(self._plugins.builtins(), self.redactor)
        return spec.PluginCapabilities(spec.PERMISSIONS, True, False, manifests)

    @maps_errors
    def validate_manifest(
        self, asked: spec.ValidateManifest, who: Connection
    ) -> spec.ManifestValid:
        """Check a manifest. The error names all problems at once, each by its field."""
        manifests.check(asked.manifest)
        return spec.ManifestValid(True)

    @maps_errors
    async def describe(self, asked: spec.OfPlugin, who: Connection) -> spec.PluginDescription:
        """Return the result of the plugin's `describe`, or else a list of its functions."""
        plugin = self._plugins.find(asked.plugin)
        catalogue = await describe_plugin(self._predicates.instance(asked.plugin))
        (manifest,) = plugin_permissions.redacted_manifests([plugin], self.redactor)
        named = [
            redact_values(one, self.redactor)
            for one in (catalogue.intents, catalogue.wait_matchers, catalogue.states)
        ]
        return spec.PluginDescription(plugin.name, manifest, *named)

    @maps_errors
    async def load(self, asked: spec.LoadPlugin, who: Connection) -> spec.Loaded:
        """Read a plugin from the server's disk and add it."""
        self._granted("plugin.load")
        plugin = await asyncio.to_thread(read_plugin, Path(asked.manifest_path))
        self._plugins.add(plugin)
        return spec.Loaded(plugin.name)

    @maps_errors
    async def unload(self, asked: spec.OfPlugin, who: Connection) -> spec.Unloaded:
        """Remove a plugin that was loaded and is not in use."""
        self._granted("plugin.unload")
        plugin = self._plugins.find(asked.plugin)
        users = [one.id for one in self._adapters.all() if one.plugin.name == plugin.name]
        if users and not plugin.builtin:
            raise StillInUse(plugin.name, users)
        self._plugins.remove(plugin.name)  # raises BuiltinStays for a builtin plugin
        await self._predicates.forget(plugin.name)
        return spec.Unloaded(True)

    def _granted(self, method: str) -> None:
        if not self._may_load:
            raise NotGranted(method)

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        return {
            "plugin.capabilities": self.capabilities,
            "plugin.validate_manifest": self.validate_manifest,
            "plugin.describe": self.describe,
            "plugin.load": self.load,
            "plugin.unload": self.unload,
        }


class Extension(Protocol):
    """A part of the server beside adapters that extends sessions, such as JSON escapes."""

    async def close(self) -> None:
        """Called after all sessions are closed."""
        ...


class AutomationServer:
    """All parts of one server. Call `close()` at the end."""

    def __init__(
        self,
        plugins: Iterable[LuaPlugin],
        *,
        redactor: Redactor | None = None,
        may_load: bool = False,
        lenient: bool = False,
        masks_states: bool = True,
        extend: Iterable[Callable[[AutomationService], Extension]] = (),
    ) -> None:
        """Each function of `extend` gets the `AutomationService` and returns its extension.
        `lenient` is that of the `AutomationService`, `masks_states` that of `AdapterMethods`."""
        self.plugins = Plugins(plugins)
        self._workers = WorkerPool()
        self._predicates = Predicates(self.plugins, self._workers)
        self.automation = AutomationService(
            redactor=redactor, predicates=self._predicates.runner, lenient=lenient
        )
        self._extensions = [extension(self.automation) for extension in extend]
        self._adapters = Adapters(self.automation, self._workers)
        self.adapter_methods = AdapterMethods(
            self.automation, self.plugins, self._adapters, masks_states=masks_states
        )
        self.plugin_methods = PluginMethods(
            self.automation, self.plugins, self._predicates, self._adapters, may_load=may_load
        )

    async def converse(self, channel: Channel, *, one_at_a_time: bool = False) -> None:
        """Serve one connection until it closes."""
        await self.automation.converse(channel, one_at_a_time=one_at_a_time)

    async def leave(self) -> None:
        """Answer pending requests with an error that the server ends, and close the connections."""
        await self.automation.leave()

    async def close(self) -> None:
        """End all programs and all Lua workers, and wait."""
        try:
            await self.automation.close()
            for extension in self._extensions:
                await extension.close()
        finally:
            try:
                await self._adapters.close()
                await self._predicates.close()
            finally:
                await self._workers.close()
