"""From an address to a peer: `unix:PATH`, `ws://…`, `wss://…`, `http://…`, `https://…`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from telex.automation.protocol import DIALECT
from telex.config import places
from telex.rpc.peer import Peer
from telex.transports import unix
from telex.transports.errors import CannotConnect, NobodyThere

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.rpc.channel import Channel
    from telex.rpc.methods import Methods

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


async def dial(
    address: str = "unix:",
    token: str | None = None,
    methods: Methods | None = None,
    on_binary: Callable[[bytes], None] | None = None,
) -> Peer:
    """A conversation with the server there. Raises CannotConnect."""
    try:
        channel = await _channel(address, token)
    except NobodyThere as error:
        raise NobodyThere(f"{error}; {_start(address)}") from error
    return Peer(channel, DIALECT, methods, on_binary=on_binary)


async def _channel(address: str, token: str | None) -> Channel:
    scheme, colon, rest = address.partition(":")
    match scheme:
        case "unix" if colon:
            return await unix.connect(Path(rest) if rest else places.find().socket)
        case "ws" | "wss" | "http" | "https":
            from telex.transports import websocket

            return await websocket.connect(_url(address), _token(token))
        case _:
            raise CannotConnect(f"{address!r} is no address; use unix:PATH or ws://HOST:PORT/rpc")


def _start(address: str) -> str:
    """What to do where no server answers: the command that starts one there."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        path = f" {shlex.quote(rest)}" if rest else ""
        return f"start a server with: telex serve --socket{path}"
    parts = urlsplit(address)
    if scheme in ("ws", "http") and parts.hostname in _LOOPBACK:
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return f"start a server with: telex serve --http {host}:{parts.port or 80}"
    return "start a server there with: telex serve --http HOST:PORT --allow-remote"


def _url(address: str) -> str:
    """Where the WebSocket is: what a browser would open is the same server."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # looked at here: it raises for what is no number
    except ValueError as error:
        raise CannotConnect(f"{address!r} is no address: {error}") from None
    scheme = "wss" if parts.scheme in ("wss", "https") else "ws"
    path = parts.path if parts.path.strip("/") else "/rpc"
    return urlunsplit((scheme, parts.netloc, path, parts.query, ""))


def _token(token: str | None) -> str:
    if given := token or os.environ.get("TELEX_TOKEN"):
        return given
    raise CannotConnect("set TELEX_TOKEN to what the server printed; this door wants proof")
