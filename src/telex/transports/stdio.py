"""A channel over standard input and output, which are then for the protocol alone.

While it is open, file descriptor 0 is /dev/null and 1 is a second standard error: a stray `print`
or a careless child lands among the diagnostics and not between two frames. Pipes, sockets and
terminals are watched by the event loop; anything else (`telex serve < requests.jsonl`) never blocks
and is read in turns. Blocking modes are put back, because a terminal is shared with the shell.
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

from telex.transports.channels import NDJSON, FramedChannel, Framing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from telex.rpc.channel import Channel

_READ_BYTES = 1 << 16


@asynccontextmanager
async def open_stdio(framing: Framing = NDJSON) -> AsyncIterator[Channel]:
    """Standard input and output as a channel; both are ours until the end of the block."""
    with _claimed() as (source, sink):
        channel = FramedChannel(framing)
        await attach(channel, source, sink)
        try:
            yield channel
        finally:
            await channel.close()


async def attach(channel: FramedChannel, source: int, sink: int) -> None:
    """Have a channel read from one file descriptor and write to another. It closes both."""
    reading = await _reading(channel, source)
    writing = await _writing(channel, sink)
    channel.attach(reading, writing)


@contextlib.contextmanager
def _claimed() -> Iterator[tuple[int, int]]:
    """Private copies of 0 and 1, and harmless things in their places until the end.

    Python's own buffer of standard output is emptied before each change: what was printed before
    belongs to standard output, and what is printed meanwhile to standard error.
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
    # A loop reads from what it writes to, to see its end; from a terminal it would take the input.
    if not _can_be_watched(fd) or os.isatty(fd):
        return _FileWriter(channel, fd)
    file = os.fdopen(fd, "wb", buffering=0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(lambda: _WriteEnd(channel), file)
    return transport


def _can_be_watched(fd: int) -> bool:
    """epoll refuses regular files and /dev/null, though asyncio would try the latter."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


class _ReadEnd(asyncio.Protocol):
    """The input half. Its end is not the channel's: answers may still be on their way out."""

    def __init__(self, channel: FramedChannel) -> None:
        self._channel = channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.ReadTransport", transport).pause_reading()

    def data_received(self, data: bytes) -> None:
        self._channel.data_received(data)

    def eof_received(self) -> None:
        self._channel.eof_received()


class _WriteEnd(asyncio.Protocol):
    """The output half. When nobody listens any more, the channel is lost."""

    def __init__(self, channel: FramedChannel) -> None:
        self._channel = channel

    def pause_writing(self) -> None:
        self._channel.pause_writing()

    def resume_writing(self) -> None:
        self._channel.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._channel.connection_lost(error)


class _FileReader(asyncio.ReadTransport):
    """Reads what never blocks, one piece a turn."""

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
    """Writes where writing never blocks for long."""

    def __init__(self, channel: FramedChannel, fd: int) -> None:
        super().__init__()
        self._channel = channel
        self._fd: int | None = fd

    def is_closing(self) -> bool:
        return self._fd is None

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        view = memoryview(data)
        try:
            while self._fd is not None and view:
                try:
                    view = view[os.write(self._fd, view) :]
                except BlockingIOError:  # a terminal that is read without waiting is written so too
                    select.select([], [self._fd], [])
        except OSError as error:  # a full disk, mostly
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
