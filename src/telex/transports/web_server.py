"""A web server in the running event loop, with authentication: `async with listen(app, auth=auth)`.

Uvicorn parses and writes HTTP and WebSocket; this module starts and stops it. Uvicorn's own main
loop wakes ten times a second, handles the process's signals and waits by polling, so it is not
used. Instead the socket is bound and listening when the block is entered. At the end of the block
all connections and tasks are ended, gracefully for a few seconds and then by force.

The two protocol classes below add the protections of a server for unauthenticated clients: no
request line or header in any log, a deadline for connections that send nothing, small messages
until the token was sent, and no request with two lengths.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import select
import socket
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from telex.transports import limits
from telex.transports.auth import Advice, AuthMiddleware
from telex.transports.channels import CLOSE_SECONDS
from telex.transports.responses import ConnectionControl, length_fault
from telex.transports.websocket import PING_SECONDS, quiet_logger
from telex.wire import limits as wire_limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import ASGIApp
    from websockets.frames import Frame

    from telex.transports.auth import Authenticator

REQUEST_SECONDS: Final = limits.REQUEST_SECONDS
KEEP_ALIVE_SECONDS: Final = 15
HANGUP_SECONDS: Final = 0.5
"""How long data from a client that has disconnected may still be read, where it is watched."""
GRACE_SECONDS: Final = 2.0
"""How long open requests may take to end when the server stops."""
UNSENT_BYTES: Final = 128 * 1024
"""How many unsent bytes the kernel buffers for each connection."""
FRAGMENTS: Final = limits.WEBSOCKET_FRAGMENTS


class CannotListen(Exception):
    """The server cannot listen there; the message gives the reason and the remedy."""


class RemoteNotAllowed(CannotListen):
    """The address can be reached from other machines, and that was not allowed."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address that a server listens at."""

    host: str
    """A numeric address; an IPv6 address is in brackets."""
    port: int

    @property
    def url(self) -> str:
        return f"http://{_REACHED_AT.get(self.host, self.host)}:{self.port}"

    @property
    def websocket_url(self) -> str:
        return self.url.replace("http", "ws", 1)


_REACHED_AT: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  looked up, not bound


@asynccontextmanager
async def listen(
    app: ASGIApp,
    *,
    auth: Authenticator,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_remote: bool = False,
    advice: Advice = lambda reason: "",
) -> AsyncIterator[Address]:
    """Serve an app to authenticated clients until the end of the block.

    Args:
        port: 0 means any free port.
        advice: Returns the next step for a person in a browser who is refused.
    """
    async with listen_without_auth(
        AuthMiddleware(app, auth, advice=advice), host=host, port=port, allow_remote=allow_remote
    ) as address:
        auth.set_address(address.host, address.port)
        yield address


@asynccontextmanager
async def listen_without_auth(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_remote: bool = False,
    localhost: bool = False,
) -> AsyncIterator[Address]:
    """Serve an app that authenticates every request itself.

    Args:
        localhost: Browsers are sent here by a name under localhost, and try IPv6 first; another
            program that listens there at our port would get our codes and cookies. So the IPv6
            address is bound as well, or the server does not listen.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(await _bound(host, port, allow_remote))]
        address = _address(sockets[0])
        if localhost and _has_ipv6():
            sockets.append(stack.enter_context(await _bound("::1", address.port, allow_remote)))
        server, connections = _server(app)
        await server.startup(sockets=sockets)
        try:
            yield address
        finally:
            await _stop(server, connections)
            connections.hangups.close()


async def _bound(host: str, port: int, allow_remote: bool) -> socket.socket:
    if not (_is_loopback(host) or allow_remote):
        raise RemoteNotAllowed(
            f"{host} can be reached from other machines; listen at 127.0.0.1, or allow it with "
            "--allow-remote"
        )
    name = "127.0.0.1" if host == "localhost" else host  # no DNS lookup for localhost
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        sock = socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        number = error.errno or 0  # negative if the name is unknown
        reason = os.strerror(number) if number > 0 else error.strerror
        raise CannotListen(f"cannot listen at {host}, port {port}: {reason}") from error
    # Accepted sockets inherit both. By default the kernel buffers megabytes for a reader that has
    # stopped, and the reader later gets old data. And it delays a response's body until its head is
    # acknowledged, 40 ms later: asyncio sets TCP_NODELAY only on sockets that it creates.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:  # then no other program can listen there either
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(sock: socket.socket) -> Address:
    host, port = sock.getsockname()[:2]
    return Address(f"[{host}]" if ":" in host else host, port)


def _server(app: ASGIApp) -> tuple[Server, _Connections]:
    config = Config(
        app,
        http=_HttpProtocol,
        ws=_WebSocketProtocol,
        ws_max_size=limits.FIRST_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        lifespan="off",
        interface="asgi3",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    config.load()
    config.loaded_app = app  # without the wrapper that logs requests with their codes
    server = Server(config)
    server.lifespan = config.lifespan_class(config)
    server.server_state.connections = connections = _Connections()
    return server, connections


async def _stop(server: Server, connections: _Connections) -> None:
    """Close idle connections, wait for quick ones, drop the rest."""
    tasks = server.server_state.tasks
    for listening in server.servers:
        listening.close()
    for connection in list(connections):
        connection.shutdown()
    await _settled(tasks, connections)
    for connection in list(connections):
        connection.transport.abort()
    await _settled(tasks, connections)
    for task in tasks:
        task.cancel()
    await _settled(tasks, connections)


async def _settled(tasks: set[asyncio.Task[None]], connections: _Connections) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            while tasks:
                await asyncio.wait(tasks)
            await connections.gone()


class _Connections(set[Any]):
    """Uvicorn's set of open connections, with a wait until it is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.hangups = _HangupPoll()
        self._fewer = asyncio.Event()

    def discard(self, connection: Any) -> None:
        super().discard(connection)
        self._fewer.set()

    remove = discard

    async def gone(self) -> None:
        while self:
            self._fewer.clear()
            await self._fewer.wait()


class _HangupPoll:
    """Reports when the other end of a socket disconnects.

    An event loop notices that only while it reads, and a connection with too much unread data is
    not read. Without epoll, nothing is reported.
    """

    def __init__(self) -> None:
        self._watched: dict[int, Callable[[], None]] = {}
        self._poll: select.epoll | None = None

    def watch(self, descriptor: int, on_hangup: Callable[[], None]) -> None:
        if descriptor in self._watched or not hasattr(select, "epoll"):
            return
        if self._poll is None:
            self._poll = select.epoll()
            asyncio.get_running_loop().add_reader(self._poll.fileno(), self._poll_hangups)
        self._poll.register(descriptor, select.EPOLLRDHUP)
        self._watched[descriptor] = on_hangup

    def forget(self, descriptor: int) -> Callable[[], None] | None:
        on_hangup = self._watched.pop(descriptor, None)
        if on_hangup is not None and self._poll is not None:
            self._poll.unregister(descriptor)
        return on_hangup

    def _poll_hangups(self) -> None:
        assert self._poll is not None  # it called us
        for descriptor, _ in self._poll.poll(0):
            if (on_hangup := self.forget(descriptor)) is not None:
                on_hangup()

    def close(self) -> None:
        if self._poll is not None:
            asyncio.get_running_loop().remove_reader(self._poll.fileno())
            self._poll.close()


class _ConnectionEnd:
    """Detects the end of one connection, for its `ConnectionControl`."""

    def __init__(self, connection: Any) -> None:
        self.gone: Final = asyncio.get_running_loop().create_future()
        self._connection = connection
        self._descriptor: int | None = None
        self._grace: asyncio.TimerHandle | None = None

    def watch_hangup(self) -> None:
        if self._descriptor is None:
            self._descriptor = self._connection.transport.get_extra_info("socket").fileno()
            self._connection.connections.hangups.watch(self._descriptor, self._hung_up)

    def _hung_up(self) -> None:
        loop, transport = asyncio.get_running_loop(), self._connection.transport
        self._grace = loop.call_later(HANGUP_SECONDS, transport.abort)

    def lost(self) -> None:
        if self._descriptor is not None:
            self._connection.connections.hangups.forget(self._descriptor)
        if self._grace is not None:
            self._grace.cancel()
        if not self.gone.done():
            self.gone.set_result(None)


_LOG: Final = quiet_logger()
_OUR_MISTAKES: Final = quiet_logger()
_OUR_MISTAKES.setLevel(logging.ERROR)
"""The library warns about each malformed request, which any client can send endlessly."""


class _HttpProtocol(H11Protocol):
    """HTTP that logs no request, and drops connections without a request after a deadline."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.conn = OneLengthConnection(h11.SERVER)
        self.access_log = False
        self.logger = _OUR_MISTAKES
        self._stopping = asyncio.Event()
        self._end_of_connection = _ConnectionEnd(self)
        control = ConnectionControl(
            abort=lambda: self.transport.abort(),
            stopping=self._stopping,
            gone=self._end_of_connection.gone,
            watch_hangup=self._end_of_connection.watch_hangup,
        )
        self.app: Any = control.wrap(self.app)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._patience = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def connection_lost(self, error: Exception | None) -> None:
        self._patience.cancel()
        super().connection_lost(error)
        self._end_of_connection.lost()

    def shutdown(self) -> None:
        self._stopping.set()
        super().shutdown()

    def _give_up(self) -> None:
        request: Any = self.cycle
        if request is None and self in self.connections:  # else it sent one, or is a WebSocket
            self.transport.abort()


class _WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket with little logging, whose buffers and lifetime a peer cannot exhaust."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.logger = self.conn.logger = _LOG
        self._last_received = 0.0
        self._lingering: asyncio.TimerHandle | None = None
        self._end_of_connection = _ConnectionEnd(self)
        control = ConnectionControl(
            abort=lambda: self.transport.abort(),
            allow_full_messages=self._allow_full_messages,
            gone=self._end_of_connection.gone,
            watch_hangup=self._end_of_connection.watch_hangup,
        )
        self.app: Any = control.wrap(self.app)

    def _allow_full_messages(self) -> None:
        self.conn.max_message_size = wire_limits.LINE_BYTES

    def data_received(self, data: bytes) -> None:
        self._last_received = self.loop.time()
        super().data_received(data)

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) < FRAGMENTS:
            super().handle_cont(event)
        elif not self.close_sent:
            self.conn.fail(1009, f"a message has at most {FRAGMENTS} fragments")
            self.handle_parser_exception()

    def handle_ping(self) -> None:
        """Answer, unless pongs pile up unread: RFC 6455 §5.5.3 requires the latest pong only."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def keepalive_timeout(self) -> None:
        """Handle a missing pong. While we do not read none can arrive; other data also counts."""
        if self.read_paused or self._last_received >= self.ping_sent_at:
            self.pong_timer = None
            self.schedule_ping()
        else:
            super().keepalive_timeout()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # else the library reports a refusal as our error

    async def run_asgi(self) -> None:
        await super().run_asgi()
        if not self.disconnected:  # a deadline for unsent data; the library would wait forever
            self._lingering = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def connection_lost(self, error: Exception | None) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
        super().connection_lost(error)
        self._end_of_connection.lost()


class OneLengthConnection(h11.Connection):
    """A server's connection that refuses a request with two lengths (see `length_fault`)."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Raise RemoteProtocolError for such a request, as for any malformed one."""
        event = super().next_event()
        if isinstance(event, h11.Request) and (
            why := length_fault(event.headers, event.http_version)
        ):
            raise h11.RemoteProtocolError(why)
        return event
