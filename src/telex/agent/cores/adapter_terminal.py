"""A terminal with the TUI of another agent, and the adapter that knows its states.

`AdapterTerminal` reads states, types by intents of the plugin, and waits. It decides nothing: what
a state means for a run is decided in `adapter`. The session is one of the one server, so a person
sees it in `telex list`, and takes over with `telex attach NAME`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from telex import match
from telex.adapters import protocol as adapter_spec
from telex.agent.tools.tool import new_id
from telex.automation import protocol as spec
from telex.automation.errors import Cancelled, Refused, ServerGone, SessionClosed, TimedOut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.adapters.protocol import AdapterState
    from telex.agent.terminal_server import TerminalServer

T = TypeVar("T")

_UNUSED = "24h"
"""How long a program lives that nobody uses: its agent may have been killed."""
_CHANGE_MS = 600_000
_STABLE_MS = 300
_EXIT_MS = 1_000
"""How long to wait for the exit code of a program that is known to have exited."""


@dataclass(frozen=True, slots=True)
class SeenState:
    """A state, and whether the wait for it matched: the turn was over, or a person was needed."""

    state: AdapterState
    matched: bool


@dataclass(frozen=True, slots=True)
class TerminalPlace:
    """How a terminal is found again: by the name and ids of its session and adapter."""

    name: str
    session: str
    adapter: str


class TerminalGone(Exception):
    """The session or its adapter was closed, or its server has ended."""


class TerminalProgramEnded(Exception):
    """The program has exited; the message says how."""

    def __init__(self, how: str, screen: str) -> None:
        super().__init__(how)
        self.screen = screen


class AdapterTerminal:
    """One program on its terminal, with its adapter."""

    def __init__(
        self,
        server: TerminalServer,
        plugin: str,
        place: TerminalPlace,
        inputs: Mapping[str, str | None],
    ) -> None:
        """`inputs`: what the program waits for in each state, as the plugin says."""
        self._server = server
        self.plugin = plugin
        self.place = place
        self.inputs = inputs
        self.connection: int | None = None
        """The connection to the server on which the terminal was found: see `TerminalServer`."""
        self._wait_id = ""

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def attach_command(self) -> str:
        return f"telex attach {self.name}"

    def input_of(self, state: AdapterState) -> str | None:
        """Return what the program waits for in a state; None if the plugin does not say."""
        return self.inputs.get(state.state)

    async def look(self) -> AdapterState:
        """Classify the screen now. Raises TerminalProgramEnded, TerminalGone."""
        asked = adapter_spec.OfAdapter(self.place.adapter)
        state = (await self._call("adapter.state", asked, adapter_spec.StateReply)).state
        await self._check_running()
        return state

    async def wait(self, seconds: float) -> SeenState:
        """Wait until a turn is over or a person is needed, or return the state after a time.
        Raises TerminalProgramEnded, TerminalGone."""
        asked = adapter_spec.WaitFor(
            adapter=self.place.adapter, timeout_ms=_ms(seconds), wait_id=self._new_wait()
        )
        return await self._awaited("adapter.wait", asked)

    async def turn(self, intent: str, params: Mapping[str, Any], seconds: float) -> SeenState:
        """Type by an intent, and `wait`, without other input between them. Raises
        TerminalProgramEnded, TerminalGone, and Refused if the plugin refuses the intent."""
        asked = adapter_spec.TakeTurn(
            adapter=self.place.adapter,
            send=adapter_spec.Intent(intent, dict(params)),
            wait=adapter_spec.Waiting(timeout_ms=_ms(seconds), wait_id=self._new_wait()),
        )
        return await self._awaited("adapter.turn", asked)

    async def interrupt(self, intent: str) -> None:
        """End the wait of a turn that was cancelled, and type the intent that interrupts."""
        if self._wait_id:
            ending = adapter_spec.CancelAdapterWait(self._wait_id)
            await self._call("adapter.cancel_wait", ending, adapter_spec.AdapterWaitCancelled)
        asked = adapter_spec.SendIntent(self.place.adapter, intent)
        await self._call("adapter.send", asked, adapter_spec.StateReply)

    async def changed(self, sequence: int, *, stable: bool) -> None:
        """Wait until the screen has changed since a sequence, and with `stable` until it rests
        again. Raises TerminalGone."""
        matcher = match.changed(sequence)
        if stable:
            matcher = match.all_of(matcher, match.stable(_STABLE_MS))
        asked = spec.Wait(
            session=self.place.session, matcher=matcher, timeout_ms=_CHANGE_MS, cells="none"
        )
        while True:
            with suppress(TimedOut):
                await self._call("session.wait", asked, spec.Matched)
                return

    async def screen(self) -> str:
        """Return the text of the screen, without secrets."""
        asked = adapter_spec.ReadAdapterScreen(adapter=self.place.adapter, cells="none")
        return (await self._call("adapter.snapshot", asked, spec.ScreenSnapshot)).plain_text

    async def is_live(self) -> bool:
        """Whether the session with this name still has this adapter, and its program runs."""
        listed = await self._server.call(
            "session.list", spec.ListSessions(include_adapters=True), spec.SessionList
        )
        if listed.names.get(self.place.session) != self.name:
            return False
        self.connection = self._server.connection
        live = await self._call("adapter.live", spec.NoParams(), adapter_spec.LiveAdapters)
        return any(
            (one.adapter, one.session, one.plugin, one.finished)
            == (self.place.adapter, self.place.session, self.plugin, False)
            for one in live.adapters
        )

    async def close(self) -> None:
        """End the program. Nothing happens if the session is gone already. Raises
        SessionProblem."""
        listed = await self._server.call(
            "session.list", spec.ListSessions(include_adapters=True), spec.SessionList
        )
        if listed.names.get(self.place.session) == self.name:
            closing = spec.OfSession(self.place.session)
            await self._server.call("session.close", closing, spec.Closed)

    def _new_wait(self) -> str:
        self._wait_id = new_id()
        return self._wait_id

    async def _awaited(self, method: str, asked: object) -> SeenState:
        try:
            found = await self._call(method, asked, adapter_spec.AdapterMatched)
        except (TimedOut, Cancelled):
            self._wait_id = ""
            return SeenState(await self.look(), matched=False)
        self._wait_id = ""
        await self._check_running()
        return SeenState(found.state, matched=True)

    async def _check_running(self) -> None:
        live = await self._call("adapter.live", spec.NoParams(), adapter_spec.LiveAdapters)
        one = next((one for one in live.adapters if one.adapter == self.place.adapter), None)
        if one is None:
            raise TerminalGone(f"the terminal {self.name} was closed")
        if one.finished:
            raise await self._ended()

    async def _ended(self) -> TerminalProgramEnded:
        asked = spec.Wait(
            session=self.place.session, matcher=match.exited(), timeout_ms=_EXIT_MS, cells="none"
        )
        found = await self._call("session.wait", asked, spec.Matched)
        code = found.evidence.get("exit_code")
        how = "was ended by a signal" if code is None else f"ended with exit code {code}"
        return TerminalProgramEnded(how, found.snapshot.plain_text)

    async def _call(self, method: str, params: object, returns: type[T]) -> T:
        try:
            return await self._server.call(method, params, returns, connection=self.connection)
        except (SessionClosed, ServerGone) as problem:
            raise TerminalGone(f"the terminal {self.name} is gone: {problem.args[0]}") from None
        except Refused as problem:
            if problem.data.get("reason") in ("unknown_adapter", "unknown_session"):
                raise TerminalGone(f"the terminal {self.name} was closed") from None
            raise


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


async def open_terminal(
    server: TerminalServer,
    plugin: str,
    name: str,
    *,
    cwd: str,
    environment: Mapping[str, str],
) -> AdapterTerminal:
    """Start the program of a plugin on a new terminal with this name.

    Raises VerbRefused if it cannot be started, NoTerminalServer, SessionProblem.
    """
    words = ["open", name, "--adapter", plugin, "--ttl", _UNUSED]
    opened = await server.run_verb(words, cwd=cwd, env=environment)
    session, connection = str(opened.facts["id"]), server.connection
    live = await server.call("adapter.live", spec.NoParams(), adapter_spec.LiveAdapters)
    adapter = next((one.adapter for one in live.adapters if one.session == session), "")
    place = TerminalPlace(name, session, adapter)
    terminal = AdapterTerminal(server, plugin, place, await input_kinds(server, plugin))
    terminal.connection = connection
    return terminal


async def input_kinds(server: TerminalServer, plugin: str) -> dict[str, str | None]:
    """Return what the program of a plugin waits for in each of its states."""
    described = await server.call(
        "plugin.describe", adapter_spec.OfPlugin(plugin), adapter_spec.PluginDescription
    )
    return {
        str(one.get("name")): one.get("input") for one in described.states if isinstance(one, dict)
    }
