"""The screen as text, with or without its colours.

`plain` is for reading and comparing. `ansi` shows the same picture on another terminal with `cat`:
each row starts and ends in the plain style, so that a row can be cut out and no colour continues
into the next text; within a row only changes are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.terminal.cells import PLAIN, underline_sgr
from telex.terminal.pictures.layout import inert
from telex.terminal.pictures.theme import numbers

if TYPE_CHECKING:
    from telex.terminal.cells import Row, Snapshot, Style

_RESET: Final = "\x1b[0m"

_SWITCHES: Final = (
    ("bold", "1", "22"),
    ("dim", "2", "22"),
    ("italic", "3", "23"),
    ("blink", "5", "25"),
    ("inverse", "7", "27"),
    ("invisible", "8", "28"),
    ("strikethrough", "9", "29"),
)
"""Each attribute with the SGR numbers that turn it on and off; 22 turns off two."""


def plain(snapshot: Snapshot) -> bytes:
    lines = [inert(row.text) for row in snapshot.rows]
    return ("\n".join(lines).rstrip("\n") + "\n").encode()


def ansi(snapshot: Snapshot) -> bytes:
    return ("\n".join([ansi_row(row) for row in snapshot.rows]).rstrip("\n") + "\n").encode()


def ansi_row(row: Row) -> str:
    """Return one row, from the plain style and back to it, without the blanks at its end."""
    parts: list[str] = []
    style = PLAIN
    for run in row.runs:
        parts += [_change(style, run.style), inert(run.text)]
        style = run.style
    text = "".join(parts)
    return text.rstrip(" ") if style == PLAIN else text + _RESET


def _change(old: Style, new: Style) -> str:
    """Return the shorter of two ways: only the changes, or a reset and the whole style."""
    if old == new:
        return ""
    if new == PLAIN:
        return _RESET
    codes = min([*_off(old, new), *_on(old, new)], ["0", *_on(PLAIN, new)], key=_length)
    return f"\x1b[{';'.join(codes)}m"


def _length(codes: list[str]) -> int:
    return len(";".join(codes))


def _off(old: Style, new: Style) -> list[str]:
    codes = [off for name, _, off in _SWITCHES if getattr(old, name) and not getattr(new, name)]
    if old.underline and not new.underline:
        codes.append("24")
    if old.underline_color != new.underline_color == "default":
        codes.append("59")
    if old.foreground != new.foreground == "default":
        codes.append("39")
    if old.background != new.background == "default":
        codes.append("49")
    return list(dict.fromkeys(codes))


def _on(old: Style, new: Style) -> list[str]:
    """Return the codes to switch on: new attributes, and those that a shared off code ended."""
    gone = set(_off(old, new))
    codes = [
        on
        for name, on, off in _SWITCHES
        if getattr(new, name) and (off in gone or not getattr(old, name))
    ]
    numbers(new.underline_color)  # a colour that is none must not get into the picture
    codes += [code for code in underline_sgr(new) if code not in underline_sgr(old)]
    if new.foreground != old.foreground and new.foreground != "default":
        codes.append(_colour(new.foreground, 30))
    if new.background != old.background and new.background != "default":
        codes.append(_colour(new.background, 40))
    return codes


def _colour(name: str, base: int) -> str:
    match numbers(name):
        case (index,) if index < 8:
            return str(base + index)
        case (index,) if index < 16:
            return str(base + 60 + index - 8)
        case (index,):
            return f"{base + 8};5;{index}"
        case levels:
            return f"{base + 8};2;" + ";".join(map(str, levels))
