"""A program that serves a page through its terminal while it prints, gets keys, stops and exits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING

import pytest

from htty.far_ends import Shown
from telex.htty.errors import StreamReset
from telex.htty.h2.http2_connection import Http2Connection
from telex.htty.h2.http2_state import Http2Side
from telex.htty.tools.command_stream import CommandStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

APP = """
import asyncio, sys, threading
from telex import htty

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            print(message["type"], flush=True)
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["path"] == "/live":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"now", "more_body": True})
        await asyncio.Event().wait()
    if scope["path"] == "/fails":
        raise RuntimeError("as it should")
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body or b"a page"})

def typed(data):
    print("typed", data, flush=True)
"""
SERVE = APP + "print(asyncio.run(htty.serve(app, keys=typed)).sentence)"
RUN = APP + "print(htty.run(app, keys=typed).sentence)"
TWICE = (
    APP
    + """
for _ in range(2):
    htty.run(app)
    print("between", flush=True)
"""
)
CHATTERING = (
    APP
    + """
stop = threading.Event()
def chatter():
    while not stop.is_set():
        print("chatter " * 50)
thread = threading.Thread(target=chatter)
thread.start()
try:
    htty.run(app)
finally:
    stop.set()
    thread.join()
"""
)

Headers = list[tuple[bytes, bytes]]


def asked(path: str, method: str = "GET") -> Headers:
    fields = {":method": method, ":scheme": "http", ":authority": "page", ":path": path}
    return [(name.encode(), value.encode()) for name, value in fields.items()]


@contextlib.asynccontextmanager
async def visiting(program: str) -> AsyncIterator[tuple[Http2Connection, CommandStream, Shown]]:
    """Run a Python program on a terminal that shows pages, with an HTTP/2 client."""
    shown = Shown()
    argv = [sys.executable, "-u", "-c", program]
    async with CommandStream(argv, text=shown.add) as stream:
        assert await stream.announced(), shown.text
        async with connected(stream) as http:
            yield http, stream, shown


@contextlib.asynccontextmanager
async def connected(stream: CommandStream) -> AsyncIterator[Http2Connection]:
    http = Http2Connection(stream, Http2Side.CLIENT)
    running = asyncio.create_task(http.run())
    try:
        await http.ready()
        yield http
    finally:
        running.cancel()
        await asyncio.wait({running})


async def got(http: Http2Connection, path: str = "/", body: bytes = b"") -> tuple[bytes, bytes]:
    http_stream = await http.request(asked(path, "POST" if body else "GET"), end=not body)
    sending = asyncio.create_task(http_stream.write(body, end=True)) if body else None
    status = dict(await http_stream.answer())[b":status"]
    whole = b""
    while data := await http_stream.read():
        whole += data
    if sending is not None:
        await sending
    return status, whole


@pytest.mark.parametrize("program", [SERVE, RUN], ids=["serve", "run"])
async def test_an_app_is_served_with_startup_and_shutdown(program: str) -> None:
    async with visiting(program) as (http, stream, shown):
        assert await got(http) == (b"200", b"a page")
        await shown.sees("lifespan.startup")
        http.close("enough")
        assert (await http.over).graceful
        await shown.sees("lifespan.shutdown")
        await asyncio.wait_for(stream.pty.child.wait(), 10)
        assert "HTTY" not in shown.text


async def test_typed_keys_reach_the_program_while_requests_do() -> None:
    async with visiting(SERVE) as (http, stream, shown):
        stream.pty.write(b"ab\r")
        await shown.sees("typed b'ab\\r'")
        assert await got(http) == (b"200", b"a page")


async def test_large_bodies_go_both_ways_while_the_program_prints() -> None:
    body = os.urandom(1_000_000)
    async with visiting(CHATTERING) as (http, stream, shown):
        assert await got(http, body=body) == (b"200", body)
        assert not stream.faults
        whole = shown.text[: shown.text.rindex("\n")].replace("lifespan.startup", "")
        assert set(whole.split()) == {"chatter"}


async def test_a_failing_app_prints_its_error_and_continues_to_serve() -> None:
    async with visiting(SERVE) as (http, _, shown):
        assert (await got(http, "/fails"))[0] == b"500"
        await shown.sees("as it should")
        assert await got(http) == (b"200", b"a page")


@pytest.mark.parametrize(
    ("program", "says"), [(SERVE, "KeyboardInterrupt"), (RUN, "it was interrupted")]
)
async def test_ctrl_c_interrupts_the_program_which_sends_goaway(program: str, says: str) -> None:
    async with visiting(program) as (http, stream, shown):
        stream.pty.write(b"\x03")
        ended = await asyncio.wait_for(http.over, 60)
        assert ended.code == 0, ended
        await asyncio.wait_for(stream.pty.child.wait(), 10)
        await shown.sees(says)
        assert ("Traceback" in shown.text) == (program is SERVE)
        assert stream.pty.line_settings().echo, "the terminal is as it was"


async def test_ctrl_c_ends_live_updates_and_the_connection_gracefully() -> None:
    async with visiting(SERVE) as (http, stream, _):
        live = await http.request(asked("/live"), end=True)
        assert await live.read() == b"now"
        stream.pty.write(b"\x03")
        with pytest.raises(StreamReset):
            await live.read()
        ended = await asyncio.wait_for(http.over, 60)
        assert (ended.graceful, ended.code) == (True, 0), ended


async def test_a_second_session_follows_on_the_same_terminal() -> None:
    async with visiting(TWICE) as (http, _, shown):
        assert await got(http) == (b"200", b"a page")
        http.close()
        await shown.sees("between")


async def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_continues_the_page(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "served.py").write_text(SERVE)
    shown = Shown()
    argv = [program("bash"), "--norc", "--noediting", "-i"]
    async with CommandStream(argv, text=shown.add) as stream:
        stream.pty.write(f"{sys.executable} -u {tmp_path}/served.py\n".encode())
        assert await stream.announced()
        async with connected(stream) as http:
            assert await got(http) == (b"200", b"a page")
            stream.pty.write(b"\x1a")
            await shown.sees("Stopped")
            assert stream.pty.line_settings().echo
            stream.pty.write(b"echo $((6*7)) is what; fg\n")
            await shown.sees("42 is what")
            async with asyncio.timeout(60):
                while stream.pty.line_settings().echo:
                    await asyncio.sleep(0.01)
            assert await got(http) == (b"200", b"a page")
            stream.pty.write(b"k")
            await shown.sees("typed b'k'")
