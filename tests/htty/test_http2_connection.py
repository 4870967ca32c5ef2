from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, RequestReceived
from h2.settings import SettingCodes
from hyperframe.frame import DataFrame, GoAwayFrame, PingFrame, SettingsFrame, WindowUpdateFrame

from htty.connections import echo, fetch, joined, pieces, rest, served
from htty.frames_by_hand import GET, HELLO, OK, POST, headers, headers_begun, only, parsed
from htty.memory_stream import MemoryStream, memory_streams
from telex.htty import limits
from telex.htty.errors import BadHeaders, ConnectionOver, StreamReset
from telex.htty.h2.http2_connection import Ended, Http2Connection
from telex.htty.h2.http2_state import Http2Side
from telex.htty.h2.http_stream import HEADER_CHECKS, STALL_CHECKS, HttpStream

PIECE = bytes(range(256)) * 256
MB = 1_000_000


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, for a few turns of the loop: memory streams need no more."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come about")


def overheard(end: MemoryStream) -> list[bytes]:
    """Return a list that collects the bytes written to the stream from now on."""
    wrote: list[bytes] = []
    write = end.write

    def overhear(data: bytes) -> None:
        if data:
            wrote.append(data)
        write(data)

    end.write = overhear  # type: ignore[method-assign]
    return wrote


async def silent(http_stream: HttpStream) -> None:
    await http_stream.gone.wait()


async def large(http_stream: HttpStream) -> None:
    """Respond with three windows of data, as far as they can be sent."""
    await http_stream.send_headers(OK)
    for _ in range(3 * limits.HTTY_STREAM_WINDOW // len(PIECE)):
        await http_stream.write(PIECE)
    await http_stream.write(b"", end=True)


async def test_a_closed_window_costs_no_frames_whatever_arrives_meanwhile() -> None:
    received = bytearray()

    async def listen(far: MemoryStream) -> None:
        while data := await far.read():
            received.extend(data)

    def bodies() -> list[bytes]:
        return [frame.data for frame in only(DataFrame, parsed(bytes(received)))]

    async with served() as (far, _):
        listening = asyncio.ensure_future(listen(far))
        closed = SettingsFrame(0, settings={SettingCodes.INITIAL_WINDOW_SIZE: 0})
        far.write(HELLO.removesuffix(SettingsFrame(0).serialize()) + closed.serialize())
        far.write(headers(1, POST) + DataFrame(1, b"body", flags=["END_STREAM"]).serialize())
        for number in range(50):
            far.write(WindowUpdateFrame(0, 1).serialize())
            far.write(PingFrame(0, number.to_bytes(8, "big")).serialize())
            await until(lambda: len(only(PingFrame, parsed(bytes(received)))) > number)  # noqa: B023
        assert bodies() == []
        far.write(WindowUpdateFrame(1, 100).serialize())
        await until(lambda: len(bodies()) == 2)
        assert bodies() == [b"body", b""]
        listening.cancel()
        await asyncio.wait({listening})


async def test_bodies_cross_both_ways_at_once() -> None:
    async with joined() as both:
        http_stream = await both.client.request(POST)
        body = PIECE * 40

        async def send() -> None:
            for at in range(0, len(body), 100_000):
                await http_stream.write(body[at : at + 100_000])
            await http_stream.write(b"", end=True)

        sending = asyncio.ensure_future(send())
        assert await http_stream.answer() == OK
        assert await rest(http_stream) == body
        await sending


async def test_many_streams_that_fill_both_directions_do_not_deadlock() -> None:
    async with joined() as both:

        async def one() -> None:
            http_stream = await both.client.request(POST)
            sending = asyncio.ensure_future(http_stream.write(PIECE * 20, end=True))
            assert len(await rest(http_stream)) == len(PIECE) * 20
            await sending

        await asyncio.gather(*(one() for _ in range(30)))


async def test_a_piece_larger_than_all_windows_is_written_whole() -> None:
    async with joined() as both:
        http_stream = await both.client.request(POST)
        body = PIECE * (2 * limits.HTTY_CONNECTION_WINDOW // len(PIECE))
        sending = asyncio.ensure_future(http_stream.write(body, end=True))
        came = 0
        async for data in pieces(http_stream):
            came += len(data)
        assert came == len(body)
        await sending


@pytest.mark.counted
async def test_a_large_body_takes_little_memory_each_way(
    counted: Callable[[int, int], int],
) -> None:
    size = counted(32 * MB, 1000 * MB)

    async def both_ways(http_stream: HttpStream) -> None:
        await http_stream.send_headers(OK)
        came = 0
        async for data in pieces(http_stream):
            came += len(data)
            await http_stream.write(data)
        await http_stream.write(b"", end=True)

    async with joined(both_ways) as both:
        http_stream = await both.client.request(POST)

        async def send() -> None:
            for _ in range(size // len(PIECE)):
                await http_stream.write(PIECE)
            await http_stream.write(b"", end=True)

        tracemalloc.start()
        try:
            sending = asyncio.ensure_future(send())
            came = 0
            async for data in pieces(http_stream):
                came += len(data)
            await sending
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert came == size // len(PIECE) * len(PIECE)
    assert peak < 16 * MB


async def test_an_unread_body_blocks_its_sender_and_not_the_others() -> None:
    async with joined(large) as both:
        slow = await both.client.request(GET, end=True)
        await slow.answer()
        for _ in range(3):
            assert len(await fetch(both.client)) == 3 * limits.HTTY_STREAM_WINDOW
        assert not both.handling.tasks[0].done()
        assert len(await rest(slow)) == 3 * limits.HTTY_STREAM_WINDOW


async def test_streams_share_the_connection_in_turns() -> None:
    ended: list[int] = []

    async def sized(http_stream: HttpStream) -> None:
        pieces = int(dict(http_stream.headers)[b":path"][1:])
        await http_stream.send_headers(OK)
        await http_stream.write(PIECE * pieces, end=True)

    async with joined(sized) as both:

        async def one(pieces: int) -> None:
            await fetch(both.client, b"/%d" % pieces)
            ended.append(pieces)

        await asyncio.gather(one(200), one(1))
    assert ended == [1, 200]


async def test_requests_wait_for_the_peers_limit_of_streams_and_never_exceed_it() -> None:
    ours, its = memory_streams()
    client = Http2Connection(ours, Http2Side.CLIENT)
    run = asyncio.ensure_future(client.run())
    most = await _serve_at_most(3, client, its, 20)
    assert most == 3
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def _serve_at_most(limit: int, client: Http2Connection, its: MemoryStream, count: int) -> int:
    """Serve with h2, which ends a connection with too many streams. Return the maximum."""
    h2 = H2Connection(H2Configuration(client_side=False))
    h2.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = limit
    h2.local_settings.acknowledge()
    h2.initiate_connection()
    asking = [asyncio.ensure_future(fetch(client)) for _ in range(count)]
    most, served, waiting = 0, 0, []
    while served < count:
        its.write(h2.data_to_send())
        for event in h2.receive_data(await its.read()):
            if isinstance(event, RequestReceived):
                waiting.append(event.stream_id)
        most = max(most, len(waiting))
        while waiting and len(waiting) == min(limit, count - served):
            h2.send_headers(waiting.pop(0), OK, end_stream=True)
            served += 1
    its.write(h2.data_to_send())
    await asyncio.gather(*asking)
    return most


async def test_a_cancelled_wait_for_a_stream_gives_its_slot_to_the_next() -> None:
    async with joined(silent) as both:
        held = [await both.client.request(GET, end=True) for _ in range(limits.HTTY_STREAMS)]
        waiting = [asyncio.ensure_future(both.client.request(GET, end=True)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        held[0].reset()  # grants its slot to the rest of the queue, in order
        http_stream = await waiting[1]
        assert not waiting[2].done()
        waiting[2].cancel()
        http_stream.reset()
        assert await both.client.request(GET, end=True)


async def test_a_reset_frees_the_stream_on_both_sides_at_once() -> None:
    async with joined(large) as both:
        http_stream = await both.client.request(GET, end=True)
        await http_stream.answer()
        await http_stream.read()
        http_stream.reset()
        http_stream.reset()
        with pytest.raises(StreamReset, match="this side"):
            await http_stream.read()
        [handling] = both.handling.tasks
        with pytest.raises(StreamReset, match="the other side"):
            await handling
        both.handling.tasks.clear()
        assert not both.server._streams
        assert not both.client._streams


async def test_abandoned_bodies_cost_the_others_no_window() -> None:
    async with joined(large) as both:
        for _ in range(3 * limits.HTTY_CONNECTION_WINDOW // limits.HTTY_STREAM_WINDOW):
            http_stream = await both.client.request(GET, end=True)
            await http_stream.answer()
            await until(lambda ex=http_stream: len(ex._unread) == limits.HTTY_STREAM_WINDOW)
            http_stream.reset()
        assert len(await fetch(both.client)) == 3 * limits.HTTY_STREAM_WINDOW
        both.handling.tasks.pop()
        await asyncio.gather(*both.handling.tasks, return_exceptions=True)


async def test_data_that_a_server_never_reads_costs_the_others_no_window() -> None:
    async def deaf(http_stream: HttpStream) -> None:
        await http_stream.send_headers(OK, end=True)

    async with joined(deaf) as both:
        for _ in range(3 * limits.HTTY_CONNECTION_WINDOW // limits.HTTY_STREAM_WINDOW):
            http_stream = await both.client.request(POST)
            await http_stream.write(bytes(limits.HTTY_STREAM_WINDOW), end=True)
            await http_stream.answer()
        assert both.server._connection._h2.inbound_flow_control_window > 0


async def test_a_complete_response_survives_a_reset_without_error() -> None:
    async def early(http_stream: HttpStream) -> None:
        await http_stream.send_headers(OK)
        await http_stream.write(b"enough", end=True)
        http_stream.reset(ErrorCodes.NO_ERROR)

    async with joined(early) as both:
        http_stream = await both.client.request(POST)
        with pytest.raises(StreamReset):
            for _ in range(100):
                await http_stream.write(PIECE)
        assert await http_stream.answer() == OK
        assert await rest(http_stream) == b"enough"
        assert http_stream.gone.is_set()


async def test_trailers_and_informational_responses_are_distinguished() -> None:
    async def with_trailers(http_stream: HttpStream) -> None:
        await rest(http_stream)
        assert http_stream.trailers == [(b"x-sum", b"1")]
        await http_stream.send_headers([(b":status", b"103"), (b"link", b"</a>")])
        await http_stream.send_headers(OK)
        await http_stream.write(b"body")
        await http_stream.send_headers([(b"x-sum", b"2")])

    async with joined(with_trailers) as both:
        http_stream = await both.client.request(POST)
        await http_stream.write(b"body")
        await http_stream.send_headers([(b"x-sum", b"1")], end=True)
        assert await http_stream.answer() == OK
        assert await rest(http_stream) == b"body"
        assert http_stream.trailers == [(b"x-sum", b"2")]


async def test_a_cancelled_write_leaves_the_connection_usable() -> None:
    async with joined(large) as both:
        http_stream = await both.client.request(POST)
        writing = asyncio.ensure_future(http_stream.write(bytes(2 * limits.HTTY_STREAM_WINDOW)))
        await http_stream.answer()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        http_stream.reset()
        assert len(await fetch(both.client)) == 3 * limits.HTTY_STREAM_WINDOW


async def test_bad_headers_raise_in_the_sender() -> None:
    async with joined() as both:
        with pytest.raises(BadHeaders):
            await both.client.request([*GET, (b"x", b"a\r\nb")])
        assert await fetch(both.client) == b""


async def test_a_ping_returns_its_round_trip_time() -> None:
    async with joined() as both:
        assert 0 <= await both.client.ping() < 10
        assert both.client.extended_connect
        assert not both.server.extended_connect


async def test_a_server_ends_with_the_final_goaway_and_the_client_sends_nothing_after_it() -> None:
    async with joined(large) as both:
        http_stream = await both.client.request(GET, end=True)
        await http_stream.answer()
        both.server.close("the page is over")
        with pytest.raises(ConnectionOver):
            while True:
                await both.client.request(GET, end=True)
                await asyncio.sleep(0)
        assert len(await rest(http_stream)) == 3 * limits.HTTY_STREAM_WINDOW
        wrote = overheard(both.ends[0])
        assert await both.ended() == (Ended(True, "the page is over", 0),) * 2
        assert not [frame for data in wrote for frame in parsed(data) if frame.stream_id]
        wrote.clear()
        with pytest.raises(ConnectionOver, match="the page is over"):
            await both.client.ping()
        assert not wrote


async def test_after_the_servers_final_goaway_no_byte_is_written() -> None:
    ours, its = memory_streams()
    client = Http2Connection(ours, Http2Side.CLIENT)
    run = asyncio.ensure_future(client.run())
    its.write(SettingsFrame(0).serialize())
    await client.ready()
    await asyncio.sleep(0)
    wrote = overheard(ours)
    its.write(GoAwayFrame(0).serialize() + SettingsFrame(0).serialize())
    assert (await run).graceful
    assert not wrote


async def test_a_client_that_closes_is_answered_by_the_server() -> None:
    async with joined() as both:
        both.client.close()
        client, server = await both.ended()
        assert client.graceful
        assert server.graceful


async def test_streams_that_do_not_end_are_reset_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_CLOSE_SECONDS", 0.01)
    async with joined(silent) as both:
        http_stream = await both.client.request(GET, end=True)
        await until(lambda: both.handling.tasks)
        both.server.close()
        with pytest.raises(StreamReset):
            await http_stream.answer()
        assert not (await both.server.over).graceful
        assert (await both.client.over).graceful, "every end was reported, and the last one too"


async def test_a_server_without_a_client_closes_at_once() -> None:
    async with served() as (ours, server):
        server.close("nobody came")
        assert await server.over == Ended(True, "nobody came", 0)
        first, *_, last = parsed(await ours.read())
        assert isinstance(first, SettingsFrame)
        assert isinstance(last, GoAwayFrame)


async def test_the_end_of_the_byte_stream_aborts_everything() -> None:
    async with joined(silent) as both:
        http_stream = await both.client.request(GET, end=True)
        asking = asyncio.ensure_future(http_stream.answer())
        await until(lambda: both.handling.tasks)
        both.ends[0].close()
        for ended in await both.ended():
            assert not ended.graceful
            assert "without a GOAWAY" in ended.sentence
        with pytest.raises(ConnectionOver):
            await asking
        assert http_stream.gone.is_set()
        for call in (both.client.request(GET), both.client.ready(), both.client.ping()):
            with pytest.raises(ConnectionOver):
                await call
        with pytest.raises(ConnectionOver):
            await http_stream.write(b"x")
        both.client.close()


async def test_waits_for_a_stream_fail_when_the_connection_ends() -> None:
    async with joined(silent) as both:
        for _ in range(limits.HTTY_STREAMS):
            await both.client.request(GET, end=True)
        waiting = asyncio.ensure_future(both.client.request(GET, end=True))
        await asyncio.sleep(0)
        both.ends[1].close()
        with pytest.raises(ConnectionOver):
            await waiting


async def test_cancelling_sends_goaway() -> None:
    ours, its = memory_streams()
    server = Http2Connection(its, Http2Side.SERVER)
    run = asyncio.ensure_future(server.run())
    await ours.read()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert isinstance(parsed(await ours.read())[-1], GoAwayFrame)
    assert not (await server.over).graceful


async def test_the_reason_in_the_other_sides_goaway_is_reported() -> None:
    async with joined(silent) as both:
        both.client._connection.give_up(ErrorCodes.INTERNAL_ERROR, "out of paper")
        both.client._writer.wake()
        ended = await both.server.over
        assert ended == Ended(False, "the other side gave up: out of paper", 2)


@pytest.mark.parametrize("code", [ErrorCodes.NO_ERROR, ErrorCodes.INTERNAL_ERROR])
async def test_control_characters_in_the_other_sides_reason_are_replaced(
    code: ErrorCodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_CLOSE_SECONDS", 0.05)
    async with joined(silent) as both:
        both.client._connection.give_up(code, "bye\x1b]52;c;aGFjaw==\x07\r\n\u202e" + "x" * 9999)
        both.client._writer.wake()
        sentence = (await both.server.over).sentence
    assert "bye?]52;c;aGFjaw==????" in sentence
    assert sentence.isprintable()
    assert len(sentence) < 300


async def test_a_request_body_that_stops_is_given_up() -> None:
    async with joined() as both:
        http_stream = await both.client.request(POST)
        await http_stream.answer()
        await until(lambda: both.server._streams[http_stream.id].waits_for_peer)
        for _ in range(STALL_CHECKS - 1):
            both.server._watch.check()
        await http_stream.write(b"still here")
        assert await http_stream.read() == b"still here"
        for _ in range(STALL_CHECKS):
            both.server._watch.check()
        with pytest.raises(StreamReset):
            await http_stream.read()
        with pytest.raises(StreamReset):
            await both.handling.tasks.pop()


async def test_a_reader_that_stops_is_given_up() -> None:
    async with joined(large) as both:
        http_stream = await both.client.request(GET, end=True)
        await http_stream.answer()
        await until(lambda: both.server._streams[http_stream.id].waits_for_peer)
        for _ in range(STALL_CHECKS):
            both.server._watch.check()
        with pytest.raises(StreamReset):
            await both.handling.tasks.pop()
        with pytest.raises(StreamReset):
            await rest(http_stream)
        assert await both.client.ping() >= 0


@pytest.mark.parametrize(
    "request_headers", [GET, [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:]]]
)
async def test_a_silent_page_and_a_silent_websocket_are_not_stalled(
    request_headers: list[tuple[bytes, bytes]],
) -> None:
    async with joined(silent if request_headers is GET else echo) as both:
        http_stream = await both.client.request(request_headers, end=request_headers is GET)
        await until(lambda: both.handling.tasks)
        await asyncio.sleep(0)
        for _ in range(2 * STALL_CHECKS):
            both.server._watch.check()
        await both.client.ping()
        assert not both.handling.tasks[0].done()
        assert not http_stream.gone.is_set()


async def test_an_endless_header_block_ends_the_connection() -> None:
    async with served() as (ours, server):
        ours.write(HELLO + headers_begun(1, GET))
        await until(lambda: server._connection.in_header_block)
        for _ in range(HEADER_CHECKS):
            server._watch.check()
        assert (await server.over).code == ErrorCodes.ENHANCE_YOUR_CALM


async def test_h2_itself_is_served() -> None:
    """With the handshake, the defaults and the GOAWAY of another implementation."""
    async with served() as (ours, server):
        h2 = H2Connection()
        h2.initiate_connection()
        h2.send_headers(1, GET, end_stream=True)
        ours.write(h2.data_to_send())
        events = []
        while not any(type(event).__name__ == "StreamEnded" for event in events):
            events += h2.receive_data(await ours.read())
        h2.close_connection()
        ours.write(h2.data_to_send())
        ours.close()
        assert (await server.over).graceful
        assert not [event for event in events if isinstance(event, ConnectionTerminated)]


async def test_requests_wait_for_the_servers_settings() -> None:
    ours, its = memory_streams()
    client = Http2Connection(ours, Http2Side.CLIENT)
    run = asyncio.ensure_future(client.run())
    asking = asyncio.ensure_future(client.request(GET, end=True))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not asking.done()
    its.write(SettingsFrame(0).serialize())
    http_stream = await asking
    its.write(headers(1, OK, "END_STREAM"))
    assert await http_stream.answer() == OK
    its.close()
    await run


async def test_padding_opens_the_window_again_as_data_does() -> None:
    async with served() as (ours, _):
        padded = DataFrame(1, b"x", pad_length=255, flags=["PADDED"])
        count = limits.HTTY_STREAM_WINDOW // 2 // padded.flow_controlled_length + 1
        ours.write(HELLO + headers(1, POST) + padded.serialize() * count)
        opened = 0
        while opened < limits.HTTY_STREAM_WINDOW // 2:
            updates = only(WindowUpdateFrame, parsed(await asyncio.wait_for(ours.read(), 5)))
            opened += sum(update.window_increment for update in updates if update.stream_id == 1)


async def _asking(
    count: int,
) -> tuple[MemoryStream, asyncio.Task[Ended], list[asyncio.Task[HttpStream]]]:
    """Start a client with so many requests; its server has sent nothing yet."""
    ours, its = memory_streams()
    client = Http2Connection(ours, Http2Side.CLIENT)
    run = asyncio.create_task(client.run())
    asking = [asyncio.create_task(client.request(GET, end=True)) for _ in range(count)]
    await asyncio.sleep(0)
    return its, run, asking


async def test_waits_for_settings_fail_when_the_connection_ends() -> None:
    its, run, [asking] = await _asking(1)
    its.close()
    with pytest.raises(ConnectionOver):
        await asking
    assert not (await run).graceful


async def test_streams_above_the_last_id_of_goaway_are_refused_and_the_others_continue() -> None:
    its, run, asking = await _asking(2)
    its.write(SettingsFrame(0).serialize())
    first, second = await asyncio.gather(*asking)
    its.write(GoAwayFrame(0, last_stream_id=first.id).serialize())
    with pytest.raises(StreamReset) as refused:
        await second.answer()
    assert refused.value.code == ErrorCodes.REFUSED_STREAM
    its.write(headers(first.id, OK, "END_STREAM"))
    assert await first.answer() == OK
    assert (await run).graceful
