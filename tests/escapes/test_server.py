"""The handlers of the service, on a real screen, by a memory channel instead of a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from telex.escapes import capabilities, commands, limits
from telex.escapes.commands import COMMANDS, EVENTS, core, dec_modes, terminal_extensions
from telex.escapes.gate import Gate, GateDecision, GateQuestion, PersonAnswer
from telex.escapes.policy import Policy, PolicyRule, PolicyVerdict, RequestOrigin
from telex.escapes.protocol import EscapeCommand, Guard
from telex.escapes.server import SurfaceHandler, TerminalService
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.errors import RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.memory import memory_channels
from telex.rpc.messages import Last
from telex.rpc.peer import Peer
from telex.terminal.cells import Size
from telex.terminal.screen import Screen
from telex.wire import json_escape
from telex.wire import limits as wire_limits

SIZE = Size(6, 40)


class OneScreen:
    """A surface with only a screen."""

    def __init__(self, others: Mapping[str, SurfaceHandler] | None = None) -> None:
        self.screen = Screen(SIZE)
        self.applied: list[bytes] = []
        self.lacks = frozenset({"term:window"})
        self.unverified = ()
        self.probe = None
        self.handlers = others or {}

    def apply(self, ansi: bytes) -> None:
        self.applied.append(ansi)
        self.screen.feed(ansi)

    @property
    def size(self) -> Size:
        return self.screen.size

    @property
    def title(self) -> str | None:
        return self.screen.title

    async def report(self, what: str, asked: core.TermReport | dec_modes.QueryMode) -> object:
        return core.report_answer(asked, self.screen.feed(core.report_question(asked)))

    def refusal(self, asked: object) -> None:
        """Return None: only commands in `lacks` are refused."""

    def set_modes(self, numbers: frozenset[int]) -> None:
        raise AssertionError("nobody subscribes here")


class FixedPerson:
    """A person who always gives the same answer; `asked` records the questions."""

    def __init__(self, answer: PersonAnswer) -> None:
        self.answer = answer
        self.asked: list[GateQuestion] = []

    async def ask(self, question: GateQuestion) -> PersonAnswer:
        self.asked.append(question)
        await asyncio.sleep(0)
        return self.answer


@asynccontextmanager
async def terminal(
    person: FixedPerson | None = None,
    *rules: PolicyRule,
    others: Mapping[str, SurfaceHandler] | None = None,
    **more: Any,
) -> AsyncIterator[tuple[Peer, OneScreen]]:
    decisions: list[GateDecision] = []
    surface = OneScreen(others)
    service = TerminalService(surface, Gate(Policy(rules), person, decisions.append), **more)
    theirs, ours = memory_channels()
    async with (
        Peer(ours, JsonEscapes(), service.methods) as peer,
        Peer(theirs, JsonEscapes()) as program,
    ):
        yield program, surface
        await program.close()
        await peer.close()
    surface.screen.close()


async def error_of(program: Peer, command: str, data: object = msgspec.UNSET) -> str:
    with pytest.raises(RpcError) as caught:
        await program.call(command, data)
    assert set(caught.value.problem.message) <= set(map(chr, range(32, 127)))
    return str(caught.value.problem.code)


async def code_of(program: Peer, command: str) -> str | None:
    """Return the error of a command without data, if there is one."""
    try:
        await program.call(command)
    except RpcError as error:
        return str(error.problem.code)
    return None


async def test_every_command_is_served_and_detect_lists_the_supported_ones() -> None:
    async with terminal() as (program, _):
        codes = {name: await code_of(program, name) for name in COMMANDS}
        assert {"ECNOCMD", "ECINTERNAL"}.isdisjoint(codes.values())
        answer = await program.call("detect")
        assert answer["maxframe"] == wire_limits.CONTROL_STRING_BYTES
        for there in ("ping", "detect", "term:cursormove", "term:report", "term:batch"):
            assert capabilities.supports(answer, there)
        for lacking in ("term:window", "clip:read", "file:upload", "term:subscribe", "event:key"):
            assert not capabilities.supports(answer, lacking)
        assert await error_of(program, "term:window", {"op": "raise"}) == "ECUNSUP"
        assert await error_of(program, "clip:read") == "ECUNSUP"
        frame = json_escape.encode(msgspec.json.encode({"resid": "x" * 64, "data": answer}))
        assert len(frame) <= limits.SENT_CONTROL_STRING_BYTES


async def in_parts(program: Peer, command: str, data: object = msgspec.UNSET) -> str | None:
    """Return the error of a request in three parts."""

    async def parts() -> AsyncIterator[object]:
        for part in (b"one", b"two"):
            yield part

    try:
        await program.call(command, data, parts=parts())
    except RpcError as error:
        return str(error.problem.code)
    return None


async def test_parts_for_a_command_without_parts_are_an_error_without_effect() -> None:
    async with terminal() as (program, surface):
        for name, command in COMMANDS.items():
            if not command.streamed:
                # ECARGS if the first part lacks required data
                assert await in_parts(program, name) in ("ECPROTO", "ECARGS"), name
        assert await in_parts(program, "term:write", {"text": "x"}) == "ECPROTO"
        assert await in_parts(program, "detect") == "ECPROTO"
        whole = {"format": "png", "data64": "AAAA"}
        assert await in_parts(program, "image:show", whole) == "ECPROTO"
        assert surface.applied == []
        assert await program.call("ping") == {}


async def test_the_person_is_asked_about_a_surfaces_own_command_only_if_it_has_no_parts() -> None:
    async def give(
        asked: terminal_extensions.FileUpload, call: CallContext
    ) -> AsyncIterator[object]:
        raise AssertionError("it was not refused")
        yield

    async def keep(
        asked: terminal_extensions.FileDownload, call: CallContext
    ) -> terminal_extensions.FileSaved:
        parts = [part.data async for part in call.parts]
        return terminal_extensions.FileSaved(str(len(parts)))

    person = FixedPerson(PersonAnswer.ONCE)
    others = {"file:upload": give, "file:download": keep}
    async with terminal(person, others=others) as (program, _):
        assert await in_parts(program, "file:upload", {"name": "x"}) == "ECPROTO"
        assert not person.asked
        assert await in_parts(program, "file:download", {"name": "x", "size": 6}) is None


async def test_output_commands_are_applied_as_ansi_in_order() -> None:
    async with terminal() as (program, surface):
        said: list[tuple[str, dict[str, object]]] = [
            ("term:cursorset", {"row": 2, "col": 3}),
            ("term:setstyle", {"bold": True, "color": "#102030"}),
            ("term:write", {"text": "Zürich"}),
            ("term:resetstyle", {}),
        ]
        for name, data in said:
            await program.notify(name, data)
        assert await program.call("ping") == {}
        assert surface.applied == [commands.lower(name, data) for name, data in said]
        assert surface.screen.rows()[1].text.rstrip() == "  Zürich"
        assert await program.call("term:bell") is msgspec.UNSET


async def test_a_batch_is_applied_at_once_or_not_at_all() -> None:
    async with terminal() as (program, surface):
        good = {"command": "term:write", "data": {"text": "x"}}
        await program.call("term:batch", {"commands": [good, good]})
        assert surface.applied == [b"xx"]
        for bad in (
            {"command": "term:erase", "data": {"target": "all of it"}},
            {"command": "no:such"},
            {"command": "term:report", "data": {"what": "cursor"}},
            {"command": "term:batch", "data": {"commands": []}},
            {"command": "clip:write", "data": {"text": "planted"}},
        ):
            assert await error_of(program, "term:batch", {"commands": [good, bad]}) == "ECARGS"
        assert surface.applied == [b"xx"]


@pytest.mark.parametrize(
    ("command", "data"),
    [
        ("term:cursorset", {"row": 0}),
        ("term:cursorset", []),
        ("term:cursorset", None),
        ("term:write", {}),
        ("term:write", {"text": "a\x1b[31m"}),
        ("term:title", {"title": "a\nb"}),
        ("term:setstyle", {"color": "red"}),
        ("term:report", {"what": "password"}),
        ("term:setmode", {"mode": "insert", "value": "save"}),
        ("term:hyperlink", {"uri": "http://a\x07"}),
    ],
    ids=str,
)
async def test_invalid_data_is_ecargs_without_effect(command: str, data: object) -> None:
    async with terminal() as (program, surface):
        assert await error_of(program, command, data) == "ECARGS"
        assert surface.applied == []


async def test_bytes_where_json_belongs_are_ecargs() -> None:
    async with terminal() as (program, surface):
        for command in ("term:write", "term:report", "term:batch", "image:show", "clip:write"):
            assert await error_of(program, command, b"\x00\xff") == "ECARGS"
        assert surface.applied == []


async def test_an_unknown_command_is_ecnocmd() -> None:
    async with terminal() as (program, _):
        assert await error_of(program, "term:nosuch") == "ECNOCMD"
        assert await error_of(program, "sh:run", {"argv": ["reboot"]}) == "ECNOCMD"


async def test_a_report_queries_the_screen() -> None:
    async with terminal() as (program, surface):
        surface.screen.feed(b"\x1b[3;4H\x1b[?7l")
        assert await program.call("term:report", {"what": "cursor"}) == {"row": 3, "col": 4}
        size = await program.call("term:report", {"what": "size-cells"})
        assert size == {"rows": 6, "cols": 40}
        for mode, state in [("wrap", "reset"), ("altscreen", "reset"), (9999, "unknown")]:
            asked = {"mode": mode, "private": True}
            assert await program.call("term:querymode", asked) == {"state": state}


# The gate.

CLIP = {"text": "rm -rf ~\n"}


async def test_a_guarded_command_waits_for_the_persons_yes_to_its_whole_content() -> None:
    person = FixedPerson(PersonAnswer.ONCE)
    remote = RequestOrigin("remote", "ssh")
    async with terminal(person, origin=lambda call: remote) as (program, surface):
        await program.call("clip:write", CLIP)
        assert surface.applied == [commands.lower("clip:write", CLIP)]
        (question,) = person.asked
        assert (question.command, question.origin) == ("clip:write", remote)
        assert msgspec.json.decode(question.summary) == CLIP


@pytest.mark.parametrize(
    "person", [None, FixedPerson(PersonAnswer.NEVER), FixedPerson(PersonAnswer.NOT_NOW)]
)
async def test_without_a_yes_it_is_denied(person: FixedPerson | None) -> None:
    async with terminal(person, origin=lambda call: RequestOrigin("remote")) as (program, surface):
        assert await error_of(program, "clip:write", CLIP) == "ECDENIED"
        await program.notify("clip:write", CLIP)
        await program.call("ping")
        assert surface.applied == []


async def test_invalid_data_is_refused_before_the_person_is_asked() -> None:
    person = FixedPerson(PersonAnswer.ONCE)
    async with terminal(person, origin=lambda call: RequestOrigin("remote")) as (program, _):
        assert await error_of(program, "clip:write", {}) == "ECARGS"
        assert person.asked == []


async def test_a_rule_can_forbid_what_is_otherwise_free() -> None:
    async with terminal(None, PolicyRule("term:title", "*", PolicyVerdict.DENY)) as (
        program,
        surface,
    ):
        assert await error_of(program, "term:title", {"title": "x"}) == "ECDENIED"
        await program.call("term:bell")
        assert surface.applied == [b"\x07"]


# Handlers of the surface, and the fallback.


async def test_a_surfaces_own_commands_are_behind_the_gate_and_in_detect() -> None:
    async def upload(
        asked: terminal_extensions.FileUpload, call: CallContext
    ) -> AsyncIterator[object]:
        yield terminal_extensions.FileSent("a.txt", 3)
        yield b"abc"

    def read(
        asked: terminal_extensions.ClipRead, call: CallContext
    ) -> terminal_extensions.ClipText:
        return terminal_extensions.ClipText(f"of {asked.selection}")

    others: dict[str, SurfaceHandler] = {"file:upload": upload, "clip:read": read}
    for person, allowed in [(FixedPerson(PersonAnswer.ONCE), True), (None, False)]:
        async with terminal(person, others=others) as (program, _):
            assert capabilities.supports(await program.call("detect"), "clip:read")
            if not allowed:
                assert await error_of(program, "clip:read") == "ECDENIED"
                with pytest.raises(RpcError, match="denied this"):
                    [part async for part in program.stream("file:upload")]
                continue
            assert await program.call("clip:read") == {"text": "of clipboard"}
            parts = [part async for part in program.stream("file:upload")]
            assert parts == [{"name": "a.txt", "size": 3}, b"abc"]


async def test_a_picture_comes_in_parts() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"def"

    async with terminal() as (program, surface):
        await program.call("image:show", {"format": "png"}, parts=parts())
        shown = terminal_extensions.ImageShow(data64=b"abcdef")
        assert surface.applied == [commands.lower("image:show", shown)]
        assert await error_of(program, "image:show") == "ECARGS"


async def test_a_picture_that_is_too_large_is_eclimit() -> None:
    async def parts() -> AsyncIterator[bytes]:
        while True:
            yield bytes(limits.IMAGE_BYTES // 4)

    async with terminal() as (program, surface):
        with pytest.raises(RpcError, match="too large"):
            await program.call("image:show", {}, parts=parts())
        assert surface.applied == []


async def test_the_fallback_serves_unknown_commands() -> None:
    async def extra(data: Raw, call: CallContext) -> AsyncIterator[object]:
        yield call.method
        yield Last({"data": Raw(data)})

    async with terminal(extra=extra) as (program, _):
        parts = [part async for part in program.stream("x:y", {"n": 1})]
        assert parts == ["x:y", {"data": {"n": 1}}]
        assert await program.call("ping") == {}


# The keyboard.

KEYS = {"events": ["event:mouse", "event:key"]}
MOUSE = {"events": ["event:mouse", "event:resize"]}


class AllEvents:
    """An event source with all events."""

    known = frozenset(EVENTS)

    def subscribe(self, events: tuple[str, ...], call: CallContext) -> tuple[str, ...]:
        return events

    def unsubscribe(self, events: tuple[str, ...], call: CallContext) -> tuple[str, ...]:
        return ()


KEYBOARD: dict[str, Any] = {"events": AllEvents(), "keyboard": True}
"""The options of a terminal where a person types."""


@pytest.mark.parametrize("events", [["event:key"], ["event:paste"], KEYS["events"]], ids=str)
async def test_a_local_subscription_to_keys_needs_the_person_too(
    events: list[str],
) -> None:
    for person, code in [
        (FixedPerson(PersonAnswer.ONCE), None),
        (FixedPerson(PersonAnswer.NOT_NOW), "ECDENIED"),
    ]:
        async with terminal(person, **KEYBOARD) as (program, _):
            assert await program.call("term:subscribe", MOUSE) == {
                "events": sorted(MOUSE["events"])
            }
            assert person.asked == []
            if code is None:
                told = await program.call("term:subscribe", {"events": events})
                assert told == {"events": sorted(events)}
            else:
                assert await error_of(program, "term:subscribe", {"events": events}) == code
            assert [one.command for one in person.asked] == ["term:subscribe"]
    async with terminal(None, **KEYBOARD) as (program, _):
        assert await error_of(program, "term:subscribe", {"events": events}) == "ECDENIED"


async def test_a_yes_to_the_mouse_of_a_remote_program_does_not_include_the_keyboard() -> None:
    person = FixedPerson(PersonAnswer.WHILE_IT_RUNS)
    ssh = RequestOrigin("remote", "ssh", (7, 1))
    async with terminal(person, origin=lambda call: ssh, **KEYBOARD) as (program, _):
        for asked, questions in [(MOUSE, 1), (MOUSE, 1), (KEYS, 2), (KEYS, 2)]:
            await program.call("term:subscribe", asked)
            assert len(person.asked) == questions


async def test_a_rule_can_allow_keys_without_a_question() -> None:
    person = FixedPerson(PersonAnswer.NEVER)
    rule = PolicyRule("term:subscribe", "*", PolicyVerdict.ALLOW)
    async with terminal(person, rule, **KEYBOARD) as (program, _):
        assert await program.call("term:subscribe", KEYS) == {"events": sorted(KEYS["events"])}
        assert person.asked == []


async def test_without_a_persons_keyboard_keys_are_ordinary_events() -> None:
    async with terminal(events=AllEvents()) as (program, _):
        assert await program.call("term:subscribe", KEYS) == {"events": sorted(KEYS["events"])}


async def test_a_rule_for_all_commands_includes_queries() -> None:
    everything = PolicyRule("*", "*", PolicyVerdict.DENY)
    async with terminal(None, everything, **KEYBOARD) as (program, _):
        assert await error_of(program, "term:report", {"what": "cursor"}) == "ECDENIED"
        assert await error_of(program, "term:querymode", {"mode": "wrap"}) == "ECDENIED"
        assert await error_of(program, "term:subscribe", MOUSE) == "ECDENIED"
        assert await program.call("ping") == {}
        assert "capabilities" in await program.call("detect")
        assert await program.call("term:unsubscribe", KEYS) == {"events": []}


async def test_a_rule_can_require_a_question_before_a_query() -> None:
    person = FixedPerson(PersonAnswer.ONCE)
    async with terminal(person, PolicyRule("term:report", "*", PolicyVerdict.ASK)) as (program, _):
        assert await program.call("term:report", {"what": "cursor"}) == {"row": 1, "col": 1}
        assert [one.command for one in person.asked] == ["term:report"]


async def test_the_person_is_not_asked_about_a_query_without_an_id() -> None:
    done: list[str] = []

    def other(asked: msgspec.Struct, call: CallContext) -> None:
        done.append(call.method)

    names = ("clip:read", "clip:types", "file:download", "file:upload")
    person = FixedPerson(PersonAnswer.ONCE)
    others: dict[str, SurfaceHandler] = dict.fromkeys(names, other)
    async with terminal(person, others=others, **KEYBOARD) as (program, _):
        for name in names:
            await program.notify(name, {"name": "a.txt"} if name.startswith("file") else {})
        await program.notify("term:subscribe", KEYS)
        await program.call("ping")
        assert await program.call("clip:types") is None
        assert [one.command for one in person.asked] == ["clip:types"]
        assert done == ["clip:types"]


def test_no_guarded_command_is_free_by_accident() -> None:
    """These commands read data of the person, or have an effect outside the terminal."""
    guarded = {name for name, command in COMMANDS.items() if command.guard is not Guard.FREE}
    assert {"clip:read", "clip:write", "file:upload", "file:download", "notify:show"} <= guarded
    assert isinstance(COMMANDS["clip:read"], EscapeCommand)
