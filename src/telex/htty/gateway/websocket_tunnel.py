"""A browser's WebSocket, forwarded to the program as an extended CONNECT (RFC 8441).

Messages are received whole and sent again, so their sizes are bounded and a slow side blocks the
fast one. The close of one side is passed to the other; a connection that is lost is cut on both.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from telex.htty import limits
from telex.htty.errors import WebSocketOver
from telex.htty.gateway.gateway_request import (
    GAVE_UP,
    NO_WEBSOCKET,
    SILENT,
    UNREAD,
    ErrorResponse,
    GatewayRequest,
    malformed_response,
)
from telex.htty.gateway.header_policy import MalformedResponse, connect_headers, response_head
from telex.htty.h2.http2_websocket import Side, WebSocketClose, WebSocketStream
from telex.transports.responses import respond

if TYPE_CHECKING:
    from starlette.types import Message

    from telex.htty.gateway.header_policy import ResponseHead
    from telex.htty.h2.http_stream import HttpStream

_CloseTask = asyncio.Task[WebSocketClose | None]

_NO_CODE: Final = 1005
_NO_CLOSE_FRAME: Final = 1006
_SUBPROTOCOL: Final = b"sec-websocket-protocol"
_OF_OTHER_ANSWERS: Final = (b"sec-websocket-", b"content-")
"""Fields that the server here sends itself, or that a response without a body cannot have."""
_OTHER_SUBPROTOCOL: Final = malformed_response(
    "The program chose a subprotocol that was not offered."
)


class WebSocketTunnel(GatewayRequest):
    """One WebSocket between a browser and the program."""

    async def _forward(self) -> ErrorResponse | None:
        await self._receive()  # websocket.connect
        self._expect(limits.HTTY_ANSWER_SECONDS, SILENT)
        http = await self._origin.program()
        await http.ready()
        if not http.extended_connect:
            return NO_WEBSOCKET
        headers = connect_headers(self._scope, self._origin.auth)
        async with self._opened(http, headers, end=False) as http_stream:
            head = response_head(await http_stream.answer(), "CONNECT", self._origin.auth)
            if isinstance(head, MalformedResponse):
                return malformed_response(head.sentence)
            try:
                return await self._respond(head, http_stream)
            except OSError:  # the web server raises it for a disconnected browser
                return None

    async def _respond(self, head: ResponseHead, http_stream: HttpStream) -> ErrorResponse | None:
        if not 200 <= head.status < 300:
            body = await _first_bytes(http_stream)
            headers = [pair for pair in head.headers if pair[0] != b"content-length"]
            await respond(self._scope, self._send, head.status, body, headers)
            return None
        accept = _accept(head)
        if accept["subprotocol"] not in (None, *self._scope["subprotocols"]):
            return _OTHER_SUBPROTOCOL
        self._begun = True
        await self._send(accept)
        self._expect(None, UNREAD)
        return await self._converse(WebSocketStream(http_stream, Side.CLIENT))

    async def _converse(self, wire: WebSocketStream) -> ErrorResponse | None:
        """Forward in both directions until one side closes; then close the other."""
        inward = asyncio.create_task(self._from_program(wire))
        outward = asyncio.create_task(self._from_browser(wire))
        try:
            if (closing := await _first(outward, inward)) is outward:
                await self._close_program(wire, closing.result())
                return None
            return await self._close_browser(wire, closing.result())
        finally:
            for task in (inward, outward):
                task.cancel()
            await asyncio.wait({inward, outward})

    async def _from_program(self, wire: WebSocketStream) -> WebSocketClose | None:
        while not isinstance(message := await wire.receive(), WebSocketClose):
            kind = "text" if isinstance(message, str) else "bytes"
            try:
                await self._send({"type": "websocket.send", kind: message})
            except (OSError, RuntimeError):  # the browser disconnected, or violated the protocol
                return None
        return message

    async def _from_browser(self, wire: WebSocketStream) -> WebSocketClose | None:
        while (message := await self._receive())["type"] == "websocket.receive":
            text: str | None = message.get("text")
            try:
                await wire.send(message["bytes"] if text is None else text)
            except WebSocketOver:
                return None
        if "reason" not in message:  # the server reports 1005, but there was no close frame
            return WebSocketClose(_NO_CLOSE_FRAME)
        return WebSocketClose(message["code"], message["reason"] or "")

    async def _close_program(self, wire: WebSocketStream, close: WebSocketClose | None) -> None:
        if close is None or close.code == _NO_CLOSE_FRAME:
            return  # and the stream is reset
        await wire.close(close.code, close.reason)
        self._whole = True

    async def _close_browser(
        self, wire: WebSocketStream, close: WebSocketClose | None
    ) -> ErrorResponse | None:
        if close is None or close.code == _NO_CLOSE_FRAME:
            return GAVE_UP
        code = None if close.code == _NO_CODE else close.code
        with contextlib.suppress(OSError, RuntimeError):  # it has already disconnected
            await self._send({"type": "websocket.close", "code": code, "reason": close.reason})
        await wire.close()
        self._whole = True
        return None


async def _first(one: _CloseTask, other: _CloseTask) -> _CloseTask:
    """Return the direction that closed. A direction that only failed waits for the other."""
    await asyncio.wait({one, other}, return_when=asyncio.FIRST_COMPLETED)
    first, second = (one, other) if one.done() else (other, one)
    if first.result() is not None:
        return first
    await asyncio.wait({second})
    return second


async def _first_bytes(http_stream: HttpStream) -> bytes:
    """Return the first bytes of a refusal, which browsers do not show."""
    body = bytearray()
    while len(body) < limits.HTTY_REFUSAL_BYTES and (data := await http_stream.read()):
        body += data
    return bytes(body[: limits.HTTY_REFUSAL_BYTES])


def _accept(head: ResponseHead) -> Message:
    chosen = [value for name, value in head.headers if name == _SUBPROTOCOL]
    headers = [pair for pair in head.headers if not pair[0].startswith(_OF_OTHER_ANSWERS)]
    return {
        "type": "websocket.accept",
        "subprotocol": chosen[0].decode("latin-1") if chosen else None,
        "headers": headers,
    }
