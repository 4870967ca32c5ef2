"""Parts of one stream, between the channel that brings them and the reader that takes them.

Bounded: a reader that falls too far behind loses this stream, and only this one. Holding the
channel up instead would make every other call on it wait for one slow reader; a peer that wants
that nevertheless is told when to (`full`), and when no more (`on_room`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from telex.rpc import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

P = TypeVar("P")

_FEW: Final = limits.STREAM_PARTS // 2


class Inbox(Generic[P]):
    """One writer, one reader, an end."""

    def __init__(self, on_room: Callable[[], None] | None = None) -> None:
        """With `on_room`, nothing is refused: who writes stops by itself when it is `full`, and
        then `on_room` is called as soon as half of the parts are taken."""
        self._on_room = on_room
        self._parts: deque[P] = deque()
        self._ended = False
        self._error: Exception | None = None
        self._wake = asyncio.Event()

    def put(self, part: P) -> bool:
        """Add a part. False when there are too many that nobody took."""
        if self.full and self._on_room is None:
            return False
        self._parts.append(part)
        self._wake.set()
        return True

    @property
    def full(self) -> bool:
        return len(self._parts) >= limits.STREAM_PARTS

    def end(self, error: Exception | None = None) -> None:
        """No more parts. The reader gets those already here, then the error, if there is one."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake.set()

    async def __aiter__(self) -> AsyncIterator[P]:
        """The parts, in order. Cancelling it between two of them loses none."""
        while True:
            while self._parts:
                part = self._parts.popleft()
                if len(self._parts) == _FEW and self._on_room is not None:
                    self._on_room()
                yield part
            if self._ended:
                break
            self._wake.clear()
            await self._wake.wait()
        if self._error is not None:
            raise self._error
