"""Lifting is the inverse of lowering, and no byte is lost or changed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from payloads import any_lowered
from streams import cuts, split, streams_of
from telex.escapes.commands import lower
from telex.escapes.commands.lifter import Lifted, Lifter, LifterOutput
from telex.terminal.cells import Size
from telex.terminal.screen import Screen
from telex.wire import limits


def lift(*reads: bytes) -> list[LifterOutput]:
    lifter = Lifter()
    return [one for read in reads for one in lifter.feed(read)] + lifter.flush()


def again(found: list[LifterOutput]) -> bytes:
    """Lower the lifted commands again, and join all bytes."""
    return b"".join(
        one if isinstance(one, bytes) else lower(one.name, one.payload) for one in found
    )


def shown(stream: bytes) -> tuple[object, ...]:
    """Return the whole state of a screen after these bytes."""
    screen = Screen(Size(5, 12), scrollback=20)
    try:
        answers = screen.feed(stream)
        above = [row.text for row in screen.scrollback(0, screen.scrollback_length)]
        styles = [cell.style for row in screen.rows() for cell in row.cells]
        return screen.restore(), screen.cursor, screen.title, above, styles, answers
    finally:
        screen.close()


def texts(found: list[LifterOutput]) -> str:
    return "".join(
        one.data["text"] for one in found if isinstance(one, Lifted) and one.name == "term:write"
    )


@given(any_lowered(levels=(1, 2)))
def test_lowered_bytes_are_lifted_to_commands_with_the_same_bytes(
    command: tuple[str, msgspec.Struct],
) -> None:
    bytes_ = lower(*command)
    found = lift(bytes_)
    assert all(isinstance(one, Lifted) for one in found), (bytes_, found)
    assert again(found) == bytes_


@given(any_lowered(levels=(1, 2)))
def test_a_lifted_command_is_lifted_from_its_own_bytes_unchanged(
    command: tuple[str, msgspec.Struct],
) -> None:
    for one in lift(lower(*command)):
        assert isinstance(one, Lifted)
        assert lift(lower(one.name, one.payload)) == [one]


CANONICAL = {
    "term:cursormove": {"y": -2},
    "term:cursorset": {"row": 3, "col": 4},
    "term:cursorstyle": {"shape": "bar", "blink": True},
    "term:erase": {"target": "screen", "part": "before"},
    "term:setstyle": {"color": 31, "bgcolor": "#aaaaaa", "underline": "curly", "bold": True},
    "term:setmode": {"mode": "origin", "value": False},
    "term:altscreen": {"enabled": False},
    "term:title": {"title": "Ü; ✓", "icon": "Ü; ✓"},
    "term:hyperlink": {"uri": "https://example.org/;a=b", "id": "x"},
    "term:palette": {"set": {7: "#0a0b0c"}},
    "term:scrollregion": {"left": 2, "right": 9},
    "clip:write": {"text": "two\nlines"},
    "notify:show": {"title": "Done", "body": "All; of it"},
    "progress:set": {"value": 40},
    "shell:done": {"exitcode": 3},
    "var:set": {"name": "host", "value": "Ü"},
}


@pytest.mark.parametrize("name", CANONICAL)
def test_a_plain_command_survives_lowering_and_lifting(name: str) -> None:
    (found,) = lift(lower(name, CANONICAL[name]))
    assert isinstance(found, Lifted)
    given = msgspec.convert(CANONICAL[name], type(found.payload))
    assert (found.name, found.payload) == (name, given)


PIECES = (
    *(lower(name, data) for name, data in CANONICAL.items()),
    b"ab\r\n",
    "Ü本🙂".encode(),
    b"\x1b[1;38;5;200;4:3m",
    b"\x1b[0;1;22;7m",
    b"\x1b[38;2;1;2m",
    b"\x1b[?1049;25;7h",
    b"\x1b[?1049l",
    b"\x1b[2;4r",
    b"\x1b[;3H",
    b"\x1b[0B",
    b"\x1b[99999C",
    b"\x1b[s",
    b"\x1b[2;5s",
    b"\x1b[u",
    b"\x1b[1\n2A",
    b"\x1b[6n",
    b"\x1b(0qq\x1b(B",
    b"\x0e\x0f",
    b"\x1bP$qm\x1b\\",
    b"\x1b]2;cut",
    b"\x1b]4;1;?\x07",
    b"\x1b]23198;0;{}\x07",
    b"\x9b\xc2\x9b2J",
    b"\x18\x1a\x7f",
    b"\x1bc",
)


@given(streams_of(*PIECES) | st.binary(max_size=64), cuts)
@example(b"a\x1b[2;5sb", [])
@example(b"\x1b[1\n2A", [])
@example(b"\x1b[?69h\x1b[2;5s", [6])
@example(b"\x1b[" + b";".join([b"1"] * 40) + b"m", [])
def test_lifted_commands_draw_the_same_screen_as_the_bytes(stream: bytes, where: list[int]) -> None:
    assert shown(again(lift(*split(stream, where)))) == shown(stream)


@given(streams_of(*PIECES), cuts)
def test_text_is_the_same_wherever_the_reads_fall(stream: bytes, where: list[int]) -> None:
    assert texts(lift(*split(stream, where))) == texts(lift(stream))


@given(st.binary(max_size=64), cuts)
def test_bytes_that_are_not_lifted_are_unchanged(stream: bytes, where: list[int]) -> None:
    found = lift(*split(stream, where))
    if all(isinstance(one, bytes) or one.name == "term:write" for one in found):
        assert again(found) == stream


def test_the_memory_for_an_endless_string_is_bounded() -> None:
    lifter = Lifter()
    lifter.feed(b"\x1b]2;")
    passed = sum(
        len(one) for _ in range(40) for one in lifter.feed(b"x" * 65536) if isinstance(one, bytes)
    )
    assert passed > 40 * 65536 - limits.CONTROL_STRING_BYTES
    assert lifter.feed(b"\x07ok")[-1] == lift(b"ok")[0]


def test_a_query_stays_bytes() -> None:
    for question in (b"\x1b[c", b"\x1b[6n", b"\x1b]11;?\x07", b"\x1b[?7$p", b"\x1bP+q544e\x1b\\"):
        assert lift(question) == [question]


def test_a_repeated_end_of_styles_begins_a_new_command() -> None:
    found = lift(b"\x1b[1;0;3m")
    assert [one.name for one in found if isinstance(one, Lifted)] == [
        "term:setstyle",
        "term:resetstyle",
        "term:setstyle",
    ]
