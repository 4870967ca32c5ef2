"""Every transport, each as a way to link a client peer with a server: the axis of the contract."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import http_client
import web
from telex.rpc.channel import Channel
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.memory import memory_channels
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports import stdio, unix, websocket
from telex.transports.channels import LSP, NDJSON, FramedChannel, Framing

DIALECT = JsonRpc(batches=True, cancel_method="$/cancelRequest")


class Server:
    """Serves each channel it is given with a peer, and can say goodbye to all of them."""

    def __init__(self, methods: Methods) -> None:
        self._methods = methods
        self.peers: list[Peer] = []

    def serve(self, channel: Channel) -> Peer:
        peer = Peer(channel, DIALECT, self._methods)
        self.peers.append(peer)
        return peer

    async def close(self) -> None:
        await asyncio.gather(*(peer.close() for peer in self.peers))


Opening = Callable[[Server, Path], AbstractAsyncContextManager[Channel]]


@asynccontextmanager
async def memory(server: Server, directory: Path) -> AsyncIterator[Channel]:
    ours, theirs = memory_channels()
    server.serve(theirs)
    yield ours


def over_unix(framing: Framing) -> Opening:
    @asynccontextmanager
    async def opened(server: Server, directory: Path) -> AsyncIterator[Channel]:
        path = directory / "t.sock"
        async with unix.listen(path, server.serve, framing):
            yield await unix.connect(path, framing)

    return opened


def over_stdio(framing: Framing) -> Opening:
    """Two pipes, as between a program and its child's standard streams."""

    @asynccontextmanager
    async def opened(server: Server, directory: Path) -> AsyncIterator[Channel]:
        to_server, to_client = os.pipe(), os.pipe()
        client, served = FramedChannel(framing), FramedChannel(framing)
        await stdio.attach(client, to_client[0], to_server[1])
        await stdio.attach(served, to_server[0], to_client[1])
        server.serve(served)
        yield client

    return opened


def over_the_web(connect: Callable[[web.Site], Awaitable[Channel]]) -> Opening:
    """Over the network, in one of its ways."""

    @asynccontextmanager
    async def opened(server: Server, directory: Path) -> AsyncIterator[Channel]:
        async def converse(channel: Channel) -> None:
            await server.serve(channel).closed()

        async with web.serving(converse) as site:
            yield await connect(site)

    return opened


@dataclass(frozen=True, slots=True)
class Transport:
    name: str
    open: Opening
    duplex: bool = True
    """Whether the server may speak first."""

    def __str__(self) -> str:
        return self.name

    @asynccontextmanager
    async def link(
        self, theirs: Methods, directory: Path, ours: Methods | None = None
    ) -> AsyncIterator[tuple[Peer, Server]]:
        """A client peer, and the server it talks to."""
        server = Server(theirs)
        async with self.open(server, directory) as channel, Peer(channel, DIALECT, ours) as peer:
            try:
                yield peer, server
            finally:
                await peer.close()
                await server.close()


TRANSPORTS = [
    Transport("memory", memory),
    Transport("unix, ndjson", over_unix(NDJSON)),
    Transport("unix, lsp", over_unix(LSP)),
    Transport("stdio, ndjson", over_stdio(NDJSON)),
    Transport("stdio, lsp", over_stdio(LSP)),
    Transport(
        "websocket",
        over_the_web(lambda site: websocket.connect(site.websocket_url, web.TOKEN)),
    ),
    Transport(
        "http, events",
        over_the_web(lambda site: http_client.connect(site.url, web.TOKEN, events=True)),
    ),
    Transport(
        "http, one by one",
        over_the_web(lambda site: http_client.connect(site.url, web.TOKEN)),
        duplex=False,
    ),
]
