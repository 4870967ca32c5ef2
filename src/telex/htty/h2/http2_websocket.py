"""A WebSocket on one HTTP/2 stream (RFC 8441), for either side, after CONNECT was accepted.

It sends and receives messages. Pings are answered, fragments are joined, text is checked to be
UTF-8, and sizes are bounded. The end of the stream stands for the end of the TCP connection of
RFC 6455. The `websockets` library encodes and parses the frames.

`asgi` is the server, the gateway the client. Access and the subprotocol were already decided by the
headers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from websockets.exceptions import InvalidState, ProtocolError
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Protocol, Side, State

from telex.htty import limits
from telex.htty.errors import ConnectionOver, StreamReset, WebSocketOver
from telex.transports.websocket import quiet_logger

if TYPE_CHECKING:
    from telex.htty.h2.http_stream import HttpStream

__all__ = ["Side", "WebSocketClose", "WebSocketStream"]

_REASON_BYTES: Final = 123
"""RFC 6455 §5.5: a control frame holds 125 bytes, and the code takes two."""


@dataclass(frozen=True, slots=True)
class WebSocketClose:
    """How a WebSocket ended.

    The code is the peer's; 1005 if its close frame had none, 1006 if there was no close frame; or
    ours if we closed because of an error.
    """

    code: int
    reason: str = ""


class WebSocketStream:
    """One open WebSocket. One task may receive while others send."""

    def __init__(self, http_stream: HttpStream, side: Side) -> None:
        self._http_stream = http_stream
        self._protocol = Protocol(side, max_size=limits.HTTY_MESSAGE_BYTES, logger=quiet_logger())
        self._frames: deque[Frame] = deque()
        self._partial = bytearray()
        self._text = False
        self._closed: WebSocketClose | None = None
        self._ended = False
        self._receiving = asyncio.Lock()

    async def receive(self) -> str | bytes | WebSocketClose:
        """Return the next message; after the last one, always the close."""
        async with self._receiving:
            while self._closed is None:
                message = await self._step()
                if message is not None:
                    return message
            return self._closed

    async def send(self, message: str | bytes) -> None:
        """Send a message; return when the other side has room for it. Raises WebSocketOver."""
        try:
            if isinstance(message, str):
                self._protocol.send_text(message.encode())
            else:
                self._protocol.send_binary(message)
            await self._flush()
        except (InvalidState, StreamReset, ConnectionOver) as over:
            raise WebSocketOver(f"cannot send on the WebSocket: {over}") from over

    async def close(self, code: int = CloseCode.NORMAL_CLOSURE, reason: str = "") -> None:
        """Send a close frame, wait a while for the peer's, and end the stream in any case.

        It may be called repeatedly. Code 1005 sends no code; 1006 sends no close frame but resets
        the stream.

        Raises ValueError for a code that RFC 6455 §7.4 reserves.
        """
        if code == CloseCode.ABNORMAL_CLOSURE:
            self._http_stream.reset()
            return
        self._send_close(code, reason)
        try:
            async with asyncio.timeout(limits.HTTY_CLOSE_SECONDS):
                await self._flush()
                await self._read_to_end()
        except (StreamReset, ConnectionOver):
            pass  # the peer did not wait, and the stream has ended
        except TimeoutError:
            self._http_stream.reset()
        except asyncio.CancelledError:
            self._http_stream.reset()
            raise

    def _send_close(self, code: int, reason: str) -> None:
        if self._protocol.state is not State.OPEN:
            return  # already sent, or the peer's was answered
        try:
            if code == CloseCode.NO_STATUS_RCVD:
                self._protocol.send_close()
            else:
                self._protocol.send_close(code, _cut(reason))
        except ProtocolError:
            raise ValueError(f"{code} is not a valid close code of a WebSocket") from None

    async def _read_to_end(self) -> None:
        """Read the stream to its end, and drop the remaining messages."""
        async with self._receiving:
            while self._closed is None:
                _ = await self._step()
            while await self._http_stream.read():
                pass

    async def _step(self) -> str | bytes | None:
        """Return a message if there is one; otherwise read more."""
        if self._frames:
            return self._join(self._frames.popleft())
        try:
            if self._protocol.parser_exc is None:
                await self._feed()
            else:
                self._closed = self._close_reason()
            await self._flush()
        except (StreamReset, ConnectionOver) as lost:
            self._closed = self._closed or WebSocketClose(CloseCode.ABNORMAL_CLOSURE, str(lost))
        return None

    async def _feed(self) -> None:
        if data := await self._http_stream.read():
            self._protocol.receive_data(data)
            events = self._protocol.events_received()
            self._frames += (event for event in events if isinstance(event, Frame))
        else:
            self._protocol.receive_eof()

    async def _flush(self) -> None:
        """Send the library's output, in its order.

        The library marks the end of TCP with an empty piece, at a different time on each side.
        Here a side ends the stream when it has received the last frame it will read. The stream
        keeps the writes of several tasks whole and in order.
        """
        data = b"".join(self._protocol.data_to_send())
        finished = self._protocol.close_rcvd is not None or self._protocol.parser_exc is not None
        end = finished and not self._ended
        self._ended |= finished
        if not data and not end:
            return
        try:
            await self._http_stream.write(data, end=end)
        except asyncio.CancelledError:
            self._http_stream.reset()  # part of a frame may have been sent, so none can follow
            raise

    def _join(self, frame: Frame) -> str | bytes | None:
        """Return a whole message, if this frame completes one."""
        match frame.opcode:
            case Opcode.CLOSE:
                self._closed = self._close_reason()
                return None
            case Opcode.PING | Opcode.PONG:
                return None
            case Opcode.TEXT | Opcode.BINARY:
                self._text = frame.opcode is Opcode.TEXT
        if frame.fin and not self._partial:
            return self._read_as(bytes(frame.data))
        self._partial += frame.data
        if not frame.fin:
            return None
        data, self._partial = bytes(self._partial), bytearray()
        return self._read_as(data)

    def _read_as(self, data: bytes) -> str | bytes | None:
        if not self._text:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            # The library checks only the text of close frames.
            self._frames.clear()
            self._protocol.fail(CloseCode.INVALID_DATA, "the text is not UTF-8")
            self._protocol.parser_exc = error
            return None

    def _close_reason(self) -> WebSocketClose:
        frame = self._protocol.close_rcvd
        if frame is None and not isinstance(self._protocol.parser_exc, EOFError):
            frame = self._protocol.close_sent  # we closed because of an error
        return (
            WebSocketClose(frame.code, frame.reason)
            if frame
            else WebSocketClose(CloseCode.ABNORMAL_CLOSURE)
        )


def _cut(reason: str) -> str:
    return reason.encode()[:_REASON_BYTES].decode(errors="ignore")
