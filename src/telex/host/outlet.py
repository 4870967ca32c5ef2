"""Bytes to the person, as fast as they are taken.

What comes is written at once, in the caller's turn. What the terminal does not take stays in a
queue, and the queue is short: it asks for less (`full`) long before it asks again (`empty`), and so
a slow terminal slows the program, as it would without us.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING

from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable


class Outlet:
    """Writes to a non-blocking descriptor. `broken` is called once if nobody takes it any more."""

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
