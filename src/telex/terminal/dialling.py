"""From an address to a peer: `unix:PATH`, `ws://…`, `wss://…`, `http://…`, `https://…`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from telex.config import places
from telex.rpc.peer import Peer
from telex.terminal.service import DIALECT
from telex.transports import unix
from telex.transports.errors import CannotConnect

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.rpc.channel import Channel
    from telex.rpc.methods import Methods


async def dial(
    address: str = "unix:",
    token: str | None = None,
    methods: Methods | None = None,
    on_binary: Callable[[bytes], None] | None = None,
) -> Peer:
    """A conversation with the server there. Raises CannotConnect."""
    channel = await _channel(address, token)
    return Peer(channel, DIALECT, methods, on_binary=on_binary)


async def _channel(address: str, token: str | None) -> Channel:
    scheme, colon, rest = address.partition(":")
    match scheme:
        case "unix" if colon:
            return await unix.connect(Path(rest) if rest else places.find().socket)
        case "ws" | "wss":
            from telex.transports import websocket

            return await websocket.connect(address, _token(token))
        case "http" | "https":
            from telex.transports import websocket

            path = "" if rest.removeprefix("//").count("/") else "/rpc/automation"
            return await websocket.connect(f"ws{address[4:].rstrip('/')}{path}", _token(token))
        case _:
            raise CannotConnect(f"{address!r} is no address; use unix:PATH or ws://HOST:PORT/rpc")


def _token(token: str | None) -> str:
    if given := token or os.environ.get("TELEX_TOKEN"):
        return given
    raise CannotConnect("this door wants a token: set TELEX_TOKEN to what the server printed")
