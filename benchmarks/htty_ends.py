"""Both ends of what `htty` measures, as programs: `python -m benchmarks.htty_ends WHAT`.

The app is as small as one can be. `serve` and `bridge` are the ends of a terminal as `telex htty`
has them; with `raw`, the same code without chunks. `tcp` serves the app on a port, for `ssh -L`.
"""

from __future__ import annotations

import asyncio
import sys
import tty
from types import ModuleType
from typing import TYPE_CHECKING, Any

from telex.cli import event_loop
from telex.htty import tty_stream
from telex.htty.asgi import AsgiServer
from telex.htty.chunk_stream import ChunkReceiver
from telex.htty.tools import command_stream
from telex.htty.tools.tcp_bridge import Bridge, TcpStream
from telex.htty.tty_stream import TtyStream, open_stream
from telex.wire import htty_chunk
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault

if TYPE_CHECKING:
    from telex.wire.events import Event

LARGE = 10_000_000
PIECE = bytes(range(256)) * 256
SMALL = b"hello, world"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """`/large` is 10 MB, everything else a few words."""
    if scope["type"] != "http":
        return
    large = scope["path"] == "/large"
    size = LARGE if large else len(SMALL)
    headers = [(b"content-length", b"%d" % size), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    while large and size > len(PIECE):
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        size -= len(PIECE)
    body = PIECE[:size] if large else SMALL
    await send({"type": "http.response.body", "body": body})


class RawDemux(Demux):
    """Everything is for the page."""

    def feed(self, data: bytes) -> list[Event]:
        return [Claimed(htty_chunk.CHUNK, data, 0)] if data else []


class RawReceiver(ChunkReceiver):
    def take(self, event: Claimed | Fault) -> bytes | None:
        return event.body if isinstance(event, Claimed) else None


def without_chunks() -> None:
    """The same code on both ends, and the bytes as they are."""
    _replace(htty_chunk, encode=lambda data, size=0: data)
    for module in (tty_stream, command_stream):
        _replace(module, Demux=RawDemux, ChunkReceiver=RawReceiver)


def _replace(module: ModuleType, **stand_ins: object) -> None:
    assert vars(module).keys() >= stand_ins.keys(), f"renamed in {module.__name__}: {stand_ins}"
    vars(module).update(stand_ins)


async def serve(raw: bool) -> None:
    async with open_stream() as stream:
        assert isinstance(stream, TtyStream)
        if raw:
            tty.setraw(0)
        await AsgiServer(app).serve(stream)


async def serve_tcp() -> None:
    tasks: set[asyncio.Task[Any]] = set()

    def opened(stream: TcpStream) -> None:
        tasks.add(asyncio.create_task(AsgiServer(app).serve(stream)))

    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: TcpStream(opened), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


async def bridged(*what: str) -> None:
    argv = [sys.executable, "-m", "benchmarks.htty_ends", *what]
    drop: Any = lambda number, data: None  # noqa: E731
    async with Bridge(argv, on_end=drop, text=drop) as bridge:
        print(bridge.port, flush=True)
        await asyncio.Event().wait()


def main(what: str) -> None:
    if what.endswith("raw"):
        without_chunks()
    match what:
        case "serve" | "serve-raw":
            event_loop.run(serve(what.endswith("raw")))
        case "bridge" | "bridge-raw":
            event_loop.run(bridged(what.replace("bridge", "serve")))
        case "tcp":
            event_loop.run(serve_tcp())


if __name__ == "__main__":
    main(sys.argv[1])
