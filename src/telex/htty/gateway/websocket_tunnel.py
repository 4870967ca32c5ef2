"""A browser's WebSocket, carried to the program as an extended CONNECT (RFC 8441).

Messages end and begin here, so that their sizes are bounded and a slow side holds up the fast one.
How one side says goodbye is what the other hears; a side that is cut off is cut off on both.
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

_Goodbye = asyncio.Task[WebSocketClose | None]

_NO_CODE: Final = 1005
_NO_GOODBYE: Final = 1006
_SUBPROTOCOL: Final = b"sec-websocket-protocol"
_OF_OTHER_ANSWERS: Final = (b"sec-websocket-", b"content-")
"""What the server here says itself, or what an answer without a body has no use for."""
_OTHER_SUBPROTOCOL: Final = malformed_response(
    "The program chose a subprotocol that nobody offered."
)


class WebSocketTunnel(GatewayRequest):
    """One WebSocket."""

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
                return await self._as_answered(head, http_stream)
            except OSError:  # the server's word for a browser that left
                return None

    async def _as_answered(
        self, head: ResponseHead, http_stream: HttpStream
    ) -> ErrorResponse | None:
        if not 200 <= head.status < 300:
            body = await _beginning(http_stream)
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
        """Both ways, until one side says goodbye; then the other hears it."""
        inward = asyncio.create_task(self._from_program(wire))
        outward = asyncio.create_task(self._from_browser(wire))
        try:
            if (theirs := await _first(outward, inward)) is outward:
                await self._close_program(wire, theirs.result())
                return None
            return await self._close_browser(wire, theirs.result())
        finally:
            for task in (inward, outward):
                task.cancel()
            await asyncio.wait({inward, outward})

    async def _from_program(self, wire: WebSocketStream) -> WebSocketClose | None:
        while not isinstance(message := await wire.receive(), WebSocketClose):
            kind = "text" if isinstance(message, str) else "bytes"
            try:
                await self._send({"type": "websocket.send", kind: message})
            except (OSError, RuntimeError):  # the browser left, or was sent away for its mistakes
                return None
        return message

    async def _from_browser(self, wire: WebSocketStream) -> WebSocketClose | None:
        while (message := await self._receive())["type"] == "websocket.receive":
            text: str | None = message.get("text")
            try:
                await wire.send(message["bytes"] if text is None else text)
            except WebSocketOver:
                return None
        if "reason" not in message:  # the server calls it 1005, but no close frame came
            return WebSocketClose(_NO_GOODBYE)
        return WebSocketClose(message["code"], message["reason"] or "")

    async def _close_program(self, wire: WebSocketStream, goodbye: WebSocketClose | None) -> None:
        if goodbye is None or goodbye.code == _NO_GOODBYE:
            return  # and the stream is reset
        await wire.close(goodbye.code, goodbye.reason)
        self._whole = True

    async def _close_browser(
        self, wire: WebSocketStream, goodbye: WebSocketClose | None
    ) -> ErrorResponse | None:
        if goodbye is None or goodbye.code == _NO_GOODBYE:
            return GAVE_UP
        code = None if goodbye.code == _NO_CODE else goodbye.code
        with contextlib.suppress(OSError, RuntimeError):  # it left already
            await self._send({"type": "websocket.close", "code": code, "reason": goodbye.reason})
        await wire.close()
        self._whole = True
        return None


async def _first(one: _Goodbye, other: _Goodbye) -> _Goodbye:
    """Who said how it ended. A side that merely could not go on waits for the other to say."""
    await asyncio.wait({one, other}, return_when=asyncio.FIRST_COMPLETED)
    first, second = (one, other) if one.done() else (other, one)
    if first.result() is not None:
        return first
    await asyncio.wait({second})
    return second


async def _beginning(http_stream: HttpStream) -> bytes:
    """Of an answer that nobody will look at for long."""
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
