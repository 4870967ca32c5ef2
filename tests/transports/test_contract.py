"""The contract of every transport, run over every transport."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import Struct

from handlers import table
from linking import TRANSPORTS, Transport
from telex.rpc import limits
from telex.rpc.errors import CallError, CallTimedOut, PeerGone, RpcError
from telex.rpc.handler_tasks import CallContext

pytestmark = pytest.mark.each_loop
over_each = pytest.mark.parametrize("transport", TRANSPORTS, ids=str)
over_each_duplex = pytest.mark.parametrize(
    "transport", [transport for transport in TRANSPORTS if transport.duplex], ids=str
)
"""Transports where the server may send first; over the other one it only responds."""


class Text(Struct):
    text: str


class Size(Struct):
    size: int


def echo(params: Text) -> Text:
    return params


async def later(params: Text) -> Text:
    await asyncio.sleep(0)
    return params


@over_each
async def test_a_call_is_answered(transport: Transport, tmp_path: Path) -> None:
    async with transport.link(table(echo=echo), tmp_path) as (peer, _):
        assert await peer.call("echo", Text("hello"), returns=Text) == Text("hello")


@over_each
async def test_any_text_arrives_unchanged(transport: Transport, tmp_path: Path) -> None:
    text = 'Ü✓🙂 "quoted" \r\n\t\x1b]23198;0;{}\x07 \x00 Content-Length: 5\r\n\r\n'
    async with transport.link(table(echo=echo), tmp_path) as (peer, _):
        assert await peer.call("echo", Text(text), returns=Text) == Text(text)


@over_each
async def test_many_calls_at_once_each_get_their_own_answer(
    transport: Transport, tmp_path: Path
) -> None:
    async with transport.link(table(echo=echo, later=later), tmp_path) as (peer, _):
        calls = [
            peer.call(("echo", "later")[n % 2], Text(str(n)), returns=Text) for n in range(300)
        ]
        assert await asyncio.gather(*calls) == [Text(str(n)) for n in range(300)]


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 3_000_000])
@over_each
async def test_large_messages_pass_both_ways(
    transport: Transport, tmp_path: Path, size: int
) -> None:
    async with transport.link(table(echo=echo), tmp_path) as (peer, _):
        answer: Text = await peer.call("echo", Text("x" * size), returns=Text)
        assert len(answer.text) == size


@over_each
async def test_an_error_arrives_with_code_message_and_data(
    transport: Transport, tmp_path: Path
) -> None:
    def refuse(params: Text) -> None:
        raise RpcError(-32004, "You may not.", {"why": params.text})

    async with transport.link(table(refuse=refuse), tmp_path) as (peer, _):
        with pytest.raises(RpcError) as caught:
            await peer.call("refuse", Text("x"))
        assert caught.value.problem.code == -32004
        assert caught.value.problem.message == "You may not."


@over_each
async def test_notifications_arrive_in_order(transport: Transport, tmp_path: Path) -> None:
    seen: list[str] = []
    done = asyncio.Event()

    def note(params: Text) -> None:
        seen.append(params.text)
        if len(seen) == 50:
            done.set()

    async with transport.link(table(note=note), tmp_path) as (peer, _):
        for n in range(50):
            await peer.notify("note", Text(str(n)))
        await done.wait()
    assert seen == [str(n) for n in range(50)]


@over_each_duplex
async def test_the_server_sends_notifications_and_requests_too(
    transport: Transport, tmp_path: Path
) -> None:
    received: asyncio.Queue[str] = asyncio.Queue()

    def tell(params: Text) -> None:
        received.put_nowait(params.text)

    async def go(params: Text, call: CallContext) -> str:
        await call.peer.notify("tell", Text("working"))
        answer: Text = await call.peer.call("echo", params, returns=Text)
        return answer.text

    ours = table(tell=tell, echo=echo)
    async with transport.link(table(go=go), tmp_path, ours) as (peer, _):
        assert await peer.call("go", Text("back and forth")) == "back and forth"
        assert await received.get() == "working"


@over_each
async def test_a_call_without_response_times_out_and_the_next_one_works(
    transport: Transport, tmp_path: Path
) -> None:
    async def never(params: Text) -> None:
        await asyncio.Event().wait()

    async with transport.link(table(never=never, echo=echo), tmp_path) as (peer, _):
        with pytest.raises(CallTimedOut):
            await peer.call("never", Text(""), timeout=0.05)
        assert await peer.call("echo", Text("still here"), returns=Text) == Text("still here")


@over_each
async def test_when_the_server_closes_pending_calls_fail_with_a_reason(
    transport: Transport, tmp_path: Path
) -> None:
    started = asyncio.Event()

    async def never(params: Text) -> None:
        started.set()
        await asyncio.Event().wait()

    async with transport.link(table(never=never), tmp_path) as (peer, server):
        calling = asyncio.create_task(peer.call("never", Text("")))
        await started.wait()
        await server.close()
        with pytest.raises(CallError, match=r"never: |This peer is closing"):
            await calling


@over_each
async def test_when_the_client_closes_its_remote_handlers_stop(
    transport: Transport, tmp_path: Path
) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def never(params: Text) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with transport.link(table(never=never), tmp_path) as (peer, _):
        calling = asyncio.create_task(peer.call("never", Text("")))
        await started.wait()
        await peer.close()
        await stopped.wait()
        with pytest.raises(PeerGone):
            await calling


@over_each_duplex
async def test_a_reader_that_stops_blocks_the_writer_and_loses_nothing(
    transport: Transport, tmp_path: Path
) -> None:
    count, size = 400, 50_000
    seen = 0
    done = asyncio.Event()
    sent = 0

    def big(params: Text) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            done.set()

    async def flood(params: Text, call: CallContext) -> None:
        nonlocal sent
        for _ in range(count):
            await call.peer.notify("big", Text("x" * size))
            sent += 1

    async with transport.link(table(flood=flood), tmp_path, table(big=big)) as (peer, _):
        peer._channel.pause()
        await peer.notify("flood", Text(""))
        before = -1
        while sent != before or sent == 0:  # until the writer makes no more progress
            before = sent
            for _ in range(50):
                await asyncio.sleep(0)
        assert sent * size < 4 * limits.OUTBOUND_BYTES
        peer._channel.resume()
        await done.wait()
        assert seen == count
