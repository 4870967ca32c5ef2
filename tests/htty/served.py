"""An ASGI app on one end of a wire in memory, and an HTTP/2 client on the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from telex.htty.asgi import AsgiServer
from telex.htty.beneath import MemoryEnd, pair
from telex.htty.connection import Side
from telex.htty.exchange import Exchange, Headers
from telex.htty.http2 import Ended, Http2
from telex.htty.websocket import Side as SocketSide
from telex.htty.websocket import WebSocketWire


@dataclass
class Answer:
    headers: Headers
    body: bytes

    @property
    def status(self) -> int:
        return int(self["status"])

    def __getitem__(self, name: str) -> str:
        key = b":status" if name == "status" else name.encode()
        return b", ".join(v for n, v in self.headers if n == key).decode()


@dataclass
class Client:
    http: Http2
    server: AsgiServer
    wire: MemoryEnd
    serving: asyncio.Task[Ended] = field(repr=False)

    async def ask(
        self, path: str, method: str = "GET", *, end: bool = True, headers: Headers | None = None
    ) -> Exchange:
        return await self.http.request(
            [
                *((b":method", method.encode()), (b":scheme", b"http")),
                *((b":authority", b"make-1.localhost:8080"), (b":path", path.encode())),
                *(headers or []),
            ],
            end=end,
        )

    async def get(
        self,
        path: str,
        method: str = "GET",
        *,
        body: bytes | None = None,
        headers: Headers | None = None,
    ) -> Answer:
        exchange = await self.ask(path, method, end=body is None, headers=headers)
        if body is not None:
            await exchange.write(body, end=True)
        return await whole(exchange)

    async def dial(self, path: str, headers: Headers | None = None) -> tuple[Exchange, Answer]:
        """A WebSocket's CONNECT, and the head of its answer."""
        await self.http.ready()
        assert self.http.extended_connect
        exchange = await self.http.request(
            [
                *((b":method", b"CONNECT"), (b":protocol", b"websocket"), (b":scheme", b"http")),
                *((b":authority", b"make-1.localhost:8080"), (b":path", path.encode())),
                *((b"sec-websocket-version", b"13"), *(headers or [])),
            ]
        )
        return exchange, Answer(await exchange.answer(), b"")

    async def websocket(self, path: str) -> WebSocketWire:
        exchange, answer = await self.dial(path)
        assert answer.status == 200
        return WebSocketWire(exchange, SocketSide.CLIENT)


async def whole(exchange: Exchange) -> Answer:
    headers = await exchange.answer()
    pieces = []
    while piece := await exchange.read():
        pieces.append(piece)
    return Answer(headers, b"".join(pieces))


@asynccontextmanager
async def served(app: object, *, lifespan: bool = True) -> AsyncIterator[Client]:
    """Ends gracefully, so that the app's own end is part of every test."""
    here, there = pair()
    server = AsgiServer(app, lifespan=lifespan)  # type: ignore[arg-type]
    http = Http2(here, Side.CLIENT)
    serving = asyncio.create_task(server.serve(there))
    running = asyncio.create_task(http.run())
    try:
        yield Client(http, server, here, serving)
    finally:
        server.close("the test is over")
        here.close()
        await asyncio.wait({serving, running})
    if not serving.cancelled():
        await serving
