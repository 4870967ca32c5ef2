"""The peer: symmetric, concurrent, bounded, and without leftover tasks when closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec
import pytest
from msgspec import Struct

from handlers import table
from telex.rpc import limits
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import (
    CallTimedOut,
    Condition,
    PeerGone,
    RpcError,
    StreamOverrun,
    UnexpectedReply,
)
from telex.rpc.handler_tasks import CallContext
from telex.rpc.messages import ABSENT, Reply, Typed
from telex.rpc.peer import MessageTooLarge, Peer
from telex.rpc.testing import Script, linked_peers, memory_channels
from telex.wire import limits as wire_limits

ESCAPES = JsonEscapes()


class Number(Struct):
    n: int


class Choice(Struct):
    kind: Literal["a", "b"]


def choose(params: Choice) -> None:
    return None


def double(params: Number) -> Number:
    return Number(params.n * 2)


async def test_either_side_calls_the_other() -> None:
    async with linked_peers(table(double=double), table(double=double)) as (left, right):
        assert await left.call("double", Number(2), returns=Number) == Number(4)
        assert await right.call("double", {"n": 3}) == {"n": 6}


async def test_a_handler_may_call_back_while_it_serves() -> None:
    async def ask_back(params: Number, call: CallContext) -> int:
        answer: Number = await call.peer.call("double", params, returns=Number)
        return answer.n

    async with linked_peers(table(double=double), table(ask_back=ask_back)) as (left, _):
        assert await left.call("ask_back", Number(5)) == 10


async def test_a_pending_request_blocks_no_other() -> None:
    gate = asyncio.Event()

    async def wait() -> str:
        await gate.wait()
        return "waited"

    async with linked_peers(None, table(wait=wait, double=double)) as (left, _):
        waiting = asyncio.create_task(left.call("wait"))
        assert await left.call("double", Number(1), returns=Number) == Number(2)
        assert not waiting.done()
        gate.set()
        assert await waiting == "waited"


async def test_notifications_arrive_in_order_and_get_no_answer() -> None:
    seen: list[int] = []
    done = asyncio.Event()

    def note(params: Number) -> None:
        seen.append(params.n)
        if params.n == 99:
            done.set()

    async with linked_peers(None, table(note=note)) as (left, right):
        for n in range(100):
            await left.notify("note", Number(n))
        await done.wait()
        assert seen == list(range(100))
        assert right.counts.unknown == left.counts.unknown == 0


async def test_a_call_that_times_out_cancels_the_remote_handler() -> None:
    cancelled = asyncio.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with linked_peers(None, table(never=never)) as (left, _):
        with pytest.raises(CallTimedOut, match=r"never: no answer within 0.01 s"):
            await left.call("never", timeout=0.01)
        await cancelled.wait()


async def test_a_cancelled_call_cancels_the_remote_handler() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def never() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with linked_peers(None, table(never=never)) as (left, _):
        calling = asyncio.create_task(left.call("never"))
        await started.wait()
        calling.cancel()
        await cancelled.wait()
        with pytest.raises(asyncio.CancelledError):
            await calling


async def test_a_late_reply_is_absorbed_and_the_conversation_continues() -> None:
    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, JsonRpc()) as peer:
        with pytest.raises(CallTimedOut):
            await peer.call("slow", timeout=0.01)
        await script.hear()
        script.say(b'{"jsonrpc":"2.0","id":1,"result":"late"}')
        calling = asyncio.create_task(peer.call("next"))
        await script.hear()
        script.say(b'{"jsonrpc":"2.0","id":2,"result":"in time"}')
        script.say(b'{"jsonrpc":"2.0","id":2,"result":"twice"}')
        assert await calling == "in time"
        while not peer.counts.unknown:
            await asyncio.sleep(0)
        assert (peer.counts.late, peer.counts.unknown) == (1, 1)


async def test_an_error_response_is_raised_with_code_message_and_data() -> None:
    def refuse() -> None:
        raise RpcError(-32004, "You may not.", {"why": 1})

    async with linked_peers(None, table(refuse=refuse)) as (left, _):
        with pytest.raises(RpcError, match="You may not") as caught:
            await left.call("refuse")
        assert caught.value.problem.code == -32004
        assert bytes(msgspec.json.encode(caught.value.problem.data)) == b'{"why":1}'


@pytest.mark.parametrize("kind", ["plain", "async", "unencodable", "unencodable data"])
async def test_a_handlers_exception_becomes_a_clean_error_and_a_line_in_the_log(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    def plain() -> None:
        raise ZeroDivisionError("hunter2 is the password")

    async def later() -> None:
        raise ZeroDivisionError("hunter2 is the password")

    def unencodable() -> Any:
        return object()

    def unencodable_data() -> None:
        raise RpcError(-32000, "no", object())

    handlers = {"plain": plain, "async": later, "unencodable": unencodable}
    handler = handlers.get(kind, unencodable_data)
    async with linked_peers(None, table(broken=handler, double=double)) as (left, _):
        with caplog.at_level(logging.ERROR, "telex.rpc"), pytest.raises(RpcError) as caught:
            await left.call("broken")
        assert caught.value.problem.code == -32603
        assert "hunter2" not in str(caught.value)
        assert "'broken' failed" in caplog.text
        assert await left.call("double", Number(1), returns=Number) == Number(2)


async def test_error_messages_are_redacted() -> None:
    def refuse() -> None:
        raise RpcError(-32000, "no such token: s3cret")

    ours, theirs = memory_channels()
    redact = lambda text: text.replace("s3cret", "[REDACTED]")  # noqa: E731
    async with (
        Peer(ours, JsonRpc()) as left,
        Peer(theirs, JsonRpc(), table(refuse=refuse), redact=redact),
    ):
        with pytest.raises(RpcError, match=r"no such token: \[REDACTED\]"):
            await left.call("refuse")


async def test_an_answer_of_another_type_is_named_as_such() -> None:
    async with linked_peers(None, table(double=double)) as (left, _):
        with pytest.raises(UnexpectedReply, match="double"):
            await left.call("double", Number(1), returns=str)


async def test_closing_fails_pending_calls_with_a_reason_and_stops_handlers() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def never() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with linked_peers(None, table(never=never)) as (left, right):
        calling = asyncio.create_task(left.call("never"))
        await started.wait()
        await right.close()
        assert stopped.is_set()
        with pytest.raises(RpcError, match="This peer is closing"):
            await calling
        with pytest.raises(PeerGone):
            await left.call("double")
        with pytest.raises(PeerGone):
            await left.notify("double")
        await right.close()


async def test_a_handler_may_close_its_own_peer() -> None:
    async def leave(call_params: Any, call: CallContext) -> None:
        await call.peer.close()

    async with linked_peers(None, table(leave=leave)) as (left, right):
        with pytest.raises(RpcError, match="This peer is closing"):
            await left.call("leave")
        await right.closed()


async def test_the_number_of_open_calls_is_bounded_and_the_others_wait() -> None:
    gate = asyncio.Event()
    running = 0
    most = 0

    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1

    async with linked_peers(None, table(count=count)) as (left, _):
        calls = [asyncio.create_task(left.call("count")) for _ in range(2 * limits.CALLS_IN_FLIGHT)]
        while most < limits.CALLS_IN_FLIGHT:
            await asyncio.sleep(0)
        assert left._conversation.calls == limits.CALLS_IN_FLIGHT
        gate.set()
        await asyncio.gather(*calls)
        assert most == limits.CALLS_IN_FLIGHT


async def test_a_peer_that_floods_and_never_reads_is_no_longer_read() -> None:
    """Unread responses first stop the serving of requests, and then the reading of the channel."""
    ours, theirs = memory_channels()
    served = 0

    def big() -> str:
        nonlocal served
        served += 1
        return "x" * 10_000

    async with Peer(ours, JsonRpc(), table(big=big)):
        for id in range(5000):
            theirs.send(b'{"jsonrpc":"2.0","id":%d,"method":"big"}' % id)
            if id % 100 == 0:
                await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert served < 2 * limits.OUTBOUND_BYTES / 10_000
        assert ours.unsent < 2 * limits.OUTBOUND_BYTES
        assert ours._paused
        script = Script(theirs)  # now the responses are read, and every request is served
        for _ in range(5000):
            await script.hear()
        assert served == 5000


async def test_two_peers_that_flood_each_other_with_large_answers_do_not_lock_up() -> None:
    async def big() -> str:
        return "x" * 200_000

    async with linked_peers(table(big=big), table(big=big)) as (left, right):
        answers = await asyncio.gather(
            *(peer.call("big") for peer in (left, right) for _ in range(300))
        )
        assert all(len(answer) == 200_000 for answer in answers)


async def test_a_message_too_large_to_send_is_the_callers_error_or_a_failed_answer() -> None:
    def huge() -> str:
        return "x" * wire_limits.LINE_BYTES

    async with linked_peers(None, table(huge=huge, double=double)) as (left, _):
        with pytest.raises(MessageTooLarge):
            await left.call("double", "x" * wire_limits.LINE_BYTES)
        with pytest.raises(RpcError, match="at most"):
            await left.call("huge")
        assert await left.call("double", Number(1), returns=Number) == Number(2)


async def test_an_answer_streams_in_parts() -> None:
    async def count(params: Number) -> AsyncIterator[int]:
        for n in range(params.n):
            yield n

    async with linked_peers(None, table(count=count), ESCAPES) as (left, _):
        assert [part async for part in left.stream("count", Number(5))] == [0, 1, 2, 3, 4]


async def test_leaving_a_stream_early_cancels_the_remote_generator() -> None:
    cancelled = asyncio.Event()

    async def endless(params: Any) -> AsyncIterator[int]:
        try:
            for n in range(1_000_000):
                yield n
                await asyncio.sleep(0)
        finally:
            cancelled.set()

    async with linked_peers(None, table(endless=endless), ESCAPES) as (left, _):
        stream = left.stream("endless", {})
        async for part in stream:
            if part == 3:
                break
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator, typed as iterator
        await cancelled.wait()


async def test_a_stream_that_fails_ends_with_its_error() -> None:
    async def broken(params: Any) -> AsyncIterator[int]:
        yield 1
        raise RpcError("ECDENIED", "no more for you")

    async with linked_peers(None, table(broken=broken), ESCAPES) as (left, _):
        seen = []
        with pytest.raises(RpcError, match="no more for you"):
            async for part in left.stream("broken", {}):
                seen.append(part)
        assert seen == [1]


async def test_a_reader_that_falls_too_far_behind_loses_its_stream_and_no_other() -> None:
    async def flood(params: Any) -> AsyncIterator[int]:
        for n in range(10_000):
            yield n

    async with linked_peers(None, table(flood=flood, double=double), ESCAPES) as (left, _):
        stream = left.stream("flood", {})
        first = await anext(aiter(stream))
        for _ in range(2 * limits.STREAM_PARTS):
            await asyncio.sleep(0)
        assert first == 0
        with pytest.raises(StreamOverrun, match="flood"):
            async for _ in stream:
                pass
        assert await left.call("double", Number(1), returns=Number) == Number(2)


@pytest.mark.parametrize("takes", [True, False])
async def test_unread_parts_block_their_sender(takes: bool) -> None:
    begin = asyncio.Event()
    sent = 0

    async def count(params: Any, call: CallContext) -> int:
        await begin.wait()
        return len([part async for part in call.parts if part.data is not ABSENT]) if takes else -1

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(20 * limits.STREAM_PARTS):
            sent += 1
            yield bytes(1024)

    near, far = memory_channels()
    async with (
        Peer(near, ESCAPES) as left,
        Peer(far, ESCAPES, table(count=count), pause_reading=True),
    ):
        called = asyncio.create_task(left.call("count", {}, parts=parts()))
        for _ in range(40 * limits.STREAM_PARTS):
            await asyncio.sleep(0)
        assert sent < 19 * limits.STREAM_PARTS
        begin.set()
        assert await called == (20 * limits.STREAM_PARTS if takes else -1)


async def test_a_request_streams_in_parts() -> None:
    async def total(params: Number, call: CallContext) -> int:
        sum_ = params.n
        async for part in call.parts:
            if part.data is not ABSENT:
                sum_ += msgspec.json.decode(part.data)
        return sum_

    async def numbers() -> AsyncIterator[int]:
        for n in (1, 2, 3):
            yield n

    async with linked_peers(None, table(total=total), ESCAPES) as (left, _):
        assert await left.call("total", Number(10), parts=numbers()) == 16


async def test_parts_that_fail_fail_the_call() -> None:
    async def total(params: Number, call: CallContext) -> int:
        return len([part async for part in call.parts])

    async def broken() -> AsyncIterator[int]:
        yield 1
        raise ZeroDivisionError("my own mistake")

    async with linked_peers(None, table(total=total), ESCAPES) as (left, _):
        with pytest.raises(ZeroDivisionError):
            await left.call("total", Number(1), parts=broken())


async def test_bytes_travel_as_bytes() -> None:
    def flip(params: bytes) -> bytes:
        return params[::-1]

    async with linked_peers(None, table(flip=flip), ESCAPES) as (left, _):
        assert await left.call("flip", b"\x00\x1b\xff") == b"\xff\x1b\x00"


async def test_escapes_answer_with_their_own_codes() -> None:
    async def never(params: Any) -> None:
        await asyncio.Event().wait()

    async with linked_peers(None, table(double=double, never=never), ESCAPES) as (left, _):
        for method, params, code in [
            ("nothing", {}, "ECNOCMD"),
            ("double", {"n": "x"}, "ECARGS"),
        ]:
            with pytest.raises(RpcError) as caught:
                await left.call(method, params)
            assert caught.value.problem.code == code


async def test_the_deadline_of_a_request_is_kept_by_the_side_that_serves_it() -> None:
    async def never(params: Any) -> None:
        await asyncio.Event().wait()

    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, ESCAPES, table(never=never)):
        script.say(b'{"command":"never","rpcid":"1","timeout":10,"data":{}}')
        assert (await script.hear()).startswith(b'{"resid":"1","error":"ECTIMEOUT: ')


async def test_a_cancel_is_answered_with_the_protocols_own_code() -> None:
    started = asyncio.Event()

    async def never() -> None:
        started.set()
        await asyncio.Event().wait()

    ours, theirs = memory_channels()
    script = Script(theirs)
    dialect = JsonRpc(codes={Condition.CANCELLED: -32800}, cancel_method="$/cancelRequest")
    async with Peer(ours, dialect, table(never=never)):
        script.say(b'{"jsonrpc":"2.0","id":1,"method":"never"}')
        await started.wait()
        script.say(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}')
        assert b'"code":-32800' in await script.hear()


async def test_a_request_cancelled_in_the_queue_never_runs() -> None:
    gate = asyncio.Event()
    ran: list[int] = []

    async def run(params: Number) -> None:
        ran.append(params.n)
        await gate.wait()

    ours, theirs = memory_channels()
    script = Script(theirs)
    last = limits.CALLS_IN_FLIGHT
    async with Peer(ours, JsonRpc(cancel_method="$/cancelRequest"), table(run=run)):
        for n in range(last + 1):
            script.say(b'{"jsonrpc":"2.0","id":%d,"method":"run","params":{"n":%d}}' % (n, n))
        script.say(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}' % last)
        assert b"cancelled" in await script.hear()
        gate.set()
        for _ in range(last):
            await script.hear()
        assert last not in ran


async def test_a_side_that_ends_its_output_still_gets_its_responses_and_then_the_close() -> None:
    gate = asyncio.Event()

    async def wait() -> str:
        await gate.wait()
        return "waited"

    ours, theirs = memory_channels()
    script = Script(theirs)
    peer = Peer(ours, JsonRpc(), table(wait=wait, double=double))
    calling = asyncio.create_task(peer.call("never answered"))
    await script.hear()
    script.say(b'{"jsonrpc":"2.0","id":1,"method":"wait"}')
    script.say(b'{"jsonrpc":"2.0","id":2,"method":"double","params":{"n":1}}')
    theirs.finish()
    with pytest.raises(PeerGone, match="ended its output"):
        await calling
    assert b'"id":2' in await script.hear()
    gate.set()
    assert b'"waited"' in await script.hear()
    await peer.closed()


async def test_an_error_message_that_is_not_unicode_is_escaped() -> None:
    def refuse() -> None:
        raise RpcError(-32000, "no such file: \udcff")

    async with linked_peers(None, table(refuse=refuse)) as (left, _):
        with pytest.raises(RpcError, match=r"no such file: \\udcff"):
            await left.call("refuse")


async def test_callers_that_are_cancelled_pass_their_slot_to_the_next() -> None:
    gate = asyncio.Event()

    async def wait() -> None:
        await gate.wait()

    async with linked_peers(None, table(wait=wait, double=double)) as (left, _):
        first = [asyncio.create_task(left.call("wait")) for _ in range(limits.CALLS_IN_FLIGHT)]
        impatient = [asyncio.create_task(left.call("wait")) for _ in range(limits.CALLS_IN_FLIGHT)]
        patient = asyncio.create_task(left.call("double", Number(1), returns=Number))
        await asyncio.sleep(0)
        waiting = len(left._calling._turns)
        assert waiting == limits.CALLS_IN_FLIGHT + 1
        gate.set()
        while len(left._calling._turns) == waiting:
            await asyncio.sleep(0)
        for task in impatient:  # each has been given a slot, and none has used it
            task.cancel()
        await asyncio.gather(*first)
        await asyncio.gather(*impatient, return_exceptions=True)
        assert await patient == Number(2)


async def test_leaving_a_stream_early_runs_the_generators_cleanup_at_once() -> None:
    ended = asyncio.Event()

    async def endless(params: Any) -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.set()

    ours, theirs = memory_channels()
    async with Peer(ours, ESCAPES, table(endless=endless)):
        theirs.send(b'{"command":"endless","rpcid":"1","data":{}}')
        while not ours.unsent > limits.OUTBOUND_BYTES:
            await asyncio.sleep(0)
    assert ended.is_set()


async def test_parts_may_repeat_the_command() -> None:
    async def total(params: Any, call: CallContext) -> int:
        return params + sum([msgspec.json.decode(part.data) async for part in call.parts])

    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, ESCAPES, table(total=total)):
        for packet in (b'"cont":true,"data":1', b'"cont":true,"data":2', b'"data":3'):
            script.say(b'{"command":"total","rpcid":"1",%b}' % packet)
        assert await script.hear() == b'{"resid":"1","data":6}'


async def test_a_datatype_travels_with_its_part_both_ways() -> None:
    async def echo(params: Any, call: CallContext) -> AsyncIterator[Typed]:
        async for part in call.parts:
            if part.data is not ABSENT:
                yield Typed(f"back:{part.datatype}", part.data)

    async def parts() -> AsyncIterator[Typed]:
        yield Typed("line", "a")
        yield Typed("word", "b")

    async with linked_peers(None, table(echo=echo), ESCAPES) as (left, _):
        stream = left.stream("echo", {}, returns=Reply, parts=parts())
        assert [reply.datatype async for reply in stream] == ["back:line", "back:word"]


async def test_a_malformed_response_fails_its_call() -> None:
    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, JsonRpc()) as peer:
        for broken in (
            b'"result":1,"error":{"code":1,"message":"x"}',
            b'"error":7',
            b'"error":null',
            b'"method":null,"error":{"code":1}',
        ):
            calling = asyncio.create_task(peer.call("x"))
            id = msgspec.json.decode(await script.hear())["id"]
            script.say(b'{"jsonrpc":"2.0","id":%d,%b}' % (id, broken))
            with pytest.raises(RpcError):
                await calling
        assert peer.counts.malformed == 4


async def test_raw_json_laid_out_over_lines_is_sent_on_one() -> None:
    def laid_out() -> msgspec.Raw:
        return msgspec.Raw(b'{\n\t"a": "b"\r\n}')

    async with linked_peers(None, table(laid_out=laid_out)) as (left, _):
        assert await left.call("laid_out") == {"a": "b"}


async def test_values_quoted_by_validation_errors_are_redacted() -> None:
    secret = "sk-" + "a1B2" * 8
    async with linked_peers(None, table(choose=choose)) as (left, _):
        with pytest.raises(RpcError, match="REDACTED") as caught:
            await left.call("choose", {"kind": secret})
        assert secret not in str(caught.value)


async def test_a_request_repeated_while_it_is_served_is_answered_once_where_that_is_wanted() -> (
    None
):
    go = asyncio.Event()

    async def slow() -> int:
        await go.wait()
        return 7

    ours, theirs = memory_channels()
    script = Script(theirs)
    async with Peer(ours, JsonRpc(), table(slow=slow), repeats=True) as peer:
        for _ in range(2):
            script.say(b'{"jsonrpc":"2.0","id":"ui_1","method":"slow"}')
        script.say(b'{"jsonrpc":"2.0","id":"x","method":"nothing"}')
        assert b'"id":"x"' in await script.hear()
        go.set()
        assert await script.hear() == b'{"jsonrpc":"2.0","id":"ui_1","result":7}'
        assert peer.counts.repeated == 1
        script.say(b'{"jsonrpc":"2.0","id":"ui_1","method":"slow"}')
        assert b'"result":7' in await script.hear()
        assert peer.why_ended == ""
    assert peer.why_ended == "this side closed the conversation"
