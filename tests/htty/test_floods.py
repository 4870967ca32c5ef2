from __future__ import annotations

import asyncio
import struct
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from h2.errors import ErrorCodes
from hpack import Encoder
from hyperframe.frame import (
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from htty.connections import Handling, fetch, joined, served
from htty.frames_by_hand import GET, HELLO, POST, continuation, data, headers, headers_begun, parsed
from htty.memory_stream import MemoryStream, memory_streams
from telex.htty import limits
from telex.htty.h2 import http2_frames
from telex.htty.h2.http2_connection import Http2Connection
from telex.htty.h2.http2_frames import FloodKind
from telex.htty.h2.http2_state import Http2Side
from telex.htty.h2.http_stream import HttpStream

CALM = ErrorCodes.ENHANCE_YOUR_CALM


async def patient(http_stream: HttpStream) -> None:
    await http_stream.gone.wait()


def forever(*frames: bytes) -> Iterator[bytes]:
    """Yield the frames endlessly, many at a time."""
    while True:
        yield b"".join(frames) * 100


def streams(each: Callable[[int], bytes]) -> Iterator[bytes]:
    for stream in range(1, 1_000_000, 2):
        yield each(stream)


def settings_of_all_kinds(at_once: int) -> Iterator[bytes]:
    for first in range(16, 65_536 - at_once, at_once):
        body = b"".join(struct.pack(">HL", kind, 1) for kind in range(first, first + at_once))
        yield len(body).to_bytes(3, "big") + b"\4\0\0\0\0\0" + body


def bomb() -> Iterator[bytes]:
    """Yield a kilobyte of header fields that decode to a megabyte."""
    block = Encoder().encode([*GET, (b"x", b"y" * 3_000)]) + b"\xbe" * 1_000
    yield HeadersFrame(1, block, flags=["END_HEADERS"]).serialize()


FLOODS: dict[str, tuple[Callable[[], Iterator[bytes]], int]] = {
    "pings": (lambda: forever(PingFrame(0, b"12345678").serialize()), CALM),
    "answers to no ping": (
        lambda: forever(PingFrame(0, b"12345678", flags=["ACK"]).serialize()),
        CALM,
    ),
    "settings": (lambda: forever(SettingsFrame(0, settings={3: 1}).serialize()), CALM),
    "settings of all kinds": (lambda: settings_of_all_kinds(10_000), CALM),
    "settings of more and more kinds": (lambda: settings_of_all_kinds(20), CALM),
    "priorities": (lambda: forever(PriorityFrame(1, depends_on=3).serialize()), CALM),
    "unknown frames": (lambda: forever(b"\0\0\1\xee\0\0\0\0\0?"), CALM),
    "empty data": (lambda: forever(data(1)), CALM),
    "padding": (
        lambda: forever(DataFrame(1, b"", pad_length=9, flags=["PADDED"]).serialize()),
        CALM,
    ),
    "window updates": (
        lambda: forever(WindowUpdateFrame(0, window_increment=1).serialize()),
        CALM,
    ),
    "rapid resets": (
        lambda: streams(
            lambda n: headers(n + 2, GET, "END_STREAM") + RstStreamFrame(n + 2, 8).serialize()
        ),
        CALM,
    ),
    "resets that are provoked": (
        lambda: streams(
            lambda n: headers(n + 2, GET) + WindowUpdateFrame(n + 2, 2**31 - 1).serialize()
        ),
        CALM,
    ),
    "malformed requests": (
        lambda: streams(lambda n: headers(n + 2, [*GET, (b"X", b"")], "END_STREAM")),
        CALM,
    ),
    "more requests than allowed": (
        lambda: streams(lambda n: headers(n + 2, GET, "END_STREAM")),
        CALM,
    ),
    "data after the end": (
        lambda: iter(
            [headers(3, POST), RstStreamFrame(3, 8).serialize(), *[data(3, b"x")] * 2_000]
        ),
        CALM,
    ),
    "header fields without end": (
        lambda: iter([headers_begun(3, GET), *[continuation(3, bytes(1_000))] * 60]),
        CALM,
    ),
    "empty header fields without end": (
        lambda: iter([headers_begun(3, GET), *[continuation(3)] * 70]),
        ErrorCodes.PROTOCOL_ERROR,
    ),
    "a bomb of header fields": (bomb, CALM),
    "a frame of 16 MB": (
        lambda: iter([b"\xff\xff\xff\0\0\0\0\0\1", *[bytes(65_536)] * 250]),
        ErrorCodes.FRAME_SIZE_ERROR,
    ),
}


async def _flood(ours: MemoryStream, server: Http2Connection, flood: Iterator[bytes]) -> int:
    """Send the flood until the connection ends. Return how many bytes were sent."""
    poured = 0
    for some in flood:
        if server.over.done():
            break
        ours.write(some)
        poured += len(some)
        await ours.drained()
        await asyncio.sleep(0)
    return poured


async def _all_of(ours: MemoryStream) -> bytes:
    received = bytearray()
    while data := await ours.read():
        received += data
    return bytes(received)


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_ends_in_a_goaway_and_little_memory(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flood, code = FLOODS[name]
    monkeypatch.setitem(http2_frames.FLOOD_BUDGETS, FloodKind.WINDOW, 3_000)
    monkeypatch.setitem(
        http2_frames.FLOOD_BUDGETS, FloodKind.RESET, 200
    )  # a thousand take seconds with tracemalloc
    async with served(patient) as (ours, server):
        ours.write(HELLO + headers(1, POST))
        hearing = asyncio.ensure_future(_all_of(ours))
        tracemalloc.start()
        try:
            poured = await _flood(ours, server, flood())
            ended = await server.over
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        goaway = parsed(await hearing)[-1]
    assert ended.code == code
    assert not ended.graceful
    assert isinstance(goaway, GoAwayFrame)
    assert goaway.error_code == code
    assert peak < 4_000_000
    assert poured < 4_000_000


async def test_a_peer_that_sends_requests_and_does_not_read_is_no_longer_read() -> None:
    """All budgets are respected; the test is about memory."""
    ours, its = memory_streams()
    now = iter(range(0, 10**9, 1_000))
    handling = Handling(patient)
    server = Http2Connection(its, Http2Side.SERVER, opened=handling, clock=lambda: float(next(now)))
    run = asyncio.ensure_future(server.run())
    ours.write(HELLO)
    pings, poured = PingFrame(0, b"12345678").serialize() * 100, 0
    stuck = 0
    while stuck < 100:  # turns of the loop in which nothing was read
        if its._size < limits.HTTY_UNSENT_BYTES:
            ours.write(pings)
            poured, stuck = poured + len(pings), 0
        stuck += 1
        await asyncio.sleep(0)
    owed = limits.HTTY_BACKLOG_BYTES + limits.HTTY_UNSENT_BYTES
    assert server._connection.unsent <= limits.HTTY_BACKLOG_BYTES + limits.HTTY_READ_BYTES
    assert poured < 2 * (owed + limits.HTTY_UNSENT_BYTES)
    hearing = asyncio.ensure_future(_all_of(ours))
    await asyncio.wait_for(ours.drained(), 5)
    assert not server.over.done()
    ours.close()
    await run
    await hearing
    await handling.end()


async def test_a_page_left_in_the_middle_repeatedly_is_not_a_flood() -> None:
    async with joined(patient) as both:
        for _ in range(5):
            page = [await both.client.request(GET, end=True) for _ in range(100)]
            await asyncio.sleep(0)
            for http_stream in page:
                http_stream.reset()
        assert await both.client.ping() >= 0
        assert not both.server.over.done()


async def test_the_number_of_informational_responses_is_bounded() -> None:
    async def hints(http_stream: HttpStream) -> None:
        while not http_stream.gone.is_set():
            await http_stream.send_headers([(b":status", b"103")])
            await asyncio.sleep(0)

    async with joined(hints) as both:
        with pytest.raises(Exception, match="too many"):
            await fetch(both.client)
        assert (await both.client.over).code == CALM
        await asyncio.gather(*both.handling.tasks, return_exceptions=True)
