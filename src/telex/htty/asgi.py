"""Any ASGI app, served on the bytes beneath a page: requests, WebSockets, its beginning and end.

One task for each request. Bodies go piece by piece: what the app has not asked for, the other side
has not sent yet, and what the other side has no room for, the app waits with. Not a server of
sockets, and it knows nothing of terminals. Used by `serving`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from h2.errors import ErrorCodes

from telex.htty.asgi_response import ClientGone, Response
from telex.htty.asgi_scope import has_target, protocol_of, request_scope, values
from telex.htty.asgi_websocket import WebSocketConversation
from telex.htty.connection import Side
from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.http2 import Ended, Http2
from telex.htty.lifespan import Lifespan, StartupFailed
from telex.wire import limits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

    from telex.htty.beneath import Beneath
    from telex.htty.exchange import Exchange

__all__ = ["AsgiServer", "StartupFailed"]

log = logging.getLogger("telex.htty")


class AsgiServer:
    """Serves one app on one connection."""

    def __init__(self, app: ASGIApp, *, lifespan: bool = True) -> None:
        self._app = app
        self._lifespan = lifespan
        self._http: Http2 | None = None
        self._closed: str | None = None
        self._state: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(limits.HTTY_REQUESTS_RUNNING)

    async def serve(self, beneath: Beneath) -> Ended:
        """Until the connection is over, and the app with it. Raises StartupFailed, with nothing
        written, when the app cannot begin."""
        lifespan = Lifespan(self._app)
        if self._lifespan:
            await lifespan.begin()
        try:
            if self._closed is not None:  # while the app began
                return Ended(True, self._closed)
            return await self._serve(beneath, lifespan.state)
        finally:
            await lifespan.end()

    async def _serve(self, beneath: Beneath, state: dict[str, Any]) -> Ended:
        self._state = state
        self._http = Http2(beneath, Side.SERVER, opened=self._opened)
        try:
            return await self._http.run()
        finally:
            self._http = None
            await self._settle()

    def close(self, sentence: str = "") -> None:
        """No new requests; `serve` returns when those under way are done, or soon after."""
        self._closed = sentence
        if self._http is not None:
            self._http.close(sentence)

    def _opened(self, exchange: Exchange) -> None:
        task = asyncio.create_task(self._answer(exchange), name=f"htty request {exchange.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, exchange: Exchange) -> None:
        # A stream that was reset is free again, though its app may still be busy: without a bound
        # of our own, resets would start any number of them.
        async with self._room:
            if exchange.gone.is_set():
                return
            match protocol_of(exchange.headers):
                case None | b"websocket" if not has_target(exchange.headers):
                    await _refuse(exchange, 400)
                case None:
                    await _Conversation(self._app, exchange, self._state).hold()
                case b"websocket":
                    await WebSocketConversation(self._app, exchange, self._state).hold()
                case _:
                    await _refuse(exchange, 501)

    async def _settle(self) -> None:
        """Requests that are still running learn that nobody listens, then they are cancelled."""
        if self._tasks:
            _ = await asyncio.wait(self._tasks, timeout=limits.HTTY_GRACE_SECONDS)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            _ = await asyncio.wait(self._tasks, timeout=limits.HTTY_GRACE_SECONDS)
        for task in self._tasks:
            log.error("%s will not end, although it was cancelled", task.get_name())


class _Conversation:
    """One request and its answer."""

    def __init__(self, app: ASGIApp, exchange: Exchange, state: dict[str, Any]) -> None:
        self._app = app
        self._exchange = exchange
        self._scope = request_scope(exchange.headers, state)
        self._response = Response(exchange, head=self._scope["method"] == "HEAD")
        self._asked_whole = False
        self._promised = values(exchange.headers, b"expect") == [b"100-continue"]

    async def hold(self) -> None:
        """Until the app is done with it, and the stream is free."""
        try:
            await self._run()
        except ClientGone:
            return
        finally:
            self._let_go()

    async def _run(self) -> None:
        what = f"{self._scope['method']} {self._scope['path']!r}"
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:
            if self._exchange.gone.is_set():  # which each framework says in its own way
                log.info("the client left at %s: %r", what, error)
                return
            log.error("the app failed at %s", what, exc_info=error)
            await self._response.fail()
        else:
            if not self._response.whole.is_set() and not self._exchange.gone.is_set():
                log.error("the app did not finish its answer to %s", what)
                await self._response.fail()

    def _let_go(self) -> None:
        """RFC 9113 §8.1: an answer may be whole before the question is, and the rest of the
        question is then declined without harm to the answer."""
        if not self._response.whole.is_set():
            self._exchange.reset(ErrorCodes.CANCEL)
        elif not self._asked_whole:
            self._exchange.reset(ErrorCodes.NO_ERROR)

    async def _receive(self) -> Message:
        if self._asked_whole or self._response.whole.is_set():
            await _either(self._exchange.gone, self._response.whole)
            return {"type": "http.disconnect"}
        try:
            await self._keep_promise()
            data = await self._exchange.read()
        except (StreamReset, ConnectionOver):
            return {"type": "http.disconnect"}
        self._asked_whole = not data
        return {"type": "http.request", "body": data, "more_body": bool(data)}

    async def _keep_promise(self) -> None:
        """They wait with the body until somebody wants it (RFC 9110 §10.1.1)."""
        if self._promised and not self._response.started:
            await self._exchange.send_headers([(b":status", b"100")])
        self._promised = False

    async def _send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                await self._response.start(message)
            case "http.response.body":
                await self._response.body(message)
            case other:
                raise RuntimeError(f"{other!r} is no message of a response")


async def _either(one: asyncio.Event, other: asyncio.Event) -> None:
    if one.is_set() or other.is_set():
        return
    waits = {asyncio.create_task(one.wait()), asyncio.create_task(other.wait())}
    try:
        _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        _ = await asyncio.wait(waits)


async def _refuse(exchange: Exchange, status: int) -> None:
    """What leads to somewhere else (RFC 9110 §9.3.6), or to something nobody here speaks."""
    response = Response(exchange)
    try:
        await response.start({"status": status})
        await response.body({})
    except ClientGone:
        return
    exchange.reset(ErrorCodes.NO_ERROR)
