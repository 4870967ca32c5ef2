"""Channels over WebSocket: one message is one frame, and both sides may send at any time.

`converse` is the server's end, on plain ASGI; `connect` is the client's. Messages are sent as text,
as browsers and JSON expect; bytes that are not UTF-8 are sent as binary, and both are received
alike. There is no compression: it saves little on a loopback and costs memory that an
unauthenticated client controls.

A ping is sent only after silence, because any received data shows that the other side is alive. A
side that does not read, because its peer paused it, does not ping.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from telex.transports.auth import identity_of
from telex.transports.channels import CLOSE_SECONDS, ChannelEnded, QueuedChannel, printable
from telex.transports.errors import AccessDenied, CannotConnect, NoServer
from telex.transports.responses import ConnectionControl, refusal_sentence
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from telex.rpc.channel import Channel

PING_SECONDS: Final = 20.0
"""Silence after which we ping; after the same time without received data, the peer is dead."""
OPEN_SECONDS: Final = 10.0

_NO_REASON: Final = (1005, 1006)
"""The codes that libraries report for a missing close frame, or one without a code."""


def quiet_logger() -> logging.Logger:
    """Return a logger for the libraries below, which log headers and messages with tokens at DEBUG.

    It is not registered, so no configuration by name or by hierarchy can lower its level.
    """
    logger = logging.Logger("telex.transports", logging.WARNING)
    logger.parent = logging.getLogger("telex.transports")
    return logger


async def converse(
    scope: Scope, receive: Receive, send: Send, serve: Callable[[Channel], Awaitable[None]]
) -> None:
    """Accept a WebSocket, and serve it until the conversation has ended."""
    await receive()
    await send({"type": "websocket.accept"})
    pipe = _AcceptedWebSocket(receive, send, ConnectionControl.of(scope))
    channel = QueuedChannel(pipe, identity_of(scope))
    try:
        await serve(channel)
    finally:
        await channel.close()


async def connect(url: str, token: str) -> Channel:
    """Open a channel to the server at `ws://…`. Raises CannotConnect."""
    try:
        connection = await dial(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            compression=None,
            proxy=None,  # a proxy for web pages must not see the token
            open_timeout=OPEN_SECONDS,
            close_timeout=CLOSE_SECONDS,
            ping_interval=None,  # _Dialled pings, and only while the channel is read
            max_size=limits.LINE_BYTES,
            max_queue=1,  # the limit counts frames of any size
            logger=quiet_logger(),
            create_connection=_Connection,
        )
    except InvalidStatus as refused:
        status, body = refused.response.status_code, refused.response.body
        raise AccessDenied(f"{url} refused us: {status}{refusal_sentence(bytes(body))}") from None
    except (OSError, TimeoutError) as error:
        raise NoServer(f"no server answers at {url}") from error
    except (InvalidHandshake, InvalidURI) as error:
        raise CannotConnect(f"{url} cannot be used: {printable(str(error))}") from None
    return QueuedChannel(_Dialled(connection))


class _AcceptedWebSocket:
    """The server's end of a WebSocket, as a `Pipe`."""

    binary = True

    def __init__(self, receive: Receive, send: Send, control: ConnectionControl) -> None:
        self._receive = receive
        self._send = send
        self._control = control

    async def read(self) -> bytes:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise ChannelEnded(_closed(message.get("code", 1006), message.get("reason")))
        text: str | None = message.get("text")
        data: bytes = message["bytes"] if text is None else text.encode()
        return data

    async def write(self, frame: bytes) -> None:
        message: dict[str, Any] = {"type": "websocket.send"}
        try:
            message["text"] = frame.decode()
        except UnicodeDecodeError:
            message["bytes"] = frame
        try:
            await self._send(message)
        except (OSError, RuntimeError):  # RuntimeError if the server closed after a client's error
            raise ChannelEnded("the WebSocket closed while we were sending") from None

    async def end(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # already closed
            await self._send({"type": "websocket.close", "code": 1000})

    def abort(self) -> None:
        self._control.abort()


class _Connection(ClientConnection):
    """The library's connection, which also records when it last received data."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.last_received = self.loop.time()

    def data_received(self, data: bytes) -> None:
        self.last_received = self.loop.time()
        super().data_received(data)


class _Dialled:
    """The client's end of a WebSocket, as a `Pipe`."""

    binary = True

    def __init__(self, connection: ClientConnection) -> None:
        assert isinstance(connection, _Connection)  # as `connect` had it created
        self._connection = connection
        self._pinged = connection.last_received

    async def read(self) -> bytes:
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PING_SECONDS):
                        return await self._connection.recv(decode=False)
                await self._check_alive()
        except ConnectionClosed as closed:
            raise ChannelEnded(_close_sentence(closed)) from None

    async def write(self, frame: bytes) -> None:
        try:
            await self._connection.send(frame, text=_is_text(frame))
        except ConnectionClosed as closed:
            raise ChannelEnded(_close_sentence(closed)) from None

    async def end(self) -> None:
        async with asyncio.TaskGroup() as closing:
            discarding = closing.create_task(self._discard())
            await self._connection.close()
            discarding.cancel()

    def abort(self) -> None:
        self._connection.transport.abort()

    async def _discard(self) -> None:
        """Read and drop messages: the server's close frame comes after all unread messages."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._connection.recv(decode=False)

    async def _check_alive(self) -> None:
        """Ping, or end the channel if nothing was received since the last ping."""
        if self._connection.last_received < self._pinged:
            self.abort()
            raise ChannelEnded(
                f"the other side is silent: no answer to a ping in {PING_SECONDS:g} s"
            )
        self._pinged = self._connection.loop.time()
        with contextlib.suppress(TimeoutError):  # the other side does not read; the ping is queued
            async with asyncio.timeout(PING_SECONDS):
                _ = await self._connection.ping()  # any received data counts as the answer


def _is_text(frame: bytes) -> bool:
    try:
        frame.decode()
    except UnicodeDecodeError:
        return False
    return True


def _close_sentence(closed: ConnectionClosed) -> str:
    close = closed.rcvd or closed.sent
    return _closed(close.code, close.reason) if close else _closed(1006, None)


def _closed(code: int, reason: str | None) -> str:
    if code in _NO_REASON:
        return "the WebSocket closed without a reason"
    words = f": {printable(reason)}" if reason else ""
    return f"the WebSocket was closed ({code}{words})"
