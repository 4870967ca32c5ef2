"""`adapter.*` and `plugin.*` of terminal automation, on top of a server's sessions.

`AdapterMethods` and `PluginMethods` add their handlers to those of an `Automation`: one table, one
kind of connection, one count of sessions. Each handler checks the plugin's manifest first; what it
raises becomes an error of the protocol in `errors`. Everything told of a session goes through the
same redactor as in `terminal`.

`AutomationServer` is all of it put together, sessions, plugins, adapters and the Lua workers: what
`telex serve` serves. Each part is closed after those that need it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import UNSET

from telex.adapters import limits, plugin_permissions
from telex.adapters import manifest as manifests
from telex.adapters import plugin_permissions as tellable
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
from telex.automation import errors, protocol, session_reader
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
"""How long a wait lasts unless it says: a turn of a coding agent takes its time."""


class AdapterMethods:
    """The handlers of `adapter.*`: one per server, shared by its connections."""

    def __init__(
        self,
        automation: AutomationService,
        plugins: Plugins,
        adapters: Adapters,
    ) -> None:
        self.redactor = automation.redactor
        self._automation = automation
        self._plugins = plugins
        self._adapters = adapters
        self._waits = NamedWaits()
        automation.add_handlers(self._handlers())

    # adapter.*

    def list(self, asked: NoParams, who: Connection) -> spec.PluginList:
        """The manifests of the plugins this server has."""
        return spec.PluginList(tellable.redacted_manifests(self._plugins.all(), self.redactor))

    def live(self, asked: NoParams, who: Connection) -> spec.LiveAdapters:
        """Every adapter that was not closed, by id."""
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
        """Start a program, with a plugin that knows it."""
        plugin = self._plugins.find(asked.plugin)
        require_permission(plugin, "adapter.start")
        return await self._started(self._adapters.start(plugin, asked))

    @maps_errors
    async def resume(self, asked: spec.Resume, who: Connection) -> spec.Started:
        """The same, after closing a prior adapter if it is still there."""
        plugin = self._plugins.find(asked.plugin)
        require_permission(plugin, "adapter.resume")
        self._adapters.check(plugin, asked, instead_of=asked.prior_adapter)
        if asked.prior_adapter is not None and self._adapters.knows(asked.prior_adapter):
            await self._adapters.end(self._adapters.find(asked.prior_adapter))
            plugin = self._plugins.find(asked.plugin)  # it may have been unloaded meanwhile
        return await self._started(self._adapters.start(plugin, asked))

    @maps_errors
    async def attach(self, asked: spec.AttachTo, who: Connection) -> spec.Started:
        """Bind a plugin to a session that runs already, which stays everybody's."""
        plugin = self._plugins.find(asked.plugin)
        require_permission(plugin, "adapter.attach")
        return await self._started(self._adapters.attach(plugin, asked.session))

    @maps_errors
    async def state(self, asked: spec.OfAdapter, who: Connection) -> spec.StateReply:
        """What the program is doing, in the plugin's words."""
        adapter = self._permitted(asked.adapter, "adapter.state")
        return spec.StateReply(await self._state(adapter, self.redactor))

    @maps_errors
    async def send(self, asked: spec.SendIntent, who: Connection) -> spec.StateReply:
        """Do what an intent of the plugin wants done, and answer the state after it."""
        adapter = self._permitted(asked.adapter, "adapter.send")
        with who.deferring_notices(adapter.session_id):
            async with adapter.input():
                await self._perform(adapter, asked, who, "adapter.send")
            return spec.StateReply(await self._state(adapter, self.redactor))

    @maps_errors
    async def wait(self, asked: spec.WaitFor, who: Connection) -> spec.AdapterMatched:
        """Wait for what a wait matcher of the plugin looks for."""
        adapter = self._permitted(asked.adapter, "adapter.wait")
        return await self._waits.run(asked.wait_id, adapter.id, self._wait(adapter, asked))

    @maps_errors
    async def turn(self, asked: spec.TakeTurn, who: Connection) -> spec.AdapterMatched:
        """Send an intent and wait, with nobody else's input in between."""
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
        """End a wait by its id, from any connection. An unknown id is not an error."""
        if (adapter := self._waits.cancel(asked.wait_id)) is None:
            return spec.AdapterWaitCancelled(False)
        return spec.AdapterWaitCancelled(True, adapter, asked.wait_id)

    @maps_errors
    def snapshot(self, asked: spec.ReadAdapterScreen, who: Connection) -> protocol.ScreenSnapshot:
        """The visible screen."""
        adapter = self._permitted(asked.adapter, "adapter.snapshot")
        _, reader = self._automation.find(adapter.session_id)
        return reader.snapshot(asked.cells, self._redactor(asked))

    @maps_errors
    def transcript(
        self, asked: spec.ReadAdapterTranscript, who: Connection
    ) -> protocol.TranscriptText:
        """What was printed, as far back as it is kept."""
        adapter = self._permitted(asked.adapter, "adapter.transcript")
        _, reader = self._automation.find(adapter.session_id)
        wanted = protocol.ReadTranscript(
            session=adapter.session_id, strip=asked.strip, cursor=asked.cursor
        )
        return reader.transcript(wanted, self._redactor(asked))

    @maps_errors
    async def inspect(self, asked: spec.ReadAdapter, who: Connection) -> spec.Inspection:
        """What the classifier sees, and what it makes of it."""
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
        """End an adapter, and its program if it started it."""
        adapter = self._adapters.find(asked.adapter, ending=True)
        if adapter.owns:  # one that was attached kills nothing
            require_permission(adapter.plugin, "adapter.close")
        with who.deferring_notices(adapter.session_id):
            await self._adapters.end(adapter)
            return protocol.Closed(True)

    # Behind them.

    def _permitted(self, id: str, method: str) -> Adapter:
        adapter = self._adapters.find(id)
        require_permission(adapter.plugin, method)
        return adapter

    async def _started(self, adapter: Adapter) -> spec.Started:
        try:
            state = await self._state(adapter, self.redactor)
        except BaseException:  # whoever asked has gone, and nobody else knows its id
            await self._adapters.end(adapter)
            raise
        return spec.Started(adapter.id, adapter.plugin.name, adapter.session_id, state)

    async def _perform(
        self, adapter: Adapter, asked: spec.Intent | spec.SendIntent, who: Connection, method: str
    ) -> None:
        if not adapter.owns:  # somebody else may hold the right to type
            self._automation.writable(adapter.session_id, who, method)
        await adapter.perform(asked.intent, _params(asked.params), method)

    async def _wait(self, adapter: Adapter, asked: spec.Waiting) -> spec.AdapterMatched:
        timeout = WAIT_SECONDS if asked.timeout_ms is None else asked.timeout_ms / 1000
        function, params = asked.intent or spec.WAIT_MATCHER, _params(asked.params)
        _, reader = self._automation.find(adapter.session_id)
        try:
            found = await adapter.wait(
                function, params, timeout, reader.moment_keeper(self.redactor)
            )
        except WaitFailed as failed:
            data = errors.wait_failure(failed)
            data = {**tellable.permitted_failure(data, adapter.plugin)}
            data["state"] = await self._state(adapter, self.redactor)
            raise errors.wait_failed(failed, data) from failed
        evidence = session_reader.evidence_data(found.evidence, found.moment, self.redactor)
        return spec.AdapterMatched(
            await self._state(adapter, self.redactor),
            tellable.permitted_match(evidence, adapter.plugin),
            UNSET if asked.wait_id is None else asked.wait_id,
        )

    async def _state(self, adapter: Adapter, redactor: Redactor | None) -> spec.AdapterState:
        """The state, as it may be told."""
        return tellable.redacted_state(await adapter.state(), redactor)

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
    """Null is the same as none. Too much of it would be the plugin's fault to others."""
    params = asked or {}
    if len(msgspec.json.encode(params)) > limits.INTENT_PARAMS_BYTES:
        most = f"{limits.INTENT_PARAMS_BYTES:,} bytes"
        raise RpcError(Condition.PARAMS, f"params may be {most} of JSON; send less at once")
    return params


class PluginMethods:
    """The handlers of `plugin.*`: one per server, shared by its connections.

    Loading is a server's to grant (`--allow-plugin-load`): a caller that may load a plugin has any
    Lua file below a manifest read, and run in a sandbox.
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
        """What plugins can have here, and those that come with telex."""
        manifests = plugin_permissions.redacted_manifests(self._plugins.builtins(), self.redactor)
        return spec.PluginCapabilities(spec.PERMISSIONS, True, False, manifests)

    @maps_errors
    def validate_manifest(
        self, asked: spec.ValidateManifest, who: Connection
    ) -> spec.ManifestValid:
        """Check a manifest. What is wrong with it is told all at once, field by field."""
        manifests.check(asked.manifest)
        return spec.ManifestValid(True)

    @maps_errors
    async def describe(self, asked: spec.OfPlugin, who: Connection) -> spec.PluginDescription:
        """What a plugin offers: by its own word, or else by what it exports."""
        plugin = self._plugins.find(asked.plugin)
        said = await describe_plugin(self._predicates.instance(asked.plugin))
        (manifest,) = plugin_permissions.redacted_manifests([plugin], self.redactor)
        named = [
            redact_values(one, self.redactor)
            for one in (said.intents, said.wait_matchers, said.states)
        ]
        return spec.PluginDescription(plugin.name, manifest, *named)

    @maps_errors
    async def load(self, asked: spec.LoadPlugin, who: Connection) -> spec.Loaded:
        """Add a plugin from its manifest on disk."""
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
        self._plugins.remove(plugin.name)  # which refuses those that come with telex
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
    """Something beside adapters that sessions are given, such as JSON escapes."""

    async def close(self) -> None:
        """All sessions are closed."""
        ...


class AutomationServer:
    """All parts of one server. Call `close()` at the end."""

    def __init__(
        self,
        plugins: Iterable[LuaPlugin],
        *,
        redactor: Redactor | None = None,
        may_load: bool = False,
        extend: Iterable[Callable[[AutomationService], Extension]] = (),
    ) -> None:
        """Each of `extend` is given the sessions, to add what neither they nor adapters know of."""
        self.plugins = Plugins(plugins)
        self._workers = WorkerPool()
        self._predicates = Predicates(self.plugins, self._workers)
        self.automation = AutomationService(redactor=redactor, predicates=self._predicates.runner)
        self._extensions = [extension(self.automation) for extension in extend]
        self._adapters = Adapters(self.automation, self._workers)
        self.adapter_methods = AdapterMethods(self.automation, self.plugins, self._adapters)
        self.plugin_methods = PluginMethods(
            self.automation, self.plugins, self._predicates, self._adapters, may_load=may_load
        )

    async def converse(self, channel: Channel, *, one_at_a_time: bool = False) -> None:
        """Serve one connection until it is over."""
        await self.automation.converse(channel, one_at_a_time=one_at_a_time)

    async def leave(self) -> None:
        """Answer what is pending with an error that says that the server ends, and hang up."""
        await self.automation.leave()

    async def close(self) -> None:
        """End every program and every plugin."""
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
