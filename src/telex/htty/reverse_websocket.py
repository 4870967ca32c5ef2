"""A WebSocket passed on to an HTTP/1.1 server: a handshake there, then messages both ways, until
either side says goodbye; the other is told in the same words. Used by `reverse`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.frames import Close, CloseCode
from websockets.typing import Subprotocol

from telex.transports.websocket import discreet_logger
from telex.wire import limits

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from telex.htty.upstream import Upstream

    Fields = list[tuple[bytes, bytes]]

_OF_THE_HANDSHAKE: Final = (b"sec-websocket-", b"host", b"content-length")


async def pass_websocket(upstream: Upstream, scope: Scope, receive: Receive, send: Send) -> None:
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
        "logger": discreet_logger(),
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
