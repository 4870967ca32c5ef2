"""The program's side, through a real PTY: probing, calls, streams, events, keys, and every way out."""

from __future__ import annotations

import asyncio
import os
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from escapes.terminals import SILENT, SPEAKS, FakeTerminal, Manners, terminal
from telex.escapes.client import AsyncAnsweringTerminal, Degrade, connect
from telex.escapes.client_commands import CommandMethods
from telex.escapes.commands import COMMANDS
from telex.escapes.errors import FrameTooLarge, NoTerminal, NotSupported, NotTaken
from telex.escapes.protocol import Guard
from telex.escapes.sync import AnsweringTerminal
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.errors import CallTimedOut, PeerGone, RpcError, StreamOverrun
from telex.rpc.handler_tasks import CallContext
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.transports import unix

NOWHERE: dict[str, str] = {}


def reply(data: Any) -> Any:
    """Return a handler with this result."""

    def handler() -> Any:
        return data

    handler.__annotations__["return"] = Any
    return handler


@asynccontextmanager
async def connected(
    manners: Manners | None = None,
    *,
    timeout: float = 1.0,
    degrade: Degrade | None = None,
    methods: dict[str, Any] | None = None,
    **handlers: Any,
) -> AsyncIterator[tuple[FakeTerminal, AsyncAnsweringTerminal]]:
    async with (
        terminal(manners, **handlers) as fake,
        connect(
            fd=fake.fd, environ=NOWHERE, timeout=timeout, degrade=degrade, methods=methods
        ) as term,
    ):
        yield fake, term


@pytest.mark.each_loop
async def test_a_terminal_with_the_attribute_is_connected(loop: str) -> None:
    async with connected() as (_, term):
        assert term.via == "terminal"
        assert term.capabilities == {"term": {"level": 2}}
        assert term.supports("term:title")
        assert not term.supports("clip:read")
        assert term.maxframe == 65536
        assert term.round_trip is not None


async def test_while_connected_nothing_is_echoed_and_ctrl_c_works() -> None:
    async with terminal() as fake:
        async with connect(fd=fake.fd, environ=NOWHERE):
            local = fake.modes()[3]
            assert not local & (termios.ECHO | termios.ICANON)
            assert local & termios.ISIG
        assert fake.restored()
        assert bytes(fake.shown) == b""


async def test_the_terminal_is_restored_when_the_block_raises_or_is_cancelled() -> None:
    async with terminal() as fake:
        with pytest.raises(ZeroDivisionError):
            async with connect(fd=fake.fd, environ=NOWHERE):
                _ = 1 // 0
        assert fake.restored()
        entered = asyncio.Event()

        async def program() -> None:
            async with connect(fd=fake.fd, environ=NOWHERE):
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(program())
        await entered.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert fake.restored()


async def test_a_terminal_without_the_attribute_is_not_supported_and_restored() -> None:
    async with terminal(Manners(answers=[SILENT])) as fake:
        with pytest.raises(NotSupported, match="does not speak JSON escapes"):
            await connect(fd=fake.fd, environ=NOWHERE)
        assert fake.restored()
        assert fake.frames == [], "who does not speak it is sent none of it"


async def test_a_terminal_that_never_replies_takes_the_timeout_and_no_longer() -> None:
    async with terminal(Manners(answers=[])) as fake:
        began = asyncio.get_running_loop().time()
        with pytest.raises(NotSupported, match=r"does not respond within 0\.3 s"):
            await connect(fd=fake.fd, environ=NOWHERE, timeout=0.3)
        assert 0.3 <= asyncio.get_running_loop().time() - began < 25
        assert fake.restored()
        assert fake.asked == 1


async def test_a_reply_in_pieces_is_recognised() -> None:
    pieces = [SPEAKS[:1], SPEAKS[1:2], SPEAKS[2:9], SPEAKS[9:]]
    async with connected(Manners(answers=pieces, late=0.05)) as (fake, term):
        assert term.via == "terminal"
        assert 0.2 <= (term.round_trip or 0) < 25
        fake.type(b"k")
        assert await term.typed() == b"k"


async def test_a_reply_after_the_timeout_is_not_a_keystroke() -> None:
    async with connected(Manners(answers=[SPEAKS], late=0.4), timeout=0.1, degrade="nothing") as (
        fake,
        term,
    ):
        assert term.via == "nothing"
        await asyncio.sleep(0.4)  # the reply comes now
        fake.type(b"x")
        assert await term.typed() == b"x"


async def test_a_late_reply_does_not_reach_the_next_program() -> None:
    """`close` reads up to the sentinel's reply, so that nothing is left in the terminal."""
    asked = asyncio.Event()

    async def slow() -> dict[str, int]:
        asked.set()
        await asyncio.sleep(0.15)
        return {"late": 1}

    async with terminal(Manners(answers=[SPEAKS], late=0.1), term_slow=slow) as fake:
        async with connect(fd=fake.fd, environ=NOWHERE) as term:
            with pytest.raises(CallTimedOut):
                await term.call("term:slow", timeout=0.05)
        assert asked.is_set()
        assert fake.left() == b""


async def test_unread_input_is_discarded_if_the_terminal_does_not_reply() -> None:
    async with terminal(Manners(answers=[])) as fake:
        term = await connect(fd=fake.fd, environ=NOWHERE, timeout=0.1, degrade="nothing")
        os.write(fake.ours, SPEAKS)
        await term.close()
        assert fake.left() == b""


async def test_a_call_returns_is_refused_or_times_out() -> None:
    def echo(data: dict[str, Any]) -> dict[str, Any]:
        return data

    def refuse() -> None:
        raise RpcError("ECDENIED", "The person said no.")

    async def never() -> None:
        await asyncio.Event().wait()

    handlers = {"x_echo": echo, "x_no": refuse, "x_never": never}
    async with connected(**handlers) as (_, term):
        said = {"text": "é\U0001f600\u009c\n", "n": [1, None, 2.5]}
        assert await term.call("x:echo", said) == said
        answers = await asyncio.gather(*(term.call("x:echo", {"n": n}) for n in range(50)))
        assert answers == [{"n": n} for n in range(50)]
        with pytest.raises(RpcError, match="ECDENIED"):
            await term.call("x:no")
        with pytest.raises(RpcError, match="ECNOCMD"):
            await term.call("x:unknown")
        with pytest.raises(CallTimedOut):
            await term.call("x:never", timeout=0.05)


async def test_a_timeout_on_either_side_is_one_exception() -> None:
    def late() -> None:
        raise RpcError("ECTIMEOUT", "The request was not done in time.")

    async with connected(x_late=late) as (_, term):
        with pytest.raises(CallTimedOut, match="x:late: The request was not done in time"):
            await term.call("x:late")
        with pytest.raises(CallTimedOut):
            async for _part in term.stream("x:late"):
                pass


async def test_a_reply_to_another_program_is_ignored() -> None:
    """Ids have a random part, because a late reply to an exited program may arrive."""
    async with terminal(None, x_one=reply(1)) as fake:
        async with connect(fd=fake.fd, environ=NOWHERE) as term:
            await term.call("x:one")
        first = await fake.gets(b"x:one")
        async with connect(fd=fake.fd, environ=NOWHERE) as term:
            await term.call("x:one")
        ids = [frame.split(b'"rpcid":"')[1].split(b'"')[0] for frame in fake.frames]
        assert len(set(ids)) == len(ids)
        assert first


async def test_tell_sends_at_once_and_gets_no_response() -> None:
    async with connected() as (fake, term):
        term.style(color="#aaaaaa", bold=True)
        frame = await fake.gets(b"setstyle")
        assert msgspec.json.decode(frame) == {
            "command": "term:setstyle",
            "data": {"color": "#aaaaaa", "bold": True},
        }


async def test_a_command_method_refuses_invalid_data() -> None:
    async with connected() as (_, term):
        with pytest.raises(msgspec.ValidationError):
            term.title("a\x1b]0;b\x07")
        with pytest.raises(msgspec.ValidationError):
            term.progress(1.5)
        with pytest.raises(msgspec.ValidationError):
            term.go(row=0)


async def test_keys_between_frames_are_kept() -> None:
    async with connected(x_one=reply(1)) as (fake, term):
        fake.type(b"abc")
        assert await term.call("x:one") == 1
        fake.type(b"\x1b[A")
        assert await term.call("x:one") == 1
        assert await term.typed() == b"abc\x1b[A"


async def test_a_lone_escape_is_released_as_a_key_soon() -> None:
    async with connected() as (fake, term):
        fake.type(b"\x1b")
        async with asyncio.timeout(60):
            assert await term.typed() == b"\x1b"


async def test_a_frame_split_after_its_escape_is_recognised_while_a_response_is_due() -> None:
    asked = asyncio.Event()

    async def slow() -> int:
        asked.set()
        await asyncio.Event().wait()
        return 0

    async with connected(x_slow=slow) as (fake, term):
        call = asyncio.create_task(term.call("x:slow"))
        await asked.wait()
        id = msgspec.json.decode(await fake.gets(b"x:slow"))["rpcid"]
        fake.type(b"\x1b")
        await asyncio.sleep(0.06)  # longer than an escape key is held
        fake.type(b']23199;0;{"resid":"%b","data":7}\x07' % id.encode())
        assert await call == 7


async def test_echoed_frames_are_counted_and_dropped() -> None:
    async with connected(Manners(echoes=True), x_one=reply(1)) as (fake, term):
        assert await term.call("x:one") == 1
        term.bell()
        await fake.gets(b"term:bell")
        fake.type(b"k")
        assert await term.typed() == b"k"
        assert term.echoes == 3


async def test_garbage_from_the_terminal_does_not_disturb_a_call() -> None:
    async with connected(x_one=reply(1)) as (fake, term):
        for bad in (b"\x1b]23199;5;{}\x07", b"\x1b]23199;0;nonsense\x07", b"\x1b]23199;\x18"):
            fake.type(bad)
        fake.type(b'\x1b]23199;0;{"resid":"t1","data":1}\x07')
        assert await term.call("x:one") == 1


async def test_a_frame_beyond_the_limit_of_the_terminal_fails_at_the_sender() -> None:
    async with connected(Manners(detect={"capabilities": {}, "maxframe": 300})) as (fake, term):
        with pytest.raises(FrameTooLarge, match="at most 300"):
            await term.call("x:long", {"text": "x" * 300})
        with pytest.raises(FrameTooLarge):
            term.tell("x:long", {"text": "é" * 60})  # six bytes each, because JSON is in ASCII
        term.tell("x:fits", {"text": "x" * 200})
        await fake.gets(b"x:fits")
        assert max(map(len, fake.frames)) <= 300


async def test_bytes_are_sent_in_parts_that_fit_in_both_directions() -> None:
    sent = os.urandom(200_000)

    async def back(data: dict[str, Any], call: CallContext) -> AsyncIterator[bytes]:
        async for part in call.parts:
            if isinstance(part.data, bytes):
                yield part.data

    manners = Manners(detect={"capabilities": {}, "maxframe": 4096})
    async with connected(manners, file_back=back) as (fake, term):
        got = [part async for part in term.stream("file:back", {}, parts=sent)]
        assert b"".join(got) == sent
        assert 3900 < max(map(len, fake.frames)) <= 4096


async def test_the_terminal_may_call_the_program() -> None:
    def add(data: list[int]) -> int:
        return sum(data)

    async with connected(methods={"app:add": add}) as (fake, _):
        assert await fake.peer.call("app:add", [1, 2, 3]) == 6
        with pytest.raises(RpcError, match="ECNOCMD"):
            await fake.peer.call("app:unknown")


async def test_a_response_beyond_the_limit_of_the_terminal_becomes_eclimit() -> None:
    def big() -> str:
        return "x" * 400

    some = Manners(detect={"capabilities": {}, "maxframe": 300})
    async with connected(some, methods={"app:big": big}) as (fake, _):
        with pytest.raises(RpcError, match="ECLIMIT"):
            await fake.peer.call("app:big")


async def test_commands_are_refused_while_the_terminal_does_not_read() -> None:
    async with connected() as (fake, term):
        fake.pause()
        with pytest.raises(NotTaken, match="has not read"):
            for _ in range(1000):
                term.write("x" * 10_000)
        fake.resume()
        await term.flushed()
        term.title("at last")
        await fake.gets(b"at last")


def subscribing(log: list[tuple[str, list[str]]]) -> dict[str, Any]:
    def subscribe(data: dict[str, list[str]]) -> dict[str, Any]:
        log.append(("on", data["events"]))
        return data

    def unsubscribe(data: dict[str, list[str]]) -> dict[str, Any]:
        log.append(("off", data["events"]))
        return data

    return {"term_subscribe": subscribe, "term_unsubscribe": unsubscribe}


async def test_events_are_typed_and_subscribed_to_only_within_the_block() -> None:
    log: list[tuple[str, list[str]]] = []
    async with connected(**subscribing(log)) as (fake, term):
        async with term.events("event:focus", "event:resize") as events:
            assert [(what, sorted(names)) for what, names in log] == [
                ("on", ["event:focus", "event:resize"])
            ]
            await fake.peer.notify("event:focus", {"focused": True})
            await fake.peer.notify("event:focus", {"focused": "nonsense"})
            await fake.peer.notify("event:resize", {"rows": 3, "cols": 4})
            seen = []
            async for event in events:
                seen.append(event)
                if len(seen) == 2:
                    break
        assert [event.name for event in seen] == ["event:focus", "event:resize"]
        assert (seen[0].data.focused, seen[1].data.rows) == (True, 3)
        assert [what for what, _ in log] == ["on", "off"]


async def test_a_plain_loop_subscribes_and_leaving_it_unsubscribes() -> None:
    log: list[tuple[str, list[str]]] = []
    async with connected(**subscribing(log)) as (fake, term):
        told = asyncio.create_task(_tells_when_subscribed(fake))
        async for event in term.events("event:focus"):
            assert event.data.focused
            break
        await fake.gets(b"term:unsubscribe")
        await told
        assert log == [("on", ["event:focus"]), ("off", ["event:focus"])]


async def _tells_when_subscribed(fake: FakeTerminal) -> None:
    await fake.gets(b"term:subscribe")
    await fake.peer.notify("event:focus", {"focused": True})


async def test_two_readers_of_one_event_are_one_subscription() -> None:
    log: list[tuple[str, list[str]]] = []
    async with connected(**subscribing(log)) as (fake, term):
        async with term.events("event:focus") as one:
            async with term.events("event:focus") as other:
                await fake.peer.notify("event:focus", {"focused": True})
                for events in (one, other):
                    async for event in events:
                        assert event.data.focused
                        break
            assert log == [("on", ["event:focus"])]
        assert log == [("on", ["event:focus"]), ("off", ["event:focus"])]


async def test_closing_unsubscribes_from_all_events() -> None:
    log: list[tuple[str, list[str]]] = []
    async with terminal(None, **subscribing(log)) as fake:
        async with connect(fd=fake.fd, environ=NOWHERE) as term:
            await term.events("event:key").__aenter__()
        assert log == [("on", ["event:key"]), ("off", ["event:key"])]


async def test_an_event_that_the_terminal_does_not_send_is_refused() -> None:
    log: list[tuple[str, list[str]]] = []

    def some(data: dict[str, list[str]]) -> dict[str, Any]:
        log.append(("on", data["events"]))
        return {"events": ["event:key"]}

    handlers = subscribing(log) | {"term_subscribe": some}
    async with terminal(None, **handlers) as fake, connect(fd=fake.fd, environ=NOWHERE) as term:
        with pytest.raises(NotSupported, match="does not send event:scent"):
            async with term.events("event:key", "event:scent"):
                pass
        assert [(what, sorted(names)) for what, names in log] == [
            ("on", ["event:key", "event:scent"]),
            ("off", ["event:key", "event:scent"]),
        ]


async def test_a_reader_that_is_too_slow_gets_an_error() -> None:
    log: list[tuple[str, list[str]]] = []
    async with connected(**subscribing(log)) as (fake, term), term.events("event:focus") as late:
        for _ in range(300):
            await fake.peer.notify("event:focus", {"focused": True})
        fake.type(b"k")
        assert await term.typed() == b"k"
        with pytest.raises(StreamOverrun):
            assert len([event async for event in late]) == 256


async def test_a_terminal_that_hangs_up_ends_calls_events_and_keys() -> None:
    log: list[tuple[str, list[str]]] = []

    async def never() -> None:
        await asyncio.Event().wait()

    async with (
        connected(x_never=never, **subscribing(log)) as (fake, term),
        term.events("event:key") as events,
    ):
        call = asyncio.create_task(term.call("x:never"))
        await fake.gets(b"x:never")
        fake.hang_up()
        with pytest.raises(PeerGone):
            await call
        with pytest.raises(PeerGone):
            async for _ in events:
                pass
        assert await term.typed() == b""


async def test_degraded_to_ansi_commands_write_ansi_and_calls_raise() -> None:
    async with terminal(Manners(answers=[SILENT])) as fake:
        async with connect(fd=fake.fd, environ=NOWHERE, degrade="ansi") as term:
            term.style(color=31, bold=True)
            term.write("red")
            term.reset_style()
            term.tell("x:unknown", {})
            await fake.sees(b"red\x1b[0m")
            assert bytes(fake.shown).startswith(b"\x1b[")
            assert fake.frames == []
            with pytest.raises(NotSupported, match="term:report needs a response"):
                await term.report("cursor")
        assert fake.restored()


async def test_degraded_to_nothing_commands_are_dropped() -> None:
    async with terminal(Manners(answers=[SILENT])) as fake:
        async with connect(fd=fake.fd, environ=NOWHERE, degrade="nothing") as term:
            term.style(bold=True)
            term.title("unseen")
        assert (bytes(fake.shown), fake.frames) == (b"", [])


async def test_a_command_that_the_terminal_lacks_is_written_as_ansi_if_degrade_is_ansi() -> None:
    some = {"capabilities": {"term": {"include": ["term:title"]}}, "maxframe": 4096}
    async with connected(Manners(detect=some), degrade="ansi") as (fake, term):
        term.title("by json")
        term.bell()
        await fake.gets(b"by json")
        await fake.sees(b"\x07")


async def test_a_terminal_without_detect_is_connected_without_capabilities() -> None:
    async with connected(Manners(detect=None), x_one=reply(1)) as (_, term):
        assert term.capabilities == {}
        assert not term.supports("term:title")
        assert await term.call("x:one") == 1


@pytest.mark.parametrize("answer", [[], 7, {"capabilities": 3}, {"maxframe": "many"}])
async def test_any_response_to_detect_connects(answer: Any) -> None:
    async with connected(Manners(detect=answer)) as (_, term):
        assert term.capabilities == {}


async def test_inside_tmux_frames_are_wrapped_if_a_response_comes_back() -> None:
    async with terminal(Manners(answers=[SILENT], multiplexer="tmux"), x_one=reply(1)) as fake:
        async with connect(fd=fake.fd, environ={"TMUX": "x"}) as term:
            assert term.via == "tmux"
            assert await term.call("x:one") == 1
        assert b'"ping"' in fake.frames[-1], "tmux would answer DA1 before what is still to come"
        assert fake.restored()


@pytest.mark.parametrize("multiplexer", ["deaf", "one-way"])
async def test_inside_tmux_without_a_response_the_socket_is_used(
    multiplexer: str, tmp_path: Path
) -> None:
    peers: list[Peer] = []
    methods = Methods()
    methods.add("detect", reply({"capabilities": {"term": {"level": 1}}, "maxframe": 10}))
    methods.add("x:one", reply(1))
    path = tmp_path / "socket"

    def serve(channel: Any) -> None:
        peers.append(Peer(channel, JsonEscapes(), methods))

    async with (
        unix.listen(path, serve),
        terminal(Manners(answers=[SILENT], multiplexer=multiplexer)) as fake,
    ):
        environ = {"TMUX": "x", "TELEX_SOCKET": str(path)}
        async with connect(fd=fake.fd, environ=environ, timeout=0.3) as term:
            assert term.via == "socket"
            assert await term.call("x:one") == 1
            fake.type(b"k")
            assert await term.typed() == b"k"
            term.write("a line may be longer than a frame")
            assert term.supports("term:bell")
        assert fake.restored()
        for peer in peers:
            await peer.close()


async def test_inside_tmux_without_passthrough_and_without_a_socket_it_is_not_supported() -> None:
    async with terminal(Manners(answers=[SILENT], multiplexer="deaf")) as fake:
        with pytest.raises(NotSupported, match="no response came through tmux"):
            await connect(fd=fake.fd, environ={"TMUX": "x"}, timeout=0.2)
        environ = {"TMUX": "x", "TELEX_SOCKET": "/nowhere/at/all"}
        with pytest.raises(NotSupported, match="TELEX_SOCKET: no server listens at /nowhere"):
            await connect(fd=fake.fd, environ=environ, timeout=0.2)
        assert fake.restored()


async def test_a_descriptor_that_is_not_a_terminal_is_reported() -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(NoTerminal, match=f"descriptor {reading} is not a terminal"):
            await connect(fd=reading, environ=NOWHERE)
        async with connect(fd=reading, environ=NOWHERE, degrade="ansi") as term:
            term.style(bold=True)
            assert await term.typed() == b""
    finally:
        os.close(reading)
        os.close(writing)


async def test_the_blocking_twin_does_the_same() -> None:
    log: list[tuple[str, list[str]]] = []
    async with terminal(None, x_one=reply(1), **subscribing(log)) as fake:

        def program() -> list[Any]:
            with connect(fd=fake.fd, environ=NOWHERE) as term:
                term.title("blocking")
                with term.events("event:focus") as events:
                    term.tell("x:begun")
                    focused = next(iter(events)).data.focused
                return [term.via, term.call("x:one"), focused, term.supports("term:bell")]

        running = asyncio.create_task(asyncio.to_thread(program))
        await fake.gets(b"x:begun")
        await fake.peer.notify("event:focus", {"focused": True})
        assert await running == ["terminal", 1, True, True]
        assert [what for what, _ in log] == ["on", "off"]
        assert fake.restored()


def test_the_blocking_twin_has_the_same_methods() -> None:
    public = {name for name in vars(AsyncAnsweringTerminal) if not name.startswith("_")}
    assert public == {name for name in vars(AnsweringTerminal) if not name.startswith("_")}


class Recorded(CommandMethods):
    """Collects commands instead of sending them."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []

    def tell(self, name: str, data: object = msgspec.UNSET) -> None:
        self.told.append((name, data))


def test_every_command_method_sends_valid_data_of_a_known_command() -> None:
    term = Recorded()
    term.write("x")
    term.style(bold=True)
    term.reset_style("bold")
    term.link("https://example.org", "there", id="1")
    term.move(1, -1)
    term.go(2)
    term.cursor("bar", blink=True)
    term.show_cursor(False)
    term.erase("line", "after")
    term.scroll(-2)
    with term.alternate_screen(), term.at_once():
        pass
    term.title("t")
    term.bell()
    term.progress(0.4)
    term.progress()
    term.notify("done", "all of it", id="1", urgency="low", when="unfocused")
    term.close_notification("1")
    term.copy("text\n")
    used = {name for name in vars(CommandMethods) if not name.startswith("_")} - {"tell"}
    assert len(term.told) == len(used) + 3, (
        "each of them once, and two that end, and one that stops"
    )
    for name, data in term.told:
        plain = {} if data is msgspec.UNSET else data
        msgspec.convert(plain, COMMANDS[name].payload)
    assert ("progress:set", {"value": 40}) in term.told


def test_every_free_command_can_be_sent_or_called() -> None:
    """A command without a method of its own can be sent by its name."""
    free = [command for command in COMMANDS.values() if command.guard is Guard.FREE]
    assert len(free) > 40
    term = Recorded()
    for command in free:
        term.tell(command.name, {})
    assert len(term.told) == len(free)
