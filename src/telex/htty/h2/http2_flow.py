"""Flow control of one connection: the order of writes, the queue for streams, and stall detection.

`Http2Writer` writes once per turn of the event loop, one frame of each waiting body in turn.
Responses to the peer's control frames (settings, pings, windows) never wait, so the reader awaits
`wait_for_room` before it continues. `StreamSlots` queues requests in order, because a peer may end
the connection when its limit of streams is exceeded (`h2` does). `StallWatch` gives up a peer whose
header block does not end, and streams that wait too long for the peer. Streams are watched only on
a server, because a client waits as long as its person does: closing the tab resets the stream.
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
    """A body with frames to send."""

    def send_some(self) -> bool:
        """Send one frame. Returns whether another could follow at once."""
        ...


class Http2Writer:
    """The only writer of a connection."""

    def __init__(self, byte_stream: ByteStream, connection: Http2State) -> None:
        self._byte_stream = byte_stream
        self._connection = connection
        self._bodies: deque[OutgoingBody] = deque()
        self._wake_up = asyncio.Event()
        self._flushed = asyncio.Event()

    def wake(self) -> None:
        """Schedule a write, after all tasks of this turn had a chance to add data."""
        self._wake_up.set()

    def add_body(self, body: OutgoingBody) -> None:
        """Add a body that can continue, unless it is already queued."""
        if body not in self._bodies:
            self._bodies.append(body)
        self._wake_up.set()

    def has_room_for(self, size: int) -> bool:
        """Whether a small body can be sent at once, which saves a task switch: no other waits."""
        return not self._bodies and self._connection.unsent + size <= limits.HTTY_UNSENT_BYTES

    async def wait_for_room(self) -> None:
        """Wait until the unsent responses to the peer are below their limit."""
        while self._connection.unsent > limits.HTTY_BACKLOG_BYTES:
            self._flushed.clear()
            await self._flushed.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake_up.wait()
            self._wake_up.clear()
            self.flush()
            await self._byte_stream.drained()
            await asyncio.sleep(0)  # one write per turn, even if the byte stream never blocks

    def flush(self) -> None:
        """Write all control frames, and as much of the bodies as may be buffered."""
        bodies, connection = self._bodies, self._connection
        while bodies and connection.unsent < limits.HTTY_UNSENT_BYTES:
            body = bodies.popleft()
            if body.send_some():
                bodies.append(body)
        if data := connection.to_send():
            self._byte_stream.write(data)
        if bodies:
            self._wake_up.set()
        self._flushed.set()


class StreamSlots:
    """A queue for new streams. `free` returns how many could be opened now."""

    def __init__(self, free: Callable[[], int]) -> None:
        self._free = free
        self._queue: deque[asyncio.Future[None]] = deque()
        self._granted = 0

    async def acquire(self) -> None:
        """Wait for a free slot. The caller must use it before the next `await`."""
        if not self._queue and self._free() > self._granted:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting in self._queue:
                self._queue.remove(waiting)
            elif not waiting.cancelled() and not waiting.exception():  # granted too late
                self._granted -= 1
                self.grant()
            raise
        self._granted -= 1

    def grant(self) -> None:
        """Grant free slots to waiting callers, after a change of the limit or of the streams."""
        while self._queue and self._free() > self._granted:
            waiting = self._queue.popleft()
            if not waiting.done():  # else its task was cancelled but has not run yet
                self._granted += 1
                waiting.set_result(None)

    def fail_waiting(self, sentence: str) -> None:
        """Fail all waiting callers, because no stream can be opened any more."""
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.done():
                waiting.set_exception(ConnectionOver(sentence))


HEADER_CHECKS = 2
CHECK_SECONDS = limits.HTTY_HEADER_SECONDS / HEADER_CHECKS
STALL_CHECKS = int(limits.HTTY_STALL_SECONDS / CHECK_SECONDS)
"""Counted in checks, not seconds: the peer has not stalled while this program was stopped."""


class StallWatch:
    """Checks for stalls periodically, while there is something to watch."""

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
        """Update the watch after data was received."""
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
        """Count the stalled streams, and give up those that stalled for too long."""
        self._header_block_checks += self._connection.in_header_block
        if self._header_block_checks >= HEADER_CHECKS:
            code = ErrorCodes.ENHANCE_YOUR_CALM
            self._broken(self._connection.give_up(code, "its header block does not end"))
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
