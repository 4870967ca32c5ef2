"""Non-blocking reading and writing of descriptors that we share with the shell.

O_NONBLOCK belongs to the open file description, not to the descriptor: a program that makes its
stdout non-blocking does so for all processes that share it, and after its exit `cat` fails with
"resource temporarily unavailable". So a terminal or a pipe is opened again. Where that is not
possible (sockets, another user's terminal), the shared description is changed, and changed back.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
from collections import deque
from typing import TYPE_CHECKING

from telex.passthrough import limits
from telex.processes import proc
from telex.terminal import limits as terminal_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_WAITLESS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextlib.contextmanager
def reopened_nonblocking(fd: int, flags: int) -> Iterator[int]:
    """Open the same file again, non-blocking. `flags` are those of `os.open`."""
    own = _opened_again(fd, flags)
    shared = own is None and not is_always_ready(fd) and os.get_blocking(fd)
    if own is None:
        own = os.dup(fd)
    try:
        if shared:
            os.set_blocking(fd, False)
        yield own
    finally:
        if shared:
            os.set_blocking(fd, True)
        os.close(own)


def is_always_ready(fd: int) -> bool:
    """Whether this is a file or a device that never blocks, and that no event loop can watch."""
    kind = os.fstat(fd).st_mode
    return stat.S_ISREG(kind) or stat.S_ISBLK(kind) or (stat.S_ISCHR(kind) and not os.isatty(fd))


def _opened_again(fd: int, flags: int) -> int | None:
    if os.isatty(fd):
        with contextlib.suppress(OSError):
            return os.open(os.ttyname(fd), flags | _WAITLESS)
        # After `su` the terminal belongs to another user, but /dev/tty can still be opened.
        with contextlib.suppress(OSError):
            os.tcgetpgrp(fd)
            return os.open("/dev/tty", flags | _WAITLESS)
    elif stat.S_ISFIFO(os.fstat(fd).st_mode):
        with contextlib.suppress(OSError):
            return proc.reopen(fd, flags | _WAITLESS)
    return None


class InputReader:
    """Reads a non-blocking descriptor from `resume` until its end, or until `close`.

    It does one read in each turn of the loop and buffers nothing, so a key reaches the program
    before the next event is handled.
    """

    def __init__(self, fd: int, got: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._fd = fd
        self._got = got
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._flowing = False
        self._over = False
        self._always = is_always_ready(fd)
        """A file is read in every turn: an event loop cannot watch it, and it never blocks."""

    def resume(self) -> None:
        if not self._flowing and not self._over:
            self._flowing = True
            if self._always:
                self._loop.call_soon(self._read)
            else:
                self._loop.add_reader(self._fd, self._read)

    def pause(self) -> None:
        if self._flowing and not self._always:
            self._loop.remove_reader(self._fd)
        self._flowing = False

    def close(self) -> None:
        self.pause()
        self._over = True

    def _read(self) -> None:
        if not self._flowing:
            return
        try:
            data = os.read(self._fd, terminal_limits.OUTPUT_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""  # the terminal has hung up
        if not data:
            self.close()
            self._ended()
            return
        if self._always:
            self._loop.call_soon(self._read)
        self._got(data)


class OutputWriter:
    """Writes to a non-blocking descriptor.

    Data is written at once, in the caller's turn. Data that the terminal does not take is queued.
    The queue is short, so that a slow terminal slows the program, as it would without telex.

    Args:
        fd: The descriptor.
        full: Called when the queue reaches its limit.
        empty: Called when the queue is empty again.
        broken: Called once if a write fails for good.
    """

    def __init__(
        self,
        fd: int,
        *,
        full: Callable[[], None],
        empty: Callable[[], None],
        broken: Callable[[OSError], None],
    ) -> None:
        self._fd = fd
        self._full, self._empty, self._broken = full, empty, broken
        self._loop = asyncio.get_running_loop()
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._flushed = asyncio.Event()
        self._flushed.set()
        self._over = False

    def write(self, data: bytes) -> None:
        if self._over:
            return
        if self._queue:
            self._enqueue(memoryview(data))
            return
        taken = self._offer(data)
        if taken < len(data) and not self._over:
            self._enqueue(memoryview(data)[taken:])
            self._flushed.clear()
            self._loop.add_writer(self._fd, self._write)

    async def flushed(self) -> None:
        """Wait until all data was written, or writing has failed."""
        await self._flushed.wait()

    def close(self) -> None:
        """Drop the queue and write nothing more."""
        self._over = True
        self._queue.clear()
        self._settle()

    def _enqueue(self, rest: memoryview) -> None:
        was_full = self._queued >= limits.PERSON_BYTES
        self._queue.append(rest)
        self._queued += len(rest)
        if self._queued >= limits.PERSON_BYTES and not was_full:
            self._full()

    def _write(self) -> None:
        while self._queue:
            rest = self._queue[0]
            taken = self._offer(rest)
            if self._over:
                return
            self._queued -= taken
            if taken < len(rest):
                self._queue[0] = rest[taken:]
                return
            self._queue.popleft()
        self._settle()
        self._empty()

    def _offer(self, data: bytes | memoryview) -> int:
        """Write, and return how many bytes were taken."""
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.close()
            self._broken(error)
            return 0

    def _settle(self) -> None:
        if not self._flushed.is_set():
            self._loop.remove_writer(self._fd)
        self._flushed.set()
