"""An ASGI app that passes every request on to an HTTP/1.1 server nearby. For `--to`.

Both bodies go through piece by piece. A client that leaves takes its request with it. Redirects are
the browser's to follow, cookies the browser's to keep. Headers change as `upstream` says;
WebSockets are in `reverse_websocket`. No TLS, no HTTP/2 and no cache upstream.
"""

from __future__ import annotations

import asyncio
from html import escape
from typing import TYPE_CHECKING, Final

import httpx

from telex.htty.listing import page
from telex.htty.reverse_websocket import pass_websocket
from telex.htty.upstream import Upstream
from telex.transports.one_length import OneLengthTransport
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Receive, Scope, Send

_CONNECT_SECONDS: Final = 5.0
_AGAIN: Final = '<meta http-equiv="refresh" content="2">'


class Reverse:
    """Serves what the server at `to` serves. Connections are kept from lifespan to lifespan."""

    def __init__(self, to: str) -> None:
        self._upstream = Upstream.parse(to)
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "websocket":
                await pass_websocket(self._upstream, scope, receive, send)
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
        question = _Question(receive)
        exchange = _Exchange(self._upstream, self._transport, scope, question, send)
        forwarding = asyncio.create_task(exchange.hold(), name="htty forward")
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


class _Question:
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


class _Exchange:
    """One request to the server, and its answer."""

    def __init__(
        self,
        upstream: Upstream,
        transport: httpx.AsyncHTTPTransport,
        scope: Scope,
        question: _Question,
        send: Send,
    ) -> None:
        self._upstream = upstream
        self._transport = transport
        self._scope = scope
        self._question = question
        self._send = send

    async def hold(self) -> None:
        try:
            response = await self._ask()
        except _ClientLeft:
            return
        except TimeoutError:
            await self._apologise(504, "is there, and does not answer.")
            return
        except httpx.LocalProtocolError as error:
            await self._apologise(400, f"cannot be asked this: {error}.")
            return
        except httpx.ConnectTimeout:
            await self._apologise(504, "cannot be reached.")
            return
        except httpx.TransportError as error:
            await self._apologise(502, f"does not answer: {error}.")
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

    async def _apologise(self, status: int, what: str) -> None:
        """A page that tries again, for one who opened it before the server was there."""
        shown = escape(f"{self._upstream}")
        body = page(
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
