"""The agent's connection to the one server, whose sessions are the terminals of its tools.

The agent is a client of automation like any other: it calls methods on a `Caller`. In `telex serve`
that is the service of the same process; `telex agent` on standard input and output dials the unix
socket of the one server, which is started on demand. So the sessions of the agent are in the same
registry as all others, and a person attaches to them by name.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from telex.automation.errors import ServerGone
from telex.automation.verb_protocol import METHOD, RunVerb, VerbFailure, VerbOutput, VerbParts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from telex.automation.caller import Caller
    from telex.automation.verb_protocol import ExpectedFacts

    Connect = Callable[[], Awaitable[Caller]]

T = TypeVar("T")


class NoTerminalServer(Exception):
    """There is no server for terminals, or it cannot be reached; a sentence."""


class VerbRefused(Exception):
    """A verb failed. The message is the sentence of `failure`, which has the rest."""

    def __init__(self, failure: VerbFailure) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


class TerminalServer:
    """The one server, as one runtime uses it. It is connected when a terminal is first needed, and
    again after the connection was lost."""

    def __init__(self, connect: Connect | None = None) -> None:
        """`connect` returns a new connection, which `close` closes, and raises NoTerminalServer.
        None: there is no server, as in a test of something else."""
        self._connect = connect
        self._caller: Caller | None = None
        self.connection = 0
        """The number of the connection. Another server may give a session the id of an old one, so
        a call that is about a session names the connection on which the session was found."""
        self._connecting = asyncio.Lock()

    async def caller(self) -> Caller:
        """Return the connection. Raises NoTerminalServer."""
        async with self._connecting:
            if self._caller is None:
                if self._connect is None:
                    raise NoTerminalServer("this runtime has no server for terminals")
                self._caller = await self._connect()
                self.connection += 1
            return self._caller

    async def call(
        self, method: str, params: object, returns: type[T], *, connection: int | None = None
    ) -> T:
        """Call a method of the server. Raises NoTerminalServer and SessionProblem; ServerGone means
        that the sessions are gone too, also where `connection` is not the present one. The next
        call connects again."""
        caller = await self.caller()
        if connection is not None and connection != self.connection:
            raise ServerGone("the server of the terminals ended, and they with it", {})
        try:
            return await caller.call(method, params, returns)
        except ServerGone:
            await self._drop(caller)
            raise

    async def run_verb(
        self,
        words: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        expected: ExpectedFacts | None = None,
        connection: int | None = None,
    ) -> VerbParts:
        """Run a verb, given as the words of its command line.

        Args:
            cwd: The directory in which `open` starts a program.
            env: The whole environment of that program.
            stdin: The text of `type -`.
            expected: Checked directly before each input.
            connection: As for `call`.

        Raises:
            VerbRefused: The verb failed.
            NoTerminalServer, SessionProblem: As for `call`.
        """
        asked = RunVerb(tuple(words), cwd, dict(env or {}), stdin, parts=True, expected=expected)
        output = await self.call(METHOD, asked, VerbOutput, connection=connection)
        if output.again:  # the server is an older one that ends now
            await self._drop(await self.caller())
            output = await self.call(METHOD, asked, VerbOutput, connection=connection)
        if output.answer is None:
            raise VerbRefused(output.failure or VerbFailure(output.code, output.stderr.strip()))
        return output.answer

    async def close(self) -> None:
        """Close the connection. The sessions of the server stay."""
        if self._caller is not None:
            await self._drop(self._caller)

    async def _drop(self, caller: Caller) -> None:
        if self._caller is caller:
            self._caller = None
            await caller.close()
