"""Channels over standard input and output: our own, or those of a child.

Our own are then reserved for the protocol.

While the channel is open, file descriptor 0 is /dev/null and 1 is a copy of standard error, so the
output of a stray `print` or of a child goes to standard error and not between two frames. Pipes,
sockets and terminals are watched by the event loop; other files (`telex serve < requests.jsonl`)
never block and are read in turns of the loop. Blocking modes are restored, because a terminal is
shared with the shell.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import stat
import sys
from contextlib import asynccontextmanager
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Any, Final, cast

from telex.processes import spawn
from telex.processes.shielded import run_shielded
from telex.processes.termination import Rung
from telex.rpc.identity import STDIO
from telex.transports.channels import NDJSON, FramedChannel, Framing
from telex.transports.errors import CannotConnect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from io import FileIO

    from telex.processes.child import Child
    from telex.processes.termination import Ladder
    from telex.rpc.channel import Channel


_READ_BYTES = 1 << 16


@asynccontextmanager
async def open_stdio(framing: Framing = NDJSON) -> AsyncIterator[Channel]:
    """Open a channel over standard input and output, until the end of the block."""
    with _claimed() as (source, sink):
        channel = FramedChannel(framing, STDIO)
        await attach(channel, source, sink)
        try:
            yield channel
        finally:
            await channel.close()


async def attach(channel: FramedChannel, source: int, sink: int) -> None:
    """Connect a channel to one file descriptor for input and one for output. It closes both."""
    reading = await _reading(channel, source)
    writing = await _writing(channel, sink)
    channel.attach(reading, writing)


@contextlib.contextmanager
def _claimed() -> Iterator[tuple[int, int]]:
    """Return private copies of 0 and 1, which are replaced by harmless files until the end.

    Python's own buffer of standard output is flushed before each change: text printed before goes
    to standard output, and text printed meanwhile goes to standard error.
    """
    _flush_stdout()
    kept = [(fd, os.dup(fd), os.get_blocking(fd)) for fd in (0, 1)]
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield source, sink
    finally:
        _flush_stdout()
        for fd, copy, blocking in kept:
            os.set_blocking(copy, blocking)
            os.dup2(copy, fd)
            os.close(copy)


def _flush_stdout() -> None:
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


async def _reading(channel: FramedChannel, fd: int) -> asyncio.ReadTransport:
    if not _can_be_watched(fd):
        return _FileReader(channel, fd)
    file = os.fdopen(fd, "rb", buffering=0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: _ReadEnd(channel), file)
    return transport


async def _writing(channel: FramedChannel, fd: int) -> asyncio.WriteTransport:
    # A loop reads from the pipe it writes to, to notice its close; on a terminal that takes input.
    if not _can_be_watched(fd) or os.isatty(fd):
        return _FileWriter(channel, fd)
    file = os.fdopen(fd, "wb", buffering=0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(lambda: _WriteEnd(channel), file)
    return transport


def _can_be_watched(fd: int) -> bool:
    """Whether epoll can watch it.

    It refuses regular files and /dev/null, which asyncio would try.
    """
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


class _ReadEnd(asyncio.Protocol):
    """The input half. Its EOF does not close the channel: responses may still be unsent."""

    def __init__(self, channel: FramedChannel) -> None:
        self._channel = channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.ReadTransport", transport).pause_reading()

    def data_received(self, data: bytes) -> None:
        self._channel.data_received(data)

    def eof_received(self) -> None:
        self._channel.eof_received()


class _WriteEnd(asyncio.Protocol):
    """The output half. When its reader closes it, the channel is lost."""

    def __init__(self, channel: FramedChannel) -> None:
        self._channel = channel

    def pause_writing(self) -> None:
        self._channel.pause_writing()

    def resume_writing(self) -> None:
        self._channel.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._channel.connection_lost(error)


class _FileReader(asyncio.ReadTransport):
    """Reads a file that never blocks, one block per turn of the event loop."""

    def __init__(self, channel: FramedChannel, fd: int) -> None:
        super().__init__()
        self._channel = channel
        self._fd: int | None = fd
        self._next: asyncio.Handle | None = None

    def is_closing(self) -> bool:
        return self._fd is None

    def pause_reading(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def resume_reading(self) -> None:
        if self._fd is not None and self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._read)

    def close(self) -> None:
        self.pause_reading()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _read(self) -> None:
        self._next = None
        if self._fd is None:
            return
        if data := os.read(self._fd, _READ_BYTES):
            self.resume_reading()
            self._channel.data_received(data)
        else:
            self.close()
            self._channel.eof_received()


class _FileWriter(asyncio.WriteTransport):
    """Writes to a file or terminal that never blocks for long."""

    def __init__(self, channel: FramedChannel, fd: int) -> None:
        super().__init__()
        self._channel = channel
        self._fd: int | None = fd

    def is_closing(self) -> bool:
        return self._fd is None

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: there is no buffer."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        view = memoryview(data)
        try:
            while self._fd is not None and view:
                try:
                    view = view[os.write(self._fd, view) :]
                except BlockingIOError:  # input and output share a terminal's non-blocking mode
                    select.select([], [self._fd], [])
        except OSError as error:  # usually a full disk
            self._end(error)

    def close(self) -> None:
        self._end(None)

    def _end(self, error: OSError | None) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            asyncio.get_running_loop().call_soon(self._channel.connection_lost, error)

    def abort(self) -> None:
        self.close()


# A channel to a child's standard input and output: how a client starts a server of its own.
#
# The child's exit ends the channel, and the exit status is the reason that its receiver gets. The
# end of the child's output counts as the same, because a server that closed its output answers
# nothing more. Closing the channel ends the child with its whole tree.


_LADDER: Final[Ladder] = (Rung(SIGTERM, 5.0), Rung(SIGKILL, 5.0))
"""A server that gets SIGTERM first stores the state of its runs; five seconds are enough."""
_EXIT_SECONDS: Final = 1.0
"""How long the exit of a child may follow the end of its output; usually it follows at once."""


async def connect_child(
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
        await attach(self, source, sink)

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
