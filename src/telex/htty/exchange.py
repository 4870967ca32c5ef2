"""One request and its response: an HTTP/2 stream, seen from either side.

Bodies are never held whole. What came and was not read is at most a window (`HTTY_STREAM_WINDOW`),
and reading it opens the window again; what is written waits until it is on its way. `http2` makes
these and tells them what came; `sending` takes what they have to send.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes

from telex.htty.connection import Side
from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.fields import Block, Headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.htty.connection import Connection
    from telex.htty.sending import Sending

__all__ = ["Exchange", "Headers"]


class _Piece:
    """Of a body, given to `write` and not sent yet."""

    __slots__ = ("data", "end", "sent")

    def __init__(self, data: bytes, end: bool, sent: asyncio.Future[None]) -> None:
        self.data = memoryview(data)
        self.end = end
        self.sent = sent


class Exchange:
    """One stream."""

    def __init__(
        self,
        id: int,
        headers: Headers,
        connection: Connection,
        sending: Sending,
        done: Callable[[Exchange], None],
    ) -> None:
        self.id = id
        self.headers = headers
        """The request's, on both sides."""
        self.trailers: Headers | None = None
        """Of the peer's body, once it has ended, if it had any."""
        self.gone = asyncio.Event()
        """The peer reset it, or the connection is over."""
        self.still = 0
        """Looks at it (`http2`) since it last moved while it waited for the peer."""
        self._connection = connection
        self._sending = sending
        self._done: Callable[[Exchange], None] | None = done
        self._came = asyncio.Event()
        self._answer: Headers | None = None
        self._unread = bytearray()
        self._pieces: deque[_Piece] = deque()
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
            self._connection.taken(self.id, len(data))
            self._sending.stir()
        return data

    @property
    def read_out(self) -> bool:
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
        trailing = self._connection.side is Side.CLIENT or self._answered_here
        block, end = (Block.TRAILERS, True) if trailing else (Block.RESPONSE, end)
        self._connection.headers(self.id, headers, block, end=end)
        self._answered_here = trailing or not headers[0][1].startswith(b"1")
        self._sending.stir()
        self.still = 0
        if end:
            self.ended_here()

    async def write(self, data: bytes, *, end: bool = False) -> None:
        """A piece of our body. Returns when it is on its way, or as good as."""
        self._check_open()
        if not data and not end:
            return
        if not self._pieces and self._fits(len(data)):
            self._connection.data(self.id, memoryview(data), end=end)
            self._sending.stir()
            self.still = 0
            if end:
                self.ended_here()
            return
        piece = _Piece(data, end, asyncio.get_running_loop().create_future())
        self._pieces.append(piece)
        self._sending.enlist(self)
        await piece.sent

    def _fits(self, size: int) -> bool:
        connection = self._connection
        frame, window = connection.frame_bytes, connection.window(self.id)
        return size <= min(frame, max(window, 0)) and self._sending.has_room_for(size)

    def send_some(self) -> bool:
        """For `sending`: a frame of the first piece. Whether there is more that may be sent."""
        while self._pieces and self._pieces[0].sent.done():  # whoever wrote it was cancelled
            self._pieces.popleft()
        if not self._pieces or self._fault is not None:
            return False
        piece = self._pieces[0]
        size = self._connection.data(self.id, piece.data, end=piece.end)
        piece.data = piece.data[size:]
        if size:
            self.still = 0
        if piece.data:
            return size > 0
        self._pieces.popleft()
        piece.sent.set_result(None)
        if piece.end:
            self.ended_here()
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

    # For `http2`

    def came_answer(self, headers: Headers) -> None:
        self._answer = headers
        self._moved()

    def came_data(self, data: bytes, size: int) -> None:
        self._unread += data
        if size > len(data):  # padding
            self._connection.taken(self.id, size - len(data))
        self._moved()

    def came_trailers(self, trailers: Headers) -> None:
        self.trailers = trailers

    def came_end(self) -> None:
        self._ended_there = True
        self._moved()
        self._finish_if_ended()

    def came_room(self) -> None:
        """A window has opened."""
        if self._pieces:
            self._sending.enlist(self)

    def came_reset(self, code: int, *, ours: bool) -> None:
        self._fail(StreamReset(code, ours=ours))
        self.gone.set()

    def came_over(self, sentence: str) -> None:
        self._fail(sentence)
        self.gone.set()

    def stalled(self) -> None:
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
        self.still = 0
        self._came.set()

    def ended_here(self) -> None:
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
            self._connection.taken(self.id, len(self._unread))
            self._sending.stir()
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
