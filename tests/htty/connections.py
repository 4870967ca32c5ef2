"""Two ends of an HTTP/2 connection in memory, and a server that echoes request bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from htty.frames_by_hand import GET, OK
from htty.memory_stream import MemoryStream, memory_streams
from telex.htty.h2.http2_connection import Ended, Http2Connection
from telex.htty.h2.http2_state import Http2Side
from telex.htty.h2.http_stream import HttpStream

Handler = Callable[[HttpStream], Awaitable[None]]


class Handling:
    """Starts a task for each stream, as a server does, and ends those that are left."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.tasks: list[asyncio.Task[None]] = []

    def __call__(self, http_stream: HttpStream) -> None:
        self.tasks.append(asyncio.ensure_future(self._handler(http_stream)))  # type: ignore[arg-type]

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def echo(http_stream: HttpStream) -> None:
    await http_stream.send_headers(OK)
    while data := await http_stream.read():
        await http_stream.write(data)
    await http_stream.write(b"", end=True)


async def fetch(client: Http2Connection, path: bytes = b"/") -> bytes:
    http_stream = await client.request([*GET[:2], (b":path", path), GET[3]], end=True)
    await http_stream.answer()
    return await rest(http_stream)


async def rest(http_stream: HttpStream) -> bytes:
    """Return the rest of its body."""
    return b"".join([data async for data in pieces(http_stream)])


async def pieces(http_stream: HttpStream) -> AsyncIterator[bytes]:
    while data := await http_stream.read():
        yield data


class Joined:
    """A running client and a running server."""

    def __init__(self, handler: Handler) -> None:
        self.ends = memory_streams()
        self.handling = Handling(handler)
        self.client = Http2Connection(self.ends[0], Http2Side.CLIENT)
        self.server = Http2Connection(self.ends[1], Http2Side.SERVER, opened=self.handling)

    async def ended(self) -> tuple[Ended, Ended]:
        return await self.client.over, await self.server.over


@asynccontextmanager
async def joined(handler: Handler = echo) -> AsyncIterator[Joined]:
    both = Joined(handler)
    runs = [asyncio.ensure_future(both.client.run()), asyncio.ensure_future(both.server.run())]
    try:
        await both.client.ready()
        yield both
    finally:
        await both.handling.end()
        for run in runs:
            run.cancel()
        for result in await asyncio.gather(*runs, return_exceptions=True):
            if not isinstance(result, asyncio.CancelledError | Ended):
                raise result


@asynccontextmanager
async def served(handler: Handler = echo) -> AsyncIterator[tuple[MemoryStream, Http2Connection]]:
    """Run a server, and yield the byte stream of its client."""
    ours, its = memory_streams()
    handling = Handling(handler)
    server = Http2Connection(its, Http2Side.SERVER, opened=handling)
    run = asyncio.ensure_future(server.run())
    try:
        yield ours, server
    finally:
        await handling.end()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
