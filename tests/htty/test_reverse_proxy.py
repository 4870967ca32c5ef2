"""Requests forwarded to a real HTTP/1.1 server, over TCP and over a Unix socket."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from htty.served import Client, served, whole
from telex.htty.errors import NoUpstream, StreamReset
from telex.htty.h2.http2_websocket import Side, WebSocketClose, WebSocketStream
from telex.htty.reverse_proxy import ReverseProxy, Upstream
from telex.wire import limits


@asynccontextmanager
async def server(app: Any, path: Path | None = None) -> AsyncIterator[str]:
    """Run a web server in this loop. Yield its address, in the form of `--to`."""
    listening = socket.socket(socket.AF_INET if path is None else socket.AF_UNIX)
    listening.bind(("127.0.0.1", 0) if path is None else str(path))
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    web = uvicorn.Server(config)
    running = asyncio.create_task(web._serve([listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}" if path is None else f"unix:{path}"
    finally:
        web.should_exit = True
        await running


@asynccontextmanager
async def behind(app: Any, path: Path | None = None) -> AsyncIterator[Client]:
    async with server(app, path) as to, served(ReverseProxy(to)) as client:
        yield client


async def show(request: Request) -> Response:
    return JSONResponse(
        {
            "target": f"{request.scope['raw_path'].decode()}?{request.url.query}",
            "headers": {k.decode(): v.decode() for k, v in request.headers.raw},
            "method": request.method,
            "body": (await request.body()).decode(),
        }
    )


SHOW = Starlette(routes=[Route("/{rest:path}", show, methods=["GET", "POST", "PUT"])])


@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
async def test_a_request_arrives_as_one_for_the_server_itself(tmp_path: Path, unix: bool) -> None:
    path = tmp_path / "app.sock" if unix else None
    async with behind(SHOW, path) as client:
        headers = [
            *((b"accept", b"x/y"), (b"te", b"trailers"), (b"cookie", b"a=1"), (b"cookie", b"b=2")),
            *((b"origin", b"http://make-1.localhost:8080"), (b"user-agent", b"me")),
            (b"referer", b"http://make-1.localhost:8080/page"),
        ]
        answer = await client.get("/a%2Fb%20c/?q=%C3%A9&q", headers=headers)
    seen = json.loads(answer.body)
    assert seen["target"] == "/a%2Fb%20c/?q=%C3%A9&q"
    got = seen["headers"]
    own = "localhost" if unix else got["host"]
    assert got["host"] == own
    assert unix or own.startswith("127.0.0.1:")
    assert got["origin"] == f"http://{own}"
    assert got["referer"] == f"http://{own}/page"
    assert got["cookie"] == "a=1; b=2"
    assert got["x-forwarded-host"] == "make-1.localhost:8080"
    assert (got["accept"], got["user-agent"]) == ("x/y", "me")
    assert set(got) == {
        *("host", "origin", "referer", "cookie", "x-forwarded-host", "accept", "user-agent"),
    }


async def test_bodies_with_and_without_a_length_arrive() -> None:
    async with behind(SHOW) as client:
        for headers in ([], [(b"content-length", b"5")]):
            answer = await client.get("/", "POST", body=b"hello", headers=headers)
            assert b'"body":"hello"' in answer.body
            framing = b"content-length" if headers else b"transfer-encoding"
            assert framing in answer.body
        assert b"transfer-encoding" not in (await client.get("/", "POST", body=b"")).body


async def test_large_bodies_go_through_both_ways(counted: Callable[[int, int], int]) -> None:
    size = counted(10, 200) * limits.MIB
    piece = bytes(range(256)) * 256

    async def hashing(request: Request) -> Response:
        digest = hashlib.sha256()
        async for data in request.stream():
            digest.update(data)

        async def back() -> AsyncIterator[bytes]:
            for _ in range(size // len(piece)):
                yield piece

        return StreamingResponse(back(), headers={"x-digest": digest.hexdigest()})

    async with behind(Starlette(routes=[Route("/", hashing, methods=["POST"])])) as client:
        exchange = await client.ask("/", "POST", end=False)
        wanted, back = hashlib.sha256(), hashlib.sha256()
        for _ in range(size // len(piece)):
            await exchange.write(piece)
            wanted.update(piece)
        await exchange.write(b"", end=True)
        headers = await exchange.answer()
        while data := await exchange.read():
            back.update(data)
    assert (b"x-digest", wanted.hexdigest().encode()) in headers
    assert back.digest() == wanted.digest()


async def test_redirects_and_cookies_of_the_server_become_the_pages_own() -> None:
    async def app(request: Request) -> Response:
        to = request.query_params["to"].replace("SELF", request.headers["host"])
        answer = RedirectResponse(to)
        answer.headers["set-cookie"] = "a=1; Domain=127.0.0.1; Path=/"
        answer.headers["connection"] = "keep-alive"
        return answer

    async with behind(Starlette(routes=[Route("/", app)])) as client:

        async def location(to: str) -> str:
            answer = await client.get(f"/?to={to}")
            assert answer.status == 307
            assert answer["set-cookie"] == "a=1; Path=/"
            assert answer["connection"] == ""
            return answer["location"]

        assert await location("http://SELF/x/?y") == "/x/?y"
        assert await location("http://SELF") == "/"
        assert await location("http://SELF//evil.example/") == "/evil.example/"
        assert await location("/x") == "/x"
        assert await location("https://SELF/x") != "/x"
        assert await location("http://example.com/x") == "http://example.com/x"


async def test_events_arrive_when_they_are_sent_and_a_closed_tab_ends_them() -> None:
    go, over = asyncio.Event(), asyncio.Event()

    async def events() -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await go.wait()
            yield b"data: 2\n\n"
            await asyncio.Event().wait()
        finally:
            over.set()

    async def stream(request: Request) -> Response:
        return StreamingResponse(events(), media_type="text/event-stream")

    async with behind(Starlette(routes=[Route("/", stream)])) as client:
        exchange = await client.ask("/")
        assert await exchange.read() == b"data: 1\n\n"
        go.set()
        assert await exchange.read() == b"data: 2\n\n"
        exchange.reset()
        await over.wait()


async def test_a_client_that_disconnects_before_the_response_cancels_its_request() -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await receive()
            asked.set()
            assert (await receive())["type"] == "http.disconnect"
            left.set()

    async with behind(app) as client:
        exchange = await client.ask("/")
        await asked.wait()
        exchange.reset()
        await left.wait()


async def test_a_missing_server_is_a_502_with_advice(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        for to in (f"http://127.0.0.1:{port}", f"unix:{tmp_path}/no<thing>"):
            async with served(ReverseProxy(to)) as client:
                answer = await client.get("/")
                assert answer.status == 502
                shown = to.replace("<", "&lt;").replace(">", "&gt;")
                assert shown in answer.body.decode()
                assert "refresh" in answer.body.decode()
                exchange, _ = await client.dial("/")
                assert (await whole(exchange)).status == 502


async def test_a_response_with_two_lengths_is_a_502() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        both = b"Content-Length: 3\r\nTransfer-Encoding: chunked"
        writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n2\r\nhi\r\n0\r\n\r\n" % both)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as upstream:
        port = upstream.sockets[0].getsockname()[1]
        async with served(ReverseProxy(f"http://127.0.0.1:{port}")) as client:
            reply = await client.get("/")
            assert reply.status == 502
            assert b"both Content-Length and Transfer-Encoding" in reply.body


async def test_a_server_that_disconnects_before_its_response_is_a_502() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.close()

    listening = await asyncio.start_server(leave, "127.0.0.1")
    port = listening.sockets[0].getsockname()[1]
    async with listening, served(ReverseProxy(f"http://127.0.0.1:{port}")) as client:
        assert (await client.get("/")).status == 502


async def test_a_server_that_does_not_respond_is_a_504_but_an_upload_may_be_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_UPSTREAM_SECONDS", 0.2)

    async def app(request: Request) -> Response:
        await request.body()
        if request.method == "GET":
            await asyncio.sleep(20)
        return PlainTextResponse("late")

    routes = [Route("/", app, methods=["GET", "POST"])]
    async with behind(Starlette(routes=routes)) as client:
        assert (await client.get("/")).status == 504
        exchange = await client.ask("/", "POST", end=False)
        await exchange.write(b"x")
        await asyncio.sleep(0.3)
        await exchange.write(b"x", end=True)
        assert (await whole(exchange)).body == b"late"


async def test_an_interrupted_response_is_a_reset_and_not_a_normal_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(half, "127.0.0.1")
    port = listening.sockets[0].getsockname()[1]
    async with listening, served(ReverseProxy(f"http://127.0.0.1:{port}")) as client:
        with pytest.raises(StreamReset):
            await client.get("/")


async def echo(websocket: WebSocket) -> None:
    await websocket.accept(subprotocol="two", headers=[(b"set-cookie", b"a=1")])
    await websocket.send_json({k.decode(): v.decode() for k, v in websocket.headers.raw})
    try:
        while True:
            message = await websocket.receive_text()
            if message == "close":
                await websocket.close(4002, "as you wish")
                return
            await websocket.send_text(message)
    except WebSocketDisconnect as left:
        websocket.app.state.left.put_nowait((left.code, left.reason))


async def refuse(websocket: WebSocket) -> None:
    await websocket.send_denial_response(PlainTextResponse("no", 401))


@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
async def test_websockets_are_forwarded(tmp_path: Path, unix: bool) -> None:
    app = Starlette(routes=[WebSocketRoute("/ws", echo), WebSocketRoute("/no", refuse)])
    app.state.left = asyncio.Queue()
    async with behind(app, tmp_path / "app.sock" if unix else None) as client:
        headers = [
            *((b"sec-websocket-protocol", b"one, two"), (b"cookie", b"b=2")),
            (b"origin", b"http://make-1.localhost:8080"),
        ]
        exchange, answer = await client.dial("/ws?x", headers)
        assert (answer.status, answer["sec-websocket-protocol"]) == (200, "two")
        assert answer["set-cookie"] == "a=1"
        wire = WebSocketStream(exchange, Side.CLIENT)
        seen = json.loads(str(await wire.receive()))
        assert seen["cookie"] == "b=2"
        assert seen["origin"] == f"http://{seen['host']}"
        for text in ("grüße", "x" * 200_000):
            await wire.send(text)
            assert await wire.receive() == text
        await wire.send("close")
        assert await wire.receive() == WebSocketClose(4002, "as you wish")

        exchange, _ = await client.dial("/ws", headers)
        wire = WebSocketStream(exchange, Side.CLIENT)
        await wire.receive()
        await wire.close(4003, "bye")
        assert await app.state.left.get() == (4003, "bye")

        exchange, _ = await client.dial("/no")
        refused = await whole(exchange)
        assert (refused.status, refused.body) == (401, b"no")


async def test_no_target_leads_to_another_server() -> None:
    hits = []

    async def other(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hits.append(1)
        writer.close()

    async def go_there(websocket: WebSocket) -> None:
        there = {"location": f"ws://127.0.0.1:{port}/x"}
        await websocket.send_denial_response(Response(status_code=302, headers=there))

    elsewhere = await asyncio.start_server(other, "127.0.0.1", 0)
    port = elsewhere.sockets[0].getsockname()[1]
    app = Starlette(routes=[WebSocketRoute("/go", go_there)])
    async with elsewhere, behind(app) as client:
        for target in (f"@127.0.0.1:{port}/x", f":x@127.0.0.1:{port}/", f"http://127.0.0.1:{port}"):
            assert (await client.dial(target))[1].status == 400
            assert (await client.get(target)).status == 400
        assert (await client.dial("/go#x"))[1].status == 400
        _, answer = await client.dial("/go")
        assert (answer.status, answer["location"]) == (302, f"ws://127.0.0.1:{port}/x")
        assert (await client.get("*", "OPTIONS")).status != 400
    assert not hits


@pytest.mark.parametrize(
    "to",
    [
        *("", "unix:", "ftp://x", "https://x", "http://", "http://x:99999", "x:80"),
        *("http://x/path", "http://x?q", "127.0.0.1:3000"),
    ],
)
def test_an_invalid_server_address_is_refused_with_a_message(to: str) -> None:
    with pytest.raises(NoUpstream, match=r"."):
        Upstream.parse(to)


def test_a_server_is_printed_as_it_was_given() -> None:
    assert Upstream.parse("http://[::1]:3000/").authority == "[::1]:3000"
    assert Upstream.parse("http://localhost").authority == "localhost"
    assert Upstream.parse("http://localhost:80").authority == "localhost"
    assert str(Upstream.parse("unix:/run/x.sock")) == "unix:/run/x.sock"
