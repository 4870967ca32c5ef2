"""A server for the tests of the web transports, an ear for a channel, and curl."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from telex.rpc.channel import Channel
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports import http
from telex.transports.auth import Authenticator
from telex.transports.web_server import Address, listen
from telex.wire.events import Event, Frame

TOKEN = "Zm9yIHRoZSB0ZXN0cyBvZiB0aGUgd2ViIGRvb3JzIQ"
DIALECT = JsonRpc(batches=True, cancel_method="$/cancelRequest")


@dataclass
class Site:
    """A server, and the conversations it had."""

    address: Address
    auth: Authenticator
    peers: list[Peer] = field(default_factory=list)
    over: asyncio.Queue[Peer] = field(default_factory=asyncio.Queue)

    @property
    def url(self) -> str:
        return f"{self.address.url}/rpc"

    @property
    def websocket_url(self) -> str:
        return f"{self.address.websocket_url}/rpc"


@asynccontextmanager
async def site(methods: Methods | None = None) -> AsyncIterator[Site]:
    """Automation at /rpc by every way of HTTP, and a page at /."""
    found: list[Site] = []

    async def converse(channel: Channel) -> None:
        async with Peer(channel, DIALECT, methods) as peer:
            found[0].peers.append(peer)
            await peer.closed()
        found[0].over.put_nowait(peer)

    async with serving(converse) as here:
        found.append(here)
        yield here


@asynccontextmanager
async def serving(converse: Callable[[Channel], Any]) -> AsyncIterator[Site]:
    """The same, with conversations of the test's own."""

    async def page(request: Any) -> PlainTextResponse:
        return PlainTextResponse("the page")

    app = Starlette(routes=[*http.routes({"automation": converse}), Route("/", page)])
    auth = Authenticator(TOKEN)
    async with listen(app, auth=auth) as address:
        yield Site(address, auth)


class Ear:
    """Opens a channel and keeps what comes, in order."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.heard: deque[bytes] = deque()
        self.ends: list[str] = []
        self._news = asyncio.Event()
        channel.open(self)

    def received(self, events: list[Event]) -> None:
        assert not self.ends, "nothing comes after the end"
        self.heard += [event.body for event in events if isinstance(event, Frame)]
        self._news.set()

    def finished(self) -> None:
        self.heard.append(b"(finished)")
        self._news.set()

    def lost(self, why: str) -> None:
        self.ends.append(why)
        self._news.set()

    async def hear(self) -> bytes:
        await self._until(lambda: self.heard)
        return self.heard.popleft()

    async def end(self) -> str:
        """Why it ended; checks that it ended once."""
        await self._until(lambda: self.ends)
        (why,) = self.ends
        return why

    async def _until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def closing(channel: Channel) -> AsyncIterator[Ear]:
    ear = Ear(channel)
    try:
        yield ear
    finally:
        await channel.close()


@asynccontextmanager
async def running(*command: str) -> AsyncIterator[Process]:
    """A program whose output is read, and which is gone at the end."""
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def output(*command: str, body: bytes | None = None) -> str:
    async with running(*command) as process:
        out, error = await process.communicate(body)
        assert process.returncode == 0, error.decode()
        return out.decode()
