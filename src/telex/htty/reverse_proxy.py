"""An ASGI app that forwards every request to an HTTP/1.1 server nearby. For `--to`.

Both bodies are forwarded piece by piece. A client that leaves cancels its request. Redirects are
left to the browser to follow, cookies to the browser to keep. The server sees requests to itself,
and the browser sees responses of the page: `Upstream` replaces each side's name by the other's
where a header field holds one. A WebSocket is a handshake with the server and then messages both
ways; how one side closes is passed to the other. No TLS, no HTTP/2 and no cache upstream.
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
from telex.transports.http_client import OneLengthTransport
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
    """`http://HOST:PORT`, or `unix:PATH`, with the name that it is asked by."""

    host: str
    port: int | None = None
    unix: str | None = None

    @classmethod
    def parse(cls, to: str) -> Upstream:
        """Raises NoUpstream."""
        if to.startswith("unix:"):
            if path := to.removeprefix("unix:"):
                return cls("localhost", None, path)
            raise NoUpstream("unix: needs the path of a socket, as in unix:/run/app.sock")
        try:
            parts = urlsplit(to)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise NoUpstream(f"{to!r} is no address: {error}") from None
        if parts.scheme != "http" or not host or parts.path not in ("", "/") or parts.query:
            raise NoUpstream(f"{to!r} is no server; write http://HOST:PORT or unix:PATH")
        return cls(host, port)

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (None, 80) else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.authority}"

    def __str__(self) -> str:
        return self.origin if self.unix is None else f"unix:{self.unix}"

    def request_headers(self, scope: Scope) -> Fields:
        """As it should see the request."""
        fields = end_to_end_headers(scope["headers"])
        host = next(iter(header_values(fields, b"host")), b"")
        passed = [
            (name, self._for_it(name, value, host))
            for name, value in fields
            if name not in _NOT_PASSED_ON
        ]
        forwarded = [(b"x-forwarded-host", host)] if host else []
        return [(b"host", self.authority.encode()), *passed, *forwarded]

    def _for_it(self, name: bytes, value: bytes, host: bytes) -> bytes:
        """Servers compare the Origin with the Host to tell their own pages from others'."""
        if name not in (b"origin", b"referer") or not host:
            return value
        for scheme in (b"http://", b"https://"):
            ours = scheme + host
            if value == ours or value.startswith(ours + b"/"):
                return self.origin.encode() + value[len(ours) :]
        return value

    def response_headers(self, headers: Fields) -> Fields:
        """As the browser should see the answer."""
        return [
            (name, self._for_browser(name, value)) for name, value in end_to_end_headers(headers)
        ]

    def _for_browser(self, name: bytes, value: bytes) -> bytes:
        match name:
            case b"location" | b"content-location":
                return self._local(value)
            case b"set-cookie":
                return _DOMAIN.sub(self._without, value)
            case _:
                return value

    def _local(self, location: bytes) -> bytes:
        """A path, if it leads to the server itself."""
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

    def _without(self, domain: re.Match[bytes]) -> bytes:
        """A cookie for the server's own name is one for the page's name, which is another."""
        own = domain[1].strip().lower().decode("latin-1")
        return b"" if self.host == own or self.host.endswith(f".{own}") else domain[0]


_OF_THE_HANDSHAKE: Final = (b"sec-websocket-", b"host", b"content-length")


async def proxy_websocket(upstream: Upstream, scope: Scope, receive: Receive, send: Send) -> None:
    """Dial, accept, and carry messages until it is over."""
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
        await _carry(connection, receive, send)


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
        "compression": None,  # the page's side has none, and would pay for it here
        "open_timeout": limits.HTTY_UPSTREAM_SECONDS,
        "close_timeout": limits.HTTY_CLOSE_SECONDS,
        "ping_interval": None,
        "max_size": limits.HTTY_MESSAGE_BYTES,
        "max_queue": 1,
        "logger": quiet_logger(),
    }
    # Where to is said beside the address, whose target is a stranger's.
    place: dict[str, Any] = {"host": upstream.host, "port": upstream.port or 80}
    if upstream.unix is not None:
        place = {"unix": True, "path": upstream.unix}
    return await _Dial(f"ws://{upstream.authority}{target}", proxy=None, **place, **settings)


class _Dial(connect):
    """Redirects are the browser's to follow: the library would go wherever the server says."""

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


async def _carry(connection: ClientConnection, receive: Receive, send: Send) -> None:
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
        with contextlib.suppress(ConnectionClosed):  # the other way hears how, and tells
            await connection.send(message["bytes"] if text is None else text)
    await connection.close(_spoken(message.get("code", 1005)), message.get("reason") or "")


async def _to_client(connection: ClientConnection, send: Send) -> None:
    try:
        while True:
            message = await connection.recv()
            kind = "text" if isinstance(message, str) else "bytes"
            await send({"type": "websocket.send", kind: message})
    except ConnectionClosed as closed:
        told = closed.rcvd or Close(CloseCode.INTERNAL_ERROR, "")  # it left without a goodbye
        code = _spoken(told.code)
        await send({"type": "websocket.close", "code": code, "reason": told.reason})


def _spoken(code: int) -> int:
    """Libraries report these two where nobody said a code."""
    unspoken = (CloseCode.NO_STATUS_RCVD, CloseCode.ABNORMAL_CLOSURE)
    return int(CloseCode.NORMAL_CLOSURE if code in unspoken else code)


async def _refuse(send: Send, status: int, headers: Fields, body: bytes) -> None:
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


_CONNECT_SECONDS: Final = 5.0
_AGAIN: Final = '<meta http-equiv="refresh" content="2">'


class ReverseProxy:
    """Serves what the server at `to` serves. Connections are kept from lifespan to lifespan."""

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
        """Forward it, until it is done or nobody waits for it."""
        if self._transport is None:
            raise RuntimeError("a reverse proxy needs its lifespan to be run")
        question = _RequestBody(receive)
        exchange = _ProxiedRequest(self._upstream, self._transport, scope, question, send)
        forwarding = asyncio.create_task(exchange.run(), name="htty forward")
        leaving = asyncio.create_task(question.client_left(), name="htty client")
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
    """The request broke off."""


class _RequestBody:
    """The request's body, as it comes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: Message | None = None
        self._whole = asyncio.Event()

    async def begin(self) -> bool:
        """Whether there is a body, which HTTP/2 does not say in the headers."""
        self._first = await self._next()
        return bool(self._first.get("body")) or not self._whole.is_set()

    async def pieces(self, deadline: asyncio.Timeout) -> AsyncIterator[bytes]:
        """The deadline is the server's: it does not run while we wait for the client."""
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
        """Until they are gone; they cannot be seen to go while the body is on its way."""
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
    """One request to the server, and its answer."""

    def __init__(
        self,
        upstream: Upstream,
        transport: httpx.AsyncHTTPTransport,
        scope: Scope,
        question: _RequestBody,
        send: Send,
    ) -> None:
        self._upstream = upstream
        self._transport = transport
        self._scope = scope
        self._question = question
        self._send = send

    async def run(self) -> None:
        try:
            response = await self._ask()
        except _ClientLeft:
            return
        except TimeoutError:
            await self._send_error(504, "is there, and does not answer.")
            return
        except httpx.LocalProtocolError as error:
            await self._send_error(400, f"cannot be asked this: {error}.")
            return
        except httpx.ConnectTimeout:
            await self._send_error(504, "cannot be reached.")
            return
        except httpx.TransportError as error:
            await self._send_error(502, f"does not answer: {error}.")
            return
        try:
            await self._answer(response)
        finally:
            await response.aclose()

    async def _ask(self) -> httpx.Response:
        headers = self._upstream.request_headers(self._scope)
        target = self._scope.get("raw_path") or b"/"
        if query := self._scope["query_string"]:
            target += b"?" + query
        has_body = await self._question.begin()
        async with asyncio.timeout_at(_soon()) as deadline:
            request = httpx.Request(
                self._scope["method"],
                self._upstream.origin,
                headers=headers,
                content=self._question.pieces(deadline) if has_body else None,
                # The target as it came: to parse and write it anew would change some.
                extensions={"target": target, "timeout": {"connect": _CONNECT_SECONDS}},
            )
            return await self._transport.handle_async_request(request)

    async def _answer(self, response: httpx.Response) -> None:
        headers = self._upstream.response_headers(list(response.headers.raw))
        await self._send(
            {"type": "http.response.start", "status": response.status_code, "headers": headers}
        )
        assert isinstance(response.stream, httpx.AsyncByteStream)
        async for piece in response.stream:  # as it came: what is compressed stays so
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def _send_error(self, status: int, what: str) -> None:
        """A page that tries again, for one who opened it before the server was there."""
        shown = escape(f"{self._upstream}")
        body = html_page(
            f"{status}: no answer from the server behind this page",
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
