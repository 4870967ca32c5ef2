"""The server's end of HTTP: POST one message and get its response, or keep the response open.

    POST /rpc/automation                                 200 and the response; 202 if there is none;
                                                         a response in parts is a line for each
    POST … with Accept: text/event-stream                each frame is an event, until either closes
    POST … with Telex-Conversation: ID                   202; one more message for that event stream
    GET  … with Upgrade: websocket                       see `websocket`
    POST, GET /rpc/escapes/SESSION                       the same, with the terminal of a session

A plain POST is a whole conversation: one frame is received, and then the input ends. It can carry
only the response, so notifications of ours are dropped unless an event stream carries them. An
event stream begins with the posted frame, or with none if the body is empty, and its response names
it in `Telex-Conversation`. Further messages find the stream by that header, so the server may send
requests through it and get responses. Without the header, every response to the server would open a
conversation of its own. Served by `web_server`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.routing import BaseRoute, Route, WebSocketRoute

from telex.transports import responses, websocket
from telex.transports.auth import identity_of
from telex.transports.channels import ChannelEnded, QueuedChannel
from telex.transports.responses import (
    CONVERSATION,
    JSON,
    LINES,
    ConnectionControl,
    FrameKind,
    frame_kind,
    refuse,
    respond,
)
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from telex.rpc.channel import Channel
    from telex.rpc.identity import Identity

    Serve = Callable[[Channel], Awaitable[None]]
    ServeSession = Callable[[str, Channel], Awaitable[None]]

KEEP_ALIVE_SECONDS: Final = 15.0
"""Silence after which an event stream sends a comment, which also detects a lost client."""

_DEFAULT: Final = "automation"
_DISCONNECTED: Final = "the client disconnected"


class NoSuchSession(Exception):
    """The session in the path does not exist, or does not speak the protocol; a sentence."""


@dataclass(frozen=True, slots=True)
class HttpProtocol:
    """A protocol with rules of its own for HTTP, at a path of its own."""

    path: str
    methods: tuple[str, ...]
    app: ASGIApp


@dataclass(frozen=True, slots=True)
class SessionProtocol:
    """A protocol that is spoken with one session, whose id is the last part of the path."""

    check: Callable[[str], None]
    """Raises NoSuchSession."""
    serve: ServeSession


def routes(serve: Mapping[str, Serve | SessionProtocol | HttpProtocol]) -> list[BaseRoute]:
    """Return the routes `/rpc/NAME` for each name, by POST and WebSocket; `/rpc` is automation.

    `serve[name](channel)` serves one conversation, and returns when it has ended. The path of a
    `SessionProtocol` is `/rpc/NAME/SESSION`; an `HttpProtocol` has its own.
    """
    found: list[BaseRoute] = []
    for name, conversation in serve.items():
        if isinstance(conversation, HttpProtocol):
            app = _App(conversation.app)
            found.append(Route(conversation.path, app, methods=[*conversation.methods]))
            continue
        endpoint = _Endpoint(conversation)
        paths = [f"/rpc/{name}"]
        if name == _DEFAULT:
            paths.append("/rpc")
        if isinstance(conversation, SessionProtocol):
            paths = [f"/rpc/{name}/{{session}}"]
        for path in paths:
            found += [Route(path, endpoint, methods=["POST"]), WebSocketRoute(path, endpoint)]
    return found


class _App:
    """An ASGI app as an object, as a route expects it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


class _Endpoint:
    """The path of one protocol as an ASGI app, with the event streams that are open on it."""

    def __init__(self, conversation: Serve | SessionProtocol) -> None:
        self._conversation = conversation
        self._streams: dict[str, _EventStream] = {}

    def _serve(self, scope: Scope) -> Serve:
        """Return the function that serves this request. Raises NoSuchSession."""
        if not isinstance(self._conversation, SessionProtocol):
            return self._conversation
        session = scope["path_params"]["session"]
        self._conversation.check(session)
        return partial(self._conversation.serve, session)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            serve = self._serve(scope)
        except NoSuchSession as missing:
            await refuse(scope, send, 404, "session", str(missing))
            return
        if scope["type"] == "websocket":
            await websocket.converse(scope, receive, send, serve)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            await refuse(scope, send, 415, "content-type", f"The Content-Type must be {JSON}.")
        elif (stream := headers.get(CONVERSATION)) is not None:
            await self._continue(stream, scope, receive, send)
        elif (frame := await read_body(scope, receive, send)) is None:
            return
        elif responses.EVENT_STREAM in headers.get("accept", ""):
            await self._stream(serve, frame, scope, receive, send)
        else:
            await self._answer(serve, frame, scope, receive, send)

    async def _answer(
        self, serve: Serve, frame: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        post = _Post(frame, receive)
        await _converse(serve, QueuedChannel(post, identity_of(scope)))
        if post.answers:
            media_type = JSON if len(post.answers) == 1 else LINES
            headers = [(b"content-type", media_type.encode())]
            await respond(scope, send, 200, b"\n".join(post.answers), headers)
        elif frame_kind(frame) is FrameKind.REQUEST:
            await refuse(scope, send, 503, "closing", "The conversation ended before the response.")
        else:
            await respond(scope, send, 202, b"", [])

    async def _stream(
        self, serve: Serve, frame: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        id = secrets.token_urlsafe(16)
        who = identity_of(scope)
        stream = self._streams[id] = _EventStream(frame, send, ConnectionControl.of(scope), who)
        watching = asyncio.create_task(stream.watch(receive))
        try:
            await stream.begin(id)
            await _converse(serve, QueuedChannel(stream, who))
        finally:
            del self._streams[id]
            watching.cancel()
            await asyncio.wait({watching})

    async def _continue(self, id: str, scope: Scope, receive: Receive, send: Send) -> None:
        stream = self._streams.get(id)
        if stream is not None and stream.owner == identity_of(scope):
            async with stream.turn:  # one body in memory per stream, and in order
                frame = await read_body(scope, receive, send)
                if frame is None:
                    return
                if await stream.deliver(frame):
                    await respond(scope, send, 202, b"", [])
                    return
        await refuse(scope, send, 404, "conversation", "That conversation has ended.")


async def _converse(serve: Serve, channel: QueuedChannel) -> None:
    try:
        await serve(channel)
    finally:
        await channel.close()


class _Post:
    """One request and its response, as a `Pipe`."""

    binary = False

    def __init__(self, frame: bytes, receive: Receive) -> None:
        self._inbound: list[bytes | None] = [None, frame]
        self._receive = receive
        self._room = limits.LINE_BYTES
        self.answers: list[bytes] = []

    async def read(self) -> bytes | None:
        if self._inbound:
            return self._inbound.pop()
        await wait_disconnected(self._receive)
        raise ChannelEnded(_DISCONNECTED)

    async def write(self, frame: bytes) -> None:
        if frame_kind(frame) is FrameKind.RESPONSE:
            self._room -= len(frame)
            if self._room < 0:
                raise ChannelEnded("the result is too long for one response; use an event stream")
            self.answers.append(frame)

    async def end(self) -> None:
        """Do nothing: the response follows the conversation."""

    def abort(self) -> None:
        """Do nothing: no write ever waits."""


class _EventStream:
    """An endless response, and the requests that belong to it, as a `Pipe`."""

    binary = False

    def __init__(
        self, frame: bytes, send: Send, control: ConnectionControl, owner: Identity
    ) -> None:
        self.owner = owner
        """The token that opened the stream. Another token may not speak in its name."""
        self._send = send
        self._control = control
        self._inbound: asyncio.Queue[tuple[bytes, asyncio.Future[bool]] | ChannelEnded] = (
            asyncio.Queue()
        )
        self._over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.turn = asyncio.Lock()
        if frame:
            _ = self._put(frame)

    def _put(self, frame: bytes) -> asyncio.Future[bool]:
        taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._inbound.put_nowait((frame, taken))
        return taken

    async def deliver(self, frame: bytes) -> bool:
        """Wait until the conversation reads a frame. Returns False if it ended first."""
        taken = self._put(frame)
        await asyncio.wait({taken, self._over}, return_when=asyncio.FIRST_COMPLETED)
        return taken.done()

    async def begin(self, id: str) -> None:
        headers = {"content-type": responses.EVENT_STREAM, CONVERSATION: id}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": pairs})
        await self._body(b"")  # some servers delay the head until there is a body

    async def watch(self, receive: Receive) -> None:
        """Send keep-alive comments until the client disconnects or the server stops; then end."""
        ends = {
            asyncio.create_task(wait_disconnected(receive)): _DISCONNECTED,
            asyncio.create_task(self._control.stopping.wait()): "the server is stopping",
        }
        first = asyncio.FIRST_COMPLETED
        try:
            while not (
                done := (await asyncio.wait(ends, timeout=KEEP_ALIVE_SECONDS, return_when=first))[0]
            ):
                await self._body(responses.KEEP_ALIVE_EVENT)
            self._inbound.put_nowait(ChannelEnded(ends[done.pop()]))
        finally:
            for task in ends:
                task.cancel()
            await asyncio.wait(ends)

    async def read(self) -> bytes:
        match await self._inbound.get():
            case ChannelEnded() as ended:
                raise ended
            case (frame, taken):
                taken.set_result(True)
                return frame

    async def write(self, frame: bytes) -> None:
        await self._body(responses.encode_event(frame))

    async def end(self) -> None:
        self._over.set_result(False)
        await self._body(b"", more=False)

    def abort(self) -> None:
        self._control.abort()

    async def _body(self, data: bytes, more: bool = True) -> None:
        with contextlib.suppress(OSError):  # the client has disconnected; `watch` reports it
            await self._send({"type": "http.response.body", "body": data, "more_body": more})


async def wait_disconnected(receive: Receive) -> None:
    """Return when the client has disconnected. The body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_body(scope: Scope, receive: Receive, send: Send) -> bytes | None:
    """Return the whole body; None if it is too large, after a refusal, or was not completed."""
    sizes = (int(value) for name, value in scope["headers"] if name == b"content-length")
    declared = max(sizes, default=0)
    body, more = bytearray(), True
    while max(declared, len(body)) <= limits.LINE_BYTES:
        if not more:
            return bytes(body)
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await refuse(scope, send, 413, "size", f"A message has at most {limits.LINE_BYTES} bytes.")
    return None
