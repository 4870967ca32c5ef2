"""A channel over standard input and output, which are then reserved for the protocol.

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
from typing import TYPE_CHECKING, Any, cast

from telex.rpc.identity import STDIO
from telex.transports.channels import NDJSON, FramedChannel, Framing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

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
