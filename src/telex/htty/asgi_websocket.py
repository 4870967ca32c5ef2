"""A WebSocket of an ASGI app: from the CONNECT to the goodbye. Used by `asgi`; frames are in
`websocket`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from h2.errors import ErrorCodes
from websockets.frames import CloseCode

from telex.htty.asgi_response import ClientGone, Response, clean
from telex.htty.asgi_scope import values, websocket_scope
from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.websocket import Close, Side, WebSocketOver, WebSocketWire

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

    from telex.htty.exchange import Exchange

log = logging.getLogger("telex.htty")

_VERSION: Final = b"13"


class WebSocketConversation:
    """One WebSocket: connecting, then accepted or refused, then over."""

    def __init__(self, app: ASGIApp, exchange: Exchange, state: dict[str, Any]) -> None:
        self._app = app
        self._exchange = exchange
        self._scope = websocket_scope(exchange.headers, state)
        self._refusal = Response(exchange)
        self._wire: WebSocketWire | None = None
        self._greeted = False
        self._closed = False
        self._left = False

    async def hold(self) -> None:
        """Until the app is done with it, and the stream is free."""
        try:
            if values(self._exchange.headers, b"sec-websocket-version") in ([], [_VERSION]):
                await self._run()
            else:
                await self._refuse(426, [(b"sec-websocket-version", _VERSION)])
        except ClientGone:
            return
        finally:
            whole = self._refusal.whole.is_set()
            self._exchange.reset(ErrorCodes.NO_ERROR if whole else ErrorCodes.CANCEL)

    async def _run(self) -> None:
        code = CloseCode.NORMAL_CLOSURE
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:
            code = CloseCode.INTERNAL_ERROR
            if self._left:  # which each framework says in its own way
                log.info("the client left WebSocket %r: %r", self._scope["path"], error)
            else:
                log.error("the app failed at WebSocket %r", self._scope["path"], exc_info=error)
        if self._wire is not None:
            await self._wire.close(code)
        elif not self._refusal.whole.is_set() and not self._exchange.gone.is_set():
            log.error("the app gave no answer to WebSocket %r", self._scope["path"])
            await self._refusal.fail()

    async def _receive(self) -> Message:
        if not self._greeted:
            self._greeted = True
            return {"type": "websocket.connect"}
        if self._wire is None:
            _ = await self._exchange.gone.wait()
            self._left = True
            return {"type": "websocket.disconnect", "code": int(CloseCode.ABNORMAL_CLOSURE)}
        match await self._wire.receive():
            case str(text):
                return {"type": "websocket.receive", "text": text, "bytes": None}
            case bytes(data):
                return {"type": "websocket.receive", "text": None, "bytes": data}
            case Close(code, reason):
                self._left = True
                return {"type": "websocket.disconnect", "code": int(code), "reason": reason}

    async def _send(self, message: Message) -> None:
        if self._closed:
            raise RuntimeError(f"{message['type']!r}, although the WebSocket was closed")
        if self._wire is None:
            await self._decide(message)
            return
        match message["type"]:
            case "websocket.send":
                await self._speak(self._wire, message)
            case "websocket.close":
                self._closed = True
                code = message.get("code") or CloseCode.NORMAL_CLOSURE
                await self._wire.close(code, message.get("reason") or "")
            case other:
                raise RuntimeError(f"{other!r} is no message of an open WebSocket")

    async def _decide(self, message: Message) -> None:
        match message["type"]:
            case "websocket.accept":
                await self._accept(message)
            case "websocket.close":
                self._closed = True
                await self._refuse(403, [])
            case "websocket.http.response.start":
                await self._refusal.start(message)
            case "websocket.http.response.body":
                await self._refusal.body(message)
                self._closed = self._refusal.whole.is_set()
            case other:
                raise RuntimeError(f"{other!r} is no message of a WebSocket that is connecting")

    async def _accept(self, message: Message) -> None:
        fields = clean(message.get("headers", ()))
        if subprotocol := message.get("subprotocol"):
            fields.append((b"sec-websocket-protocol", subprotocol.encode("latin-1")))
        try:
            await self._exchange.send_headers([(b":status", b"200"), *fields])
        except (StreamReset, ConnectionOver) as gone:
            self._left = True
            raise ClientGone(str(gone)) from gone
        self._wire = WebSocketWire(self._exchange, Side.SERVER)

    async def _speak(self, wire: WebSocketWire, message: Message) -> None:
        data = message.get("bytes")
        text = message.get("text")
        try:
            await wire.send(text if data is None and text is not None else bytes(data or b""))
        except WebSocketOver as over:
            self._left = True
            raise ClientGone(str(over)) from over

    async def _refuse(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self._refusal.start({"status": status, "headers": headers})
        await self._refusal.body({})
