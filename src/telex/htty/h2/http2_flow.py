"""The flow of one connection: who writes next, who opens a stream next, and who stalls.

`Http2Writer` writes once per turn of the event loop, one frame of each waiting body in turn.
Answers to the peer (settings, pings, windows) never wait, so the reader awaits `wait_for_room`
before it reads on. `StreamSlots` queues requests, first come, first served, because a peer whose
limit of streams is passed may end the connection (`h2` does). `StallWatch` gives up on a peer whose
header fields do not end and on streams that wait for the peer too long; mostly a server's, since a
client waits as long as its person does: closing the tab resets the stream.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from h2.errors import ErrorCodes

from telex.htty import limits
from telex.htty.byte_stream import ByteStream
from telex.htty.errors import ConnectionOver
from telex.htty.h2.http2_state import Http2Side, Http2State, ProtocolViolation
from telex.htty.h2.http_stream import HttpStream


class OutgoingBody(Protocol):
    """Something with pieces to send."""

    def send_some(self) -> bool:
        """Send a frame. Whether another could follow at once."""
        ...


class Http2Writer:
    """The one writer of a connection."""

    def __init__(self, byte_stream: ByteStream, connection: Http2State) -> None:
        self._byte_stream = byte_stream
        self._connection = connection
        self._bodies: deque[OutgoingBody] = deque()
        self._something = asyncio.Event()
        self._less = asyncio.Event()

    def wake(self) -> None:
        """There is something to send, when everybody had a turn to add to it."""
        self._something.set()

    def add_body(self, body: OutgoingBody) -> None:
        """A body can go on. Not twice at a time."""
        if body not in self._bodies:
            self._bodies.append(body)
        self._something.set()

    def has_room_for(self, size: int) -> bool:
        """A small body goes at once if nobody waits; it saves a task's turn."""
        return not self._bodies and self._connection.unsent + size <= limits.HTTY_UNSENT_BYTES

    async def wait_for_room(self) -> None:
        """Until we owe the peer no more than it may make us owe."""
        while self._connection.unsent > limits.HTTY_BACKLOG_BYTES:
            self._less.clear()
            await self._less.wait()

    async def run(self) -> None:
        """For ever; whoever started it ends it."""
        while True:
            await self._something.wait()
            self._something.clear()
            self.flush()
            await self._byte_stream.drained()
            await asyncio.sleep(0)  # one write a turn, also while the wire takes everything

    def flush(self) -> None:
        """Write what there is, and as much of bodies as may wait on the wire."""
        bodies, connection = self._bodies, self._connection
        while bodies and connection.unsent < limits.HTTY_UNSENT_BYTES:
            body = bodies.popleft()
            if body.send_some():
                bodies.append(body)
        if data := connection.to_send():
            self._byte_stream.write(data)
        if bodies:
            self._something.set()
        self._less.set()


class StreamSlots:
    """A queue for streams. `free` tells how many could be opened now."""

    def __init__(self, free: Callable[[], int]) -> None:
        self._free = free
        self._queue: deque[asyncio.Future[None]] = deque()
        self._granted = 0

    async def acquire(self) -> None:
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
                self.grant()
            raise
        self._granted -= 1

    def grant(self) -> None:
        """There may be more places than before."""
        while self._queue and self._free() > self._granted:
            waiting = self._queue.popleft()
            if not waiting.done():  # its task was cancelled and has not heard of it yet
                self._granted += 1
                waiting.set_result(None)

    def fail_waiting(self, sentence: str) -> None:
        """There will be none."""
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.done():
                waiting.set_exception(ConnectionOver(sentence))


HEADER_CHECKS = 2
CHECK_SECONDS = limits.HTTY_HEADER_SECONDS / HEADER_CHECKS
STALL_CHECKS = int(limits.HTTY_STALL_SECONDS / CHECK_SECONDS)
"""Looks, not seconds: a program that was stopped for an hour has not been stalled by its peer."""


class StallWatch:
    """Looks from time to time, while there is something to look at."""

    def __init__(
        self,
        connection: Http2State,
        streams: dict[int, HttpStream],
        broken: Callable[[ProtocolViolation], None],
    ) -> None:
        self._connection = connection
        self._streams = streams
        self._broken = broken
        self._timer: asyncio.TimerHandle | None = None
        self._header_block_checks = 0

    def on_received(self) -> None:
        """After something was received."""
        if not self._connection.in_header_block:
            self._header_block_checks = 0
        self._arm()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        wanted = self._connection.in_header_block or self._watched()
        if wanted and self._timer is None and not self._connection.broken:
            self._timer = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.check()
        self._arm()

    def check(self) -> None:
        """Count those that stand still, and give up those that did so for too long."""
        self._header_block_checks += self._connection.in_header_block
        if self._header_block_checks >= HEADER_CHECKS:
            code = ErrorCodes.ENHANCE_YOUR_CALM
            self._broken(self._connection.give_up(code, "its header fields do not end"))
        for http_stream in self._watched():
            http_stream.stalled_checks = (
                http_stream.stalled_checks + 1 if http_stream.waits_for_peer else 0
            )
            if http_stream.stalled_checks >= STALL_CHECKS:
                http_stream.on_stall()

    def _watched(self) -> list[HttpStream]:
        if self._connection.side is Http2Side.CLIENT or self._connection.broken:
            return []
        return list(self._streams.values())
