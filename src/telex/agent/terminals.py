"""The terminals of the threads: sessions of the one server that the tools of a thread opened.

A thread uses only its own terminals, never those of a person or of another thread. The facts about
each (the line, whether the person allowed all input, the secrets that were typed) are in memory and
end with the runtime, as the terminals do.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.agent.limits import AGENT_SECRETS_MASKED
from telex.agent.protocol.extensions import ListedTerminal
from telex.agent.terminal_server import NoTerminalServer, TerminalServer, VerbRefused
from telex.automation.errors import Refused, ServerGone, SessionProblem
from telex.automation.protocol import NoParams
from telex.automation.verb_protocol import FACTS, LEASE_END, OfTerminal, TypingFacts
from telex.processes.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from telex.automation.verb_protocol import ExpectedFacts, VerbParts

    AskSecret = Callable[[str, str], Awaitable[str | None]]
    TellPerson = Callable[[str | None], None]

_ROWS: Final = r"(?:\n(?:\d+\|)?)?"
"""The end of a row, and the number of the next one, between two letters of a wrapped text."""


class UnknownTerminal(Exception):
    """The thread has no such terminal; a sentence."""


@dataclass(eq=False, slots=True)
class AgentTerminal:
    """One terminal of a thread."""

    name: str
    id: str
    program: str
    connection: int
    """The connection to the server on which it was opened."""
    inputs: int = 0
    """The number of the terminal's last input, if that was this agent's; else -1."""
    pending: str = ""
    """The text that was typed since the last key that is no text."""
    allowed: bool = False
    """Whether the person allowed everything that is typed into it."""
    sequence: int | None = None
    """The last screen that the model saw."""
    secrets: list[str] = field(default_factory=list)
    """Texts that the person typed for its programs. They are masked in what the model sees."""

    def note_secret(self, text: str) -> None:
        self.secrets = [*self.secrets, text][-AGENT_SECRETS_MASKED:]

    def mask(self, text: str, replacement: str) -> str:
        """Return a text without these secrets, also where a screen wrapped them."""
        for secret in self.secrets:
            wrapped = _ROWS.join(map(re.escape, secret))
            text = re.sub(wrapped, lambda _: replacement, text)
        return text

    @property
    def details(self) -> dict[str, str]:
        """The members by which events name it."""
        return {"name": self.name, "id": self.id, "attach": f"telex attach {self.name}"}


class ThreadTerminals:
    """The terminals of one thread."""

    def __init__(self, server: TerminalServer) -> None:
        self._server = server
        self._open: dict[str, AgentTerminal] = {}

    def __iter__(self) -> Iterator[AgentTerminal]:
        return iter(list(self._open.values()))

    def find(self, name: str | None) -> AgentTerminal:
        """Return the terminal of that name or id; without one, the only one. Raises
        UnknownTerminal."""
        if name is None and len(self._open) == 1:
            return next(iter(self))
        for one in self:
            if name in (one.name, one.id):
                return one
        there = ", ".join(one.name for one in self) or "none; terminal_open opens one"
        if name is None:
            raise UnknownTerminal(f"which terminal? Give its name as `session`. There are: {there}")
        raise UnknownTerminal(f"you have no terminal {name!r}. There are: {there}")

    async def run(
        self,
        one: AgentTerminal,
        words: Sequence[str],
        *,
        stdin: str | None = None,
        expected: ExpectedFacts | None = None,
    ) -> VerbParts:
        """Run a verb on a terminal. Raises as `TerminalServer.run_verb`."""
        try:
            return await self._server.run_verb(
                words, stdin=stdin, expected=expected, connection=one.connection
            )
        except ServerGone:
            self.forget(one)
            raise

    async def open(self, words: Sequence[str], cwd: str, env: dict[str, str]) -> AgentTerminal:
        """Open a terminal with the words of `open`. A cancel ends it again. Raises as `run`."""
        opening = asyncio.ensure_future(self._server.run_verb(words, cwd=cwd, env=env))
        try:
            await run_shielded(asyncio.wait({opening}))
        except asyncio.CancelledError:
            if opening.exception() is None:
                await self._end(self._opened(opening.result()))
            raise
        return self._opened(opening.result())

    def _opened(self, parts: VerbParts) -> AgentTerminal:
        facts = parts.facts
        one = AgentTerminal(
            facts["session"],
            facts["id"],
            facts["program"],
            self._server.connection,
            facts["inputs"],
        )
        self._open[one.name] = one
        return one

    async def facts(self, one: AgentTerminal) -> TypingFacts:
        """Return who reads the next input. Raises UnknownTerminal if the terminal was closed, and
        NoTerminalServer."""
        try:
            facts = await self._server.call(
                FACTS, OfTerminal(one.id), TypingFacts, connection=one.connection
            )
        except ServerGone:
            self.forget(one)
            raise UnknownTerminal("the server of the terminals ended, and they with it") from None
        except Refused:
            self.forget(one)
            raise UnknownTerminal(f"the terminal {one.name} was closed") from None
        return facts

    async def listed(self) -> list[ListedTerminal]:
        """Return the terminals that are open, with what their programs wait for."""
        found = []
        for one in self:
            try:
                facts = await self.facts(one)
            except (UnknownTerminal, NoTerminalServer):
                continue
            state = "exited" if facts.exited else facts.input.state
            attach = one.details["attach"]
            found.append(ListedTerminal(one.name, one.id, facts.program, state, attach))
        return found

    async def lease_end(self, one: AgentTerminal) -> None:
        """Wait until nobody else holds the terminal."""
        await self._server.call(LEASE_END, OfTerminal(one.id), NoParams, connection=one.connection)

    def forget(self, one: AgentTerminal) -> None:
        if self._open.get(one.name) is one:
            del self._open[one.name]

    async def close(self) -> None:
        """End all programs of these terminals."""
        await asyncio.gather(*(self._end(one) for one in self))

    async def _end(self, one: AgentTerminal) -> None:
        with contextlib.suppress(VerbRefused, NoTerminalServer, SessionProblem):  # it has ended
            await self._server.run_verb(["close", one.id], connection=one.connection)
        self.forget(one)


class RuntimeTerminals:
    """The terminals of all threads of one runtime, which end with it."""

    def __init__(self, server: TerminalServer) -> None:
        self._server = server
        self._threads: dict[str, ThreadTerminals] = {}

    def of(self, session_id: str) -> ThreadTerminals:
        """Return the terminals of a thread, which its later runs find again."""
        return self._threads.setdefault(session_id, ThreadTerminals(self._server))

    async def listed(self, session_id: str) -> list[ListedTerminal]:
        """Return the terminals of a thread; none for an unknown one."""
        thread = self._threads.get(session_id)
        return [] if thread is None else await thread.listed()

    async def close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._threads.values()))
        await self._server.close()


@dataclass(frozen=True, slots=True)
class TypingPermit:
    """The permission to send the inputs of one call, as they were judged."""

    facts: TypingFacts | None = None
    """None for a call without inputs."""
    states: tuple[str, ...] = ()
    """The input states of which one must hold when the first input is written."""
    same_program: bool = True
    """Whether only the program that was judged may read the inputs."""
    password: bool = False
    """The program asks for a password: the person is asked, and no input of the call is sent."""


@dataclass(frozen=True, slots=True)
class TerminalAccess:
    """The means of the terminal tools in one call."""

    thread: ThreadTerminals
    ask_secret: AskSecret
    """Asks the person for a text that nobody else sees: title and message. None if nobody
    answers."""
    tell: TellPerson
    """Tells the UIs why the run waits; None when it goes on."""
    permit: TypingPermit | None = None
