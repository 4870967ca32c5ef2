"""HTTP/2 requests as ASGI scopes, and ASGI responses as HTTP/2 header fields and data.

The HTTP/2 layer has already refused malformed requests. Mistakes of an app raise in the app and do
not reach the wire: there, a body of another length than announced would break the whole connection,
and a terminal has no second one.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

from h2.errors import ErrorCodes

from telex.htty.errors import ConnectionOver, StreamReset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from starlette.types import Message, Scope

    from telex.htty.h2.header_fields import Headers
    from telex.htty.h2.http_stream import HttpStream


_SPEC: Final = "2.3"
"""The version of ASGI's HTTP part. From 2.4 on, frameworks notice a disconnected client only when
they send to it, so an idle event stream would outlive its tab."""

_SOCKET_SCHEMES: Final = {"https": "wss", "wss": "wss"}


def request_scope(headers: Headers, state: dict[str, Any]) -> Scope:
    """Return the scope of a plain request."""
    pseudo = _pseudo(headers)
    scope = _common(headers, pseudo, state)
    scope["type"] = "http"
    scope["method"] = pseudo[b":method"].decode("latin-1")
    return scope


def websocket_scope(headers: Headers, state: dict[str, Any]) -> Scope:
    """Return the scope of an extended CONNECT (RFC 8441 §5)."""
    scope = _common(headers, _pseudo(headers), state)
    scope["type"] = "websocket"
    scope["scheme"] = _SOCKET_SCHEMES.get(scope["scheme"], "ws")
    scope["subprotocols"] = [
        name.strip()
        for value in header_values(headers, b"sec-websocket-protocol")
        for name in value.decode("latin-1").split(",")
        if name.strip()
    ]
    scope["extensions"] = {"websocket.http.response": {}}
    return scope


def protocol_of(headers: Headers) -> bytes | None:
    """Return the protocol of an extended CONNECT; empty for a plain CONNECT, None for others."""
    pseudo = _pseudo(headers)
    return pseudo.get(b":protocol", b"") if pseudo[b":method"] == b"CONNECT" else None


def has_target(headers: Headers) -> bool:
    """Whether the path is one on this server (RFC 9113 §8.3.1).

    Apps append the path to a host of their own, and `@elsewhere/` would then lead to another host.
    """
    pseudo = _pseudo(headers)
    path = pseudo.get(b":path", b"")
    return path.startswith(b"/") or (path == b"*" and pseudo[b":method"] == b"OPTIONS")


def header_values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def _common(headers: Headers, pseudo: dict[bytes, bytes], state: dict[str, Any]) -> Scope:
    raw_path, _, query = pseudo.get(b":path", b"").partition(b"?")
    authority = pseudo.get(b":authority", b"")
    return {
        "asgi": {"version": "3.0", "spec_version": _SPEC},
        "http_version": "2",
        "scheme": pseudo.get(b":scheme", b"").decode("latin-1") or "http",
        "path": unquote_to_bytes(raw_path).decode(errors="replace"),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": _plain(headers, authority),
        "client": None,  # the other end of a terminal has no address
        "server": _server(authority),
        "state": state.copy(),  # a shallow copy, as ASGI requires
    }


def _plain(headers: Headers, authority: bytes) -> list[tuple[bytes, bytes]]:
    """Return the fields as in HTTP/1.1: with a host, and one cookie header (RFC 9113 §8.2.3)."""
    fields = [(b"host", authority)] if authority and not header_values(headers, b"host") else []
    fields += [(n, v) for n, v in headers if n[0] != 0x3A and n != b"cookie"]
    if cookies := header_values(headers, b"cookie"):
        fields.append((b"cookie", b"; ".join(cookies)))
    return fields


@lru_cache
def _server(authority: bytes) -> tuple[str, int | None] | None:
    try:
        parts = urlsplit(f"//{authority.decode('latin-1')}")
        return (parts.hostname, parts.port) if parts.hostname else None
    except ValueError:  # a port that is not a number; nothing depends on it
        return None


def _pseudo(headers: Headers) -> dict[bytes, bytes]:
    """Return the pseudo-header fields. Each occurs at most once, and they come first."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name[0] != 0x3A:
            break
        found[name] = value
    return found


_OF_THE_CONNECTION: Final = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-connection"),
        *(b"transfer-encoding", b"upgrade", b"te", b"http2-settings"),
    )
)
"""The fields of RFC 9113 §8.2.2, which only HTTP/1.1 uses."""
_BODILESS: Final = (204, 304)


class ClientGone(OSError):
    """The client has disconnected. An OSError, as ASGI requires."""


class AsgiResponse:
    """One response: `start`, then `body` until it is complete."""

    def __init__(self, http_stream: HttpStream, *, head: bool = False) -> None:
        self.started = False
        self.whole = asyncio.Event()
        self._http_stream = http_stream
        self._mute = head
        self._left: int | None = None

    async def start(self, message: Message) -> None:
        """Send `http.response.start`, or the WebSocket's form of it."""
        if self.started:
            raise RuntimeError("the response was already started")
        status = int(message["status"])
        if not 200 <= status <= 599:
            raise ValueError(f"{status} is not a valid response status")
        fields = end_to_end_headers(message.get("headers", ()))
        if status in _BODILESS:
            # A 304 may name the length of the body that it omits, and libraries then wait for it.
            fields = [(name, value) for name, value in fields if name != b"content-length"]
        self._left = _announced(fields)
        self._mute |= status in _BODILESS
        status_field = (b":status", str(status).encode())
        await self._sending(self._http_stream.send_headers([status_field, *fields], end=self._mute))
        self.started = True
        if self._mute:
            self.whole.set()

    async def body(self, message: Message) -> None:
        """Send `http.response.body`. Returns when the other side has room for it."""
        if not self.started:
            raise RuntimeError("the response was not started")
        data = bytes(message.get("body", b""))
        end = not message.get("more_body", False)
        if self._mute:
            await asyncio.sleep(0)  # dropped; an endless body must not block the loop
            return
        if self.whole.is_set():
            raise RuntimeError("the response was already complete")
        self._count(len(data), end=end)
        if data or end:
            await self._sending(self._http_stream.write(data, end=end))
        if end:
            self.whole.set()

    async def fail(self) -> None:
        """Report a failure of the app to the client, if that is still possible."""
        if self.whole.is_set():
            return
        if self.started:
            self._http_stream.reset(ErrorCodes.INTERNAL_ERROR)
            return
        text = b"Internal Server Error\n"
        fields = [(b"content-type", b"text/plain; charset=utf-8")]
        await self.start({"status": 500, "headers": fields})
        await self.body({"body": text})

    def _count(self, size: int, *, end: bool) -> None:
        if self._left is None:
            return
        self._left -= size
        if self._left < 0 or (end and self._left):
            raise ValueError("the length of the body differs from its content-length")

    async def _sending(self, sent: Awaitable[None]) -> None:
        try:
            await sent
        except (StreamReset, ConnectionOver) as gone:
            raise ClientGone(str(gone)) from gone


def end_to_end_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the fields with names in lower case, without those for a single connection."""
    fields = [(bytes(name).strip().lower(), bytes(value).strip()) for name, value in headers]
    named = {
        word.strip().lower()
        for name, value in fields
        if name == b"connection"
        for word in value.split(b",")
    }
    left_out = _OF_THE_CONNECTION | named if named else _OF_THE_CONNECTION
    return [field for field in fields if field[0] not in left_out]


def _announced(fields: Headers) -> int | None:
    lengths = {value for name, value in fields if name == b"content-length"}
    if not lengths:
        return None
    if len(lengths) > 1 or not (length := lengths.pop()).isdigit():
        raise ValueError("a response must have one content-length, which is a number")
    return int(length)
