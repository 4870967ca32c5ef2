"""WebSockets of ASGI apps by extended CONNECT, and the stream that both sides share."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.frames import Frame, Opcode

from htty.served import Client, served, whole
from telex.htty import limits
from telex.htty.errors import StreamReset, WebSocketOver
from telex.htty.h2.http2_websocket import Side, WebSocketClose, WebSocketStream
from telex.wire import limits as wire_limits

Message = dict[str, Any]


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    async for message in websocket.iter_text():
        await websocket.send_text(message)


async def echo_any(scope: Message, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        kind = "text" if message["bytes"] is None else "bytes"
        await send({"type": "websocket.send", kind: message[kind]})


class Noting:
    """An app that records its disconnect message."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[Message] = asyncio.Queue()

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            pass
        self.received.put_nowait(message)


async def raw(client: Client, *frames: Frame) -> WebSocketStream:
    """Connect a client that sends just these frames, valid or not."""
    http_stream, answer = await client.dial("/")
    assert answer.status == 200
    await http_stream.write(b"".join(frame.serialize(mask=True) for frame in frames))
    return WebSocketStream(http_stream, Side.CLIENT)


async def test_a_starlette_websocket_echoes() -> None:
    async with served(Starlette(routes=[WebSocketRoute("/ws", echo)])) as client:
        wire = await client.websocket("/ws")
        for text in ("hello", "", "grüße 🌍"):
            await wire.send(text)
            assert await wire.receive() == text
        await wire.close(1000, "bye")
        assert await wire.receive() == WebSocketClose(1000, "bye")


async def test_text_and_bytes_large_and_small_come_back_unchanged() -> None:
    async with served(echo_any, lifespan=False) as client:
        wire = await client.websocket("/")
        for message in (b"", b"\0\xff", "x" * 70_000, bytes(3 * wire_limits.MIB)):
            sending = asyncio.create_task(wire.send(message))
            assert await wire.receive() == message
            await sending
        await wire.close()


async def test_the_scope_names_path_scheme_and_subprotocols() -> None:
    seen: list[Message] = []

    async def app(scope: Message, receive: Any, send: Any) -> None:
        seen.append(scope)
        assert (await receive())["type"] == "websocket.connect"
        headers = [(b"X-Extra", b"1"), (b"Connection", b"upgrade")]
        await send({"type": "websocket.accept", "subprotocol": "two", "headers": headers})
        await send({"type": "websocket.close", "code": 4001, "reason": "that is all"})

    async with served(app, lifespan=False) as client:
        offered = [(b"sec-websocket-protocol", b"one, two"), (b"sec-websocket-protocol", b"three")]
        http_stream, answer = await client.dial("/chat?room=1", offered)
        assert answer["sec-websocket-protocol"] == "two"
        assert answer["x-extra"] == "1"
        assert answer["connection"] == ""
        wire = WebSocketStream(http_stream, Side.CLIENT)
        assert await wire.receive() == WebSocketClose(4001, "that is all")
    scope = seen[0]
    assert (scope["type"], scope["scheme"], scope["path"]) == ("websocket", "ws", "/chat")
    assert scope["query_string"] == b"room=1"
    assert scope["subprotocols"] == ["one", "two", "three"]
    assert "method" not in scope


async def test_a_refusal_is_a_403() -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.close"})

    async with served(app, lifespan=False) as client:
        http_stream, _ = await client.dial("/")
        assert (await whole(http_stream)).status == 403


async def test_a_refusal_may_be_any_response() -> None:
    async def refuse(websocket: WebSocket) -> None:
        await websocket.send_denial_response(PlainTextResponse("who are you?", 401))

    async with served(Starlette(routes=[WebSocketRoute("/", refuse)])) as client:
        http_stream, _ = await client.dial("/")
        answer = await whole(http_stream)
        assert (answer.status, answer.body) == (401, b"who are you?")


async def test_another_version_of_the_protocol_is_refused() -> None:
    async with served(echo_any, lifespan=False) as client:
        http_stream = await client.http.request(
            [
                *((b":method", b"CONNECT"), (b":protocol", b"websocket"), (b":scheme", b"http")),
                *((b":authority", b"x"), (b":path", b"/"), (b"sec-websocket-version", b"8")),
            ]
        )
        answer = await whole(http_stream)
        assert (answer.status, answer["sec-websocket-version"]) == (426, "13")


async def test_pings_are_answered_and_fragments_joined_around_them() -> None:
    async with served(echo_any, lifespan=False) as client:
        http_stream, _ = await client.dial("/")
        frames = [
            Frame(Opcode.TEXT, b"gr", fin=False),
            Frame(Opcode.CONT, "ü".encode()[:1], fin=False),
            Frame(Opcode.PING, b"there?"),
            Frame(Opcode.CONT, "ü".encode()[1:], fin=False),
            Frame(Opcode.CONT, "ße".encode()),
        ]
        data = b"".join(frame.serialize(mask=True) for frame in frames)
        for n in range(0, len(data), 3):
            await http_stream.write(data[n : n + 3])
        came = b""
        wanted = [Frame(Opcode.PONG, b"there?"), Frame(Opcode.TEXT, "grüße".encode())]
        while len(came) < sum(len(frame.serialize(mask=False)) for frame in wanted):
            came += await http_stream.read()
        assert came == b"".join(frame.serialize(mask=False) for frame in wanted)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        pytest.param([Frame(Opcode.TEXT, b"\xff")], 1007, id="text that is no UTF-8"),
        pytest.param(
            [Frame(Opcode.TEXT, b"\xc3", fin=False), Frame(Opcode.CONT, b"x")],
            1007,
            id="fragments that are no UTF-8",
        ),
        pytest.param([Frame(Opcode.CONT, b"x")], 1002, id="a continuation of nothing"),
    ],
)
async def test_a_client_that_violates_the_protocol_gets_the_code_for_it(
    frames: list[Frame], code: int
) -> None:
    app = Noting()
    async with served(app, lifespan=False) as client:
        wire = await raw(client, *frames)
        ended = await wire.receive()
        assert isinstance(ended, WebSocketClose)
        assert ended.code == code
        assert (await app.received.get())["code"] == code
        await wire.close()
        assert (await client.http.ping()) >= 0


async def test_messages_before_the_mistake_are_delivered() -> None:
    async with served(echo_any, lifespan=False) as client:
        wire = await raw(client, Frame(Opcode.TEXT, b"good"), Frame(Opcode.CONT, b"bad"))
        ended = await wire.receive()
        assert isinstance(ended, WebSocketClose)
        assert ended.code == 1002


async def test_a_message_that_is_too_large_is_refused_by_its_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_MESSAGE_BYTES", 1000)
    app = Noting()
    async with served(app, lifespan=False) as client:
        http_stream, _ = await client.dial("/")
        await http_stream.write(Frame(Opcode.BINARY, bytes(1001)).serialize(mask=True)[:14])
        wire = WebSocketStream(http_stream, Side.CLIENT)
        ended = await wire.receive()
        assert isinstance(ended, WebSocketClose)
        assert ended.code == 1009
        assert (await app.received.get())["code"] == 1009
        await wire.close()


async def test_fragments_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_MESSAGE_BYTES", 1000)
    async with served(Noting(), lifespan=False) as client:
        halves = [Frame(Opcode.BINARY, bytes(600), fin=False), Frame(Opcode.CONT, bytes(600))]
        wire = await raw(client, *halves)
        ended = await wire.receive()
        assert isinstance(ended, WebSocketClose)
        assert ended.code == 1009
        await wire.close()


async def test_the_clients_close_frame_reaches_the_app() -> None:
    app = Noting()
    async with served(app, lifespan=False) as client:
        for code, reason in ((1000, ""), (4321, "grüße"), (1005, "")):
            wire = await client.websocket("/")
            await wire.close(code, reason)
            received = await app.received.get()
            assert (received["code"], received["reason"]) == (code, reason)
            assert isinstance(await wire.receive(), WebSocketClose)


async def test_a_client_that_disconnects_without_a_close_frame_is_a_1006() -> None:
    app = Noting()
    async with served(app, lifespan=False) as client:
        wire = await client.websocket("/")
        await wire.close(1006)
        assert (await app.received.get())["code"] == 1006
        http_stream, _ = await client.dial("/")
        await http_stream.write(b"", end=True)
        assert (await app.received.get())["code"] == 1006


async def test_a_send_to_a_disconnected_client_is_an_oserror_for_the_app() -> None:
    failed = asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        assert (await receive())["type"] == "websocket.disconnect"
        try:
            await send({"type": "websocket.send", "text": "anybody?"})
        except OSError:
            failed.set()
            raise

    async with served(app, lifespan=False) as client:
        await (await client.websocket("/")).close()
        await failed.wait()


async def test_a_client_that_disconnects_is_not_logged_as_a_failure_of_the_app(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def listen(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.receive_text()

    async with served(Starlette(routes=[WebSocketRoute("/", listen)])) as client:
        await (await client.websocket("/")).close(1001)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_an_app_that_fails_closes_with_1011(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        if scope["path"] == "/open":
            await send({"type": "websocket.accept"})
        raise LookupError("no such room")

    async with served(app, lifespan=False) as client:
        assert await (await client.websocket("/open")).receive() == WebSocketClose(1011, "")
        http_stream, _ = await client.dial("/")
        assert (await whole(http_stream)).status == 500
    assert "no such room" in caplog.text


async def test_an_app_that_returns_closes_the_websocket() -> None:
    async def app(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})

    async with served(app, lifespan=False) as client:
        wire = await client.websocket("/")
        assert await wire.receive() == WebSocketClose(1000, "")
        assert await wire.receive() == WebSocketClose(1000, "")
        with pytest.raises(WebSocketOver):
            await wire.send("anybody?")


async def test_a_client_that_never_answers_a_close_frame_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_CLOSE_SECONDS", 0.1)

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})

    async with served(app, lifespan=False) as client:
        http_stream, _ = await client.dial("/")
        assert await http_stream.read() == Frame(Opcode.CLOSE, b"\x03\xe8").serialize(mask=False)
        with pytest.raises(StreamReset):
            await http_stream.read()


async def test_a_server_that_never_answers_a_close_frame_is_dropped_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_CLOSE_SECONDS", 0.1)
    over = asyncio.Event()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await over.wait()

    async with served(app, lifespan=False) as client:
        http_stream, _ = await client.dial("/")
        await WebSocketStream(http_stream, Side.CLIENT).close()
        with pytest.raises(StreamReset) as reset:
            await http_stream.read()
        assert reset.value.ours
        over.set()


async def test_a_slow_reader_blocks_the_app() -> None:
    sent = 0

    async def app(scope: Message, receive: Any, send: Any) -> None:
        nonlocal sent
        await receive()
        await send({"type": "websocket.accept"})
        for _ in range(64):
            await send({"type": "websocket.send", "bytes": bytes(64 * 1024)})
            sent += 64 * 1024

    async with served(app, lifespan=False) as client:
        wire = await client.websocket("/")
        assert isinstance(await wire.receive(), bytes)
        await asyncio.sleep(0.1)
        assert sent <= limits.HTTY_STREAM_WINDOW + 3 * limits.HTTY_UNSENT_BYTES
        for _ in range(63):
            assert await wire.receive() == bytes(64 * 1024)
        assert await wire.receive() == WebSocketClose(1000, "")


async def test_sends_of_several_tasks_do_not_mix() -> None:
    async with served(echo_any, lifespan=False) as client:
        wire = await client.websocket("/")
        messages = [bytes([n]) * 200_000 for n in range(8)]
        async with asyncio.TaskGroup() as group:
            for message in messages:
                group.create_task(wire.send(message))
            back = [await wire.receive() for _ in messages]
        assert sorted(back) == messages  # type: ignore[type-var]
        await wire.close()


async def test_a_reserved_close_code_raises_value_error() -> None:
    async with served(echo_any, lifespan=False) as client:
        wire = await client.websocket("/")
        with pytest.raises(ValueError, match="1015"):
            await wire.close(1015)
        await wire.close(1000, "ü" * 100)
        ended = await wire.receive()
        assert isinstance(ended, WebSocketClose)
        assert ended.reason == "ü" * 61
