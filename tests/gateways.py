"""A gateway with pages for the tests: programs over memory, and visitors over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from htty.memory_stream import memory_streams
from telex.htty.errors import ConnectionOver, StreamReset
from telex.htty.gateway.gateway import Gateway
from telex.htty.gateway.pages import Page
from telex.htty.h2.header_fields import Headers
from telex.htty.h2.http2_connection import Http2Connection
from telex.htty.h2.http2_state import Http2Side
from telex.htty.h2.http_stream import HttpStream

Serve = Callable[[HttpStream], Awaitable[None]]


@dataclass
class Program:
    """What serves a page, and what it saw."""

    http: Http2Connection
    seen: list[HttpStream] = field(default_factory=list)
    hang_up: Callable[[], None] = lambda: None
    """As when the program is killed."""

    def headers(self, number: int = -1) -> dict[bytes, bytes]:
        return dict(self.seen[number].headers)


@asynccontextmanager
async def served(page: Page, serve: Serve) -> AsyncIterator[Program]:
    """A program that serves the page until the end of the block."""
    near, far = memory_streams()
    tasks: set[asyncio.Task[None]] = set()

    async def handle(http_stream: HttpStream) -> None:
        with suppress(StreamReset, ConnectionOver):  # the visitor left
            await serve(http_stream)

    def opened(http_stream: HttpStream) -> None:
        program.seen.append(http_stream)
        task = asyncio.create_task(handle(http_stream))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    program = Program(Http2Connection(far, Http2Side.SERVER, opened=opened), hang_up=far.close)
    client = Http2Connection(near, Http2Side.CLIENT)
    async with asyncio.TaskGroup() as running:
        running.create_task(program.http.run())
        running.create_task(client.run())
        await client.ready()
        page.http = client
        try:
            yield program
        finally:
            page.http = None
            near.close()
            for task in list(tasks):
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)


@asynccontextmanager
async def gated(serve: Serve, *, name: str = "demo-1") -> AsyncIterator[Stage]:
    """A gateway, one page and its program, and a browser that was let in."""
    page = Page(name, "demo --all")
    async with Gateway() as gateway, served(page, serve) as program:
        gateway.add(page)
        async with visiting(gateway, page) as browser:
            yield Stage(gateway, page, program, browser)


@dataclass
class Stage:
    gateway: Gateway
    page: Page
    program: Program
    browser: httpx.AsyncClient

    @property
    def host(self) -> str:
        return f"{self.page.name}.localhost:{self.gateway.port}"

    @property
    def cookie(self) -> str:
        return self.browser.headers["cookie"]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.gateway.port)

    def get(self, path: str, *lines: str) -> bytes:
        """A request to write to a socket, with a good cookie."""
        first = [f"GET {path} HTTP/1.1", f"Host: {self.host}", f"Cookie: {self.cookie}"]
        return "\r\n".join([*first, *lines, "", ""]).encode()


@asynccontextmanager
async def visiting(gateway: Gateway, page: Page) -> AsyncIterator[httpx.AsyncClient]:
    """A client that followed a link, as a browser does."""
    host = f"{page.name}.localhost:{gateway.port}"
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{gateway.port}",
        headers={"host": host, "origin": f"http://{host}"},
        timeout=60,
        trust_env=False,
    ) as client:
        link = urlsplit(gateway.url(page))
        assert link.netloc == host
        answer = await client.get(f"{link.path}?{link.query}")
        assert answer.status_code == 303, answer.text
        client.cookies.clear()
        client.headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        yield client


async def answer(
    http_stream: HttpStream, body: bytes = b"", *headers: tuple[bytes, bytes], status: int = 200
) -> None:
    """A whole response, of a program."""
    head: Headers = [(b":status", b"%d" % status), *headers]
    await http_stream.send_headers(head, end=not body)
    if body:
        await http_stream.write(body, end=True)


async def read_all(http_stream: HttpStream) -> bytes:
    body = bytearray()
    while data := await http_stream.read():
        body += data
    return bytes(body)
