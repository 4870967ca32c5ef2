"""`adapter.*` of terminal automation, on top of a server's sessions.

`Adapters` adds its methods to those of an `AutomationService`: one table, one kind of connection,
one count of sessions. Each method asks the plugin's manifest first, then does its work; what goes
wrong becomes an error of the protocol in `problems`. Everything told of a session goes through the
same redactor as in `automation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from telex.adapters import telling as tellable
from telex.adapters.context import split
from telex.adapters.permissions import demand
from telex.adapters.problems import answered
from telex.automation import errors, protocol, session_reader
from telex.automation.notices import Connection
from telex.automation.protocol import NoParams
from telex.automation.server import NamedWaits
from telex.protocols import pty_adapters as spec
from telex.rpc.errors import Condition, RpcError
from telex.terminal.waits.engine import WaitFailed
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.adapters.adapter import Adapter
    from telex.adapters.live import Live
    from telex.adapters.registry import Plugins
    from telex.automation.server import AutomationService
    from telex.redaction import Redactor

WAIT_SECONDS: Final = 120.0
"""How long a wait lasts unless it says: a turn of a coding agent takes its time."""


class Adapters:
    """The service: one per server, shared by its connections."""

    def __init__(
        self,
        automation: AutomationService,
        plugins: Plugins,
        live: Live,
    ) -> None:
        self.redactor = automation.redactor
        self._automation = automation
        self._plugins = plugins
        self._live = live
        self._waits = NamedWaits()
        automation.add_handlers(self._handlers())

    # adapter.*

    def list(self, asked: NoParams, who: Connection) -> spec.PluginList:
        """The manifests of the plugins this server has."""
        return spec.PluginList(tellable.manifests(self._plugins.all(), self.redactor))

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
                for one in self._live.all()
            )
        )

    @answered
    async def start(self, asked: spec.Start, who: Connection) -> spec.Started:
        """Start a program, with a plugin that knows it."""
        plugin = self._plugins.find(asked.plugin)
        demand(plugin, "adapter.start")
        return await self._started(self._live.start(plugin, asked))

    @answered
    async def resume(self, asked: spec.Resume, who: Connection) -> spec.Started:
        """The same, after closing a prior adapter if it is still there."""
        plugin = self._plugins.find(asked.plugin)
        demand(plugin, "adapter.resume")
        self._live.check(plugin, asked, instead_of=asked.prior_adapter)
        if asked.prior_adapter is not None and self._live.knows(asked.prior_adapter):
            await self._live.shut(self._live.find(asked.prior_adapter))
            plugin = self._plugins.find(asked.plugin)  # it may have been unloaded meanwhile
        return await self._started(self._live.start(plugin, asked))

    @answered
    async def attach(self, asked: spec.AttachTo, who: Connection) -> spec.Started:
        """Bind a plugin to a session that runs already, which stays everybody's."""
        plugin = self._plugins.find(asked.plugin)
        demand(plugin, "adapter.attach")
        return await self._started(self._live.attach(plugin, asked.session))

    @answered
    async def state(self, asked: spec.OfAdapter, who: Connection) -> spec.Told:
        """What the program is doing, in the plugin's words."""
        adapter = self._permitted(asked.adapter, "adapter.state")
        return spec.Told(await self._state(adapter, self.redactor))

    @answered
    async def send(self, asked: spec.Send, who: Connection) -> spec.Told:
        """Do what an intent of the plugin wants done, and answer the state after it."""
        adapter = self._permitted(asked.adapter, "adapter.send")
        with who.deferring_notices(adapter.session_id):
            async with adapter.input():
                await self._perform(adapter, asked, who, "adapter.send")
            return spec.Told(await self._state(adapter, self.redactor))

    @answered
    async def wait(self, asked: spec.WaitFor, who: Connection) -> spec.AdapterMatched:
        """Wait for what a wait matcher of the plugin looks for."""
        adapter = self._permitted(asked.adapter, "adapter.wait")
        return await self._waits.run(asked.wait_id, adapter.id, self._wait(adapter, asked))

    @answered
    async def turn(self, asked: spec.Turn, who: Connection) -> spec.AdapterMatched:
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

    @answered
    def snapshot(self, asked: spec.ReadAdapterScreen, who: Connection) -> protocol.ScreenSnapshot:
        """The visible screen."""
        adapter = self._permitted(asked.adapter, "adapter.snapshot")
        _, reader = self._automation.find(adapter.session_id)
        return reader.snapshot(asked.cells, self._redactor(asked))

    @answered
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

    @answered
    async def inspect(self, asked: spec.ReadAdapter, who: Connection) -> spec.Inspection:
        """What the classifier sees, and what it makes of it."""
        adapter = self._permitted(asked.adapter, "adapter.inspect")
        redactor = self._redactor(asked)
        session, reader = self._automation.find(adapter.session_id)
        state = await self._state(adapter, redactor)
        adapter.check_open()
        seen = reader.snapshot("none", redactor)
        body, status = split(seen.plain_text)
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

    @answered
    async def close_adapter(self, asked: spec.OfAdapter, who: Connection) -> protocol.Closed:
        """End an adapter, and its program if it started it."""
        adapter = self._live.find(asked.adapter, ending=True)
        if adapter.owns:  # one that was attached kills nothing
            demand(adapter.plugin, "adapter.close")
        with who.deferring_notices(adapter.session_id):
            await self._live.shut(adapter)
            return protocol.Closed(True)

    # Behind them.

    def _permitted(self, id: str, method: str) -> Adapter:
        adapter = self._live.find(id)
        demand(adapter.plugin, method)
        return adapter

    async def _started(self, adapter: Adapter) -> spec.Started:
        try:
            state = await self._state(adapter, self.redactor)
        except BaseException:  # whoever asked has gone, and nobody else knows its id
            await self._live.shut(adapter)
            raise
        return spec.Started(adapter.id, adapter.plugin.name, adapter.session_id, state)

    async def _perform(
        self, adapter: Adapter, asked: spec.Intent | spec.Send, who: Connection, method: str
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
            data = {**tellable.in_vain(data, adapter.plugin)}
            data["state"] = await self._state(adapter, self.redactor)
            raise errors.wait_failed(failed, data) from failed
        evidence = session_reader.evidence_data(found.evidence, found.moment, self.redactor)
        return spec.AdapterMatched(
            await self._state(adapter, self.redactor),
            tellable.matched(evidence, adapter.plugin),
            UNSET if asked.wait_id is None else asked.wait_id,
        )

    async def _state(self, adapter: Adapter, redactor: Redactor | None) -> spec.State:
        """The state, as it may be told."""
        return tellable.state(await adapter.state(), redactor)

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
