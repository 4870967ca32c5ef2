"""Two ends of an HTTP/2 connection in memory, and a server that says back what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from htty.frames_by_hand import GET, OK
from telex.htty.beneath import MemoryEnd, pair
from telex.htty.connection import Side
from telex.htty.exchange import Exchange
from telex.htty.http2 import Ended, Http2

Handler = Callable[[Exchange], Awaitable[None]]


class Handling:
    """Starts a task for each exchange, as a server does, and ends those that are left."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.tasks: list[asyncio.Task[None]] = []

    def __call__(self, exchange: Exchange) -> None:
        self.tasks.append(asyncio.ensure_future(self._handler(exchange)))  # type: ignore[arg-type]

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def echo(exchange: Exchange) -> None:
    await exchange.send_headers(OK)
    while data := await exchange.read():
        await exchange.write(data)
    await exchange.write(b"", end=True)


async def fetch(client: Http2, path: bytes = b"/") -> bytes:
    exchange = await client.request([*GET[:2], (b":path", path), GET[3]], end=True)
    await exchange.answer()
    return await rest(exchange)


async def rest(exchange: Exchange) -> bytes:
    """Of its body."""
    return b"".join([data async for data in pieces(exchange)])


async def pieces(exchange: Exchange) -> AsyncIterator[bytes]:
    while data := await exchange.read():
        yield data


class Joined:
    """A client and a server that run."""

    def __init__(self, handler: Handler) -> None:
        self.ends = pair()
        self.handling = Handling(handler)
        self.client = Http2(self.ends[0], Side.CLIENT)
        self.server = Http2(self.ends[1], Side.SERVER, opened=self.handling)

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
async def served(handler: Handler = echo) -> AsyncIterator[tuple[MemoryEnd, Http2]]:
    """A server, and the bare end that its client would have."""
    ours, its = pair()
    handling = Handling(handler)
    server = Http2(its, Side.SERVER, opened=handling)
    run = asyncio.ensure_future(server.run())
    try:
        yield ours, server
    finally:
        await handling.end()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
