"""`ByteStream`, what an HTTP/2 connection runs on: bytes in order, both ways, and an end.

Implemented by a terminal on either side (`tty_stream`, `tty_writer`), by TCP (`tools.tcp_bridge`)
and in memory (`memory_streams`, for tests). Nothing here knows of chunks or of HTTP/2.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from telex.htty import limits


class ByteStream(Protocol):
    """One end of a byte stream."""

    async def read(self) -> bytes:
        """What came, at most `HTTY_READ_BYTES` of it. Nothing is the end, however it came about."""
        ...

    def write(self, data: bytes) -> None:
        """Send it, in order. After the end it goes nowhere."""
        ...

    async def drained(self) -> None:
        """Until less than `HTTY_UNSENT_BYTES` waits to be sent, or the end."""
        ...

    def close(self) -> None:
        """Write no more, and no wait is left waiting. Any number of times."""
        ...


class MemoryStream:
    """One of two ends that are joined. Made by `memory_streams`."""

    def __init__(self) -> None:
        self._came: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._other = self

    async def read(self) -> bytes:
        while not self._came and not self._ended:
            self._more.clear()
            await self._more.wait()
        if not self._came:
            return b""
        data = self._came.popleft()
        if len(data) > limits.HTTY_READ_BYTES:
            self._came.appendleft(data[limits.HTTY_READ_BYTES :])
            data = data[: limits.HTTY_READ_BYTES]
        self._size -= len(data)
        if self._size < limits.HTTY_UNSENT_BYTES:
            self._room.set()
        return data

    def write(self, data: bytes) -> None:
        other = self._other
        if not data or other._ended:
            return
        other._came.append(data)
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
    """Two ends: what is written to one is read from the other, slow readers and all."""
    one, two = MemoryStream(), MemoryStream()
    one._other, two._other = two, one
    return one, two
