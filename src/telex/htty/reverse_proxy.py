"""An ASGI app that forwards every request to a local HTTP/1.1 server. For `--to`.

Both bodies are forwarded piece by piece. A client that disconnects cancels its request. The browser
follows redirects and keeps cookies. The server sees requests to itself, and the browser sees
responses of the page: `Upstream` replaces each side's name by the other's in header fields. A
WebSocket is a handshake with the server and then messages in both directions; the close of one side
is passed to the other. No TLS, no HTTP/2 and no cache upstream.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.frames import Close, CloseCode
from websockets.typing import Subprotocol

from telex.htty import limits
from telex.htty.asgi_messages import end_to_end_headers, header_values
from telex.htty.errors import NoUpstream
from telex.htty.static_files import html_page
from telex.transports.responses import length_fault
from telex.transports.websocket import quiet_logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Receive, Scope, Send

    Fields = list[tuple[bytes, bytes]]

_NOT_PASSED_ON: Final = frozenset((b"host", b"expect", b"http2-settings", b"proxy-authorization"))
_DOMAIN: Final = re.compile(rb";\s*domain\s*=\s*\.?([^;]*)", re.IGNORECASE)
_PORTS: Final = {"http": 80}


@dataclass(frozen=True, slots=True)
class Upstream:
    """The server behind the page: `http://HOST:PORT`, or `unix:PATH` with the host localhost."""

    host: str
    port: int | None = None
    unix: str | None = None

    @classmethod
    def parse(cls, to: str) -> Upstream:
        """Parse an address. Raises NoUpstream."""
        if to.startswith("unix:"):
            if path := to.removeprefix("unix:"):
                return cls("localhost", None, path)
            raise NoUpstream("unix: needs the path of a socket, as in unix:/run/app.sock")
        try:
            parts = urlsplit(to)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise NoUpstream(f"{to!r} is not an address: {error}") from None
        if parts.scheme != "http" or not host or parts.path not in ("", "/") or parts.query:
            raise NoUpstream(f"{to!r} is not a server; use http://HOST:PORT or unix:PATH")
        return cls(host, port)

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (None, 80) else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.authority}"

    def __str__(self) -> str:
        return self.origin if self.unix is None else f"unix:{self.unix}"

    def request_headers(self, scope: Scope) -> Fields:
        """Return the header fields of a request, as the server should see them."""
        fields = end_to_end_headers(scope["headers"])
        host = next(iter(header_values(fields, b"host")), b"")
        passed = [
            (name, self._for_server(name, value, host))
            for name, value in fields
            if name not in _NOT_PASSED_ON
        ]
        forwarded = [(b"x-forwarded-host", host)] if host else []
        return [(b"host", self.authority.encode()), *passed, *forwarded]

    def _for_server(self, name: bytes, value: bytes, host: bytes) -> bytes:
        """Replace the page's origin: servers compare Origin with Host to recognise their pages."""
        if name not in (b"origin", b"referer") or not host:
            return value
        for scheme in (b"http://", b"https://"):
            ours = scheme + host
            if value == ours or value.startswith(ours + b"/"):
                return self.origin.encode() + value[len(ours) :]
        return value

    def response_headers(self, headers: Fields) -> Fields:
        """Return the header fields of a response, as the browser should see them."""
        return [
            (name, self._for_browser(name, value)) for name, value in end_to_end_headers(headers)
        ]

    def _for_browser(self, name: bytes, value: bytes) -> bytes:
        match name:
            case b"location" | b"content-location":
                return self._local(value)
            case b"set-cookie":
                return _DOMAIN.sub(self._without_own_domain, value)
            case _:
                return value

    def _local(self, location: bytes) -> bytes:
        """Return a path, if the location is on the server itself."""
        try:
            parts = urlsplit(location.decode("latin-1"))
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            return location
        if parts.scheme != "http" or parts.hostname != self.host or port != (self.port or 80):
            return location
        rest = location.split(b"://", 1)[1]
        path = rest[len(parts.netloc) :]
        # `http://host//elsewhere` must not become `//elsewhere`, which is another host.
        return b"/" + path.lstrip(b"/") if path.startswith(b"/") else b"/" + path

    def _without_own_domain(self, domain: re.Match[bytes]) -> bytes:
        """Drop the Domain of a cookie for the server's own name: the page has another name."""
        own = domain[1].strip().lower().decode("latin-1")
        return b"" if self.host == own or self.host.endswith(f".{own}") else domain[0]


_OF_THE_HANDSHAKE: Final = (b"sec-websocket-", b"host", b"content-length")


async def proxy_websocket(upstream: Upstream, scope: Scope, receive: Receive, send: Send) -> None:
    """Connect to the server, accept, and forward messages until either side closes."""
    _ = await receive()
    try:
        connection = await _dial(upstream, scope)
    except InvalidStatus as refused:
        answer = refused.response
        headers = [(k.encode(), v.encode()) for k, v in answer.headers.raw_items()]
        fields = [f for f in upstream.response_headers(headers) if f[0] != b"content-length"]
        await _refuse(send, answer.status_code, fields, bytes(answer.body or b""))
        return
    except InvalidURI:
        await _refuse(send, 400, [], b"")
        return
    except TimeoutError:
        await _refuse(send, 504, [], b"")
        return
    except (OSError, InvalidHandshake):
        await _refuse(send, 502, [], b"")
        return
    async with connection:
        await _accept(upstream, connection, send)
        await _forward(connection, receive, send)


async def _dial(upstream: Upstream, scope: Scope) -> ClientConnection:
    fields = upstream.request_headers(scope)
    target = scope.get("raw_path", b"/").decode("latin-1")
    if query := scope["query_string"]:
        target += f"?{query.decode('latin-1')}"
    settings: dict[str, Any] = {
        "additional_headers": [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in fields
            if not name.startswith(_OF_THE_HANDSHAKE)
        ],
        "subprotocols": [Subprotocol(name) for name in scope["subprotocols"]] or None,
        "user_agent_header": None,
        "compression": None,  # the page's side has none, so it would only cost time
        "open_timeout": limits.HTTY_UPSTREAM_SECONDS,
        "close_timeout": limits.HTTY_CLOSE_SECONDS,
        "ping_interval": None,
        "max_size": limits.HTTY_MESSAGE_BYTES,
        "max_queue": 1,
        "logger": quiet_logger(),
    }
    # The address to connect to is given separately, because the target comes from a client.
    place: dict[str, Any] = {"host": upstream.host, "port": upstream.port or 80}
    if upstream.unix is not None:
        place = {"unix": True, "path": upstream.unix}
    return await _Dial(f"ws://{upstream.authority}{target}", proxy=None, **place, **settings)


class _Dial(connect):
    """A dial without redirects: the browser follows them, and only to where it may."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


async def _accept(upstream: Upstream, connection: ClientConnection, send: Send) -> None:
    answered = connection.response
    assert answered is not None  # it is open
    headers = [(k.encode(), v.encode()) for k, v in answered.headers.raw_items()]
    fields = [
        field
        for field in upstream.response_headers(headers)
        if not field[0].startswith(_OF_THE_HANDSHAKE)
    ]
    accepted = connection.subprotocol
    await send({"type": "websocket.accept", "subprotocol": accepted, "headers": fields})


async def _forward(connection: ClientConnection, receive: Receive, send: Send) -> None:
    ways = {
        asyncio.create_task(_to_server(connection, receive)),
        asyncio.create_task(_to_client(connection, send)),
    }
    try:
        _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        _ = await asyncio.wait(ways)
    for way in ways:
        if not way.cancelled():
            await way


async def _to_server(connection: ClientConnection, receive: Receive) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        text = message.get("text")
        with contextlib.suppress(ConnectionClosed):  # the other direction reports the close
            await connection.send(message["bytes"] if text is None else text)
    await connection.close(_sendable(message.get("code", 1005)), message.get("reason") or "")


async def _to_client(connection: ClientConnection, send: Send) -> None:
    try:
        while True:
            message = await connection.recv()
            kind = "text" if isinstance(message, str) else "bytes"
            await send({"type": "websocket.send", kind: message})
    except ConnectionClosed as closed:
        close = closed.rcvd or Close(CloseCode.INTERNAL_ERROR, "")  # closed without a close frame
        code = _sendable(close.code)
        await send({"type": "websocket.close", "code": code, "reason": close.reason})


def _sendable(code: int) -> int:
    """Replace the codes that libraries report for a missing code, and that cannot be sent."""
    reserved = (CloseCode.NO_STATUS_RCVD, CloseCode.ABNORMAL_CLOSURE)
    return int(CloseCode.NORMAL_CLOSURE if code in reserved else code)


async def _refuse(send: Send, status: int, headers: Fields, body: bytes) -> None:
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


_CONNECT_SECONDS: Final = 5.0
_AGAIN: Final = '<meta http-equiv="refresh" content="2">'


class OneLengthTransport(httpx.AsyncHTTPTransport):
    """Connections that refuse a response with two lengths (see `length_fault`)."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raise `httpx.RemoteProtocolError` for such a response, as for any malformed one."""
        response = await super().handle_async_request(request)
        if why := length_fault([(name.lower(), value) for name, value in response.headers.raw]):
            await response.aclose()
            raise httpx.RemoteProtocolError(f"the response has no clear end: {why}")
        return response


class ReverseProxy:
    """Serves the pages of the server at `to`. Connections are pooled within one lifespan."""

    def __init__(self, to: str) -> None:
        self._upstream = Upstream.parse(to)
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "websocket":
                await proxy_websocket(self._upstream, scope, receive, send)
            case _:
                await self._pass(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        _ = await receive()
        pool = httpx.Limits(max_connections=None, max_keepalive_connections=16)
        unix = self._upstream.unix
        async with OneLengthTransport(uds=unix, limits=pool, trust_env=False) as transport:
            self._transport = transport
            await send({"type": "lifespan.startup.complete"})
            _ = await receive()
        self._transport = None
        await send({"type": "lifespan.shutdown.complete"})

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, until it is done or the client has disconnected."""
        if self._transport is None:
            raise RuntimeError("a reverse proxy needs its lifespan to be run")
        body = _RequestBody(receive)
        exchange = _ProxiedRequest(self._upstream, self._transport, scope, body, send)
        forwarding = asyncio.create_task(exchange.run(), name="htty forward")
        leaving = asyncio.create_task(body.client_left(), name="htty client")
        tasks = {forwarding, leaving}
        try:
            _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            _ = await asyncio.wait(tasks)
        if not forwarding.cancelled():
            await forwarding


class _ClientLeft(Exception):
    """The client disconnected before its request was complete."""


class _RequestBody:
    """The body of a request, as it arrives."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: Message | None = None
        self._whole = asyncio.Event()

    async def begin(self) -> bool:
        """Whether there is a body, which HTTP/2 does not state in the headers."""
        self._first = await self._next()
        return bool(self._first.get("body")) or not self._whole.is_set()

    async def pieces(self, deadline: asyncio.Timeout) -> AsyncIterator[bytes]:
        """Yield the body. The server's deadline is suspended while we wait for the client."""
        message = self._first
        while message is not None:
            deadline.reschedule(_soon())
            if body := message.get("body"):
                yield body
            if self._whole.is_set():
                return
            deadline.reschedule(None)
            message = await self._next()

    async def client_left(self) -> None:
        """Wait for the disconnect, which cannot be noticed before the body is complete."""
        _ = await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _ClientLeft
        if not message.get("more_body", False):
            self._whole.set()
        return message


class _ProxiedRequest:
    """One request to the server, and its response."""

    def __init__(
        self,
        upstream: Upstream,
        transport: httpx.AsyncHTTPTransport,
        scope: Scope,
        body: _RequestBody,
        send: Send,
    ) -> None:
        self._upstream = upstream
        self._transport = transport
        self._scope = scope
        self._body = body
        self._send = send

    async def run(self) -> None:
        try:
            response = await self._request()
        except _ClientLeft:
            return
        except TimeoutError:
            await self._send_error(504, "accepts connections but does not respond.")
            return
        except httpx.LocalProtocolError as error:
            await self._send_error(400, f"cannot get this request: {error}.")
            return
        except httpx.ConnectTimeout:
            await self._send_error(504, "cannot be reached.")
            return
        except httpx.TransportError as error:
            await self._send_error(502, f"does not respond: {error}.")
            return
        try:
            await self._respond(response)
        finally:
            await response.aclose()

    async def _request(self) -> httpx.Response:
        headers = self._upstream.request_headers(self._scope)
        target = self._scope.get("raw_path") or b"/"
        if query := self._scope["query_string"]:
            target += b"?" + query
        has_body = await self._body.begin()
        async with asyncio.timeout_at(_soon()) as deadline:
            request = httpx.Request(
                self._scope["method"],
                self._upstream.origin,
                headers=headers,
                content=self._body.pieces(deadline) if has_body else None,
                # The target as received: parsing and encoding it again would change some targets.
                extensions={"target": target, "timeout": {"connect": _CONNECT_SECONDS}},
            )
            return await self._transport.handle_async_request(request)

    async def _respond(self, response: httpx.Response) -> None:
        headers = self._upstream.response_headers(list(response.headers.raw))
        await self._send(
            {"type": "http.response.start", "status": response.status_code, "headers": headers}
        )
        assert isinstance(response.stream, httpx.AsyncByteStream)
        async for piece in response.stream:  # as received: compressed data stays compressed
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def _send_error(self, status: int, what: str) -> None:
        """Send a page that reloads itself, for a browser that was faster than the server."""
        shown = escape(f"{self._upstream}")
        body = html_page(
            f"{status}: no response from the server behind this page",
            f"<p><code>{shown}</code> {escape(what)}</p>"
            "<p>Is it running? This page tries again every two seconds.</p>",
            head=_AGAIN if self._scope["method"] == "GET" else "",
        )
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _soon() -> float:
    return asyncio.get_running_loop().time() + limits.HTTY_UPSTREAM_SECONDS
