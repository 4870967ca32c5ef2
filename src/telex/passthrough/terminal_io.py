"""Non-blocking reading and writing of descriptors that we share with the shell.

Whether reading and writing wait belongs to the open file, not to the descriptor: a program that
makes its stdout non-blocking makes everybody's so, and after its end `cat` fails with "resource
temporarily unavailable". So a terminal or a pipe is opened once more. Where that cannot be
(sockets, another user's terminal), the shared one is changed, and changed back.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import sys
from collections import deque
from typing import TYPE_CHECKING

from telex.passthrough import limits
from telex.terminal import limits as terminal_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_WAITLESS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextlib.contextmanager
def reopened_nonblocking(fd: int, flags: int) -> Iterator[int]:
    """The same thing under a number of our own, non-blocking; `flags` as for `os.open`."""
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
    """Whether it is a file, or as good as one: never waits, and no event loop watches it."""
    kind = os.fstat(fd).st_mode
    return stat.S_ISREG(kind) or stat.S_ISBLK(kind) or (stat.S_ISCHR(kind) and not os.isatty(fd))


def _opened_again(fd: int, flags: int) -> int | None:
    for path in _paths(fd):
        with contextlib.suppress(OSError):
            return os.open(path, flags | _WAITLESS)
    return None


def _paths(fd: int) -> Iterator[str]:
    if os.isatty(fd):
        with contextlib.suppress(OSError):
            yield os.ttyname(fd)
        # After `su` the terminal is another user's. By this name it is open to whom it controls.
        with contextlib.suppress(OSError):
            os.tcgetpgrp(fd)
            yield "/dev/tty"
    elif sys.platform == "linux" and stat.S_ISFIFO(os.fstat(fd).st_mode):
        yield f"/proc/self/fd/{fd}"


class InputReader:
    """Reads a non-blocking descriptor from `resume` to its end, or until closed.

    One read a turn and nothing kept: a key is with the program before the next thing is looked at.
    """

    def __init__(self, fd: int, got: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._fd = fd
        self._got = got
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._flowing = False
        self._over = False
        self._always = is_always_ready(fd)
        """No event loop watches a file; but then it never makes anybody wait."""

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
            data = b""  # a terminal that has hung up
        if not data:
            self.close()
            self._ended()
            return
        if self._always:
            self._loop.call_soon(self._read)
        self._got(data)


class OutputWriter:
    """Writes to a non-blocking descriptor. `broken` is called once if nobody takes it any more.

    Data is written at once, in the caller's turn. What the terminal does not take is queued, and
    the queue is short: it calls `full` long before it calls `empty`, and so a slow terminal slows
    the program, as it would without us.
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
        """Until all of it was taken, or nobody will take it."""
        await self._flushed.wait()

    def close(self) -> None:
        """What is queued is lost."""
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
        """How much of it was taken."""
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
