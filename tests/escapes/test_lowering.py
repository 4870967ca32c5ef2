"""Lowered commands have their documented effect on a screen, and no text becomes a command."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payloads import any_lowered, lowered_commands, payloads
from telex.escapes import limits
from telex.escapes.commands import COMMANDS, lower
from telex.escapes.commands import style as commands_style
from telex.escapes.commands import window_ops as spec
from telex.escapes.commands.ansi import PARAMETERS
from telex.escapes.commands.dec_modes import mode_number
from telex.escapes.errors import NotOutput
from telex.terminal import limits as terminal_limits
from telex.terminal.cells import Size
from telex.terminal.screen import Screen

ROWS, COLS = 4, 6
GRID = ["abcdef", "ghijkl", "mnopqr", "stuvwx"]
DRAWN = "\r\n".join(GRID).encode()

rows, cols = st.integers(1, ROWS), st.integers(1, COLS)
some = st.integers(1, 9)
either = st.integers(-9, 9)


@contextmanager
def terminal(*parts: bytes) -> Iterator[Screen]:
    screen = Screen(Size(ROWS, COLS))
    try:
        screen.feed(b"".join(parts))
        yield screen
    finally:
        screen.close()


def at(row: int, col: int) -> bytes:
    return b"\x1b[%d;%dH" % (row, col)


def grid(*parts: bytes) -> list[str]:
    """Return the rows of the screen after these bytes, with blanks for empty cells."""
    with terminal(DRAWN, *parts) as screen:
        return [row.text.ljust(COLS) for row in screen.rows()]


def place(*parts: bytes) -> tuple[int, int]:
    """Return the position of the cursor, counted from 1."""
    with terminal(*parts) as screen:
        return screen.cursor.row + 1, screen.cursor.col + 1


def answer(question: bytes, *parts: bytes) -> bytes:
    with terminal(*parts) as screen:
        return screen.feed(question)


def within(value: int, most: int) -> int:
    return min(max(value, 1), most)


@given(rows, cols, either, either)
def test_the_cursor_moves_by_a_distance_and_stays_on_the_screen(
    r: int, c: int, x: int, y: int
) -> None:
    moved = place(at(r, c), lower("term:cursormove", {"x": x, "y": y}))
    assert moved == (within(r + y, ROWS), within(c + x, COLS))


@given(rows, cols, st.none() | some, st.none() | some)
def test_the_cursor_goes_to_a_row_a_column_or_both(
    r: int, c: int, row: int | None, col: int | None
) -> None:
    moved = place(at(r, c), lower("term:cursorset", {"row": row, "col": col}))
    if row is None and col is None:
        assert moved == (1, 1)
    else:
        assert moved == (within(row or r, ROWS), within(col or c, COLS))


@given(rows, cols, either)
def test_the_cursor_goes_to_the_start_of_a_line(r: int, c: int, n: int) -> None:
    assert place(at(r, c), lower("term:cursorline", {"n": n})) == (within(r + n, ROWS), 1)


@given(rows, cols)
def test_the_cursor_goes_home_and_back_to_the_saved_position(r: int, c: int) -> None:
    assert place(at(r, c), lower("term:cursorhome")) == (1, 1)
    there = (at(r, c), lower("term:cursorsave"), at(1, 1))
    assert place(*there, lower("term:cursorrestore")) == (r, c)


@given(rows, cols, st.sampled_from(["line", "screen"]), st.sampled_from(["after", "before", "all"]))
def test_a_part_of_the_line_or_of_the_screen_is_erased(
    r: int, c: int, target: str, part: str
) -> None:
    def kept(row: int, col: int) -> bool:
        if target == "line" and row != r:
            return True
        here = (row, col)
        return (part == "after" and here < (r, c)) or (part == "before" and here > (r, c))

    expected = [
        "".join(char if kept(y, x) else " " for x, char in enumerate(line, 1))
        for y, line in enumerate(GRID, 1)
    ]
    data = {"target": target, "part": part}
    assert grid(at(r, c), lower("term:erase", data)) == expected
    assert grid(at(r, c), lower("term:erase", {**data, "selective": True})) == expected


def test_the_scrollback_is_erased_and_the_screen_is_not() -> None:
    with terminal(b"1\r\n2\r\n3\r\n4\r\n5\r\n6") as screen:
        assert screen.scrollback_length == 2
        screen.feed(lower("term:erase", {"target": "screen", "part": "scrollback"}))
        assert screen.scrollback_length == 0
        assert [row.text for row in screen.rows()] == ["3", "4", "5", "6"]


@given(rows, cols, some)
def test_cells_are_erased_inserted_and_deleted_at_the_cursor(r: int, c: int, n: int) -> None:
    before, after = GRID[r - 1][: c - 1], GRID[r - 1][c - 1 :]
    expected = {
        "term:erasechars": before + " " * min(n, len(after)) + after[n:],
        "term:insertchars": (before + " " * n + after)[:COLS],
        "term:deletechars": (before + after[n:]).ljust(COLS),
    }
    for name, line in expected.items():
        assert grid(at(r, c), lower(name, {"n": n}))[r - 1] == line


@given(rows, some)
def test_lines_are_inserted_and_deleted_at_the_line_of_the_cursor(r: int, n: int) -> None:
    blank = [" " * COLS] * ROWS
    above, below = GRID[: r - 1], GRID[r - 1 :]
    inserted = [*above, *blank[:n], *below][:ROWS]
    deleted = [*above, *below[n:], *blank][:ROWS]
    assert grid(at(r, 1), lower("term:insertlines", {"n": n})) == inserted
    assert grid(at(r, 1), lower("term:deletelines", {"n": n})) == deleted


@given(either)
def test_the_screen_scrolls_up_and_down(n: int) -> None:
    blank = [" " * COLS] * 9
    expected = [*GRID[n:], *blank][:ROWS] if n >= 0 else [*blank[:-n], *GRID][:ROWS]
    assert grid(lower("term:scroll", {"n": n})) == expected


def test_only_the_region_scrolls_until_it_is_the_whole_screen_again() -> None:
    region = lower("term:scrollregion", {"top": 2, "bottom": 3})
    assert grid(region, lower("term:scroll")) == ["abcdef", "mnopqr", " " * 6, "stuvwx"]
    columns = lower("term:scrollregion", {"left": 2, "right": 3})
    assert grid(columns, lower("term:scroll"))[0] == "ahidef"
    whole = lower("term:scrollregion")
    assert grid(region, columns, whole, lower("term:scroll")) == [*GRID[1:], " " * 6]


def test_a_line_down_or_up_scrolls_at_the_edge() -> None:
    assert grid(at(4, 3), lower("term:index")) == [*GRID[1:], " " * 6]
    assert grid(at(1, 3), lower("term:reverseindex")) == [" " * 6, *GRID[:3]]
    assert place(at(2, 3), lower("term:nextline")) == (3, 1)
    assert grid(at(4, 3), lower("term:nextline")) == [*GRID[1:], " " * 6]


@given(st.text(st.characters(exclude_categories=["C", "M", "Zl", "Zp"]), max_size=4))
def test_text_is_written_unchanged(text: str) -> None:
    with terminal(lower("term:write", {"text": text})) as written, terminal(text.encode()) as fed:
        assert written.restore() == fed.restore()


def test_the_last_character_is_written_again() -> None:
    assert grid(at(1, 1), b"*", lower("term:repeat", {"n": 3}))[0] == "****ef"


STYLED = {
    "bold": "bold",
    "faint": "dim",
    "italic": "italic",
    "underline": "underline",
    "blink": "blink",
    "inverse": "inverse",
    "hidden": "invisible",
    "strike": "strikethrough",
}


def styled(*parts: bytes) -> Any:
    with terminal(*parts, b"x") as screen:
        return screen.rows()[0].cells[0].style


@given(payloads("term:setstyle"))
def test_text_has_the_given_style(asked: commands_style.SetStyle) -> None:
    style = styled(lower("term:setstyle", asked))
    for key, shown in STYLED.items():
        assert getattr(style, shown) == bool(getattr(asked, key)), key
    assert style.foreground == color(asked.color)
    assert style.background == color(asked.bgcolor)


def color(asked: object) -> str:
    match asked:
        case None | "default":
            return "default"
        case commands_style.Indexed(index=index):
            return f"idx:{index}"
        case int():
            return f"idx:{asked % 10 + (8 if asked >= 90 else 0)}"
        case _:
            red, green, blue = bytes.fromhex(str(asked)[1:])
            return f"rgb:{red}:{green}:{blue}"


def test_a_number_of_a_background_may_be_the_foregrounds() -> None:
    assert lower("term:setstyle", {"bgcolor": 31}) == lower("term:setstyle", {"bgcolor": 41})
    assert lower("term:setstyle", {"bgcolor": 95}) == lower("term:setstyle", {"bgcolor": 105})


@given(payloads("term:setstyle"), payloads("term:resetstyle"))
def test_a_reset_attribute_is_as_if_it_had_not_been_set(
    asked: commands_style.SetStyle, keys: commands_style.StyleKeys
) -> None:
    style = styled(lower("term:setstyle", asked), lower("term:resetstyle", keys))
    plain = styled()
    for key, shown in {**STYLED, "color": "foreground", "bgcolor": "background"}.items():
        if not keys.keys or key in keys.keys:
            assert getattr(style, shown) == getattr(plain, shown)


@given(payloads("term:setstyle"))
def test_a_style_never_has_more_numbers_in_one_sequence_than_terminals_accept(
    asked: commands_style.SetStyle,
) -> None:
    for sequence in re.findall(rb"\x1b\[([0-9;:]*)m", lower("term:setstyle", asked)):
        assert len(re.split(rb"[;:]", sequence)) <= PARAMETERS


def test_visibility_and_shape_of_the_cursor() -> None:
    with terminal(lower("term:cursorvisible", {"visible": False})) as screen:
        assert not screen.cursor.visible
        screen.feed(lower("term:cursorvisible"))
        assert screen.cursor.visible
    shapes = {("block", True): 1, ("underline", False): 4, ("bar", True): 5, ("bar", False): 6}
    for (shape, blink), number in shapes.items():
        told = answer(
            b"\x1bP$q q\x1b\\", lower("term:cursorstyle", {"shape": shape, "blink": blink})
        )
        assert told == b"\x1bP1$r%d q\x1b\\" % number


KNOWN_MODES = ["wrap", "origin", "insert", "newline", "appcursor", "appkeypad", "reverse", "focus",
               "bracketedpaste", "mouse", "mousesgr", "colorscheme", "inbandresize", "altscreen",
               "margins", "grapheme"]  # fmt: skip


@pytest.mark.parametrize("name", KNOWN_MODES)
def test_a_mode_is_set_and_reset_by_its_name(name: str) -> None:
    number, private = mode_number(name)
    question = b"\x1b[%s%d$p" % (b"?" if private else b"", number)
    for value, state in ((True, b";1$y"), (False, b";2$y")):
        assert answer(question, lower("term:setmode", {"mode": name, "value": value})).endswith(
            state
        )


def test_a_mode_is_set_by_its_number_and_saved_and_restored() -> None:
    def mode(value: object) -> bytes:
        return lower("term:setmode", {"mode": 2004, "private": True, "value": value})

    with terminal(mode(True), mode("save"), mode(False)) as screen:
        assert not screen.bracketed_paste
        screen.feed(mode("restore"))
        assert screen.bracketed_paste
    assert lower("term:setmode", {"mode": 4}) == b"\x1b[4h"


def test_the_alternate_screen_comes_and_goes() -> None:
    with terminal(DRAWN, lower("term:altscreen")) as screen:
        assert screen.alternate_screen
        assert not any(row.text for row in screen.rows())
        screen.feed(lower("term:altscreen", {"enabled": False}))
        assert not screen.alternate_screen
        assert [row.text for row in screen.rows()] == GRID
        screen.feed(b"\x1b[?47h" + b"kept" + b"\x1b[?47l")
        screen.feed(lower("term:altscreen", {"clear": False}))
        assert any("kept" in row.text for row in screen.rows())


def test_an_update_is_held_and_shown() -> None:
    begun = lower("term:sync")
    assert answer(b"\x1b[?2026$p", begun) == b"\x1b[?2026;1$y"
    assert answer(b"\x1b[?2026$p", begun, lower("term:sync", {"enabled": False})).endswith(b";2$y")


def test_tab_stops_are_set_cleared_and_used() -> None:
    none = lower("term:tabclear", {"all": True})
    stop = at(1, 3) + lower("term:tabset") + at(1, 1)
    assert place(none, stop, lower("term:tab")) == (1, 3)
    assert place(none, stop, at(1, 6), lower("term:tab", {"n": -1})) == (1, 3)
    assert place(none, stop, at(1, 3), lower("term:tabclear"), at(1, 1), b"\t") == (1, 6)
    assert place(at(1, 2), lower("term:tab", {"n": 0})) == (1, 2)


def test_character_sets_are_assigned_and_used() -> None:
    graphics = lower("term:charset", {"slot": 1, "set": "dec-graphics"})
    shifted = lower("term:shift", {"slot": 1}) + b"q" + lower("term:shift") + b"q"
    assert grid(graphics, at(1, 1), shifted)[0] == "─qcdef"
    third = lower("term:charset", {"slot": 2, "set": "dec-graphics"})
    assert grid(third, at(1, 1), lower("term:shift", {"slot": 2, "once": True}), b"qq")[0][0] == "─"
    assert grid(lower("term:charset", {"set": "uk"}), at(1, 1), b"#")[0][0] == "£"
    assert grid(third, at(1, 1), lower("term:shift", {"slot": 2}), b"q")[0][0] == "─"


def test_a_hard_reset_leaves_nothing() -> None:
    with terminal(DRAWN, b"\x1b[?2004h", lower("term:reset", {"kind": "hard"})) as screen:
        assert not any(row.text for row in screen.rows())
        assert not screen.bracketed_paste


@given(payloads("term:title"))
def test_the_window_has_the_given_title(asked: spec.SetTitle) -> None:
    with terminal(lower("term:title", asked)) as screen, terminal() as untold:
        expected = untold.title if asked.title is None else asked.title
        shown = "".join(char for char in expected or "" if char not in "\u2028\u2029")
        assert (screen.title or "") == shown


def test_a_link_shows_its_text() -> None:
    data = {"uri": "https://example.org/?a;b", "id": "1", "text": "here"}
    assert grid(at(1, 1), lower("term:hyperlink", data))[0] == "hereef"
    written = b"\x1b]8;id=1;https://example.org/?a;b\x07here\x1b]8;;\x07"
    assert lower("term:hyperlink", data) == written


def test_colours_change_and_are_reset() -> None:
    changed = lower("term:palette", {"set": {"3": "#010203"}, "fg": "#A0b0C0"})
    assert answer(b"\x1b]4;3;?\x07", changed) == b"\x1b]4;3;rgb:0101/0202/0303\x07"
    assert answer(b"\x1b]10;?\x07", changed) == b"\x1b]10;rgb:a0a0/b0b0/c0c0\x07"
    for one in ("palette", 3):
        assert answer(b"\x1b]4;3;?\x07", changed, lower("term:palette", {"reset": [one]})) == (
            answer(b"\x1b]4;3;?\x07")
        )
    reset = lower("term:palette", {"reset": ["fg"]})
    assert answer(b"\x1b]10;?\x07", changed, reset) == answer(b"\x1b]10;?\x07")


UNSEEN: dict[str, tuple[dict[str, Any], bytes]] = {
    "term:bell": ({}, b"\x07"),
    "term:pushstyle": ({"keys": ["bold", "color"]}, b"\x1b[1;30#{"),
    "term:popstyle": ({}, b"\x1b[#}"),
    "term:lineattr": ({"kind": "dhl-top"}, b"\x1b#3"),
    "term:titlepush": ({}, b"\x1b[22;0t"),
    "term:titlepop": ({"which": "title"}, b"\x1b[23;2t"),
    "term:cwd": ({"uri": "file://host/tmp"}, b"\x1b]7;file://host/tmp\x07"),
    "term:resize": ({"rows": 40, "cols": 120}, b"\x1b[8;40;120t"),
    "term:window": ({"op": "maximize"}, b"\x1b[9;1t"),
    "term:reset": ({}, b"\x1b[!p"),
    "clip:write": ({"text": "hi\n"}, b"\x1b]52;c;aGkK\x07"),
    "notify:show": ({"title": "a;b", "body": "c;d"}, b"\x1b]777;notify;a,b;c;d\x07"),
    "notify:close": ({"id": "n1"}, b"\x1b]99;i=n1:p=close;\x07"),
    "progress:set": ({"state": "error", "value": 7}, b"\x1b]9;4;2;7\x07"),
    "shell:prompt": ({}, b"\x1b]133;A\x07"),
    "shell:command": ({}, b"\x1b]133;B\x07"),
    "shell:output": ({}, b"\x1b]133;C\x07"),
    "shell:done": ({"exitcode": 2}, b"\x1b]133;D;2\x07"),
    "var:set": ({"name": "a", "value": "b"}, b"\x1b]1337;SetUserVar=a=Yg==\x07"),
    "image:show": (
        {"data64": "aGk=", "cols": 2, "id": 7},
        b"\x1b_Ga=T,f=100,q=2,c=2,i=7,m=0;aGk=\x1b\\",
    ),
    "image:delete": ({"id": 7}, b"\x1b_Ga=d,q=2,d=I,i=7\x1b\\"),
}
"""Commands without effect on our screen, with the bytes that other terminals know."""


@pytest.mark.parametrize("name", UNSEEN)
def test_commands_without_effect_on_our_screen_are_written_in_the_known_form(name: str) -> None:
    data, expected = UNSEEN[name]
    assert lower(name, data) == expected


def test_every_lowered_command_is_covered_above() -> None:
    above = Path(__file__).read_text(encoding="utf-8").partition("def test_every_lowered")[0]
    assert {*lowered_commands()} <= {*re.findall(r'"([a-z]+:[a-z]+)"', above)}


def test_a_picture_is_sent_in_pieces_and_gets_no_reply() -> None:
    data = bytes(range(256)) * 40
    pieces = re.findall(
        rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\",
        lower("image:show", {"data64": base64.b64encode(data).decode(), "format": "rgb",
                             "width": 64, "height": 53}),
    )  # fmt: skip
    assert base64.b64decode(b"".join(piece for _, piece in pieces)) == data
    assert [b"m=1" in keys for keys, _ in pieces] == [*[True] * (len(pieces) - 1), False]
    assert all(b"q=2" in keys and len(piece) <= 4096 for keys, piece in pieces)
    shown = lower("image:show", {"data64": "aGk=", "format": "jpeg", "rows": 3})
    assert shown == b"\x1b]1337;File=inline=1;size=2;height=3:aGk=\x07"


def test_a_notification_with_an_id_can_be_closed() -> None:
    data = {"title": "Done", "body": "All", "id": "n1", "urgency": "critical", "report": True}
    told = "i=n1:u=2:a=report:c=1"
    assert lower("notify:show", data).decode() == (
        f"\x1b]99;{told}:d=0:p=title;Done\x07\x1b]99;{told}:d=1:p=body;All\x07"
    )


class TestBatches:
    def test_commands_are_executed_in_their_order(self) -> None:
        commands = [
            {"command": "term:cursorset", "data": {"row": 2}},
            {"command": "term:write", "data": {"text": "hi"}},
            {"command": "term:bell"},
        ]
        assert lower("term:batch", {"commands": commands}) == b"\x1b[2dhi\x07"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"command": "term:write", "data": {"text": "\x1b[2J"}},
            {"command": "term:write"},
            {"command": "term:nothing"},
            {"command": "term:report", "data": {"what": "cursor"}},
            {"command": "term:batch", "data": {"commands": []}},
            {"command": "clip:write", "data": {"text": "planted"}},
            {"command": "term:resize", "data": {"rows": 1, "cols": 1}},
            {"data": {}},
        ],
    )
    def test_one_invalid_command_stops_the_whole_batch(self, wrong: dict[str, object]) -> None:
        with pytest.raises(msgspec.ValidationError):
            lower("term:batch", {"commands": [{"command": "term:bell"}, wrong]})

    def test_the_number_of_commands_is_bounded(self) -> None:
        bells = [{"command": "term:bell"}] * limits.BATCH_COMMANDS
        assert lower("term:batch", {"commands": bells}) == b"\x07" * limits.BATCH_COMMANDS
        with pytest.raises(msgspec.ValidationError):
            lower("term:batch", {"commands": [*bells, {"command": "term:bell"}]})


WRONG: list[tuple[str, object]] = [
    ("term:cursorset", {"row": 0}),
    ("term:cursorset", {"row": 65536}),
    ("term:erase", {}),
    ("term:erase", {"target": "line", "part": "scrollback"}),
    ("term:setstyle", {"color": 29}),
    ("term:setstyle", {"color": 41}),
    ("term:setstyle", {"color": "#12345"}),
    ("term:setstyle", {"color": "#123456\n"}),
    ("term:setstyle", {"color": {"index": 256}}),
    ("term:setmode", {"mode": "unknown"}),
    ("term:setmode", {"mode": "insert", "value": "save"}),
    ("term:title", {}),
    ("term:title", {"title": "x" * (terminal_limits.TITLE_CHARS + 1)}),
    ("term:hyperlink", {}),
    ("term:hyperlink", {"uri": "https://x/", "end": True}),
    ("term:hyperlink", {"uri": "https://x/ y"}),
    ("term:hyperlink", {"uri": "https://x/", "id": "a:b"}),
    ("term:shift", {"slot": 0, "once": True}),
    ("term:resize", {"rows": 1001, "cols": 1}),
    ("term:pushstyle", {"keys": ["overline"]}),
    ("clip:write", {"text": "x" * (limits.CLIPBOARD_CHARS + 1)}),
    ("progress:set", {"value": 101}),
    ("image:show", {}),
    ("image:show", {"data64": "not base64"}),
    ("image:show", {"data64": "aGk=", "format": "rgb"}),
    ("notify:show", {"title": "a", "report": True}),
    ("term:write", "text"),
    ("term:write", []),
    ("term:write", msgspec.Raw(b'{"text": 1}')),
]


@pytest.mark.parametrize(
    ("name", "data"), WRONG, ids=lambda one: re.sub(" object at .*", "", str(one))[:40]
)
def test_invalid_data_of_a_command_is_refused(name: str, data: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        lower(name, data)


def test_a_command_without_ansi_raises() -> None:
    for name in ("term:report", "file:upload", "detect", "nothing:here"):
        with pytest.raises(NotOutput):
            lower(name, {})


CONTROLS = [chr(n) for n in (*range(0x20), *range(0x7F, 0xA0))]


def test_no_text_of_any_command_can_contain_a_control_character() -> None:
    """Try each control character in each text of each payload, from JSON and from Python."""
    tried = 0
    for name, member, good in _texts():
        command = COMMANDS[name]
        assert command.lower is not None
        lower(name, good)
        for control in CONTROLS:
            for bad in (good[member] + control, control + good[member], f"a{control}b"):
                data = {**good, member: bad}
                tried += 1
                with pytest.raises(msgspec.ValidationError):
                    lower(name, data)
                with pytest.raises(msgspec.ValidationError):
                    lower(name, msgspec.Raw(msgspec.json.encode(data)))
                with pytest.raises(msgspec.ValidationError):
                    command.lower(
                        command.payload(**data)
                    )  # not validated, since it is made in Python
    assert tried > 10 * 3 * len(CONTROLS)


def _texts() -> list[tuple[str, str, dict[str, str]]]:
    link = {"uri": "https://x/", "id": "a", "text": "b"}
    shown = {"title": "a", "body": "b"}
    return [
        ("term:write", "text", {"text": "a"}),
        ("term:title", "title", {"title": "a"}),
        ("term:title", "icon", {"icon": "a"}),
        ("term:title", "icon", {"title": "b", "icon": "a"}),
        ("term:cwd", "uri", {"uri": "file:///"}),
        *[("term:hyperlink", member, link) for member in link],
        *[("notify:show", member, shown) for member in shown],
        ("notify:show", "id", {"title": "a", "id": "b"}),
        ("notify:close", "id", {"id": "a"}),
        ("var:set", "name", {"name": "a"}),
    ]


@given(
    any_lowered(levels=(1, 2, None)), st.text(max_size=20) | st.sampled_from(["\x1b[2J", "\x9d"])
)
def test_no_text_becomes_a_sequence_of_its_own(
    command: tuple[str, msgspec.Struct], text: str
) -> None:
    """In the place of any text of a command, a text is refused or adds no control character."""
    name, payload = command
    data = msgspec.to_builtins(payload)
    for key in [key for key, value in data.items() if isinstance(value, str)]:
        try:
            lowered, plain = (lower(name, {**data, key: one}) for one in (text, "zqzq"))
        except msgspec.ValidationError:
            continue
        assert len(controls(lowered)) <= len(controls(plain))


def controls(data: bytes) -> list[str]:
    return re.findall(r"[\x00-\x1f\x7f-\x9f]", data.decode("utf-8"))


def test_a_lone_surrogate_is_refused() -> None:
    for name, data in (
        ("term:write", {"text": "\ud800"}),
        ("term:title", {"title": "\udc9b"}),
        ("clip:write", {"text": "\ud800"}),
        ("var:set", {"name": "a", "value": "\ud800"}),
    ):
        with pytest.raises(msgspec.ValidationError):
            lower(name, data)
