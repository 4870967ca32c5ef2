"""WebSocket channels: authentication, messages, closing, and hostile peers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from msgspec import Struct
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed, InvalidStatus

from handlers import table
from telex.rpc import limits as rpc_limits
from telex.rpc.channel import Channel
from telex.rpc.handler_tasks import CallContext
from telex.rpc.peer import Peer
from telex.transports import auth, channels, web_server, websocket
from telex.transports.auth import AuthRequest
from telex.transports.errors import AccessDenied, CannotConnect, NoServer
from telex.wire import limits
from web import DIALECT, TOKEN, Ear, Site, closing, serving, site

BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Text(Struct):
    text: str = ""


def echo(params: Text) -> Text:
    return params


class Ends:
    """A server that opens each channel with an `Ear` and passes it to the test."""

    def __init__(self) -> None:
        self._ears: asyncio.Queue[Ear] = asyncio.Queue()
        self.site: Site

    async def converse(self, channel: Channel) -> None:
        async with closing(channel) as ear:
            self._ears.put_nowait(ear)
            while not ear.ends:
                await ear.end()

    async def ear(self) -> Ear:
        return await self._ears.get()


@asynccontextmanager
async def ends() -> AsyncIterator[Ends]:
    server = Ends()
    async with serving(server.converse) as server.site:
        yield server


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Ear, Ear]]:
    """Both ends of one WebSocket: ours, and the server's."""
    async with ends() as server:
        channel = await websocket.connect(server.site.websocket_url, TOKEN)
        async with closing(channel) as ours:
            yield ours, await server.ear()


@asynccontextmanager
async def foreign() -> AsyncIterator[tuple[ClientConnection, Ear]]:
    """Connect a foreign client, with the token; yield it and the server's end."""
    async with (
        ends() as server,
        dial(server.site.websocket_url, additional_headers=BEARER) as other,
    ):
        yield other, await server.ear()


async def test_both_sides_call_each_other() -> None:
    async def ask_back(params: Text, call: CallContext) -> str:
        answer: Text = await call.peer.call("echo", params, returns=Text)
        return answer.text

    async with site(table(ask_back=ask_back)) as here:
        channel = await websocket.connect(here.websocket_url, TOKEN)
        async with Peer(channel, DIALECT, table(echo=echo)) as peer:
            assert await peer.call("ask_back", Text("Ü✓🙂")) == "Ü✓🙂"


async def test_text_and_bytes_are_each_one_frame_both_ways() -> None:
    async with linked() as (ours, theirs):
        for frame in (b"{}", "Ü✓🙂".encode(), b"\xff\x00\xfe", b"", b"x" * 3_000_000):
            ours.channel.send(frame)
            assert await theirs.hear() == frame
            theirs.channel.send(frame)
            assert await ours.hear() == frame


async def test_utf8_frames_are_sent_as_text_and_others_as_binary() -> None:
    async with foreign() as (other, theirs):
        theirs.channel.send("Ü".encode())
        theirs.channel.send(b"\xff")
        assert [await other.recv(), await other.recv()] == ["Ü", b"\xff"]
        await other.send("Ü")
        await other.send(b"\xff")
        assert [await theirs.hear(), await theirs.hear()] == ["Ü".encode(), b"\xff"]


async def test_no_compression_is_agreed_on_even_if_it_is_offered() -> None:
    async with foreign() as (other, _):
        assert other.request is not None
        assert other.response is not None
        assert "permessage-deflate" in other.request.headers["Sec-WebSocket-Extensions"]
        assert "Sec-WebSocket-Extensions" not in other.response.headers


@pytest.fixture(autouse=True)
def _logs_no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [r for r in caplog.get_records("call") if r.levelno >= logging.ERROR]


# Authentication.


async def test_a_wrong_token_is_refused_in_the_handshake_with_the_reason() -> None:
    async with ends() as server:
        with pytest.raises(AccessDenied, match=r"401 \(That is not the token\.\)"):
            await websocket.connect(server.site.websocket_url, "wrong")
        with pytest.raises(InvalidStatus) as caught:
            await dial(server.site.websocket_url, origin="http://evil.example")  # type: ignore[arg-type]
        assert caught.value.response.status_code == 403
        assert caught.value.response.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_missing_server_and_an_invalid_address_are_reported() -> None:
    async with ends() as server:
        url = server.site.websocket_url
    with pytest.raises(NoServer, match="no server answers at"):
        await websocket.connect(url, TOKEN)
    with pytest.raises(CannotConnect, match="cannot be used"):
        await websocket.connect("http://127.0.0.1:1/rpc", TOKEN)


@pytest.mark.parametrize("as_text", [True, False])
async def test_a_page_sends_the_token_in_its_first_message(as_text: bool) -> None:
    async with site(table(echo=echo)) as here:
        origin: Any = here.address.url
        async with dial(here.websocket_url, origin=origin) as page:
            await page.send(f'{{"token":"{TOKEN}"}}'.encode(), text=as_text)
            await page.send('{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"x"}}')
            assert await page.recv() == '{"jsonrpc":"2.0","id":1,"result":{"text":"x"}}'
            await page.send("x" * 100_000)  # the limit of the first message no longer applies
            assert "-32700" in str(await page.recv())


@pytest.mark.parametrize(
    ("first", "code", "reason"),
    [
        ('{"token":"wrong"}', 4401, "that is not the token"),
        ("hello", 4401, 'the first message must be {"token": "…"}'),
        ("x" * 5000, 1009, ""),
    ],
)
async def test_any_other_first_message_closes_it(first: str, code: int, reason: str) -> None:
    async with ends() as server, dial(server.site.websocket_url) as stranger:
        await stranger.send(first)
        with pytest.raises(ConnectionClosed) as caught:
            await stranger.recv()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == code
        assert reason in caught.value.rcvd.reason


async def test_a_client_that_sends_no_token_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "TOKEN_SECONDS", 0.02)
    async with ends() as server, dial(server.site.websocket_url) as stranger:
        with pytest.raises(ConnectionClosed, match="4401"):
            await stranger.recv()


async def test_a_cookie_opens_it_from_our_own_page_only() -> None:
    async with site() as here:
        code = here.auth.new_code(asyncio.get_running_loop().time())
        verdict: Any = here.auth.authenticate(_link(here, code), asyncio.get_running_loop().time())
        cookie = {"Cookie": verdict.cookie.partition(";")[0]}
        origin: Any = here.address.url
        async with dial(here.websocket_url, additional_headers=cookie, origin=origin):
            pass
        with pytest.raises(InvalidStatus):
            await dial(here.websocket_url, additional_headers=cookie)


def _link(here: Site, code: str) -> Any:
    host = here.address.url.removeprefix("http://").encode()
    return AuthRequest("GET", b"/", f"code={code}".encode(), [(b"host", host)])


async def test_no_log_at_any_level_has_the_token(caplog: pytest.LogCaptureFixture) -> None:
    loggers = [logging.getLogger(name) for name in [*logging.root.manager.loggerDict, None]]
    levels = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.setLevel(1)
        logger.propagate = True
    try:
        async with ends() as server:
            url = f"{server.site.websocket_url}?token={TOKEN}"
            async with closing(await websocket.connect(url, TOKEN)):
                await server.ear()
            async with dial(url, logger=logging.Logger("quiet")) as page:
                await page.send(f'{{"token":"{TOKEN}"}}')
                await server.ear()
            async with dial(url, logger=logging.Logger("quiet")) as page:
                await page.send(f'{{"token":"{TOKEN}!"}}')
                with pytest.raises(ConnectionClosed):
                    await page.recv()
            with pytest.raises(AccessDenied):
                await websocket.connect(f"{url}&code={TOKEN}", f"{TOKEN}!")
    finally:
        for logger, level, propagate in levels:
            logger.level, logger.propagate = level, propagate
            logger.manager._clear_cache()
    assert "refused a websocket" in caplog.text
    assert TOKEN not in caplog.text


# Closing.


async def test_either_side_may_close_and_each_is_notified_once() -> None:
    async with linked() as (ours, theirs):
        ours.channel.send(b"last words")
        await ours.channel.close()
        assert await theirs.hear() == b"last words"
        assert await theirs.end() == "the WebSocket was closed (1000)"
        assert await ours.end() == "closed here"
        await ours.channel.close()
        ours.channel.send(b"too late")
        assert ours.channel.unsent == 0
    async with linked() as (ours, theirs):
        theirs.channel.send(b"last words")
        await theirs.channel.close()
        assert await ours.hear() == b"last words"
        assert await ours.end() == "the WebSocket was closed (1000)"
        assert await theirs.end() == "closed here"


async def test_both_may_close_at_once() -> None:
    async with linked() as (ours, theirs):
        await asyncio.gather(ours.channel.close(), theirs.channel.close())
        assert len(ours.ends) == len(theirs.ends) == 1


async def test_a_connection_that_breaks_is_lost_on_both_sides() -> None:
    async with linked() as (ours, theirs):
        channel: Any = ours.channel
        channel._pipe.abort()
        assert await ours.end() == "the WebSocket closed without a reason"
        assert await theirs.end() == "the WebSocket closed without a reason"


async def test_the_other_sides_reason_is_reported_without_its_control_characters() -> None:
    async with foreign() as (other, theirs):
        await other.close(4000, "bye\x1b[2J\r\n\u202e")
        assert await theirs.end() == "the WebSocket was closed (4000: bye?[2J???)"


async def test_the_server_ending_ends_its_conversations() -> None:
    async with ends() as server:
        channel = await websocket.connect(server.site.websocket_url, TOKEN)
        ours = Ear(channel)
        await server.ear()
    assert await ours.end() == "the WebSocket was closed (1012)"
    await channel.close()


@pytest.mark.parametrize("from_server", [False, True])
async def test_a_message_over_the_limit_closes_with_1009(from_server: bool) -> None:
    async with linked() as (ours, theirs):
        sender, other = (theirs, ours) if from_server else (ours, theirs)
        sender.channel.send(b"x" * limits.LINE_BYTES)
        assert len(await other.hear()) == limits.LINE_BYTES
        sender.channel.send(b"x" * (limits.LINE_BYTES + 1))
        assert "1009" in await other.end()
        assert await sender.end()
        assert not other.heard


# Hostile and broken peers.


class Raw:
    """A WebSocket client that reads only on demand, and sends arbitrary frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def frame(self, opcode: int, body: bytes = b"", fin: bool = True) -> None:
        assert len(body) < 126
        head = bytes([fin << 7 | opcode, 0x80 | len(body)])
        self.writer.write(head + b"\0\0\0\0" + body)


@asynccontextmanager
async def raw(here: Site) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", here.address.port, limit=4096)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(
        f"GET /rpc HTTP/1.1\r\nHost: 127.0.0.1:{here.address.port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def test_a_peer_that_does_not_read_blocks_us_and_is_then_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(web_server, "CLOSE_SECONDS", 1000.0)
    gone = _gone(monkeypatch)
    async with ends() as server, raw(server.site):
        theirs = await server.ear()
        sent = 0
        while theirs.channel.unsent <= rpc_limits.OUTBOUND_BYTES:
            theirs.channel.send(b"x" * 65_536)
            sent += 65_536
            await asyncio.sleep(0)
        assert sent < 16 * rpc_limits.OUTBOUND_BYTES  # the rest is in the kernel, and bounded too
        waiting = asyncio.create_task(theirs.channel.drained())
        await theirs.channel.close()
        await waiting
        assert await theirs.end() == "closed here"
        await gone.wait()


async def test_a_peer_that_does_not_read_our_close_frame_is_dropped_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "CLOSE_SECONDS", 0.05)
    gone = _gone(monkeypatch)
    async with ends() as server, raw(server.site):
        theirs = await server.ear()
        below = _transport_below(theirs.channel)
        while not below.get_write_buffer_size():
            theirs.channel.send(b"x" * 10_000)
            await asyncio.sleep(0)
        await theirs.channel.close()
        assert below.get_write_buffer_size()
        await gone.wait()


def _gone(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event that is set when the server closes a WebSocket."""
    gone = asyncio.Event()
    lost = web_server._WebSocketProtocol.connection_lost

    def connection_lost(self: Any, error: Exception | None) -> None:
        lost(self, error)
        gone.set()

    monkeypatch.setattr(web_server._WebSocketProtocol, "connection_lost", connection_lost)
    return gone


async def test_a_peer_that_sends_no_close_frame_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "CLOSE_SECONDS", 0.05)
    async with ends() as server, raw(server.site) as rude:
        theirs = await server.ear()
        await theirs.channel.close()
        assert await rude.reader.read() == b"\x88\x02" + struct.pack("!H", 1000)


@pytest.mark.parametrize("server_pauses", [False, True])
async def test_a_paused_channel_stops_reading_and_loses_nothing(server_pauses: bool) -> None:
    count = 80
    async with linked() as (ours, theirs):
        pausing, talking = (theirs, ours) if server_pauses else (ours, theirs)
        await _stuffed(talking, pausing, count)
        assert not pausing.heard
        assert talking.channel.unsent > rpc_limits.OUTBOUND_BYTES
        pausing.channel.resume()
        assert [(await pausing.hear())[:5] for _ in range(count)] == [
            b"%05d" % number for number in range(count)
        ]


async def _stuffed(talking: Ear, pausing: Ear, count: int) -> None:
    """Pause one side, and send from the other until no more bytes are accepted."""
    pausing.channel.pause()
    for number in range(count):
        talking.channel.send(b"%05d" % number + b"x" * 200_000)
    before = -1
    while talking.channel.unsent != before:
        before = talking.channel.unsent
        for _ in range(50):
            await asyncio.sleep(0)


async def test_the_kernel_buffers_little_and_sends_at_once() -> None:
    async with linked() as (_, theirs):
        sock = _transport_below(theirs.channel).get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        kept = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
        assert kept == web_server.UNSENT_BYTES


async def test_closing_sends_everything_first_and_delivers_nothing_more() -> None:
    async with linked() as (ours, theirs):
        await _stuffed(ours, theirs, 80)
        closing_ours = asyncio.create_task(ours.channel.close())
        await asyncio.sleep(0)
        theirs.channel.send(b"too late")
        theirs.channel.resume()
        for _ in range(80):
            await theirs.hear()
        await closing_ours
        assert not ours.heard
        assert await theirs.end() == "the WebSocket was closed (1000)"


async def test_a_flooded_client_still_gets_the_close_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (channels, websocket):
        monkeypatch.setattr(module, "CLOSE_SECONDS", 1000.0)
    async with linked() as (ours, theirs):
        await _stuffed(theirs, ours, 80)
        await ours.channel.close()
        assert await theirs.end() == "the WebSocket was closed (1000)"


async def test_a_flood_of_pings_without_reading_fills_no_buffer() -> None:
    async with ends() as server, raw(server.site) as flooder:
        theirs = await server.ear()
        transport = _transport_below(theirs.channel)
        for _ in range(60_000):
            flooder.frame(0x9, b"x" * 125)
            if flooder.writer.transport.get_write_buffer_size() > 1 << 20:
                await flooder.writer.drain()
        flooder.frame(0x1, b"after all that")
        assert await theirs.hear() == b"after all that"
        assert transport.get_write_buffer_size() < 1 << 20


def _transport_below(channel: Any) -> Any:
    """Return the server's own end of a channel's connection."""
    return channel._pipe._control.abort.__closure__[0].cell_contents.transport


@pytest.mark.parametrize("body", [b"", b"x"])
async def test_a_message_of_too_many_fragments_is_refused(body: bytes) -> None:
    async with ends() as server, raw(server.site) as shredder:
        theirs = await server.ear()
        shredder.frame(0x1, b"x", fin=False)
        for _ in range(web_server.FRAGMENTS + 10):
            shredder.frame(0x0, body, fin=False)
        assert "1009" in await theirs.end()


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> asyncio.Event:
    """Return an event that is set once a method has been called three times."""
    original, reached, left = getattr(owner, name), asyncio.Event(), iter((0, 0, 1))

    def called(*arguments: Any) -> Any:
        if next(left, 1):
            reached.set()
        return original(*arguments)

    monkeypatch.setattr(owner, name, called)
    return reached


async def test_a_silent_client_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "PING_SECONDS", 0.05)
    async with ends() as server, raw(server.site):
        theirs = await server.ear()
        assert await theirs.end()


async def test_a_client_that_sends_data_but_no_pong_is_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "PING_SECONDS", 0.03)
    doubted = calls_of(monkeypatch, web_server._WebSocketProtocol, "keepalive_timeout")
    async with ends() as server, raw(server.site) as talker:
        theirs = await server.ear()
        while not doubted.is_set():
            talker.frame(0x1, b"alive")
            assert await theirs.hear() == b"alive"
        assert not theirs.ends


async def test_a_channel_that_we_paused_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "PING_SECONDS", 0.03)
    doubted = calls_of(monkeypatch, web_server._WebSocketProtocol, "keepalive_timeout")
    async with linked() as (ours, theirs):
        theirs.channel.pause()
        for _ in range(5):
            ours.channel.send(b"still here")
        await doubted.wait()
        theirs.channel.resume()
        assert [await theirs.hear() for _ in range(5)] == [b"still here"] * 5
        theirs.channel.send(b"and here")
        assert await ours.hear() == b"and here"


async def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.03)
    async with _mute_server([]) as url, closing(await websocket.connect(url, TOKEN)) as ours:
        assert "is silent" in await ours.end()


async def test_an_idle_server_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.03)
    doubted = calls_of(monkeypatch, websocket._Dialled, "_check_alive")
    async with linked() as (ours, theirs):
        await doubted.wait()
        theirs.channel.send(b"at last")
        assert await ours.hear() == b"at last"


async def test_our_client_offers_no_compression_and_uses_no_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "ws_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    heads: list[str] = []
    async with _mute_server(heads) as url:
        channel = await websocket.connect(url, TOKEN)
        cast("Any", channel)._pipe.abort()
        await channel.close()
    assert "Extensions" not in heads[0]


@asynccontextmanager
async def _mute_server(heads: list[str]) -> AsyncIterator[str]:
    """Complete the handshake, and then send nothing."""

    async def handshake(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        key = next(line[19:] for line in head.splitlines() if line.startswith("Sec-WebSocket-Key"))
        seal = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
        writer.write(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {base64.b64encode(seal).decode()}\r\n\r\n".encode()
        )
        await reader.read()
        writer.close()

    async with await asyncio.start_server(handshake, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.counted
async def test_many_connections_leave_no_resources_behind(
    counted: Callable[[int, int], int],
) -> None:
    async with site(table(echo=echo)) as here:
        for _ in range(counted(20, 2000)):
            channel = await websocket.connect(here.websocket_url, TOKEN)
            async with Peer(channel, DIALECT) as peer:
                await peer.call("echo", Text("x"))
            await here.over.get()
