"""Keys, the mouse and pasting: what is typed is what a terminal would send."""

from __future__ import annotations

from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.terminal.actions import MouseEvent
from telex.terminal.cells import Size
from telex.terminal.keys import (
    NAMED,
    PASTE_BEGINS,
    PASTE_ENDS,
    KeyPress,
    UnknownKey,
    bracketed_paste_bytes,
    parse_key,
    paste_bytes,
)
from telex.terminal.screen import Screen


def typed(name: str, modes: str = "") -> bytes:
    screen = Screen(Size())
    screen.feed(modes.encode())
    return screen.encode_key(parse_key(name))


OF_THE_SPEC = {
    "enter": b"\r",
    "escape": b"\x1b",
    "tab": b"\t",
    "shift_tab": b"\x1b[Z",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "space": b" ",
    "insert": b"\x1b[2~",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "page_up": b"\x1b[5~",
    "page_down": b"\x1b[6~",
    **{f"ctrl_{letter}": bytes([n]) for n, letter in enumerate(ascii_lowercase, 1)},
    **{f"f{n}": b"\x1bO" + b"PQRS"[n - 1 : n] for n in range(1, 5)},
    **{
        f"f{n}": b"\x1b[%d~" % code
        for n, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)
    },
}
BESIDES = {
    "ctrl_left": b"\x1b[1;5D",
    "ctrl_shift_right": b"\x1b[1;6C",
    "alt_up": b"\x1b[1;3A",
    "shift_f5": b"\x1b[15;2~",
    "ctrl_page_up": b"\x1b[5;5~",
    "ctrl_alt_shift_end": b"\x1b[1;8F",
    "ctrl_space": b"\0",
    "alt_enter": b"\x1b\r",
    "alt_x": b"\x1bx",
    "alt_backspace": b"\x1b\x7f",
    "ctrl_enter": b"\r",
    "shift_enter": b"\r",
    "ctrl_tab": b"\t",
    "ctrl_[": b"\x1b",
    "ctrl_\\": b"\x1c",
    "ctrl_]": b"\x1d",
    "ctrl_/": b"\x1f",
    "ctrl_alt_x": b"\x1b\x18",
    "a": b"a",
    "A": b"A",
    "/": b"/",
    "é": "é".encode(),
    "中": "中".encode(),
    "shift_a": b"A",
    "alt_é": "\x1bé".encode(),
    "-": b"-",
    "+": b"+",
    "_": b"_",
    "alt_-": b"\x1b-",
    " ": b" ",
    "ctrl_shift_x": b"\x18",
    "alt_shift_x": b"\x1bX",
}


@pytest.mark.parametrize("name", [*OF_THE_SPEC, *BESIDES])
def test_a_program_that_asked_for_nothing_gets_the_bytes_it_always_got(name: str) -> None:
    assert typed(name) == {**OF_THE_SPEC, **BESIDES}[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("up", b"\x1bOA"), ("left", b"\x1bOD"), ("home", b"\x1bOH"), ("ctrl_up", b"\x1b[1;5A")],
)
def test_arrows_follow_the_application_cursor_mode(name: str, expected: bytes) -> None:
    assert typed(name, "\x1b[?1h") == expected
    assert typed(name, "\x1b[?1h\x1b[?1l") == OF_THE_SPEC.get(name, expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("escape", b"\x1b[27u"),
        ("ctrl_i", b"\x1b[105;5u"),
        ("ctrl_enter", b"\x1b[13;5u"),
        ("alt_x", b"\x1b[120;3u"),
        ("ctrl_shift_x", b"\x1b[120;6u"),
        ("enter", b"\r"),
        ("a", b"a"),
        ("A", b"A"),
    ],
)
def test_a_program_that_asked_gets_the_kitty_protocol(name: str, expected: bytes) -> None:
    assert typed(name, "\x1b[>1u") == expected


def test_a_release_is_sent_to_a_program_that_asked_for_it() -> None:
    assert typed("ctrl_x", "\x1b[>3u") == b"\x1b[120;5u\x1b[120;5:3u"
    assert typed("A", "\x1b[>31u") == b"\x1b[97:65;2;65u\x1b[97:65;2:3u"


def test_a_program_that_asked_gets_modify_other_keys() -> None:
    assert typed("ctrl_i", "\x1b[>4;2m") == b"\x1b[27;5;105~"
    assert typed("ctrl_enter", "\x1b[>4;2m") == b"\x1b[27;5;13~"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        *[("Ctrl+X", "ctrl_x"), ("C-x", "ctrl_x"), ("ctrl-x", "ctrl_x"), ("CTRL_X", "ctrl_x")],
        *[("control+x", "ctrl_x"), ("M-x", "alt_x"), ("Meta-x", "alt_x"), ("S-Tab", "shift_tab")],
        *[("BackTab", "shift_tab"), ("PageUp", "page_up"), ("page-up", "page_up")],
        *[("PgDn", "page_down"), ("Esc", "escape"), ("Return", "enter"), ("DEL", "delete")],
        *[("F5", "f5"), ("Shift+F5", "shift_f5"), ("arrow_up", "up"), ("ArrowUp", "up")],
        *[("shift_ctrl_right", "ctrl_shift_right"), ("alt+ctrl+x", "ctrl_alt_x"), ("C-M-x", "ctrl_alt_x")],
    ],
)  # fmt: skip
def test_names_are_read_as_people_write_them(spelling: str, name: str) -> None:
    assert parse_key(spelling) == parse_key(name)


def test_a_separator_may_be_the_key() -> None:
    assert parse_key("ctrl_-") == parse_key("C--") == KeyPress("-", ctrl=True)
    assert parse_key("ctrl++") == KeyPress("+", ctrl=True)
    assert parse_key("ctrl__") == KeyPress("_", ctrl=True)


@pytest.mark.parametrize(
    ("name", "near"),
    [("entr", "enter"), ("pageupp", "page_up"), ("ctrl_lft", "ctrl_left"), ("escpae", "escape")],
)
def test_an_unknown_name_is_refused_with_similar_names(name: str, near: str) -> None:
    with pytest.raises(UnknownKey, match=near):
        parse_key(name)


@given(st.text(max_size=8))
def test_a_name_is_a_key_or_unknown(name: str) -> None:
    said = ""
    try:
        press = parse_key(name)
    except UnknownKey as unknown:
        said = str(unknown)
    assert said.isprintable() if said else press.key in NAMED or len(press.key) == 1


@given(
    st.sampled_from(NAMED) | st.characters(categories=("L", "N", "P", "S")),
    *[st.booleans()] * 3,
    st.sampled_from(["", "\x1b[?1h", "\x1b[>1u", "\x1b[>31u", "\x1b[>4;2m", "\x1b[?1h\x1b="]),
)
def test_every_key_types_something(
    key: str, ctrl: bool, alt: bool, shift: bool, modes: str
) -> None:
    screen = Screen(Size())
    screen.feed(modes.encode())
    assert screen.encode_key(KeyPress(key, ctrl, alt, shift))


# The mouse


def pointed(modes: str, *events: MouseEvent, size: Size | None = None) -> bytes:
    screen = Screen(size or Size())
    screen.feed(f"\x1b[?{modes}h".encode())
    return b"".join([screen.encode_mouse(event) for event in events])


def test_a_program_that_did_not_ask_for_the_mouse_gets_nothing() -> None:
    screen = Screen(Size())
    assert screen.encode_mouse(MouseEvent(1, 2)) == b""
    assert not screen.mouse_tracking


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ("9", b"\x1b[M %$"),
        ("1000", b"\x1b[M %$\x1b[M#%$"),
        ("1002;1005", b"\x1b[M %$\x1b[M#%$"),
        ("1000;1006", b"\x1b[<0;5;4M\x1b[<0;5;4m"),
        ("1003;1015", b"\x1b[32;5;4M\x1b[35;5;4M"),
        ("1003;1016", b"\x1b[<0;36;56M\x1b[<0;36;56m"),
    ],
)
def test_a_click_is_sent_in_the_protocol_that_was_asked_for(modes: str, expected: bytes) -> None:
    assert pointed(modes, MouseEvent(3, 4)) == expected
    assert pointed(modes, MouseEvent(3, 4, count=3)) == expected * 3


def test_cells_beyond_223_need_a_protocol_that_can_encode_them() -> None:
    wide = Size(10, 500)
    assert pointed("1000;1006", MouseEvent(3, 400), size=wide) == b"\x1b[<0;401;4M\x1b[<0;401;4m"
    assert pointed("1000;1005", MouseEvent(3, 400), size=wide).startswith("\x1b[M ƱȤ"[:4].encode())
    assert pointed("1000", MouseEvent(3, 400), size=wide) == b""


def test_buttons_modifiers_and_the_wheel() -> None:
    sgr = "1000;1006"
    assert pointed(sgr, MouseEvent(0, 0, button="right")) == b"\x1b[<2;1;1M\x1b[<2;1;1m"
    assert pointed(sgr, MouseEvent(0, 0, button="middle", event="press")) == b"\x1b[<1;1;1M"
    assert pointed(sgr, MouseEvent(0, 0, event="scroll_up", count=2)) == b"\x1b[<64;1;1M" * 2
    assert pointed(sgr, MouseEvent(0, 0, event="scroll_down", ctrl=True)) == b"\x1b[<81;1;1M"
    assert pointed(sgr, MouseEvent(0, 0, event="press", shift=True, alt=True)) == b"\x1b[<12;1;1M"


def test_a_move_is_a_drag_while_a_button_is_down() -> None:
    press, move = MouseEvent(0, 0, event="press"), MouseEvent(0, 1, event="move")
    release = MouseEvent(0, 1, event="release")
    dragged = b"\x1b[<0;1;1M\x1b[<32;2;1M\x1b[<0;2;1m"
    assert pointed("1002;1006", press, move, release, move) == dragged
    assert pointed("1003;1006", press, move, release, move) == dragged + b"\x1b[<35;2;1M"
    assert pointed("1000;1006", press, move, release) == b"\x1b[<0;1;1M\x1b[<0;2;1m"


def test_the_mouse_stays_on_the_screen() -> None:
    assert pointed("1000;1006", MouseEvent(999, 999, event="press")) == b"\x1b[<0;80;24M"


# Pasting


def test_a_paste_is_verbatim() -> None:
    assert paste_bytes("a\x1b[201~\r\n中") == "a\x1b[201~\r\n中".encode()


@given(st.text() | st.text("\x1b[201~\u009b\x03\r\n a"))
def test_nothing_breaks_out_of_a_bracketed_paste(text: str) -> None:
    data = bracketed_paste_bytes(text)
    assert data.startswith(PASTE_BEGINS)
    assert data.endswith(PASTE_ENDS)
    inside = data[len(PASTE_BEGINS) : -len(PASTE_ENDS)]
    assert not set(inside) & (set(range(0x20)) - set(b"\t\r\n") | {0x7F})
    assert not any(0x80 <= ord(char) < 0xA0 for char in inside.decode())


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))))
def test_ordinary_text_is_pasted_unchanged(text: str) -> None:
    assert bracketed_paste_bytes(text) == PASTE_BEGINS + text.encode() + PASTE_ENDS
