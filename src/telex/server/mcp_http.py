"""MCP over HTTP, at `/mcp`: the "streamable HTTP" transport of both eras.

    2026-07-28        POST one request        200 and the response, or an event stream with it
    older versions    POST `initialize`       the same, and `Mcp-Session-Id` for the next ones
                      POST one message        202 if it gets no response
                      GET                     an event stream with the notifications of the session
                      DELETE                  ends the session

The header `MCP-Protocol-Version` decides the era, or `_meta` in the body. A request of 2026-07-28
repeats its method, and the tool or resource, in headers, which must agree with the body: a proxy
may have decided by them. Authentication, Origin and Host are checked before (`transports.auth`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.rpc.dialects import strict_json
from telex.rpc.errors import Problem, RpcError
from telex.rpc.messages import Failure, Id, Notification
from telex.server import limits
from telex.server.mcp_protocol import (
    DIALECT,
    HANDSHAKE,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MODERN,
    NO_METHOD,
    PARSE,
    UNSUPPORTED_VERSION,
    McpParams,
    is_modern,
    unsupported,
)
from telex.server.mcp_server import McpClient
from telex.transports.auth import identity_of
from telex.transports.channels import ChannelEnded, QueuedChannel
from telex.transports.http import KEEP_ALIVE_SECONDS, read_body, wait_disconnected
from telex.transports.responses import (
    EVENT_STREAM,
    JSON,
    KEEP_ALIVE_EVENT,
    ConnectionControl,
    FrameKind,
    encode_event,
    frame_kind,
    refuse,
    respond,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import Receive, Scope, Send

    from telex.rpc.identity import Identity
    from telex.server.mcp_server import McpService

METHODS: Final = ("POST", "GET", "DELETE")
_VERSION: Final = "mcp-protocol-version"
_METHOD: Final = "mcp-method"
_NAME: Final = "mcp-name"
_SESSION: Final = "mcp-session-id"
_NAMED: Final = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
"""The parameter that `Mcp-Name` repeats."""
_WEIGHT: Final = re.compile(r"[01](?:\.\d{0,3})?")
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")
_STATUSES: Final = {
    **dict.fromkeys((PARSE, INVALID_REQUEST, INVALID_PARAMS), 400),
    **dict.fromkeys((HEADER_MISMATCH, UNSUPPORTED_VERSION), 400),
    NO_METHOD: 404,
}
"""The HTTP statuses of errors of 2026-07-28."""


class McpSession:
    """A session of the older versions: a client, and its open event stream."""

    def __init__(self, id: str, client: McpClient) -> None:
        self.id = id
        self.client = client
        client.notify = self._notify
        self.stream: _Response | None = None

    async def _notify(self, method: str, params: Any) -> None:
        if self.stream is not None:
            await self.stream.send_event(DIALECT.encode(Notification(method, params)))

    def close(self) -> None:
        self.client.close()
        if self.stream is not None:
            self.stream.over.set()


class McpEndpoint:
    """The path `/mcp` as an ASGI app, with the sessions of the older versions."""

    def __init__(self, server: McpService) -> None:
        self._server = server
        self._sessions: OrderedDict[str, McpSession] = OrderedDict()
        """The one that was used last is at the end."""

    def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        match scope["method"]:
            case "POST":
                await self._post(headers, scope, receive, send)
            case "GET":
                await self._get(headers, scope, receive, send)
            case _:
                await self._delete(headers, scope, send)

    # POST.

    async def _post(
        self, headers: dict[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        if _media_type(headers.get("content-type", "")) != JSON:
            await refuse(scope, send, 415, "content-type", f"The Content-Type must be {JSON}.")
            return
        if not _accepts(headers, JSON):
            sentence = f"The Accept header must have {JSON} and {EVENT_STREAM}."
            await refuse(scope, send, 406, "accept", sentence)
            return
        body = await read_body(scope, receive, send)
        if body is None:
            return
        try:
            message = _Message.read(body)
            modern = _check_era(message, headers, scope["headers"])
        except RpcError as error:
            await _fail(error.problem, _id_of(body), scope, send)
            return
        post = self._post_modern if modern else self._post_with_handshake
        await post(message, headers, scope, receive, send)

    async def _post_modern(
        self,
        message: _Message,
        headers: dict[str, str],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        if message.kind is not FrameKind.REQUEST:
            if message.kind is FrameKind.NOTIFICATION:
                await respond(scope, send, 202, b"", [])
            else:
                problem = Problem(INVALID_REQUEST, "A response is sent by the server alone.")
                await _fail(problem, None, scope, send)
            return
        if message.method == "subscriptions/listen" and not _accepts(headers, EVENT_STREAM):
            sentence = f"The Accept header must have {EVENT_STREAM}."
            await refuse(scope, send, 406, "accept", sentence)
            return
        response = _Response(scope, receive, send, _accepts(headers, EVENT_STREAM))
        await self._converse(response, message.body, McpClient(identity_of(scope)))

    async def _post_with_handshake(
        self,
        message: _Message,
        headers: dict[str, str],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        more: list[tuple[bytes, bytes]] = []
        if message.method == "initialize":
            session = self._new_session(identity_of(scope))
            more = [(_SESSION.encode(), session.id.encode())]
        elif (found := await self._session(headers, scope, send)) is None:
            return
        else:
            session = found
        if message.kind is not FrameKind.REQUEST:
            await respond(scope, send, 202, b"", [])
            return
        events = _accepts(headers, EVENT_STREAM)
        response = _Response(scope, receive, send, events, more, statuses={})
        await self._converse(response, message.body, session.client)

    async def _converse(self, response: _Response, body: bytes, client: McpClient) -> None:
        channel = QueuedChannel(_Exchange(response, body), client.identity)
        alive = asyncio.create_task(response.keep_alive())
        try:
            await self._server.converse(channel, client)
        finally:
            alive.cancel()
            await asyncio.wait({alive})
            await channel.close()
        await response.finish()

    # Sessions of the older versions.

    def _new_session(self, owner: Identity) -> McpSession:
        while len(self._sessions) >= limits.MCP_SESSIONS:
            self._sessions.popitem(last=False)[1].close()
        session = McpSession(secrets.token_urlsafe(24), McpClient(owner))
        self._sessions[session.id] = session
        return session

    async def _session(
        self, headers: dict[str, str], scope: Scope, send: Send
    ) -> McpSession | None:
        """Return the session of a request; None after a refusal."""
        id = headers.get(_SESSION)
        if id is None:
            sentence = "The header Mcp-Session-Id is missing; `initialize` returns it."
            await refuse(scope, send, 400, "session", sentence)
            return None
        session = self._sessions.get(id)
        if session is None or session.client.identity != identity_of(scope):
            sentence = "There is no such MCP session; begin with `initialize`."
            await refuse(scope, send, 404, "session", sentence)
            return None
        self._sessions.move_to_end(id)
        return session

    async def _get(
        self, headers: dict[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        if headers.get(_VERSION, HANDSHAKE[0]) not in HANDSHAKE:
            allow = [(b"allow", b"POST")]
            sentence = f"The protocol {MODERN} has no GET; use subscriptions/listen."
            await refuse(scope, send, 405, "method", sentence, headers=allow)
            return
        if not _accepts(headers, EVENT_STREAM):
            sentence = f"The Accept header must have {EVENT_STREAM}."
            await refuse(scope, send, 406, "accept", sentence)
            return
        if (session := await self._session(headers, scope, send)) is None:
            return
        if session.stream is not None:
            sentence = "This session has an event stream already."
            await refuse(scope, send, 409, "stream", sentence)
            return
        session.stream = stream = _Response(scope, receive, send, events=True)
        try:
            await stream.begin_events()
            await stream.stay_open()
        finally:
            session.stream = None

    async def _delete(self, headers: dict[str, str], scope: Scope, send: Send) -> None:
        if (session := await self._session(headers, scope, send)) is not None:
            del self._sessions[session.id]
            session.close()
            await respond(scope, send, 204, b"", [])


class _Response:
    """One HTTP response: a JSON document, or an event stream from the first notification on."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        events: bool,
        headers: Iterable[tuple[bytes, bytes]] = (),
        statuses: Mapping[int, int] = _STATUSES,
    ) -> None:
        """
        Args:
            events: Whether the client accepts an event stream.
            statuses: The HTTP statuses of errors; any other is a 200, as all are in the older
                versions.
        """
        self._scope = scope
        self._receive = receive
        self._send = send
        self._events = events
        self._statuses = statuses
        self._headers = [*headers]
        self._control = ConnectionControl.of(scope)
        self._begun = False
        self._answer: bytes | None = None
        self._turn = asyncio.Lock()
        self.over = asyncio.Event()

    async def wait_disconnected(self) -> None:
        await wait_disconnected(self._receive)

    async def begin_events(self) -> None:
        self._begun = True
        headers = [
            (b"content-type", EVENT_STREAM.encode()),
            (b"cache-control", b"no-cache, no-transform"),
            *self._headers,
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._body(b"")

    async def send_event(self, frame: bytes) -> None:
        """Send a frame as an event; drop it if the client accepts none."""
        async with self._turn:
            if self._events and not self.over.is_set():
                if not self._begun:
                    await self.begin_events()
                await self._body(encode_event(frame))

    async def answer(self, frame: bytes) -> None:
        """Send the response to the request: as an event, or as the document."""
        if self._begun:
            await self.send_event(frame)
        else:
            self._answer = frame

    async def keep_alive(self) -> None:
        """Send a comment now and then, so that no proxy ends a response that takes long."""
        while True:
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            async with self._turn:
                if self._events and self._answer is None:
                    if not self._begun:
                        await self.begin_events()
                    await self._body(KEEP_ALIVE_EVENT)

    async def stay_open(self) -> None:
        """Keep an event stream open until the client, the session or the server ends."""
        ends = [
            asyncio.create_task(self.wait_disconnected()),
            asyncio.create_task(self._control.stopping.wait()),
            asyncio.create_task(self.over.wait()),
            asyncio.create_task(self.keep_alive()),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ends:
                task.cancel()
            await asyncio.wait(ends)
            await self._body(b"", more=False)

    async def finish(self) -> None:
        """End the response."""
        self.over.set()
        if self._begun:
            await self._body(b"", more=False)
        elif self._answer is not None:
            status = _status(self._answer, self._statuses)
            headers = [(b"content-type", JSON.encode()), *self._headers]
            await respond(self._scope, self._send, status, self._answer, headers)
        else:
            sentence = "The conversation ended before the response."
            await refuse(self._scope, self._send, 503, "closing", sentence)

    async def _body(self, data: bytes, more: bool = True) -> None:
        with contextlib.suppress(OSError):  # the client has disconnected; `read` reports it
            await self._send({"type": "http.response.body", "body": data, "more_body": more})


class _Exchange:
    """One posted request and its response, as a `Pipe`."""

    binary = False

    def __init__(self, response: _Response, body: bytes) -> None:
        self._inbound: list[bytes | None] = [None, body]
        self._response = response

    async def read(self) -> bytes | None:
        if self._inbound:
            return self._inbound.pop()
        await self._response.wait_disconnected()
        raise ChannelEnded("the client disconnected")

    async def write(self, frame: bytes) -> None:
        if frame_kind(frame) is FrameKind.RESPONSE:
            await self._response.answer(frame)
        else:
            await self._response.send_event(frame)

    async def end(self) -> None:
        """Do nothing: the response follows the conversation."""

    def abort(self) -> None:
        """Do nothing: a write waits for the client alone, and its end is noticed."""


# Messages and headers.


class _Params(McpParams):
    name: Any = None
    uri: Any = None


class _Envelope(msgspec.Struct):
    jsonrpc: str
    method: str | None = None
    params: _Params | None = None


_decoder: Final = msgspec.json.Decoder(_Envelope)


@dataclass(frozen=True, slots=True)
class _Message:
    """A posted message, and the members that decide about it."""

    body: bytes
    kind: FrameKind
    method: str | None
    params: _Params

    @classmethod
    def read(cls, body: bytes) -> _Message:
        """Return the message of a body. Raises RpcError."""
        if body.lstrip()[:1] == b"[":
            raise RpcError(INVALID_REQUEST, "A batch is not accepted; send one message.")
        try:
            found = strict_json.decode(body, _decoder)
        except strict_json.NotStrictJson as error:
            raise RpcError(PARSE, f"The message is not valid JSON. {error}") from None
        except msgspec.ValidationError as error:
            sentence = f"The message is not a valid request. {error}"
            raise RpcError(INVALID_REQUEST, sentence) from None
        return cls(body, frame_kind(body), found.method, found.params or _Params())


def _check_era(
    message: _Message, headers: Mapping[str, str], raw: Iterable[tuple[bytes, bytes]]
) -> bool:
    """Return whether a message is of 2026-07-28. Raises RpcError if it contradicts itself."""
    named = headers.get(_VERSION)
    meta = message.params.meta
    if named in (None, *HANDSHAKE) and meta.version is msgspec.UNSET:
        return False
    if named is not None and named not in (MODERN, *HANDSHAKE):
        raise unsupported(named)
    if message.kind is not FrameKind.REQUEST:
        return named == MODERN
    names = [name.decode("latin-1") for name, _ in raw]
    for name in (_VERSION, _METHOD, _NAME):
        if names.count(name) > 1:
            raise RpcError(HEADER_MISMATCH, f"The header {name} is there more than once.")
    if not isinstance(meta.version, msgspec.UnsetType) and named != meta.version:
        raise RpcError(HEADER_MISMATCH, f"The header {_VERSION} and `_meta` differ.")
    if not is_modern(meta):
        raise RpcError(INVALID_PARAMS, "`params._meta` has no protocol version.")
    if headers.get(_METHOD) != message.method:
        raise RpcError(HEADER_MISMATCH, f"The header {_METHOD} and the method differ.")
    member = _NAMED.get(message.method or "")
    if member is not None:
        wanted = getattr(message.params, member)
        if wanted is not None and _decoded(headers.get(_NAME)) != wanted:
            raise RpcError(HEADER_MISMATCH, f"The header {_NAME} and `params.{member}` differ.")
    return True


def _decoded(value: str | None) -> str | None:
    """Return the text of a header, which is in base64 if it is not ASCII."""
    if value is None or (found := _ENCODED.fullmatch(value)) is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except ValueError:
        return None


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()


def _accepts(headers: Mapping[str, str], wanted: str) -> bool:
    """Whether the client accepts a media type. A client that says nothing accepts all."""
    weights = dict(map(_weighted, headers.get("accept", "*/*").split(",")))
    for named in (wanted, f"{wanted.partition('/')[0]}/*", "*/*"):  # the exact one decides
        if named in weights:
            return weights[named] > 0
    return False


def _weighted(part: str) -> tuple[str, float]:
    """Return a media type of an Accept header, and how much it is wanted: 0 is not at all."""
    for parameter in part.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q" and _WEIGHT.fullmatch(value.strip()):
            return _media_type(part), float(value)
    return _media_type(part), 1.0


class _Answered(msgspec.Struct):
    code: int = 0


class _AnswerError(msgspec.Struct):
    error: _Answered | None = None


def _status(answer: bytes, statuses: Mapping[int, int]) -> int:
    error = msgspec.json.decode(answer, type=_AnswerError).error
    return 200 if error is None else statuses.get(error.code, 200)


class _WithId(msgspec.Struct):
    id: int | str | None = None


def _id_of(body: bytes) -> Id | None:
    try:
        return msgspec.json.decode(body, type=_WithId).id
    except (msgspec.DecodeError, RecursionError):
        return None


async def _fail(problem: Problem, id: Id | None, scope: Scope, send: Send) -> None:
    body = DIALECT.encode(Failure(id, problem))
    await respond(scope, send, _status(body, _STATUSES), body, [(b"content-type", JSON.encode())])
