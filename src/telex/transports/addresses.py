"""From an address to a channel: `unix:PATH`, `ws://…`, `wss://…`, `http://…`, `https://…`.

The same address syntax serves every protocol. `Service` holds the parts that differ: the path of
the WebSocket, the default socket, and the command that starts such a server.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from telex.config import places
from telex.transports.errors import CannotConnect, NoServer

if TYPE_CHECKING:
    from telex.rpc.channel import Channel

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Service:
    """One kind of server: the facts that an address does not contain."""

    command: str
    """The command that starts such a server; `--socket PATH` or `--http HOST:PORT` follows."""
    path: str
    """The path of the WebSocket, where the URL has none."""
    default_socket: bool
    """Whether `unix:` alone names a socket."""


AUTOMATION: Final = Service("telex serve", "/rpc", default_socket=True)
AGENT: Final = Service("telex agent", "/rpc/agent", default_socket=False)


async def open_channel(address: str, token: str | None, service: Service) -> Channel:
    """Connect to the server at an address.

    Args:
        address: `unix:PATH`, or a URL; `http` and `https` mean the WebSocket of that server.
        token: For a URL; None takes TELEX_TOKEN from the environment.
        service: Completes the address, and names the command to start a server that is missing.

    Raises:
        CannotConnect: The address is invalid, or the server refuses.
        NoServer: No server listens there. The message has the command that starts one.
    """
    try:
        return await _connect(address, token, service)
    except NoServer as error:
        raise NoServer(f"{error}; {_start_command(address, service)}") from error


async def _connect(address: str, token: str | None, service: Service) -> Channel:
    scheme, colon, rest = address.partition(":")
    match scheme:
        case "unix" if colon:
            from telex.transports import unix

            return await unix.connect(_socket_path(rest, service))
        case "ws" | "wss" | "http" | "https":
            from telex.transports import websocket

            return await websocket.connect(_url(address, service), _token(token))
        case _:
            raise CannotConnect(
                f"{address!r} is not an address; use unix:PATH or ws://HOST:PORT{service.path}"
            )


def _socket_path(given: str, service: Service) -> Path:
    if given:
        return Path(given)
    if service.default_socket:
        return places.find().socket
    raise CannotConnect(f"unix: names no socket; use unix:PATH, as in {service.command} --socket")


def _start_command(address: str, service: Service) -> str:
    """Return the command that starts a server at an address where none listens."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        path = f" {shlex.quote(rest)}" if rest else ""
        return f"start a server with: {service.command} --socket{path}"
    parts = urlsplit(address)
    if scheme in ("ws", "http") and parts.hostname in _LOOPBACK:
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return f"start a server with: {service.command} --http {host}:{parts.port or 80}"
    return f"start a server there with: {service.command} --http HOST:PORT --allow-remote"


def _url(address: str, service: Service) -> str:
    """Return the URL of the WebSocket. It is on the same server as the page for a browser."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for a port that is not a number
    except ValueError as error:
        raise CannotConnect(f"{address!r} is not an address: {error}") from None
    scheme = "wss" if parts.scheme in ("wss", "https") else "ws"
    path = parts.path if parts.path.strip("/") else service.path
    return urlunsplit((scheme, parts.netloc, path, parts.query, ""))


def _token(token: str | None) -> str:
    if given := token or os.environ.get("TELEX_TOKEN"):
        return given
    raise CannotConnect("the server needs a token; set TELEX_TOKEN to the one that it printed")
