"""One request and its response: an HTTP/2 stream, used on either side.

Bodies are never buffered whole. Unread data is at most a window (`HTTY_STREAM_WINDOW`), and reading
opens the window again; `write` waits until the data is queued. `Http2Connection` creates streams
and passes them the peer's events (`on_…`); `Http2Writer` sends their bodies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from h2.errors import ErrorCodes

from telex.htty import limits
from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.h2.header_fields import HeaderBlock, Headers
from telex.htty.h2.http2_state import Http2Side, Http2State, ProtocolViolation

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.htty.h2.http2_state import Http2State


class _BodyPiece:
    """A piece of a body, given to `write` and not sent yet."""

    __slots__ = ("data", "end", "sent")

    def __init__(self, data: bytes, end: bool, sent: asyncio.Future[None]) -> None:
        self.data = memoryview(data)
        self.end = end
        self.sent = sent


class HttpStream:
    """One HTTP/2 stream: a request and its response, on either side."""

    def __init__(
        self,
        id: int,
        headers: Headers,
        connection: Http2State,
        writer: Http2Writer,
        done: Callable[[HttpStream], None],
    ) -> None:
        self.id = id
        self.headers = headers
        """The header fields of the request, on both sides."""
        self.trailers: Headers | None = None
        """The trailers of the peer's body, once it has ended, if it had any."""
        self.gone = asyncio.Event()
        """Set when the peer reset the stream, or the connection has ended."""
        self.stalled_checks = 0
        """How many checks of `StallWatch` passed without progress while it waited for the peer."""
        self._connection = connection
        self._writer = writer
        self._done: Callable[[HttpStream], None] | None = done
        self._changed = asyncio.Event()
        self._answer: Headers | None = None
        self._unread = bytearray()
        self._pieces: deque[_BodyPiece] = deque()
        self._ended_here = False
        self._ended_there = False
        self._answered_here = False
        self._fault: StreamReset | str | None = None
        self._reading = False

    # Receiving

    async def answer(self) -> Headers:
        """Wait for the header fields of the response. Informational ones (1xx) are skipped."""
        while self._answer is None:
            await self._more()
        return self._answer

    async def read(self) -> bytes:
        """Return the next piece of the peer's body; empty at its end."""
        while not self._unread and not self._ended_there:
            await self._more()
        if not self._unread:
            return b""
        data = bytes(self._unread)
        self._unread.clear()
        if self._done is not None:
            self._connection.acknowledge(self.id, len(data))
            self._writer.wake()
        return data

    @property
    def body_read(self) -> bool:
        """Whether the peer's body has ended, and all of it was read."""
        return self._ended_there and not self._unread

    async def _more(self) -> None:
        """Wait for the next event of the peer."""
        if self._fault is not None:
            raise self._failure()
        self._changed.clear()
        self._reading = True
        try:
            await self._changed.wait()
        finally:
            self._reading = False

    # Sending

    async def send_headers(self, headers: Headers, *, end: bool = False) -> None:
        """Send a response (or an informational one, 1xx), or trailers, which end the body."""
        self._check_open()
        trailing = self._connection.side is Http2Side.CLIENT or self._answered_here
        block, end = (HeaderBlock.TRAILERS, True) if trailing else (HeaderBlock.RESPONSE, end)
        self._connection.headers(self.id, headers, block, end=end)
        self._answered_here = trailing or not headers[0][1].startswith(b"1")
        self._writer.wake()
        self.stalled_checks = 0
        if end:
            self.on_end_sent()

    async def write(self, data: bytes, *, end: bool = False) -> None:
        """Send a piece of our body. Returns when it is queued for sending."""
        self._check_open()
        if not data and not end:
            return
        if not self._pieces and self._fits(len(data)):
            self._connection.data(self.id, memoryview(data), end=end)
            self._writer.wake()
            self.stalled_checks = 0
            if end:
                self.on_end_sent()
            return
        piece = _BodyPiece(data, end, asyncio.get_running_loop().create_future())
        self._pieces.append(piece)
        self._writer.add_body(self)
        await piece.sent

    def _fits(self, size: int) -> bool:
        connection = self._connection
        frame, window = connection.frame_bytes, connection.window(self.id)
        return size <= min(frame, max(window, 0)) and self._writer.has_room_for(size)

    def send_some(self) -> bool:
        """For `Http2Writer`: send a frame of the first piece.

        Returns whether another may follow.
        """
        while self._pieces and self._pieces[0].sent.done():  # the task that wrote it was cancelled
            self._pieces.popleft()
        if not self._pieces or self._fault is not None:
            return False
        piece = self._pieces[0]
        size = self._connection.data(self.id, piece.data, end=piece.end)
        piece.data = piece.data[size:]
        if size:
            self.stalled_checks = 0
        if piece.data:
            return size > 0
        self._pieces.popleft()
        piece.sent.set_result(None)
        if piece.end:
            self.on_end_sent()
        return bool(self._pieces)

    def reset(self, code: ErrorCodes = ErrorCodes.CANCEL) -> None:
        """Reset the stream and drop unread data, so that the peer may send as much on others.

        Does nothing if the stream has ended in both directions. A server that responded without
        reading the whole request uses NO_ERROR (RFC 9113 §8.1).
        """
        if self._done is not None:
            self._connection.reset(self.id, code)
            self._fail(StreamReset(code, ours=True))
        self._unread.clear()

    # Called by `Http2Connection`

    def on_response(self, headers: Headers) -> None:
        self._answer = headers
        self._moved()

    def on_data(self, data: bytes, size: int) -> None:
        self._unread += data
        if size > len(data):  # padding
            self._connection.acknowledge(self.id, size - len(data))
        self._moved()

    def on_trailers(self, trailers: Headers) -> None:
        self.trailers = trailers

    def on_end(self) -> None:
        self._ended_there = True
        self._moved()
        self._finish_if_ended()

    def on_window(self) -> None:
        """Continue to send after a window has opened."""
        if self._pieces:
            self._writer.add_body(self)

    def on_reset(self, code: int, *, ours: bool) -> None:
        self._fail(StreamReset(code, ours=ours))
        self.gone.set()

    def on_connection_over(self, sentence: str) -> None:
        self._fail(sentence)
        self.gone.set()

    def on_stall(self) -> None:
        """Give up the stream after it has waited too long for the peer."""
        self.reset(ErrorCodes.CANCEL)
        self.gone.set()

    @property
    def waits_for_peer(self) -> bool:
        """Whether it waits for its window, or for the rest of the request; never for a tunnel,
        which may be silent for hours."""
        if self._pieces:
            return self._connection.window(self.id) <= 0
        return self._reading and not self._ended_there and not self._is_tunnel

    @property
    def _is_tunnel(self) -> bool:
        return (b":method", b"CONNECT") in self.headers

    def _moved(self) -> None:
        self.stalled_checks = 0
        self._changed.set()

    def on_end_sent(self) -> None:
        self._ended_here = True
        self._finish_if_ended()

    def _finish_if_ended(self) -> None:
        if self._ended_here and self._ended_there:
            self._finish()

    def _finish(self) -> None:
        """End the stream. Unread data no longer counts against the connection's window.

        It may never be read, because its reader may have stopped without a reset.
        """
        done, self._done = self._done, None
        if done is not None:
            self._connection.acknowledge(self.id, len(self._unread))
            self._writer.wake()
            done(self)

    def _fail(self, fault: StreamReset | str) -> None:
        if self._done is None:  # the stream has already ended, so nothing is lost
            return
        self._fault = fault
        for piece in self._pieces:
            if not piece.sent.done():
                piece.sent.set_exception(self._failure())
        self._pieces.clear()
        self._changed.set()
        self._finish()

    def _check_open(self) -> None:
        if self._fault is not None:
            raise self._failure()
        if self._ended_here:
            raise RuntimeError("this side of the stream has ended; nothing more can be sent")

    def _failure(self) -> StreamReset | ConnectionOver:
        fault = self._fault
        if isinstance(fault, StreamReset):
            return StreamReset(fault.code, ours=fault.ours)
        return ConnectionOver(fault)


# Flow control of one connection: the order of writes, the queue for streams, and stall detection.
#
# `Http2Writer` writes once per turn of the event loop, one frame of each waiting body in turn.
# Responses to the peer's control frames (settings, pings, windows) never wait, so the reader awaits
# `wait_for_room` before it continues. `StreamSlots` queues requests in order, because a peer may
# end the connection when its limit of streams is exceeded (`h2` does). `StallWatch` gives up a peer
# whose header block does not end, and streams that wait too long for the peer. Streams are watched
# only on a server, because a client waits as long as its person does: closing the tab resets the
# stream.


class ByteStream(Protocol):
    """The transport of an HTTP/2 connection: ordered bytes in both directions, and an end.

    Implemented by a terminal on either side (`tty_stream`, `tty_writer`) and by TCP
    (`tools.tcp_bridge`).
    """

    async def read(self) -> bytes:
        """Return received bytes, at most `HTTY_READ_BYTES`; empty at the end of the stream."""

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent, in order. Does nothing after the end."""

    async def drained(self) -> None:
        """Wait until fewer than `HTTY_UNSENT_BYTES` are unsent, or the stream has ended."""

    def close(self) -> None:
        """Write no more, and wake every waiting call. Idempotent."""


class Http2Writer:
    """The only writer of a connection."""

    def __init__(self, byte_stream: ByteStream, connection: Http2State) -> None:
        self._byte_stream = byte_stream
        self._connection = connection
        self._bodies: deque[HttpStream] = deque()
        self._wake_up = asyncio.Event()
        self._flushed = asyncio.Event()

    def wake(self) -> None:
        """Schedule a write, after all tasks of this turn had a chance to add data."""
        self._wake_up.set()

    def add_body(self, body: HttpStream) -> None:
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
