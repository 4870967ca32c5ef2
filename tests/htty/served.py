"""An ASGI app on one end of a byte stream in memory, and an HTTP/2 client on the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from htty.memory_stream import MemoryStream, memory_streams
from telex.htty.asgi import AsgiServer
from telex.htty.h2.header_fields import Headers
from telex.htty.h2.http2_connection import Ended, Http2Connection
from telex.htty.h2.http2_state import Http2Side
from telex.htty.h2.http2_websocket import Side as SocketSide
from telex.htty.h2.http2_websocket import WebSocketStream
from telex.htty.h2.http_stream import HttpStream


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
    http: Http2Connection
    server: AsgiServer
    wire: MemoryStream
    serving: asyncio.Task[Ended] = field(repr=False)

    async def ask(
        self, path: str, method: str = "GET", *, end: bool = True, headers: Headers | None = None
    ) -> HttpStream:
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
        http_stream = await self.ask(path, method, end=body is None, headers=headers)
        if body is not None:
            await http_stream.write(body, end=True)
        return await whole(http_stream)

    async def dial(self, path: str, headers: Headers | None = None) -> tuple[HttpStream, Answer]:
        """Send a WebSocket's CONNECT; return the stream and the head of the response."""
        await self.http.ready()
        assert self.http.extended_connect
        http_stream = await self.http.request(
            [
                *((b":method", b"CONNECT"), (b":protocol", b"websocket"), (b":scheme", b"http")),
                *((b":authority", b"make-1.localhost:8080"), (b":path", path.encode())),
                *((b"sec-websocket-version", b"13"), *(headers or [])),
            ]
        )
        return http_stream, Answer(await http_stream.answer(), b"")

    async def websocket(self, path: str) -> WebSocketStream:
        http_stream, answer = await self.dial(path)
        assert answer.status == 200
        return WebSocketStream(http_stream, SocketSide.CLIENT)


async def whole(http_stream: HttpStream) -> Answer:
    headers = await http_stream.answer()
    pieces = []
    while piece := await http_stream.read():
        pieces.append(piece)
    return Answer(headers, b"".join(pieces))


@asynccontextmanager
async def served(app: object, *, lifespan: bool = True) -> AsyncIterator[Client]:
    """Serve the app and end gracefully, so that its shutdown is part of every test."""
    here, there = memory_streams()
    server = AsgiServer(app, lifespan=lifespan)  # type: ignore[arg-type]
    http = Http2Connection(here, Http2Side.CLIENT)
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
