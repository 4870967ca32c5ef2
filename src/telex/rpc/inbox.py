"""A bounded buffer for the parts of one stream, between the channel and the reader.

A reader that falls too far behind loses this stream, and only this one. Pausing the channel instead
would make every other call on it wait for one slow reader. A peer that wants that nevertheless
checks `full` to pause the channel, and `on_room` is called when it can resume.
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
    """A queue with one writer, one reader and an end."""

    def __init__(self, on_room: Callable[[], None] | None = None) -> None:
        """Create an empty inbox.

        Args:
            on_room: If given, `put` never refuses: the writer stops by itself when the inbox is
                `full`, and `on_room` is called as soon as the reader has taken half of the parts.
        """
        self._on_room = on_room
        self._parts: deque[P] = deque()
        self._ended = False
        self._error: Exception | None = None
        self._wake = asyncio.Event()

    def put(self, part: P) -> bool:
        """Add a part. Returns False when too many parts are unread."""
        if self.full and self._on_room is None:
            return False
        self._parts.append(part)
        self._wake.set()
        return True

    @property
    def full(self) -> bool:
        return len(self._parts) >= limits.STREAM_PARTS

    def end(self, error: Exception | None = None) -> None:
        """Add no more parts. The reader gets the parts already here, then the error, if any."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake.set()

    async def __aiter__(self) -> AsyncIterator[P]:
        """Yield the parts in order. Cancelling between two parts loses none."""
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
