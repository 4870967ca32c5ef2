"""A channel to a child's standard input and output: how a client starts a server of its own.

The child's exit ends the channel, and the exit status is the reason that its receiver gets. The
end of the child's output counts as the same, because a server that closed its output answers
nothing more. Closing the channel ends the child with its whole tree.
"""

from __future__ import annotations

import asyncio
import os
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Final, cast

from telex.processes import spawn
from telex.processes.shielded import run_shielded
from telex.processes.termination import Rung
from telex.transports import stdio
from telex.transports.channels import NDJSON, FramedChannel, Framing
from telex.transports.errors import CannotConnect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from io import FileIO

    from telex.processes.child import Child
    from telex.processes.termination import Ladder
    from telex.rpc.channel import Channel

_LADDER: Final[Ladder] = (Rung(SIGTERM, 5.0), Rung(SIGKILL, 5.0))
"""A server that gets SIGTERM first stores the state of its runs; five seconds are enough."""
_EXIT_SECONDS: Final = 1.0
"""How long the exit of a child may follow the end of its output; usually it follows at once."""


async def connect(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    stderr: int = 2,
    framing: Framing = NDJSON,
) -> Channel:
    """Start a program and connect to its standard input and output.

    Args:
        command: The program and its arguments.
        env: The whole environment of the child; None is ours by the rules of `child_environment`.
        cwd: The directory that the child starts in.
        stderr: A file descriptor for the child's standard error; ours by default.
        framing: How frames stand in the two streams.

    Raises:
        CannotConnect: The program could not be started.
    """
    try:
        child = spawn.start(command, stdio=spawn.Pipes(stderr=stderr), env=env, cwd=cwd)
    except spawn.StartFailed as error:
        raise CannotConnect(str(error)) from error
    channel = ChildChannel(child, framing)
    try:
        await run_shielded(channel.connect())
    except BaseException:
        await (channel.close() if channel.is_connected else child.end(_LADDER))
        raise
    return channel


class ChildChannel(FramedChannel):
    """A channel to one child. Closing the channel ends the child."""

    def __init__(self, child: Child, framing: Framing) -> None:
        super().__init__(framing)
        self._child = child
        self._closing = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the event loop has the child's pipes."""
        return self._writing is not None

    async def connect(self) -> None:
        """Have the event loop read and write the child's pipes."""
        pipes = [cast("FileIO", pipe) for pipe in (self._child.stdout, self._child.stdin)]
        source, sink = (os.dup(pipe.fileno()) for pipe in pipes)
        for pipe in pipes:
            pipe.close()
        await stdio.attach(self, source, sink)

    async def close(self) -> None:
        """Send the unsent bytes, close both pipes, and end the child's tree. Idempotent."""
        self._closing = True
        if self._ending is not None:  # that task ends when the child exits
            await self._child.end(_LADDER)
            await asyncio.wait({self._ending})
        await super().close()
        await self._child.end(_LADDER)

    def eof_received(self) -> bool:
        self._deliver(self._decoder.eof())
        self._end(None)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error)

    def _end(self, error: Exception | None) -> None:
        if self._lost.is_set():
            return
        if self._closing:
            super().connection_lost(error)
        elif self._ending is None:
            self._ending = asyncio.create_task(self._report_exit(error))

    async def _report_exit(self, error: Exception | None) -> None:
        try:
            async with asyncio.timeout(_EXIT_SECONDS):
                self._why = f"the program {await self._child.wait()}"
        except TimeoutError:
            self._why = "the program closed its pipes"
        super().connection_lost(error)
