"""Input is parsed the same wherever the reads are cut, and no byte is lost."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telex.escapes import limits
from telex.escapes.commands.core import (
    ColorScheme,
    FocusEvent,
    KeyEvent,
    MouseInput,
    NotificationEvent,
    PasteEvent,
    TerminalResizeEvent,
)
from telex.escapes.input_events import (
    EVENT_NAMES,
    LONE_ESCAPE_SECONDS,
    MOUSE_CLICK,
    UNFINISHED_SECONDS,
    InputParser,
    ParsedInput,
    to_notifications,
)
from telex.rpc.messages import Notification
from telex.wire import json_escape

ALL = frozenset({*EVENT_NAMES.values(), MOUSE_CLICK})


def fed(data: bytes, *cuts: int) -> list[ParsedInput | bytes]:
    """Parse these bytes in pieces at one moment, and then wait for the deadline."""
    typed = InputParser()
    found: list[ParsedInput | bytes] = []
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        found += typed.feed(data[start:end], 0.0)
    found += typed.feed(b"", 10.0)
    assert typed.deadline is None
    return found


def joined(events: list[ParsedInput | bytes]) -> list[object]:
    """Join neighbouring bytes: where they were cut does not matter."""
    found: list[object] = []
    for event in events:
        if isinstance(event, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += event
        else:
            found.append(event)
    return found


def raw(events: list[ParsedInput | bytes]) -> bytes:
    return b"".join([one if isinstance(one, bytes) else one.raw for one in events])


def key(name: str, *mods: str, text: str = "", **more: object) -> KeyEvent:
    return msgspec.convert({"key": name, "mods": mods, "text": text, **more}, KeyEvent)


KEYS = [
    (b"a", key("a", text="a")),
    (b"A", key("A", text="A")),
    (b" ", key("space", text=" ")),
    ("é".encode(), key("é", text="é")),
    ("🙂".encode(), key("🙂", text="🙂")),
    (b"\r", key("enter")),
    (b"\n", key("j", "ctrl")),
    (b"\t", key("tab")),
    (b"\x7f", key("backspace")),
    (b"\x08", key("h", "ctrl")),
    (b"\x03", key("c", "ctrl")),
    (b"\x00", key("space", "ctrl")),
    (b"\x1c", key("\\", "ctrl")),
    (b"\x1f", key("_", "ctrl")),
    (b"\x1b", key("escape")),
    (b"\x1bx", key("x", "alt")),
    (b"\x1b\xc3\xa9", key("é", "alt")),
    (b"\x1b\x03", key("c", "alt", "ctrl")),
    (b"\x1b\r", key("enter", "alt")),
    (b"\x1b\x7f", key("backspace", "alt")),
    (b"\x1b[", key("[", "alt")),
    (b"\x1bO", key("O", "alt")),
    (b"\x1b]", key("]", "alt")),
    (b"\x1bP", key("P", "alt")),
    (b"\x1b[A", key("up")),
    (b"\x1bOA", key("up")),
    (b"\x1b[H", key("home")),
    (b"\x1bOF", key("end")),
    (b"\x1b[1~", key("home")),
    (b"\x1b[3~", key("delete")),
    (b"\x1b[5;3~", key("page_up", "alt")),
    (b"\x1b[1;5C", key("right", "ctrl")),
    (b"\x1b[1;8D", key("left", "shift", "alt", "ctrl")),
    (b"\x1b[1;2P", key("f1", "shift")),
    (b"\x1bOR", key("f3")),
    (b"\x1b[13;5~", key("f3", "ctrl")),
    (b"\x1b[24~", key("f12")),
    (b"\x1b[Z", key("tab", "shift")),
    (b"\x1bOM", key("kp_enter")),
    (b"\x1bOp", key("kp_0", text="0")),
    (b"\x1b[27;5;105~", key("i", "ctrl", code=105)),
    (b"\x1b[27;2;13~", key("enter", "shift", code=13)),
    # kitty: number, number with shift, number in the standard layout; modifiers; text
    (b"\x1b[97u", key("a", text="a", code=97)),
    (b"\x1b[27u", key("escape", code=27)),
    (b"\x1b[97;5u", key("a", "ctrl", code=97)),
    (b"\x1b[97:65;2u", key("a", "shift", text="A", code=97, shifted="A")),
    (b"\x1b[97;66u", key("a", "shift", "caps", text="a", code=97)),
    (b"\x1b[1089::99;5u", key("с", "ctrl", code=1089, base="c")),
    (b"\x1b[97;1:2u", key("a", text="a", code=97, kind="repeat")),
    (b"\x1b[97;1:3u", key("a", code=97, kind="release")),
    (b"\x1b[97;2;65u", key("a", "shift", text="A", code=97)),
    (b"\x1b[0;;229:776u", None),
    (b"\x1b[229;;229:776u", key("å", text="å\u0308", code=229)),
    (b"\x1b[57376;9u", key("f13", "super", code=57376)),
    (b"\x1b[57399;129u", key("kp_0", "num", text="0", code=57399)),
    (b"\x1b[57441;2:1u", key("left_shift", "shift", code=57441)),
    (b"\x1b[1;1:3A", key("up", kind="release")),
    (b"\x1b[3;1:2~", key("delete", kind="repeat")),
]
OTHERS = [
    (b"\x1b[I", FocusEvent(True)),
    (b"\x1b[O", FocusEvent(False)),
    (b"\x1b[48;24;80t", TerminalResizeEvent(24, 80)),
    (b"\x1b[48;24;80;480;800t", TerminalResizeEvent(24, 80, 800, 480)),
    (b"\x1b[?997;1n", ColorScheme(True)),
    (b"\x1b[?997;2n", ColorScheme(False)),
    (b"\x1b]99;i=mail.1;\x1b\\", NotificationEvent("mail.1", "activated")),
    (b"\x1b]99;i=mail.1;2\x07", NotificationEvent("mail.1", "activated", 2)),
    (b"\x1b]99;i=mail.1:p=close;\x1b\\", NotificationEvent("mail.1", "closed")),
    (b"\x1b]99;p=close:i=mail.1;untracked\x1b\\", NotificationEvent("mail.1", "closed")),
    (b"\x1b[<0;20;10M", MouseInput(10, 20)),
    (b"\x1b[<2;1;1m", MouseInput(1, 1, "right", "release")),
    (b"\x1b[<35;5;6M", MouseInput(6, 5, "none", "move")),
    (b"\x1b[<32;5;6M", MouseInput(6, 5, "left", "move")),
    (b"\x1b[<65;5;6M", MouseInput(6, 5, "wheeldown", "scroll")),
    (b"\x1b[<28;5;6M", MouseInput(6, 5, "left", "press", ("shift", "alt", "ctrl"))),
    (b"\x1b[<129;5;6M", MouseInput(6, 5, "forward")),
    (b"\x1b[200~two\nlines \x03\x1b[31m\x1b[201~", PasteEvent("two\nlines \x03\x1b[31m")),
    (b"\x1b[200~\x1b[201~", PasteEvent("")),
    (b"\x1b[200~\xff\x1b[201~", PasteEvent("\ufffd")),
]
NOT_UNDERSTOOD = [
    b"\x1b[?62;4;23198c",
    b"\x1b[12;40R",
    b"\x1b[1;5R",
    b"\x1b[?2026;2$y",
    b"\x1b[?1u",
    b"\x1b[M !!",
    b"\x1b[M\xff\xfe\x80",
    b"\x1b[201~",
    b"\x1b[99~",
    b"\x1b[<999;1;1M",
    b"\x1b[<0;1M",
    b"\x1b[97;1:9u",
    b"\x1b[1114112u",
    b"\x1b[55296u",
    b"\x1b[99999999999999999999u",
    b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1bP>|xterm(390)\x1b\\",
    b"\x1bP1+r544e\x1b\\",
    b"\x1b_Gi=1;OK\x1b\\",
    b"\x1bOz",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\x1b[" + b"1" * 400,
]


@pytest.mark.parametrize(("data", "payload"), KEYS + OTHERS, ids=ascii)
def test_known_input_is_decoded(data: bytes, payload: object) -> None:
    events = fed(data)
    assert events == ([data] if payload is None else [ParsedInput(payload, data)])


@pytest.mark.parametrize("data", NOT_UNDERSTOOD, ids=lambda data: ascii(data[:24]))
def test_unknown_input_is_passed_on_unchanged(data: bytes) -> None:
    events = fed(data)
    assert raw(events) == data
    known = [one for one in events if isinstance(one, ParsedInput)]
    assert not known or data.startswith(b"\x1b[1111")


PIECES = [
    data for data, *_ in KEYS + OTHERS
] + NOT_UNDERSTOOD + [b"\x1b", b"\x1b\x1b", b"\x1b[", b"\x1b[1;", b"\x1b]", b"\x1b[200~", b"\xe2\x82"]  # fmt: skip
STREAM = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4))).map(b"".join)


@given(STREAM, st.data())
@example(b"\x1b]0;x\x1b\x1b[A", None)
@example(b"\x1b[M\x1b[A", None)
@example(b"\x1bO\x1b[A\x1b]\x1b[A\x1b[\x1b[A\x1b[1\x1b[A", None)
@example(b"\x1b[200~a\x1b[200~b\x1b[201~c", None)
def test_where_the_stream_is_cut_makes_no_difference(data: bytes, draw: st.DataObject) -> None:
    whole = fed(data)
    assert raw(whole) == data
    if draw is None:
        choices = [[n] for n in range(len(data))] + [[*range(1, len(data))]]
    else:
        choices = [sorted(draw.draw(st.lists(st.integers(0, len(data)))))]
    for cuts in choices:
        assert joined(fed(data, *cuts)) == joined(whole)


@given(STREAM)
def test_without_subscriptions_the_program_gets_the_input_unchanged(data: bytes) -> None:
    assert b"".join(to_notifications(fed(data), frozenset())) == data  # type: ignore[arg-type]


@given(STREAM, st.sets(st.sampled_from(sorted(ALL))))
def test_a_subscribed_event_replaces_its_bytes_and_never_doubles_them(
    data: bytes, names: set[str]
) -> None:
    events = fed(data)
    told = to_notifications(events, frozenset(names))
    left = b"".join([one for one in told if isinstance(one, bytes)])
    replaced = [one.raw for one in events if isinstance(one, ParsedInput) and _told_as(one, names)]
    assert len(left) + sum(map(len, replaced)) == len(data)
    assert [one.method for one in told if isinstance(one, Notification)] == [
        _told_as(one, names)
        for one in events
        if isinstance(one, ParsedInput) and _told_as(one, names)
    ]


def _told_as(event: ParsedInput, names: set[str]) -> str | None:
    name = EVENT_NAMES[type(event.payload)]
    if name in names:
        return name
    pressed = isinstance(event.payload, MouseInput) and event.payload.kind == "press"
    return MOUSE_CLICK if pressed and MOUSE_CLICK in names else None


# The clock.


def test_a_lone_escape_is_a_key_after_a_moment() -> None:
    typed = InputParser()
    assert typed.feed(b"\x1b", 5.0) == []
    assert typed.deadline == 5.0 + LONE_ESCAPE_SECONDS
    assert typed.feed(b"", 5.0 + LONE_ESCAPE_SECONDS / 2) == []
    assert typed.feed(b"", 5.0 + LONE_ESCAPE_SECONDS) == [ParsedInput(key("escape"), b"\x1b")]
    assert typed.deadline is None


def test_input_after_the_deadline_is_a_separate_key() -> None:
    typed = InputParser()
    typed.feed(b"\x1b", 5.0)
    assert typed.feed(b"[A", 6.0) == [
        ParsedInput(key("escape"), b"\x1b"),
        ParsedInput(key("[", text="["), b"["),
        ParsedInput(key("A", text="A"), b"A"),
    ]


def test_an_arrow_key_on_a_slow_line_is_still_an_arrow_key() -> None:
    typed = InputParser()
    assert typed.feed(b"\x1b[1", 5.0) == []
    assert typed.feed(b";5", 5.5) == []
    assert typed.feed(b"A", 6.0) == [ParsedInput(key("up", "ctrl"), b"\x1b[1;5A")]


def test_text_needs_no_clock() -> None:
    typed = InputParser()
    assert len(typed.feed(b"hello", 5.0)) == 5
    assert typed.deadline is None


def test_a_reply_or_paste_that_never_ends_is_given_up() -> None:
    for begun in (b"\x1b]11;rgb", b"\x1b[200~abc"):
        typed = InputParser()
        found = typed.feed(begun, 0.0)
        assert typed.deadline == UNFINISHED_SECONDS
        found += typed.feed(b"x", 2.0)
        assert raw(found) == begun + b"x"
        assert found[-1] == ParsedInput(key("x", text="x"), b"x")


def test_a_key_after_a_broken_reply_is_a_key() -> None:
    assert fed(b"\x1b]0;x\x1b[A") == [b"\x1b]0;x", ParsedInput(key("up"), b"\x1b[A")]


def test_an_escape_within_a_reply_is_not_a_key() -> None:
    assert fed(b"\x1b]11;x\x1b") == [b"\x1b]11;x", b"\x1b"]


# Pastes.


def test_the_end_of_a_paste_is_found_where_a_piece_of_it_ends() -> None:
    for size in range(limits.PASTED_BYTES - 7, limits.PASTED_BYTES + 3):
        data = b"\x1b[200~" + b"x" * size + b"\x1b[201~"
        whole = fed(data)
        for cut in range(len(data) - 8, len(data)):
            assert fed(data, cut) == whole


def test_a_long_paste_becomes_the_same_events_wherever_the_reads_fall() -> None:
    body = ("é€🙂x" * 30_000).encode()
    data = b"\x1b[200~" + body + b"\x1b[201~k"
    whole = fed(data)
    assert len(whole) == len(body) // limits.PASTED_BYTES + 2
    texts = [one.payload.text for one in whole[:-1] if isinstance(one.payload, PasteEvent)]
    assert "".join(texts) == body.decode()
    assert raw(whole) == data
    for size in (limits.PASTED_BYTES, limits.PASTED_BYTES + 7, 4093, 65_535):
        assert fed(data, *range(size, len(data), size)) == whole


def test_each_notification_of_a_paste_fits_its_frame() -> None:
    text = "plain text, " * 400 + "\x00\x1b🙂é中" * 400
    events = fed(b"\x1b[200~" + text.encode() + b"\x1b[201~")
    told = to_notifications(events, frozenset({"event:paste"}))
    pieces = [one.data for one in told if isinstance(one, Notification)]
    assert "".join([one.text for one in pieces]) == text
    for piece in pieces:
        packet = msgspec.json.encode({"command": "event:paste", "data": piece})
        frame = json_escape.encode(packet, json_escape.TO_PROGRAM)
        assert len(frame) <= limits.SENT_CONTROL_STRING_BYTES
    assert len(pieces) < len(text) / 80


# Modes that only our subscriptions need.


def test_input_that_only_our_modes_cause_does_not_reach_the_program() -> None:
    events = fed(b"a\x1b[I\x1b[<0;1;1M\x1b[<0;1;1mb")
    clicks = frozenset({MOUSE_CLICK})
    told = to_notifications(events, clicks, frozenset())
    assert told == [b"a", Notification(MOUSE_CLICK, MouseInput(1, 1)), b"b"]
    told = to_notifications(events, clicks, frozenset({1004, 1002}))
    assert told == [b"a\x1b[I", Notification(MOUSE_CLICK, MouseInput(1, 1)), b"\x1b[<0;1;1mb"]


def test_a_subscriber_to_the_mouse_gets_a_click_once() -> None:
    told = to_notifications(fed(b"\x1b[<0;1;1M"), ALL)
    assert told == [Notification("event:mouse", MouseInput(1, 1))]


def test_pixels_become_cells_if_the_size_of_a_cell_is_known() -> None:
    typed = InputParser()
    typed.cell = (10, 20)
    (event,) = typed.feed(b"\x1b[<0;11;20M", 0.0)
    assert isinstance(event, ParsedInput)
    assert event.payload == MouseInput(1, 2, px=11, py=20)
