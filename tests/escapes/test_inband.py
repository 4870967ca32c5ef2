"""The in-band channel, with bytes in place of a program."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from telex.escapes import limits
from telex.escapes.inband import REFUSALS, InBandChannel, RateAllowance, TerminalDialect
from telex.rpc import limits as rpc_limits
from telex.rpc.errors import CallTimedOut, RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.messages import Failure, Malformed, Reply, Request
from telex.rpc.methods import Methods
from telex.rpc.peer import MessageTooLarge, Peer
from telex.wire import json_escape
from telex.wire import limits as wire_limits
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault

SHELL, PROGRAM, OTHER = 10, 20, 30


class Terminal:
    """A demux on the output, and a peer. The test sets the foreground group."""

    def __init__(self, methods: Methods | None = None) -> None:
        self.typed = b""
        self.foreground: int | None = PROGRAM
        self.echoes = False
        self.unread = 0
        self.read = asyncio.Event()
        self.channel = InBandChannel(
            self._type,
            lambda: self.foreground,
            echoes=lambda: self.echoes,
            unread=lambda: self.unread,
            read=self.read.wait,  # type: ignore[arg-type]
        )
        self.peer = Peer(self.channel, self.channel.dialect, methods or served())
        self._demux = Demux((json_escape.TO_TERMINAL, json_escape.TO_PROGRAM))
        self._news = asyncio.Event()

    async def __aenter__(self) -> Terminal:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.peer.close()

    def prints(self, data: bytes) -> None:
        for event in self._demux.feed(data):
            match event:
                case Claimed():
                    self.channel.claimed(event)
                case Fault():
                    self.channel.fault(event)

    def asks(self, command: str, rpcid: str = "1", **more: Any) -> None:
        self.says({"command": command, "rpcid": rpcid, **more})

    def says(self, packet: Any) -> None:
        self.prints(json_escape.encode(json.dumps(packet).encode()))

    async def hears(self, count: int = 1) -> list[Any]:
        """Wait for the next frames on the program's input."""
        async with asyncio.timeout(60):
            while len(found := self.heard()) < count:
                self._news.clear()
                await self._news.wait()
        self.typed = b""
        return found

    def takes(self) -> bytes:
        """Return the exact bytes on the program's input."""
        typed, self.typed = self.typed, b""
        return typed

    def heard(self) -> list[Any]:
        """Parse the input, and check its form: numbers, printable ASCII, BEL."""
        frames = re.findall(rb"\x1b\]23199;([0-9]+);([ -~]+)\x07", self.typed)
        assert sum(len(n) + len(body) + 10 for n, body in frames) == len(self.typed)
        assert all(int(n) == len(body) for n, body in frames)
        return [json.loads(body) for _, body in frames]

    def _type(self, data: bytes) -> None:
        self.typed += data
        self._news.set()


def served() -> Methods:
    def echo(data: Any) -> Any:
        return data

    async def wait(data: float) -> str:
        await asyncio.sleep(data)
        return "waited"

    async def gather(data: Any, call: CallContext) -> list[Any]:
        return [
            part.data.hex() if isinstance(part.data, bytes) else msgspec.json.decode(part.data)
            async for part in call.parts
            if part.data is not msgspec.UNSET
        ]

    async def count(data: int) -> AsyncIterator[int]:
        for n in range(data):
            yield n

    async def slowly(data: float) -> AsyncIterator[int]:
        for n in range(5):
            await asyncio.sleep(data)
            yield n

    def breaks(data: Any) -> None:
        raise RuntimeError(str(data))

    def refuses(data: Any) -> None:
        raise RpcError("ECDENIED", "No.")

    methods = Methods()
    for handler in (echo, wait, gather, count, slowly, breaks, refuses):
        methods.add(f"t:{handler.__name__}", handler)
    return methods


def detect() -> dict[str, Any]:
    return {}


# Requests and replies.


async def test_a_request_is_answered_by_its_id_in_plain_ascii() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:echo", "a.B_c:d-9", data="Ü🙂\n\x1b\\\x07\x7f")
        assert await terminal.hears() == [{"resid": "a.B_c:d-9", "data": "Ü🙂\n\x1b\\\x07\x7f"}]


async def test_both_endings_both_spellings_and_no_length_are_read() -> None:
    async with Terminal() as terminal:
        terminal.prints(b'\x1b]23198;0;{"command":"t:echo","rpcid":"1","data":1}\x1b\\')
        terminal.prints(b'\x1b]23198;44;{"command":"t:echo","rpcid":"3","data":"\xc3\x9c"}\x07')
        assert [reply["data"] for reply in await terminal.hears(2)] == [1, "Ü"]
        terminal.prints(b'\x1b]23198;{"command":"t:echo","reqid":"2","data":2}\x07')
        assert terminal.takes() == b'\x1b]23199;{"resid":"2","data":2}\x07'


# Wave's form: no length, and `reqid`. Its reader parses everything after the number as JSON.


def wave(**packet: Any) -> bytes:
    return b"\x1b]23198;%b\x07" % json.dumps(packet, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        (wave(command="t:echo", reqid="1", data="Ü"), [rb'{"resid":"1","data":"\u00dc"}']),
        (wave(command="t:echo", rpcid="1", data=2), [b'{"resid":"1","data":2}']),
        (wave(command="t:refuses", reqid="1"), [b'{"resid":"1","error":"ECDENIED: No."}']),
        (
            wave(command="no:such", reqid="1"),
            [b'{"resid":"1","error":"ECNOCMD: '],
        ),
        (wave(command="t:wait", reqid="1", data="x"), [b'{"resid":"1","error":"ECARGS: ']),
        (
            wave(command="t:echo", reqid="1", data=1, data64="eA=="),
            [b'{"resid":"1","error":"ECPROTO'],
        ),
        (wave(command="t:echo", reqid="1", data="x" * 4000), [b'{"resid":"1","error":"ECLIMIT']),
        (
            wave(command="t:echo", reqid="1", data="x" * 2_000_000),
            [b'{"resid":"1","error":"ECLIMIT'],
        ),
        (
            wave(command="t:wait", reqid="1", data=9, timeout=1),
            [b'{"resid":"1","error":"ECTIMEOUT'],
        ),
        (
            wave(command="t:count", reqid="1", data=2),
            [b'{"resid":"1","cont":true,"data":0}', b'"data":1}', b'{"resid":"1"}'],
        ),
        (
            wave(command="t:gather", reqid="1", cont=True) + wave(reqid="1", data=5),
            [b'{"resid":"1","data":[5]}'],
        ),
    ],
)
async def test_a_request_in_waves_form_is_answered_in_it(
    asked: bytes, answers: list[bytes]
) -> None:
    async with Terminal() as terminal:
        terminal.prints(asked)
        async with asyncio.timeout(60):
            while terminal.typed.count(b"\x07") < len(answers):
                terminal._news.clear()
                await terminal._news.wait()
        frames = terminal.takes().split(b"\x07")[:-1]
        assert all(frame.startswith(b'\x1b]23199;{"resid":"1"') for frame in frames)
        for frame, expected in zip(frames, answers, strict=True):
            assert expected in frame


async def test_each_answer_has_the_form_of_its_own_request() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:wait", "spec", data=0.01)
        terminal.prints(wave(command="t:wait", reqid="wave", data=0.01))
        terminal.asks("t:echo", "last", data=1)
        async with asyncio.timeout(60):
            while terminal.typed.count(b"\x07") < 3:
                terminal._news.clear()
                await terminal._news.wait()
        typed = terminal.takes()
        assert b'\x1b]23199;{"resid":"wave","data":"waited"}\x07' in typed
        assert b'\x1b]23199;32;{"resid":"spec","data":"waited"}\x07' in typed


async def test_a_program_with_waves_form_gets_notifications_and_requests_in_it() -> None:
    async with Terminal() as terminal:
        terminal.prints(wave(command="t:echo", reqid="1", data=1))
        terminal.says({"command": "t:echo", "data": 1})  # a notification, without a form of its own
        terminal.takes()
        await terminal.peer.notify("event:focus", {"focused": True})
        event = b'\x1b]23199;{"command":"event:focus","data":{"focused":true}}\x07'
        assert terminal.takes() == event
        call = asyncio.create_task(terminal.peer.call("ask", Raw(b"[1,\n 2]"), timeout=5))
        await asyncio.sleep(0)
        asked = terminal.takes()
        assert asked.startswith(
            b'\x1b]23199;{"command":"ask","timeout":5000,"data":[1,  2],"reqid":'
        )
        terminal.prints(wave(resid="t1", data=7))
        assert await call == 7
        terminal.asks("t:echo", "2", data=1)
        terminal.takes()
        await terminal.peer.notify("event:focus", {"focused": True})
        assert terminal.takes().startswith(b'\x1b]23199;49;{"command":"event:focus"')


# A request in parts that is refused.


async def test_the_parts_of_a_refused_request_are_skipped_and_it_gets_one_error() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:refuses", cont=True)
        (refusal,) = await terminal.hears()
        assert refusal == {"resid": "1", "error": "ECDENIED: No."}
        terminal.says({"rpcid": "1", "cont": True, "data": 2})
        terminal.asks("t:refuses", cont=True, data=3)  # a part may repeat the command
        terminal.asks("t:echo", data=4)
        terminal.asks("t:echo", "2", data=5)
        assert await terminal.hears() == [{"resid": "2", "data": 5}]
        assert not terminal.channel.dialect._asked
        terminal.asks("t:echo", data=6)  # after the last part, this is another request
        assert await terminal.hears() == [{"resid": "1", "data": 6}]


async def test_a_cancel_ends_the_wait_for_the_rest_of_a_refused_request() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:refuses", cont=True)
        await terminal.hears()
        terminal.says({"rpcid": "1", "cancel": True})
        terminal.asks("t:echo", data=6)
        assert await terminal.hears() == [{"resid": "1", "data": 6}]


async def test_the_parts_of_a_request_that_timed_out_are_not_a_new_request() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:gather", cont=True, timeout=1)
        (reply,) = await terminal.hears()
        assert reply["error"].startswith("ECTIMEOUT")
        terminal.asks("t:gather", data=2)
        terminal.asks("t:echo", "2", data=5)
        assert await terminal.hears() == [{"resid": "2", "data": 5}]


async def test_a_notification_gets_no_reply_and_its_errors_are_counted() -> None:
    async with Terminal() as terminal:
        for command in ("t:echo", "t:refuses", "no:such", "t:count", "t:breaks"):
            terminal.says({"command": command, "data": "x"})
        terminal.asks("t:echo", data=1)
        assert await terminal.hears() == [{"resid": "1", "data": 1}]
        assert terminal.peer.counts.notification_errors == 4


async def test_an_exception_in_a_handler_is_reported_without_its_text() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:breaks", data="$(reboot)")
        (reply,) = await terminal.hears()
        assert reply["error"].startswith("ECINTERNAL: ")
        assert "reboot" not in reply["error"]


async def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_gets_its_reply() -> (
    None
):
    async with Terminal() as terminal:
        terminal.asks("t:wait", data=0.01)
        terminal.asks("t:echo", data=2)
        first, second = await terminal.hears(2)
        assert first == {"resid": "1", "error": "ECPROTO: The message is not a valid request."}
        assert second == {"resid": "1", "data": "waited"}
        terminal.asks("t:echo", data=3)
        assert (await terminal.hears())[0]["data"] == 3


@pytest.mark.parametrize("id", ["", "a b", "a\nb", "ä", "x" * 65, "$(x)", "a;b"])
async def test_a_request_with_an_invalid_id_is_counted_and_gets_no_reply(id: str) -> None:
    async with Terminal() as terminal:
        terminal.asks("t:echo", id, data=1)
        terminal.asks("t:echo", "good", data=2)
        assert await terminal.hears() == [{"resid": "good", "data": 2}]
        assert terminal.peer.counts.malformed == 1


# Streams and timeouts.


async def test_a_request_comes_in_parts_of_json_and_of_bytes() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:gather", cont=True)
        terminal.says({"rpcid": "1", "cont": True, "data": [1]})
        terminal.says({"rpcid": "1", "cont": True, "data64": "AP8=", "datatype": "binary"})
        terminal.says({"rpcid": "1", "cont": True, "data64": "eyJhIjoxfQ=="})
        terminal.says({"rpcid": "1"})
        assert await terminal.hears() == [{"resid": "1", "data": [[1], "00ff", {"a": 1}]}]


async def test_an_answer_comes_in_parts_and_two_streams_at_once() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:count", "a", data=2)
        terminal.asks("t:count", "b", data=3)
        replies = await terminal.hears(7)
        for id, numbers in (("a", [0, 1]), ("b", [0, 1, 2])):
            mine = [reply for reply in replies if reply["resid"] == id]
            assert [reply["data"] for reply in mine[:-1]] == numbers
            assert all(reply["cont"] for reply in mine[:-1])
            assert mine[-1] == {"resid": id}


async def test_a_cancel_ends_a_request() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:wait", data=60)
        terminal.says({"rpcid": "1", "cancel": True})
        (reply,) = await terminal.hears()
        assert reply["error"] == "ECCANCEL: The request was cancelled."


async def test_a_request_beyond_its_timeout_is_ectimeout() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:wait", data=60, timeout=30)
        (reply,) = await terminal.hears()
        assert reply["error"].startswith("ECTIMEOUT: ")


def test_the_default_timeout_is_five_seconds_and_every_timeout_is_bounded() -> None:
    dialect = TerminalDialect(lambda: 1, lambda: 0.0, lambda: True)
    for said, seconds in [({}, 5.0), ({"timeout": 0}, 5.0), ({"timeout": 20}, 0.02)]:
        decoded = dialect.decode(json.dumps({"command": "x", "rpcid": "1", **said}).encode())
        assert isinstance(decoded, Request)
        assert decoded.timeout == seconds
        dialect.encode(Reply(decoded.id))
    longest = dialect.decode(b'{"command":"x","rpcid":"l","timeout":1e300}')
    assert isinstance(longest, Request)
    assert longest.timeout == limits.ESCAPE_TIMEOUT_SECONDS


async def test_the_timeout_of_a_stream_restarts_with_each_packet() -> None:
    """Five parts 60 ms apart take longer in total than the timeout of 150 ms."""
    async with Terminal() as terminal:
        terminal.asks("t:slowly", "down", data=0.06, timeout=150)
        terminal.asks("t:gather", "up", cont=True, timeout=150)
        for n in range(5):
            await asyncio.sleep(0.06)
            terminal.says({"rpcid": "up", "cont": n < 4, "data": n})
        replies = await terminal.hears(7)
        assert {"resid": "down"} in replies
        assert {"resid": "up", "data": [0, 1, 2, 3, 4]} in replies
        terminal.asks("t:gather", "up", cont=True, timeout=50)
        assert (await terminal.hears())[0]["error"].startswith("ECTIMEOUT: ")


# Requests of the terminal.


async def test_the_terminal_calls_the_program_that_sent_a_request() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:echo", data=1)
        await terminal.hears()
        calling = asyncio.create_task(terminal.peer.call("prog:ask", {"n": 1}))
        (call,) = await terminal.hears()
        assert (call["command"], call["data"]) == ("prog:ask", {"n": 1})
        terminal.says({"resid": call["rpcid"], "data": 2})
        assert await calling == 2


async def test_the_timeout_of_a_streamed_response_of_the_program_restarts_too() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:echo", data=1)
        await terminal.hears()
        parts = terminal.peer.stream("prog:tail", timeout=0.15)
        first = asyncio.create_task(anext(parts))
        (call,) = await terminal.hears()
        for n in range(5):
            await asyncio.sleep(0.06)
            terminal.says({"resid": call["rpcid"], "cont": True, "data": n})
        assert await first == 0
        terminal.says({"resid": call["rpcid"]})
        assert [part async for part in parts] == [1, 2, 3, 4]


async def test_a_program_without_a_request_gets_no_frames() -> None:
    async with Terminal() as terminal:
        terminal.says({"command": "t:echo"})
        await terminal.peer.notify("event:key", {})
        with pytest.raises(CallTimedOut):
            await terminal.peer.call("prog:ask", timeout=0.01)
        terminal.asks("t:echo")
        await terminal.hears()
        terminal.foreground = OTHER
        await terminal.peer.notify("event:key", {})
        assert terminal.typed == b""


async def test_a_call_that_does_not_fit_fails_here() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:echo")
        await terminal.hears()
        with pytest.raises(MessageTooLarge, match="parts of a stream"):
            await terminal.peer.notify("event:paste", {"text": "x" * 3000})


# The addressee of a reply.


async def test_a_reply_is_for_the_process_group_of_the_request() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:wait", "gone", data=0.01)
        terminal.foreground = SHELL
        terminal.asks("t:wait", "shell", data=0.03)
        assert await terminal.hears() == [{"resid": "shell", "data": "waited"}]
        assert terminal.channel.dialect.unanswered.gone == 1


async def test_a_request_without_a_requester_to_reply_to_is_not_executed() -> None:
    async with Terminal() as terminal:
        terminal.foreground = None
        terminal.asks("t:echo", data=1)
        terminal.says({"command": "t:echo", "rpcid": "2", "data": 1, "data64": "AA=="})
        assert terminal.typed == b""
        terminal.foreground = PROGRAM
        terminal.asks("t:echo", data=2)
        assert await terminal.hears() == [{"resid": "1", "data": 2}]


async def test_a_stream_is_no_longer_sent_when_its_program_leaves_the_foreground() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:slowly", data=0.01)
        await terminal.hears()
        terminal.foreground = OTHER
        terminal.typed = b""
        async with asyncio.timeout(60):
            while terminal.channel.dialect._asked:
                await asyncio.sleep(0.01)
        assert terminal.typed == b""


async def test_while_the_terminal_echoes_a_reply_is_held_and_then_dropped() -> None:
    async with Terminal() as terminal:
        terminal.echoes = True
        terminal.asks("t:echo", "1")
        terminal.asks("t:echo", "2")
        assert terminal.typed == b""
        terminal.echoes = False
        terminal.asks("t:echo", "3")
        assert [reply["resid"] for reply in await terminal.hears(3)] == ["1", "2", "3"]
        terminal.echoes = True
        terminal.asks("t:echo", "4")
        async with asyncio.timeout(60):
            while not terminal.channel.undelivered:
                await asyncio.sleep(0.01)
        terminal.echoes = False
        terminal.asks("t:echo", "5")
        terminal.foreground = OTHER
        assert [reply["resid"] for reply in await terminal.hears()] == ["5"]


async def test_a_held_reply_does_not_reach_another_program() -> None:
    async with Terminal() as terminal:
        terminal.echoes = True
        terminal.asks("t:echo")
        terminal.echoes, terminal.foreground = False, SHELL
        async with asyncio.timeout(60):
            while not terminal.channel.undelivered:
                await asyncio.sleep(0.01)
        assert terminal.typed == b""


async def test_a_shell_that_switches_the_echo_off_in_between_gets_no_reply() -> None:
    """The program ends after the look at the foreground, and its shell edits the next line."""
    async with Terminal() as terminal:

        def ends() -> bool:
            terminal.foreground = SHELL
            return False

        terminal.channel._echoes = ends
        terminal.asks("t:echo", data="x")
        async with asyncio.timeout(60):
            while not terminal.channel.undelivered:
                assert terminal.typed == b""
                await asyncio.sleep(0)


async def test_echoes_of_our_frames_are_only_counted() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:echo", data={"command": "t:echo", "rpcid": "x"})
        await terminal.hears()
        terminal.prints(b'\x1b]23199;0;{"command":"t:echo","rpcid":"2"}\x07')
        terminal.prints(b"\x1b]23199;0;" + b"x" * (wire_limits.CONTROL_STRING_BYTES + 1) + b"\x07")
        assert terminal.channel.echoed == 2
        assert terminal.typed == b""


# Limits.


async def test_a_frame_has_two_kilobytes_until_the_program_announces_more() -> None:
    async with Terminal() as terminal:
        terminal.peer._serving._methods.add("detect", detect)
        terminal.asks("t:echo", data="x" * 1900)
        terminal.asks("t:echo", "2", data="x" * 2100)
        terminal.asks("t:echo", "3", data="\u00fc" * 400)
        fits, large, spelled = await terminal.hears(3)
        assert len(fits["data"]) == 1900
        assert (
            large["error"] == spelled["error"] == "ECLIMIT: The response is too large for a frame."
        )
        terminal.asks("detect", data={"maxframe": 5000})
        terminal.asks("t:echo", data="x" * 4000)
        assert len((await terminal.hears(2))[1]["data"]) == 4000
        terminal.foreground = OTHER
        terminal.asks("t:echo", data="x" * 4000)
        assert "ECLIMIT" in (await terminal.hears())[0]["error"]


@pytest.mark.parametrize("say", [{}, {"maxframe": -1}, {"maxframe": "x"}, {"maxframe": 1 << 70}, 7])
async def test_any_announced_frame_size_is_handled(say: Any) -> None:
    async with Terminal() as terminal:
        terminal.peer._serving._methods.add("detect", detect)
        terminal.asks("detect", data=say)
        terminal.asks("t:echo", data="x" * 1900)
        assert len((await terminal.hears(2))[1]["data"]) == 1900


async def test_a_part_that_does_not_fit_ends_its_stream() -> None:
    async def large(data: Any) -> AsyncIterator[str]:
        for n in (1, 5000, 1):
            yield "x" * n

    methods = Methods()
    methods.add("t:large", large)
    async with Terminal(methods) as terminal:
        terminal.asks("t:large")
        async with asyncio.timeout(60):
            while terminal.peer._serving._tasks:
                await asyncio.sleep(0)
        first, last = terminal.heard()
        assert (first["data"], last["error"][:8]) == ("x", "ECLIMIT:")


async def test_a_frame_that_is_too_long_gets_an_error_if_its_id_comes_first() -> None:
    long = b'"data":"' + b"x" * wire_limits.CONTROL_STRING_BYTES + b'"}'
    async with Terminal() as terminal:
        terminal.prints(
            b'\x1b]23198;0;{"command":"t:echo","timeout":5,"rpcid":"L1",' + long + b"\x07"
        )
        (reply,) = await terminal.hears()
        assert reply == {
            "resid": "L1",
            "error": "ECLIMIT: The frame is longer than this terminal reads.",
        }
        terminal.prints(b'\x1b]23198;0;{"data":{"rpcid":"not:this"},"rpcid":"L2",' + long + b"\x07")
        terminal.prints(b'\x1b]23198;0;{"command":"t:echo",' + long + b"\x07")
        assert terminal.typed == b""
        terminal.asks("t:echo", data=1)
        assert await terminal.hears() == [{"resid": "1", "data": 1}]


async def test_requests_beyond_the_allowance_get_ecbusy_then_nothing_and_later_replies() -> None:
    async with Terminal() as terminal:
        terminal.channel._count = RateAllowance(50)
        for n in range(1000):
            terminal.asks("t:echo", str(n))
        replies = terminal.heard()
        busy = [reply for reply in replies if "ECBUSY" in reply.get("error", "")]
        assert 0 < len(busy) <= REFUSALS * 3
        assert 0 < len(replies) - len(busy) < 200
        assert terminal.channel.dialect.unanswered.busy > len(busy)
        terminal.typed = b""
        async with asyncio.timeout(60):
            while not terminal.channel._has_room():
                await asyncio.sleep(0.01)
        terminal.asks("t:echo", "later", data=1)
        assert await terminal.hears() == [{"resid": "later", "data": 1}]


async def test_a_program_that_reads_no_replies_gets_none_and_its_streams_wait() -> None:
    async with Terminal() as terminal:
        terminal.asks("t:count", "stream", data=3, timeout=1000)
        terminal.unread = limits.ESCAPE_UNREAD_BYTES + 1
        terminal.asks("t:echo", "busy")
        for _ in range(10):
            await asyncio.sleep(0)
        assert [reply.get("error", "")[:6] for reply in terminal.heard()] == ["ECBUSY", ""]
        terminal.unread = 0
        terminal.read.set()
        async with asyncio.timeout(60):
            while len(terminal.heard()) < 5:
                await asyncio.sleep(0)


async def test_too_many_requests_in_flight_get_ecbusy() -> None:
    async with Terminal() as terminal:
        for n in range(rpc_limits.CALLS_IN_FLIGHT + 1):
            terminal.asks("t:wait", str(n), data=60)
        (reply,) = await terminal.hears()
        assert reply["resid"] == str(rpc_limits.CALLS_IN_FLIGHT)
        assert reply["error"].startswith("ECBUSY: ")


def test_an_allowance_limits_bursts_and_the_rate() -> None:
    allowance = RateAllowance(10)
    for _ in range(10):
        assert allowance.left(100.0)
        allowance.spend(1, 100.0)
    assert not allowance.left(100.0)
    allowance.spend(5, 100.0)
    assert allowance.wait(100.0) == pytest.approx(0.5)
    assert not allowance.left(100.4)
    assert allowance.left(100.6)
    allowance.spend(10, 200.0)
    assert not allowance.left(200.0)


# Hostile input.

_JUNK = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"\x1b]23198;0;",
            b"\x1b]23199;0;",
            b"\x07",
            b"\x1b\\",
            b"\x18",
            b'{"command":"t:echo","rpcid":"1","data":',
            b'{"rpcid":"1","cont":true}',
            b'{"resid":"t1"}',
            b'"data64":"AA=="',
            b"}",
            b"\x9c",
            "Ü".encode(),
        ]
    ),
)


@given(st.lists(_JUNK, max_size=12))
def test_nothing_a_program_prints_breaks_the_channel_or_is_reflected(pieces: list[bytes]) -> None:
    async def run() -> None:
        async with Terminal() as terminal:
            for piece in pieces:
                terminal.prints(piece)
            terminal.prints(b"\x18\x07")
            terminal.heard()  # also checks the form of all frames
            terminal.typed = b""
            terminal.asks("t:echo", "good", data=1)
            async with asyncio.timeout(60):
                while {"resid": "good", "data": 1} not in terminal.heard():
                    await asyncio.sleep(0)

    asyncio.run(run())


@given(st.binary(max_size=300))
def test_the_dialect_never_raises_for_output_of_a_program(body: bytes) -> None:
    dialect = TerminalDialect(lambda: 1, lambda: 0.0, lambda: True)
    found = dialect.decode(body)
    if isinstance(found, Malformed) and isinstance(found.answer, Failure):
        assert re.fullmatch(rb"[ -~]*", dialect.encode(found.answer))
