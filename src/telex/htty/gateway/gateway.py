"""The gateway: the web server at which a person's browser opens pages. One port for all of them.

    async with Gateway() as gateway:
        gateway.add(page)
        show(gateway.url(page))

Each page has a host name of its own, `NAME.localhost`, and with it an origin, cookies and storage
of its own; browsers resolve such names to this machine themselves. Each has an authenticator of its
own, chosen by the Host, so a link to one page opens no other. Authenticated requests are forwarded
by `gateway_request` and `WebSocketTunnel`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from typing import TYPE_CHECKING, Final

from telex.htty import limits
from telex.htty.errors import WebSocketOver
from telex.htty.gateway.gateway_request import (
    GAVE_UP,
    NO_WEBSOCKET,
    SILENT,
    UNREAD,
    ErrorResponse,
    ForwardedRequest,
    GatewayRequest,
    PageOrigin,
    malformed_response,
)
from telex.htty.gateway.header_policy import MalformedResponse, connect_headers, response_head
from telex.htty.h2.http2_websocket import Side, WebSocketClose, WebSocketStream
from telex.transports.auth import Authenticator, AuthMiddleware
from telex.transports.responses import respond
from telex.transports.web_server import Address, CannotListen, listen_without_auth

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from telex.htty.gateway.header_policy import ResponseHead
    from telex.htty.gateway.pages import Page
    from telex.htty.h2.http_stream import HttpStream

_NO_PAGE: Final = (
    "telex has no page of that name here, or no longer. Start its program again, as in "
    "`telex run -- python3 hello.py`, and open the link that is shown then."
)


class NoSuchPage(LookupError):
    """The page was not added, or was removed."""


class Gateway:
    """Serves pages by name, on 127.0.0.1."""

    def __init__(self, port: int = 0) -> None:
        """Port 0 means any free port. Entering raises CannotListen if a given port is in use."""
        self._port = port
        self._origins: dict[str, tuple[PageOrigin, AuthMiddleware]] = {}
        self._unknown: Final = AuthMiddleware(
            _nothing, _authenticator(), advice=lambda reason: _NO_PAGE
        )
        self._listening = contextlib.AsyncExitStack()
        self._address: Address | None = None

    async def __aenter__(self) -> Gateway:
        listening = listen_without_auth(self._route, port=self._port, localhost=True)
        try:
            self._address = await self._listening.enter_async_context(listening)
        except CannotListen as problem:
            raise CannotListen(
                f"pages cannot be shown: {problem}; choose another port with --gateway-port, or 0 "
                "for any that is free"
            ) from problem
        return self

    async def __aexit__(self, *_: object) -> None:
        for name in list(self._origins):
            self._close(name)
        await self._listening.aclose()

    @property
    def port(self) -> int:
        assert self._address is not None, "the gateway is not open"
        return self._address.port

    def add(self, page: Page) -> None:
        """Add a page, which can then be opened by a browser with a link to it."""
        assert page.name not in self._origins, f"there is a page {page.name} already"
        auth = _authenticator(f"{page.name}.localhost")
        auth.set_address("127.0.0.1", self.port)
        origin = PageOrigin(page, auth)
        middleware = AuthMiddleware(
            _page_app(origin), auth, advice=lambda reason: page.new_link, title=page.title
        )
        self._origins[page.name] = origin, middleware

    def remove(self, page: Page) -> None:
        """Remove a page: refuse new requests, and end the open ones."""
        self._found(page)
        self._close(page.name)

    def url(self, page: Page) -> str:
        """Return a link that admits one browser, once and for a short time. Each call makes one."""
        link = self._found(page).auth.new_link(time.monotonic())
        return f"http://{page.name}.localhost:{self.port}{link}"

    def _found(self, page: Page) -> PageOrigin:
        origin, _ = self._origins.get(page.name, (None, None))
        if origin is None or origin.page is not page:
            raise NoSuchPage(f"there is no page {page.name} at the gateway; add it first")
        return origin

    def _close(self, name: str) -> None:
        origin, _ = self._origins.pop(name)
        for request in list(origin.requests):
            request.end()

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        name = hosts[0].lower().partition(b".")[0] if hosts else b""
        _, middleware = self._origins.get(name.decode("latin-1"), (None, self._unknown))
        await middleware(scope, receive, send)


def _authenticator(*names: str) -> Authenticator:
    """Create an authenticator with a token that is never shown: browsers use a link."""
    return Authenticator(secrets.token_urlsafe(32), names=names, shared=True)


def _page_app(origin: PageOrigin) -> ASGIApp:
    async def page_app(scope: Scope, receive: Receive, send: Send) -> None:
        kind = WebSocketTunnel if scope["type"] == "websocket" else ForwardedRequest
        await kind(origin, scope, receive, send).run()

    return page_app


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("an authenticator without a name admitted a request")


# A browser's WebSocket, forwarded to the program as an extended CONNECT (RFC 8441).
#
# Messages are received whole and sent again, so their sizes are bounded and a slow side blocks the
# fast one. The close of one side is passed to the other; a connection that is lost is cut on both.


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
