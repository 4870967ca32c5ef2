"""Who opens a stream next: first come, first served, and never more than the peer allows at once.

A peer whose limit is passed may end the connection (h2 does), and a page with it; so requests wait
here. Used by `http2`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from telex.htty.errors import ConnectionOver


class Places:
    """A queue for streams. `free` tells how many could be opened now."""

    def __init__(self, free: Callable[[], int]) -> None:
        self._free = free
        self._queue: deque[asyncio.Future[None]] = deque()
        self._granted = 0

    async def take(self) -> None:
        """Until there is a place. It must be used before the next `await`."""
        if not self._queue and self._free() > self._granted:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting in self._queue:
                self._queue.remove(waiting)
            elif not waiting.cancelled() and not waiting.exception():  # granted, too late
                self._granted -= 1
                self.admit()
            raise
        self._granted -= 1

    def admit(self) -> None:
        """There may be more places than before."""
        while self._queue and self._free() > self._granted:
            waiting = self._queue.popleft()
            if not waiting.done():  # its task was cancelled and has not heard of it yet
                self._granted += 1
                waiting.set_result(None)

    def refuse(self, sentence: str) -> None:
        """There will be none."""
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.done():
                waiting.set_exception(ConnectionOver(sentence))
