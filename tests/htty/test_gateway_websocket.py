"""WebSockets through the gateway: a browser's on one side, an extended CONNECT on the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateways import Stage, answer, gated
from telex.htty import limits
from telex.htty.h2.http2_connection import Http2Connection
from telex.htty.h2.http2_websocket import Side, WebSocketClose, WebSocketStream
from telex.htty.h2.http_stream import HttpStream

OK = (b":status", b"200")


def dialled(stage: Stage, path: str = "/", **settings: Any) -> connect:
    settings.setdefault("origin", f"http://{stage.host}")
    headers = {"Cookie": f"mine=1; {stage.cookie}", **settings.pop("headers", {})}
    return connect(
        f"ws://{stage.host}{path}",
        host="127.0.0.1",
        additional_headers=headers,
        proxy=None,
        open_timeout=5,
        close_timeout=5,
        **settings,
    )


async def echo(http_stream: HttpStream) -> None:
    await http_stream.send_headers([OK])
    wire = WebSocketStream(http_stream, Side.SERVER)
    while not isinstance(message := await wire.receive(), WebSocketClose):
        await wire.send(message)


async def test_messages_are_forwarded_both_ways_unchanged() -> None:
    large = "ö" * limits.HTTY_STREAM_WINDOW
    messages: list[str | bytes] = ["hello", b"\x00\xff", "", b"", "日本", large, bytes(3_000_000)]
    async with gated(echo) as stage, dialled(stage, "/live?x=1", max_size=None) as socket:
        for message in messages:
            await socket.send(message)
            assert await socket.recv() == message
    seen = stage.program.headers()
    assert seen[b":method"] == b"CONNECT"
    assert seen[b":protocol"] == b"websocket"
    assert seen[b":path"] == b"/live?x=1"
    assert seen[b":authority"] == stage.host.encode()
    assert seen[b"cookie"] == b"mine=1"
    assert seen[b"sec-websocket-version"] == b"13"
    for name in (b"sec-websocket-key", b"sec-websocket-extensions", b"upgrade", b"connection"):
        assert name not in seen


async def test_the_program_chooses_a_subprotocol_and_sets_a_cookie() -> None:
    async def page(http_stream: HttpStream) -> None:
        assert dict(http_stream.headers)[b"sec-websocket-protocol"] == b"one, two"
        chosen = (b"sec-websocket-protocol", b"two")
        forged = (b"sec-websocket-accept", b"x")
        await http_stream.send_headers([OK, chosen, forged, (b"set-cookie", b"a=b")])
        await WebSocketStream(http_stream, Side.SERVER).receive()

    async with gated(page) as stage, dialled(stage, subprotocols=["one", "two"]) as socket:
        assert socket.subprotocol == "two"
        assert socket.response is not None
        assert socket.response.headers["set-cookie"] == "a=b"


async def test_a_subprotocol_that_was_not_offered_is_refused() -> None:
    async def page(http_stream: HttpStream) -> None:
        await http_stream.send_headers([OK, (b"sec-websocket-protocol", b"three")])
        await http_stream.gone.wait()

    async with gated(page) as stage:
        assert await refusal(stage, subprotocols=["one"]) == 502


@pytest.mark.parametrize(("code", "reason"), [(1000, "done"), (4001, "später"), (1005, "")])
async def test_the_browsers_close_frame_reaches_the_program(code: int, reason: str) -> None:
    received: asyncio.Future[WebSocketClose] = asyncio.get_running_loop().create_future()

    async def page(http_stream: HttpStream) -> None:
        await http_stream.send_headers([OK])
        close = await WebSocketStream(http_stream, Side.SERVER).receive()
        assert isinstance(close, WebSocketClose)
        received.set_result(close)

    async with gated(page) as stage, dialled(stage) as socket:
        if code == 1005:
            socket.protocol.send_close()
            socket.transport.write(b"".join(socket.protocol.data_to_send()))
        else:
            await socket.close(code, reason)
        assert await received == WebSocketClose(code, reason)


@pytest.mark.parametrize(("code", "reason"), [(1000, "done"), (4001, "später"), (1005, "")])
async def test_the_programs_close_frame_reaches_the_browser(code: int, reason: str) -> None:
    async def page(http_stream: HttpStream) -> None:
        await http_stream.send_headers([OK])
        wire = WebSocketStream(http_stream, Side.SERVER)
        await wire.send("last words")
        await wire.close(code, reason)

    async with gated(page) as stage, dialled(stage) as socket:
        assert await socket.recv() == "last words"
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (code, reason)


@pytest.mark.parametrize("how", ["killed", "reset", "removed"])
async def test_a_program_that_ends_without_a_close_frame_cuts_the_browser_off(how: str) -> None:
    async def page(http_stream: HttpStream) -> None:
        await http_stream.send_headers([OK])
        await WebSocketStream(http_stream, Side.SERVER).receive()
        match how:
            case "killed":
                stage.program.hang_up()
            case "reset":
                http_stream.reset()
            case _:
                stage.gateway.remove(stage.page)

    async with gated(page) as stage, dialled(stage) as socket:
        await socket.send("now")
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is None


async def test_a_browser_that_disconnects_frees_the_stream() -> None:
    async with gated(echo) as stage, dialled(stage) as socket:
        await socket.send("x")
        await socket.recv()
        socket.transport.abort()
        async with asyncio.timeout(60):
            await stage.program.seen[0].gone.wait()


async def refusal(stage: Stage, **settings: Any) -> int:
    with pytest.raises(InvalidStatus) as refused:
        async with dialled(stage, **settings):
            pass
    return refused.value.response.status_code


async def test_a_program_may_refuse() -> None:
    async def page(http_stream: HttpStream) -> None:
        await answer(http_stream, b"not here", (b"content-type", b"text/plain"), status=404)

    async with gated(page) as stage:
        assert await refusal(stage) == 404


async def test_a_program_without_websockets_is_a_501(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(Http2Connection, "extended_connect", False)  # as other servers have it
    async with gated(echo) as stage:
        assert await refusal(stage) == 501
        assert not stage.program.seen


async def test_a_page_without_a_program_is_a_503() -> None:
    async with gated(echo) as stage:
        stage.page.http = None
        assert await refusal(stage) == 503


async def test_a_program_that_never_answers_is_a_504(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("telex.htty.limits.HTTY_ANSWER_SECONDS", 0.1)

    async def page(http_stream: HttpStream) -> None:
        await http_stream.gone.wait()

    async with gated(page) as stage:
        assert await refusal(stage) == 504


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": None}, 403),
        ({"headers": {"Cookie": "none=1"}}, 401),
    ],
)
async def test_a_refused_request_never_reaches_the_program(
    change: dict[str, Any], status: int
) -> None:
    async with gated(echo) as stage:
        assert await refusal(stage, **change) == status
    assert not stage.program.seen


async def test_a_slow_program_blocks_a_browser_that_sends_endlessly() -> None:
    async def page(http_stream: HttpStream) -> None:
        await http_stream.send_headers([OK])
        await http_stream.gone.wait()

    sent = 0
    async with gated(page) as stage, dialled(stage) as socket:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                while True:
                    await socket.send(bytes(256 * 1024))
                    sent += 256 * 1024
        socket.transport.abort()
    assert sent < 16 * 1024 * 1024
