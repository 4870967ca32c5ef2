"""What an ASGI app answers, on one HTTP/2 stream. Used by `asgi` and `asgi_websocket`.

An app's mistakes are exceptions for the app. They must not reach the wire: there, a body of another
length than announced is a fault of the whole connection, and a terminal has no second one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from h2.errors import ErrorCodes

from telex.htty.errors import ConnectionOver, StreamReset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from starlette.types import Message

    from telex.htty.exchange import Exchange, Headers

_OF_THE_CONNECTION: Final = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-connection"),
        *(b"transfer-encoding", b"upgrade", b"te", b"http2-settings"),
    )
)
"""RFC 9113 §8.2.2: HTTP/1.1 needed them."""
_BODILESS: Final = (204, 304)


class ClientGone(OSError):
    """Nobody is there to send to. ASGI wants an OSError."""


class Response:
    """One answer: `start`, then `body` until it is whole."""

    def __init__(self, exchange: Exchange, *, head: bool = False) -> None:
        self.started = False
        self.whole = asyncio.Event()
        self._exchange = exchange
        self._mute = head
        self._left: int | None = None

    async def start(self, message: Message) -> None:
        """Take `http.response.start`, or the WebSocket's form of it."""
        if self.started:
            raise RuntimeError("the response was started already")
        status = int(message["status"])
        if not 200 <= status <= 599:
            raise ValueError(f"{status} is no status of a response")
        fields = clean(message.get("headers", ()))
        if status in _BODILESS:
            # A 304 may name the length of what it does not send, and libraries then wait for it.
            fields = [(name, value) for name, value in fields if name != b"content-length"]
        self._left = _announced(fields)
        self._mute |= status in _BODILESS
        status_field = (b":status", str(status).encode())
        await self._sending(self._exchange.send_headers([status_field, *fields], end=self._mute))
        self.started = True
        if self._mute:
            self.whole.set()

    async def body(self, message: Message) -> None:
        """Take `http.response.body`. Returns when the other side has room for it."""
        if not self.started:
            raise RuntimeError("the response was not started")
        data = bytes(message.get("body", b""))
        end = not message.get("more_body", False)
        if self._mute:
            await asyncio.sleep(0)  # dropped, though an endless one not in one breath
            return
        if self.whole.is_set():
            raise RuntimeError("the response was whole already")
        self._count(len(data), end=end)
        if data or end:
            await self._sending(self._exchange.write(data, end=end))
        if end:
            self.whole.set()

    async def fail(self) -> None:
        """The app has failed: say so, if there is still a way to."""
        if self.whole.is_set():
            return
        if self.started:
            self._exchange.reset(ErrorCodes.INTERNAL_ERROR)
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
            raise ValueError("the body is not as long as its content-length says")

    async def _sending(self, sent: Awaitable[None]) -> None:
        try:
            await sent
        except (StreamReset, ConnectionOver) as gone:
            raise ClientGone(str(gone)) from gone


def clean(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Names in lower case, and nothing that was meant for one connection."""
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
        raise ValueError("a response has one content-length, and it is a number")
    return int(length)
