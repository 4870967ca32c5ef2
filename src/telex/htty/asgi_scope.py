"""The headers of an HTTP/2 request, as the scope that ASGI describes a request with. Sans-IO.

The HTTP/2 layer has refused what no request may hold. Used by `asgi`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope

    from telex.htty.exchange import Headers

_SPEC: Final = "2.3"
"""Of ASGI's HTTP part. From 2.4 on, frameworks learn that a client left only by sending to it, and
a stream of events that has nothing to say would outlive its tab."""

_SOCKET_SCHEMES: Final = {"https": "wss", "wss": "wss"}


def request_scope(headers: Headers, state: dict[str, Any]) -> Scope:
    """The scope of a plain request."""
    pseudo = _pseudo(headers)
    scope = _common(headers, pseudo, state)
    scope["type"] = "http"
    scope["method"] = pseudo[b":method"].decode("latin-1")
    return scope


def websocket_scope(headers: Headers, state: dict[str, Any]) -> Scope:
    """The scope of an extended CONNECT (RFC 8441 §5)."""
    scope = _common(headers, _pseudo(headers), state)
    scope["type"] = "websocket"
    scope["scheme"] = _SOCKET_SCHEMES.get(scope["scheme"], "ws")
    scope["subprotocols"] = [
        name.strip()
        for value in values(headers, b"sec-websocket-protocol")
        for name in value.decode("latin-1").split(",")
        if name.strip()
    ]
    scope["extensions"] = {"websocket.http.response": {}}
    return scope


def protocol_of(headers: Headers) -> bytes | None:
    """What a CONNECT is to become; None for a request that is none, empty for one to nowhere."""
    pseudo = _pseudo(headers)
    return pseudo.get(b":protocol", b"") if pseudo[b":method"] == b"CONNECT" else None


def has_target(headers: Headers) -> bool:
    """Whether it says where on this server (RFC 9113 §8.3.1). Apps put what stands there behind a
    host of their own, and `@elsewhere/` would then lead to another."""
    pseudo = _pseudo(headers)
    path = pseudo.get(b":path", b"")
    return path.startswith(b"/") or (path == b"*" and pseudo[b":method"] == b"OPTIONS")


def values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
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
        "client": None,  # a person at the other end of a terminal, with no address
        "server": _server(authority),
        "state": state.copy(),  # shallow, as ASGI has it
    }


def _plain(headers: Headers, authority: bytes) -> list[tuple[bytes, bytes]]:
    """As HTTP/1.1 would have said it: a host, and one cookie header (RFC 9113 §8.2.3)."""
    fields = [(b"host", authority)] if authority and not values(headers, b"host") else []
    fields += [(n, v) for n, v in headers if n[0] != 0x3A and n != b"cookie"]
    if cookies := values(headers, b"cookie"):
        fields.append((b"cookie", b"; ".join(cookies)))
    return fields


@lru_cache
def _server(authority: bytes) -> tuple[str, int | None] | None:
    try:
        parts = urlsplit(f"//{authority.decode('latin-1')}")
        return (parts.hostname, parts.port) if parts.hostname else None
    except ValueError:  # a port that is no number; nothing depends on it
        return None


def _pseudo(headers: Headers) -> dict[bytes, bytes]:
    """Each of them is there once at most, and they stand first."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name[0] != 0x3A:
            break
        found[name] = value
    return found
