"""An ASGI server on one byte stream: lifespan, requests and WebSockets of one app.

There is one task for each request. Bodies are passed piece by piece: the peer sends only as much as
the app has read, and the app waits while the peer has no room. An app that does not implement
lifespan is served without it. This module does not depend on sockets or terminals. Used by
`server`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from h2.errors import ErrorCodes
from websockets.frames import CloseCode

from telex.htty import limits
from telex.htty.asgi_messages import (
    AsgiResponse,
    ClientGone,
    end_to_end_headers,
    has_target,
    header_values,
    protocol_of,
    request_scope,
    websocket_scope,
)
from telex.htty.errors import ConnectionOver, StartupFailed, StreamReset, WebSocketOver
from telex.htty.h2.http2_connection import Ended, Http2Connection
from telex.htty.h2.http2_state import Http2Side
from telex.htty.h2.http2_websocket import Side, WebSocketClose, WebSocketStream

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

    from telex.htty.h2.http_stream import ByteStream, HttpStream


log = logging.getLogger("telex.htty")


class Lifespan:
    """Runs the lifespan of one app, from `begin` to `end`."""

    def __init__(self, app: ASGIApp) -> None:
        self.state: dict[str, Any] = {}
        """The state that the app shares with each of its requests."""
        self._app = app
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._startup: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Wait until the app is ready, or does not support lifespan. Raises StartupFailed."""
        self._task = asyncio.create_task(self._run(), name="htty lifespan")
        self._to_app.put_nowait({"type": "lifespan.startup"})
        try:
            await self._startup
        except BaseException:
            await self._cancel(self._task)
            raise

    async def end(self) -> None:
        """Let the app shut down, for at most `HTTY_GRACE_SECONDS`."""
        task = self._task
        if task is None:
            return
        if not task.done():
            self._to_app.put_nowait({"type": "lifespan.shutdown"})
            try:
                async with asyncio.timeout(limits.HTTY_GRACE_SECONDS):
                    await self._ended.wait()
            except TimeoutError:
                log.warning("the app did not shut down in %d s", limits.HTTY_GRACE_SECONDS)
        await self._cancel(task)

    async def _run(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        try:
            await self._app(scope, self._to_app.get, self._receive)
        except Exception as error:
            if self._startup.done() and self._startup.exception() is None:
                log.error("the app failed outside of any request", exc_info=error)
        finally:
            self._ended.set()
            if not self._startup.done():
                self._startup.set_result(None)

    async def _receive(self, message: Message) -> None:
        match message["type"]:
            case "lifespan.startup.complete":
                self._started(None)
            case "lifespan.startup.failed":
                why = str(message.get("message", "")).strip()
                self._started(StartupFailed(f"the app could not start: {why or 'no reason given'}"))
            case "lifespan.shutdown.complete":
                self._ended.set()
            case "lifespan.shutdown.failed":
                log.error("the app could not shut down: %s", message.get("message", ""))
                self._ended.set()
            case other:
                raise RuntimeError(f"{other!r} is not a lifespan message")

    def _started(self, failure: StartupFailed | None) -> None:
        if self._startup.done():
            return
        if failure is None:
            self._startup.set_result(None)
        else:
            self._startup.set_exception(failure)

    async def _cancel(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        _ = await asyncio.wait({task}, timeout=limits.HTTY_GRACE_SECONDS)


class AsgiServer:
    """Serves one app on one connection."""

    def __init__(self, app: ASGIApp, *, lifespan: bool = True) -> None:
        self._app = app
        self._lifespan = lifespan
        self._http: Http2Connection | None = None
        self._closed: str | None = None
        self._state: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(limits.HTTY_REQUESTS_RUNNING)

    async def serve(self, byte_stream: ByteStream) -> Ended:
        """Serve until the connection has ended, and shut the app down.

        Raises StartupFailed, with nothing written, if the app cannot start.
        """
        lifespan = Lifespan(self._app)
        if self._lifespan:
            await lifespan.begin()
        try:
            if self._closed is not None:  # closed while the app started
                return Ended(True, self._closed)
            return await self._serve(byte_stream, lifespan.state)
        finally:
            await lifespan.end()

    async def _serve(self, byte_stream: ByteStream, state: dict[str, Any]) -> Ended:
        self._state = state
        self._http = Http2Connection(byte_stream, Http2Side.SERVER, opened=self._opened)
        try:
            return await self._http.run()
        finally:
            self._http = None
            await self._end_requests()

    def close(self, sentence: str = "") -> None:
        """Accept no new requests; `serve` returns when the open ones are done, or soon after."""
        self._closed = sentence
        if self._http is not None:
            self._http.close(sentence)

    def _opened(self, http_stream: HttpStream) -> None:
        task = asyncio.create_task(self._answer(http_stream), name=f"htty request {http_stream.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, http_stream: HttpStream) -> None:
        # The slot of a reset stream is free again, although its app may still run. Without this
        # limit, resets could start any number of them.
        async with self._room:
            if http_stream.gone.is_set():
                return
            match protocol_of(http_stream.headers):
                case None | b"websocket" if not has_target(http_stream.headers):
                    await _refuse(http_stream, 400)
                case None:
                    await _RequestConversation(self._app, http_stream, self._state).serve()
                case b"websocket":
                    await WebSocketConversation(self._app, http_stream, self._state).serve()
                case _:
                    await _refuse(http_stream, 501)

    async def _end_requests(self) -> None:
        """Wait for the running requests, which were disconnected, and then cancel them."""
        if self._tasks:
            _ = await asyncio.wait(self._tasks, timeout=limits.HTTY_GRACE_SECONDS)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            _ = await asyncio.wait(self._tasks, timeout=limits.HTTY_GRACE_SECONDS)
        for task in self._tasks:
            log.error("%s does not end, although it was cancelled", task.get_name())


class _RequestConversation:
    """One request and its response."""

    def __init__(self, app: ASGIApp, http_stream: HttpStream, state: dict[str, Any]) -> None:
        self._app = app
        self._http_stream = http_stream
        self._scope = request_scope(http_stream.headers, state)
        self._response = AsgiResponse(http_stream, head=self._scope["method"] == "HEAD")
        self._request_read = False
        self._continue_expected = header_values(http_stream.headers, b"expect") == [b"100-continue"]

    async def serve(self) -> None:
        """Run the app until it is done with the request, and free the stream."""
        try:
            await self._run()
        except ClientGone:
            return
        finally:
            self._release()

    async def _run(self) -> None:
        what = f"{self._scope['method']} {self._scope['path']!r}"
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:
            if self._http_stream.gone.is_set():  # each framework reports that differently
                log.info("the client disconnected at %s: %r", what, error)
                return
            log.error("the app failed at %s", what, exc_info=error)
            await self._response.fail()
        else:
            if not self._response.whole.is_set() and not self._http_stream.gone.is_set():
                log.error("the app did not complete its response to %s", what)
                await self._response.fail()

    def _release(self) -> None:
        """End the stream. RFC 9113 §8.1: a response may be complete before the request is; the
        rest of the request is then declined without harm to the response."""
        if not self._response.whole.is_set():
            self._http_stream.reset(ErrorCodes.CANCEL)
        elif not self._request_read:
            self._http_stream.reset(ErrorCodes.NO_ERROR)

    async def _receive(self) -> Message:
        if self._request_read or self._response.whole.is_set():
            await _either(self._http_stream.gone, self._response.whole)
            return {"type": "http.disconnect"}
        try:
            await self._send_continue()
            data = await self._http_stream.read()
        except (StreamReset, ConnectionOver):
            return {"type": "http.disconnect"}
        self._request_read = not data
        return {"type": "http.request", "body": data, "more_body": bool(data)}

    async def _send_continue(self) -> None:
        """Send 100, because the client waits for it before it sends the body (RFC 9110 §10.1.1)."""
        if self._continue_expected and not self._response.started:
            await self._http_stream.send_headers([(b":status", b"100")])
        self._continue_expected = False

    async def _send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                await self._response.start(message)
            case "http.response.body":
                await self._response.body(message)
            case other:
                raise RuntimeError(f"{other!r} is not a response message")


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


async def _refuse(http_stream: HttpStream, status: int) -> None:
    """Refuse a request for another host (RFC 9110 §9.3.6), or for an unknown protocol."""
    response = AsgiResponse(http_stream)
    try:
        await response.start({"status": status})
        await response.body({})
    except ClientGone:
        return
    http_stream.reset(ErrorCodes.NO_ERROR)


_VERSION: Final = b"13"


class WebSocketConversation:
    """One WebSocket: connecting, then accepted or refused, then closed."""

    def __init__(self, app: ASGIApp, http_stream: HttpStream, state: dict[str, Any]) -> None:
        self._app = app
        self._http_stream = http_stream
        self._scope = websocket_scope(http_stream.headers, state)
        self._refusal = AsgiResponse(http_stream)
        self._wire: WebSocketStream | None = None
        self._connect_received = False
        self._closed = False
        self._disconnected = False

    async def serve(self) -> None:
        """Run the app until it is done with the WebSocket, and free the stream."""
        try:
            if header_values(self._http_stream.headers, b"sec-websocket-version") in (
                [],
                [_VERSION],
            ):
                await self._run()
            else:
                await self._refuse(426, [(b"sec-websocket-version", _VERSION)])
        except ClientGone:
            return
        finally:
            whole = self._refusal.whole.is_set()
            self._http_stream.reset(ErrorCodes.NO_ERROR if whole else ErrorCodes.CANCEL)

    async def _run(self) -> None:
        code = CloseCode.NORMAL_CLOSURE
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:
            code = CloseCode.INTERNAL_ERROR
            if self._disconnected:  # each framework reports that differently
                log.info("the client disconnected WebSocket %r: %r", self._scope["path"], error)
            else:
                log.error("the app failed at WebSocket %r", self._scope["path"], exc_info=error)
        if self._wire is not None:
            await self._wire.close(code)
        elif not self._refusal.whole.is_set() and not self._http_stream.gone.is_set():
            log.error("the app did not respond to WebSocket %r", self._scope["path"])
            await self._refusal.fail()

    async def _receive(self) -> Message:
        if not self._connect_received:
            self._connect_received = True
            return {"type": "websocket.connect"}
        if self._wire is None:
            _ = await self._http_stream.gone.wait()
            self._disconnected = True
            return {"type": "websocket.disconnect", "code": int(CloseCode.ABNORMAL_CLOSURE)}
        match await self._wire.receive():
            case str(text):
                return {"type": "websocket.receive", "text": text, "bytes": None}
            case bytes(data):
                return {"type": "websocket.receive", "text": None, "bytes": data}
            case WebSocketClose(code, reason):
                self._disconnected = True
                return {"type": "websocket.disconnect", "code": int(code), "reason": reason}

    async def _send(self, message: Message) -> None:
        if self._closed:
            raise RuntimeError(f"{message['type']!r}, although the WebSocket was closed")
        if self._wire is None:
            await self._decide(message)
            return
        match message["type"]:
            case "websocket.send":
                await self._send_message(self._wire, message)
            case "websocket.close":
                self._closed = True
                code = message.get("code") or CloseCode.NORMAL_CLOSURE
                await self._wire.close(code, message.get("reason") or "")
            case other:
                raise RuntimeError(f"{other!r} is not a message of an open WebSocket")

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
                raise RuntimeError(f"{other!r} is not a message of a connecting WebSocket")

    async def _accept(self, message: Message) -> None:
        fields = end_to_end_headers(message.get("headers", ()))
        if subprotocol := message.get("subprotocol"):
            fields.append((b"sec-websocket-protocol", subprotocol.encode("latin-1")))
        try:
            await self._http_stream.send_headers([(b":status", b"200"), *fields])
        except (StreamReset, ConnectionOver) as gone:
            self._disconnected = True
            raise ClientGone(str(gone)) from gone
        self._wire = WebSocketStream(self._http_stream, Side.SERVER)

    async def _send_message(self, wire: WebSocketStream, message: Message) -> None:
        data = message.get("bytes")
        text = message.get("text")
        try:
            await wire.send(text if data is None and text is not None else bytes(data or b""))
        except WebSocketOver as over:
            self._disconnected = True
            raise ClientGone(str(over)) from over

    async def _refuse(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self._refusal.start({"status": status, "headers": headers})
        await self._refusal.body({})
