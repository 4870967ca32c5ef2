"""Parts of one stream, between the channel that brings them and the reader that takes them.

Bounded: a reader that falls too far behind loses this stream, and only this one. Holding the
channel up instead would make every other call on it wait for one slow reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

P = TypeVar("P")


class Inbox(Generic[P]):
    """One writer, one reader, an end."""

    def __init__(self) -> None:
        self._parts: deque[P] = deque()
        self._ended = False
        self._error: Exception | None = None
        self._wake = asyncio.Event()

    def put(self, part: P) -> bool:
        """Add a part. False when there are too many that nobody took."""
        if len(self._parts) >= limits.STREAM_PARTS:
            return False
        self._parts.append(part)
        self._wake.set()
        return True

    def end(self, error: Exception | None = None) -> None:
        """No more parts. The reader gets those already here, then the error, if there is one."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake.set()

    async def __aiter__(self) -> AsyncIterator[P]:
        """The parts, in order. Cancelling it between two of them loses none."""
        while True:
            while self._parts:
                yield self._parts.popleft()
            if self._ended:
                break
            self._wake.clear()
            await self._wake.wait()
        if self._error is not None:
            raise self._error
