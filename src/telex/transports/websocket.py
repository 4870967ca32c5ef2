"""Channels over WebSocket: one message is one frame, and both sides may speak at any time.

`converse` is the server's end, on plain ASGI; `connect` is ours. Messages go out as text, which is
what browsers and JSON expect; bytes that are no UTF-8 go out as binary, and both are read alike.
No compression: it buys little on a loopback and costs memory that strangers choose.

A ping is sent only after silence: anything received shows that the other side is there. A side that
does not read, because its peer paused it, does not ping.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from telex.transports.channels import CLOSE_SECONDS, ChannelEnded, QueuedChannel, printable
from telex.transports.errors import CannotConnect, NobodyThere, NotAdmitted
from telex.transports.responses import ConnectionControl, refusal_sentence
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from telex.rpc.channel import Channel

PING_SECONDS: Final = 20.0
"""Silence after which we ask; as long again without a sign of life, and they are gone."""
OPEN_SECONDS: Final = 10.0

_NO_REASON: Final = (1005, 1006)
"""What libraries report where no close frame came, or one without a code."""


def quiet_logger() -> logging.Logger:
    """For the libraries below, which print headers and messages at DEBUG: tokens, that is.

    It is not registered, so that no configuration by name or by tree can make it talk.
    """
    logger = logging.Logger("telex.transports", logging.WARNING)
    logger.parent = logging.getLogger("telex.transports")
    return logger


async def converse(
    scope: Scope, receive: Receive, send: Send, serve: Callable[[Channel], Awaitable[None]]
) -> None:
    """Accept a WebSocket, and hold a conversation on it until it is over."""
    await receive()
    await send({"type": "websocket.accept"})
    channel = QueuedChannel(_AcceptedWebSocket(receive, send, ConnectionControl.of(scope)))
    try:
        await serve(channel)
    finally:
        await channel.close()


async def connect(url: str, token: str) -> Channel:
    """A channel to the server at `ws://…`. Raises CannotConnect."""
    try:
        connection = await dial(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            compression=None,
            proxy=None,  # a proxy for web pages has no business with a token
            open_timeout=OPEN_SECONDS,
            close_timeout=CLOSE_SECONDS,
            ping_interval=None,  # _Dialled asks, and only while somebody reads
            max_size=limits.LINE_BYTES,
            max_queue=1,  # it counts frames, however large
            logger=quiet_logger(),
            create_connection=_Connection,
        )
    except InvalidStatus as refused:
        status, body = refused.response.status_code, refused.response.body
        raise NotAdmitted(f"{url} refused us: {status}{refusal_sentence(bytes(body))}") from None
    except (OSError, TimeoutError) as error:
        raise NobodyThere(f"nobody answers at {url}") from error
    except (InvalidHandshake, InvalidURI) as error:
        raise CannotConnect(f"{url} cannot be used: {printable(str(error))}") from None
    return QueuedChannel(_Dialled(connection))


class _AcceptedWebSocket:
    """The server's end of a WebSocket, as a pipe."""

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
        except (OSError, RuntimeError):  # the second, when the server closed over their mistake
            raise ChannelEnded("the WebSocket closed while we were sending") from None

    async def end(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # closed already, which is the aim
            await self._send({"type": "websocket.close", "code": 1000})

    def abort(self) -> None:
        self._control.abort()


class _Connection(ClientConnection):
    """The library's connection, which also knows when it last received anything."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.last_received = self.loop.time()

    def data_received(self, data: bytes) -> None:
        self.last_received = self.loop.time()
        super().data_received(data)


class _Dialled:
    """The client's end of a WebSocket, as a pipe."""

    binary = True

    def __init__(self, connection: ClientConnection) -> None:
        assert isinstance(connection, _Connection)  # as `connect` had it created
        self._connection = connection
        self._asked = connection.last_received

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
        """Their goodbye comes after all that we have not read."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._connection.recv(decode=False)

    async def _check_alive(self) -> None:
        """Ask whether they are there, unless nothing was received since we last asked."""
        if self._connection.last_received < self._asked:
            self.abort()
            raise ChannelEnded(
                f"the other side fell silent: no answer to a ping in {PING_SECONDS:g} s"
            )
        self._asked = self._connection.loop.time()
        with contextlib.suppress(TimeoutError):  # they do not read: it is on its way
            async with asyncio.timeout(PING_SECONDS):
                _ = await self._connection.ping()  # anything received is the answer


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
        return "the WebSocket ended, and nobody said why"
    words = f": {printable(reason)}" if reason else ""
    return f"the WebSocket was closed ({code}{words})"
