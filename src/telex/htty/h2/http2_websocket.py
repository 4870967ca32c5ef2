"""A WebSocket on one HTTP/2 stream (RFC 8441), either side of it, once the CONNECT was answered.

Messages in and out; pings are answered, fragments joined, text is UTF-8, sizes are bounded. The end
of the stream stands for the end of the TCP connection of RFC 6455. Frames are `websockets`' work.

`asgi` is the server, the gateway the client. Who may connect, and with which subprotocol, was
settled in the headers, before this.
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
"""RFC 6455 §5.5: a control frame holds 125, and the code takes two."""


@dataclass(frozen=True, slots=True)
class WebSocketClose:
    """How it ended: the code they gave, 1005 if they gave none, 1006 if there was no goodbye; or
    the code we gave when we could not go on listening."""

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
        """The next message; after the last one, and ever after, how it ended."""
        async with self._receiving:
            while self._closed is None:
                message = await self._step()
                if message is not None:
                    return message
            return self._closed

    async def send(self, message: str | bytes) -> None:
        """Returns when the other side has room for it. Raises WebSocketOver."""
        try:
            if isinstance(message, str):
                self._protocol.send_text(message.encode())
            else:
                self._protocol.send_binary(message)
            await self._flush()
        except (InvalidState, StreamReset, ConnectionOver) as over:
            raise WebSocketOver(f"nothing can be sent on the WebSocket: {over}") from over

    async def close(self, code: int = CloseCode.NORMAL_CLOSURE, reason: str = "") -> None:
        """Say goodbye, wait a while for theirs, and end the stream whatever comes. Any number of
        times. A code of 1005 says none; 1006 is no goodbye at all, but a reset.

        Raises ValueError for a code that RFC 6455 §7.4 keeps for itself.
        """
        if code == CloseCode.ABNORMAL_CLOSURE:
            self._http_stream.reset()
            return
        self._send_close(code, reason)
        try:
            async with asyncio.timeout(limits.HTTY_CLOSE_SECONDS):
                await self._flush()
                await self._read_to_the_end()
        except (StreamReset, ConnectionOver):
            pass  # they had no patience, and the stream is gone
        except TimeoutError:
            self._http_stream.reset()
        except asyncio.CancelledError:
            self._http_stream.reset()
            raise

    def _send_close(self, code: int, reason: str) -> None:
        if self._protocol.state is not State.OPEN:
            return  # we said it already, or answered theirs
        try:
            if code == CloseCode.NO_STATUS_RCVD:
                self._protocol.send_close()
            else:
                self._protocol.send_close(code, _cut(reason))
        except ProtocolError:
            raise ValueError(f"{code} is no code to close a WebSocket with") from None

    async def _read_to_the_end(self) -> None:
        """Both halves of the stream. What they still send is of no interest to anybody."""
        async with self._receiving:
            while self._closed is None:
                _ = await self._step()
            while await self._http_stream.read():
                pass

    async def _step(self) -> str | bytes | None:
        """A message, if there is one; else look for more."""
        if self._frames:
            return self._join(self._frames.popleft())
        try:
            if self._protocol.parser_exc is None:
                await self._feed()
            else:
                self._closed = self._how_it_ended()
            await self._flush()
        except (StreamReset, ConnectionOver) as gone:
            self._closed = self._closed or WebSocketClose(CloseCode.ABNORMAL_CLOSURE, str(gone))
        return None

    async def _feed(self) -> None:
        if data := await self._http_stream.read():
            self._protocol.receive_data(data)
            events = self._protocol.events_received()
            self._frames += (event for event in events if isinstance(event, Frame))
        else:
            self._protocol.receive_eof()

    async def _flush(self) -> None:
        """What the library wants sent, in its order. Its sign for the end of TCP, an empty piece,
        comes at another time on each side; here a side is done when it has heard all it will. An
        stream keeps what several tasks write in order and whole."""
        data = b"".join(self._protocol.data_to_send())
        deaf = self._protocol.close_rcvd is not None or self._protocol.parser_exc is not None
        end = deaf and not self._ended
        self._ended |= deaf
        if not data and not end:
            return
        try:
            await self._http_stream.write(data, end=end)
        except asyncio.CancelledError:
            self._http_stream.reset()  # a frame may have gone in part, and nothing can follow it
            raise

    def _join(self, frame: Frame) -> str | bytes | None:
        """A whole message, if this frame completes one."""
        match frame.opcode:
            case Opcode.CLOSE:
                self._closed = self._how_it_ended()
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
            # The library looks at the text of close frames only.
            self._frames.clear()
            self._protocol.fail(CloseCode.INVALID_DATA, "the text is not UTF-8")
            self._protocol.parser_exc = error
            return None

    def _how_it_ended(self) -> WebSocketClose:
        told = self._protocol.close_rcvd
        if told is None and not isinstance(self._protocol.parser_exc, EOFError):
            told = self._protocol.close_sent  # we could not go on, and said why
        return (
            WebSocketClose(told.code, told.reason)
            if told
            else WebSocketClose(CloseCode.ABNORMAL_CLOSURE)
        )


def _cut(reason: str) -> str:
    return reason.encode()[:_REASON_BYTES].decode(errors="ignore")
