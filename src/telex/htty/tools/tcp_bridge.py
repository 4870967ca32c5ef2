"""A TCP port for test tools: each connection gets a command of its own, and HTTP/2 with it.

curl, nghttp and h2load do not support terminals. The bridge turns their bytes into chunks on a
terminal and back, unparsed: this tests the program at the other end, and the framing between. It is
not the gateway, which is for browsers: there is no token here, so it listens on loopback only.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from typing import TYPE_CHECKING, cast

from telex.htty import limits
from telex.htty.tools.command_stream import CommandStream
from telex.processes.spawn import StartFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from telex.htty.h2.http_stream import ByteStream


class NotLoopback(Exception):
    """The address can be reached by others, but the port has no authentication."""


class TcpStream(asyncio.Protocol):
    """A `ByteStream` over an accepted TCP connection."""

    def __init__(self, opened: Callable[[TcpStream], None]) -> None:
        self._opened = opened
        self._received: list[bytes] = []
        self._size = 0
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not `isinstance`: uvloop's transports are not subclasses of asyncio's.
        self._transport = transport = cast("asyncio.Transport", transport)
        transport.set_write_buffer_limits(limits.HTTY_UNSENT_BYTES)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._size += len(data)
        if self._size >= limits.HTTY_READ_BYTES:
            self._transport.pause_reading()
        self._more.set()

    def connection_lost(self, error: Exception | None) -> None:
        for event in (self.ended, self._more, self._room):
            event.set()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    async def read(self) -> bytes:
        while not self._received and not self.ended.is_set():
            self._more.clear()
            await self._more.wait()
        data = b"".join(self._received)
        self._received.clear()
        self._size = 0
        if not self._transport.is_closing():
            self._transport.resume_reading()
        return data

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drained(self) -> None:
        await self._room.wait()

    def close(self) -> None:
        self._transport.close()

    async def closed(self, seconds: float) -> None:
        """Close, and wait until the written bytes were sent; drop them after a timeout."""
        self.close()
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            self._transport.abort()
            await self.ended.wait()


class Bridge:
    """Listens inside its block: `async with Bridge(argv, on_end=…) as bridge`."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        on_end: Callable[[int, str], None],
        text: Callable[[int, bytes], None],
        host: str = "127.0.0.1",
        port: int = 0,
        eager: bool = False,
    ) -> None:
        """Create a bridge; entering it opens the port.

        Args:
            on_end: Called with the number of a connection and why it ended, as a sentence.
            text: Called with the number of a connection and its command's output outside of chunks.
        """
        if not _is_loopback(host):
            raise NotLoopback(
                f"{host} can be reached from elsewhere, and clients are not authenticated; "
                "listen on 127.0.0.1 or ::1"
            )
        self._argv, self._eager = argv, eager
        self._on_end, self._text = on_end, text
        self._host, self.port = host, port
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Bridge:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: TcpStream(self._connected), self._host, self.port
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    def _connected(self, tcp: TcpStream) -> None:
        self._count += 1
        task = asyncio.create_task(self._serve(tcp, self._count))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, tcp: TcpStream, number: int) -> None:
        try:
            if len(self._tasks) > limits.HTTY_BRIDGE_COMMANDS:
                why = f"refused: {limits.HTTY_BRIDGE_COMMANDS} commands already run"
            else:
                why = await self._with_command(tcp, number)
        except StartFailed as failed:
            why = str(failed)
        finally:
            await tcp.closed(limits.HTTY_CLOSE_SECONDS)
        self._on_end(number, why)

    async def _with_command(self, tcp: TcpStream, number: int) -> str:
        """Run a command for the connection. Return why it ended."""

        def text(data: bytes) -> None:
            self._text(number, data)

        async with CommandStream(self._argv, text=text, eager=self._eager) as command:
            if self._eager or await _first(command.announced(), tcp.ended.wait()):
                await _first(copy_bytes(tcp, command), copy_bytes(command, tcp))
            return command.why or "the client closed the connection"


async def copy_bytes(source: ByteStream, sink: ByteStream) -> bool:
    """Copy everything, at the pace of the slower stream. Returns False at the end."""
    while data := await source.read():
        sink.write(data)
        await sink.drained()
    return False


async def _first(one: Awaitable[bool], other: Awaitable[bool]) -> bool:
    """Run both until either is done. Returns the result of the first, if it was that one."""
    tasks = [asyncio.ensure_future(each) for each in (one, other)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].done() and bool(tasks[0].result())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
