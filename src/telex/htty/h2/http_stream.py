"""One request and its response: an HTTP/2 stream, used on either side.

Bodies are never held whole. Unread data is at most a window (`HTTY_STREAM_WINDOW`), and reading
opens the window again; `write` waits until the data is on its way. `Http2Connection` makes streams
and passes them the peer's events (`on_…`); `Http2Writer` takes what they have to send.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes

from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.h2.header_fields import HeaderBlock, Headers
from telex.htty.h2.http2_state import Http2Side

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.htty.h2.http2_flow import Http2Writer
    from telex.htty.h2.http2_state import Http2State


class _BodyPiece:
    """Of a body, given to `write` and not sent yet."""

    __slots__ = ("data", "end", "sent")

    def __init__(self, data: bytes, end: bool, sent: asyncio.Future[None]) -> None:
        self.data = memoryview(data)
        self.end = end
        self.sent = sent


class HttpStream:
    """One stream."""

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
        """The request's, on both sides."""
        self.trailers: Headers | None = None
        """Of the peer's body, once it has ended, if it had any."""
        self.gone = asyncio.Event()
        """The peer reset it, or the connection is over."""
        self.stalled_checks = 0
        """Checks (`StallWatch`) since it last moved while it waited for the peer."""
        self._connection = connection
        self._writer = writer
        self._done: Callable[[HttpStream], None] | None = done
        self._came = asyncio.Event()
        self._answer: Headers | None = None
        self._unread = bytearray()
        self._pieces: deque[_BodyPiece] = deque()
        self._ended_here = False
        self._ended_there = False
        self._answered_here = False
        self._fault: StreamReset | str | None = None
        self._reading = False

    # The peer's part

    async def answer(self) -> Headers:
        """The response's header fields. Those before it (1xx) are passed over."""
        while self._answer is None:
            await self._more()
        return self._answer

    async def read(self) -> bytes:
        """The next piece of the peer's body; nothing at its end."""
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
        """The peer's body has ended, and all of it was read."""
        return self._ended_there and not self._unread

    async def _more(self) -> None:
        """Until something came."""
        if self._fault is not None:
            raise self._failure()
        self._came.clear()
        self._reading = True
        try:
            await self._came.wait()
        finally:
            self._reading = False

    # Our part

    async def send_headers(self, headers: Headers, *, end: bool = False) -> None:
        """A response (or one before it, 1xx), and trailers of either side, which are its end."""
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
        """A piece of our body. Returns when it is on its way, or as good as."""
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
        """For `writer`: a frame of the first piece. Whether there is more that may be sent."""
        while self._pieces and self._pieces[0].sent.done():  # whoever wrote it was cancelled
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
        """Give it up. What came and was not read, the peer may send again to others.

        Nothing happens if it has ended in both directions. A server that answered without reading
        the request to its end says so with NO_ERROR (RFC 9113 §8.1).
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
        """A window has opened."""
        if self._pieces:
            self._writer.add_body(self)

    def on_reset(self, code: int, *, ours: bool) -> None:
        self._fail(StreamReset(code, ours=ours))
        self.gone.set()

    def on_connection_over(self, sentence: str) -> None:
        self._fail(sentence)
        self.gone.set()

    def on_stall(self) -> None:
        """It has waited for the peer for too long."""
        self.reset(ErrorCodes.CANCEL)
        self.gone.set()

    @property
    def waits_for_peer(self) -> bool:
        """For its window, or for the rest of its request. A tunnel may be silent for hours."""
        if self._pieces:
            return self._connection.window(self.id) <= 0
        return self._reading and not self._ended_there and not self._is_tunnel

    @property
    def _is_tunnel(self) -> bool:
        return (b":method", b"CONNECT") in self.headers

    def _moved(self) -> None:
        self.stalled_checks = 0
        self._came.set()

    def on_end_sent(self) -> None:
        self._ended_here = True
        self._finish_if_ended()

    def _finish_if_ended(self) -> None:
        if self._ended_here and self._ended_there:
            self._finish()

    def _finish(self) -> None:
        """Nothing more will come. What was not read weighs on the others no longer.

        It may never be read: whoever had it may have lost interest, and told nobody.
        """
        done, self._done = self._done, None
        if done is not None:
            self._connection.acknowledge(self.id, len(self._unread))
            self._writer.wake()
            done(self)

    def _fail(self, fault: StreamReset | str) -> None:
        if self._done is None:  # it had ended; nothing is lost
            return
        self._fault = fault
        for piece in self._pieces:
            if not piece.sent.done():
                piece.sent.set_exception(self._failure())
        self._pieces.clear()
        self._came.set()
        self._finish()

    def _check_open(self) -> None:
        if self._fault is not None:
            raise self._failure()
        if self._ended_here:
            raise RuntimeError("this side of the exchange has ended; nothing can follow")

    def _failure(self) -> StreamReset | ConnectionOver:
        fault = self._fault
        if isinstance(fault, StreamReset):
            return StreamReset(fault.code, ours=fault.ours)
        return ConnectionOver(fault)
