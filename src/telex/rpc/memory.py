"""A pair of channels in memory: two peers in one process, with no socket between them.

Frames are the same bytes as on a wire, and backpressure is the same: `unsent` counts the bytes that
the other end has not received, and `pause` stops the delivery. Used by clients of a server in the
same process, and by tests through `rpc.testing`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from telex.rpc import limits
from telex.rpc.identity import IN_PROCESS
from telex.wire.events import Event, Frame

if TYPE_CHECKING:
    from telex.rpc.channel import Receiver


class MemoryChannel:
    """One end of a pair. A frame that one end sends reaches the other in the loop's next turn."""

    binary = True
    identity = IN_PROCESS

    def __init__(self) -> None:
        self._other: MemoryChannel = self
        self._receiver: Receiver | None = None
        self._inbound: deque[bytes] = deque()
        self._inbound_bytes = 0
        self._paused = False
        self._finished = False
        """Whether the other end will send no more."""
        self._closed = ""
        """Why this end is closed, once it is."""
        self._delivering = False
        self._taken = asyncio.Event()

    @property
    def unsent(self) -> int:
        return self._other._inbound_bytes

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._schedule()
        if self._finished or self._closed:  # before this end had a receiver
            asyncio.get_running_loop().call_soon(self._report_end)

    def send(self, frame: bytes) -> None:
        if not self._closed and not self._other._closed:
            self._other._inbound.append(frame)
            self._other._inbound_bytes += len(frame)
            self._other._schedule()

    async def drained(self) -> None:
        while self.unsent > limits.OUTBOUND_BYTES and not self._closed:
            self._taken.clear()
            await self._taken.wait()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._schedule()

    def finish(self) -> None:
        """End the output of this end; it still receives. The other end gets `finished`."""
        other = self._other
        if not other._finished:
            other._finished = True
            other._deliver()
            other._report_end()

    async def close(self) -> None:
        for end, why in ((self, "closed here"), (self._other, "closed by the other side")):
            end._finish(why)

    def _schedule(self) -> None:
        if not self._delivering and self._receiver is not None:
            self._delivering = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._delivering = False
        if self._paused or self._receiver is None or not self._inbound:
            return
        events: list[Event] = [Frame(frame) for frame in self._inbound]
        self._inbound.clear()
        self._inbound_bytes = 0
        self._other._taken.set()
        self._receiver.received(events)

    def _finish(self, why: str) -> None:
        if self._closed:
            return
        self._paused = False
        self._deliver()
        self._closed = why
        self._taken.set()
        self._report_end()

    def _report_end(self) -> None:
        if (receiver := self._receiver) is None:
            return
        if self._closed:
            self._receiver = None  # `lost` is the last call
            receiver.lost(self._closed)
        elif self._finished:
            receiver.finished()


def memory_channels() -> tuple[MemoryChannel, MemoryChannel]:
    """Return two channels that are connected to each other."""
    one, other = MemoryChannel(), MemoryChannel()
    one._other, other._other = other, one
    return one, other
