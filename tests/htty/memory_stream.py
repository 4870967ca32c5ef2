"""Two connected ends of a `ByteStream` in memory."""

from __future__ import annotations

import asyncio
from collections import deque

from telex.htty import limits


class MemoryStream:
    """A `ByteStream` in memory: one of two connected ends. Created by `memory_streams`."""

    def __init__(self) -> None:
        self._received: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._other = self

    async def read(self) -> bytes:
        while not self._received and not self._ended:
            self._more.clear()
            await self._more.wait()
        if not self._received:
            return b""
        data = self._received.popleft()
        if len(data) > limits.HTTY_READ_BYTES:
            self._received.appendleft(data[limits.HTTY_READ_BYTES :])
            data = data[: limits.HTTY_READ_BYTES]
        self._size -= len(data)
        if self._size < limits.HTTY_UNSENT_BYTES:
            self._room.set()
        return data

    def write(self, data: bytes) -> None:
        other = self._other
        if not data or other._ended:
            return
        other._received.append(data)
        other._size += len(data)
        if other._size >= limits.HTTY_UNSENT_BYTES:
            other._room.clear()
        other._more.set()

    async def drained(self) -> None:
        await self._other._room.wait()

    def close(self) -> None:
        for end in (self, self._other):
            end._ended = True
            end._more.set()
            end._room.set()


def memory_streams() -> tuple[MemoryStream, MemoryStream]:
    """Return two connected ends with backpressure: bytes written to one are read from the other."""
    one, two = MemoryStream(), MemoryStream()
    one._other, two._other = two, one
    return one, two
