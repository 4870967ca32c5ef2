"""A screen as the bytes that draw it again on a fresh terminal of the same size.

For whoever comes later: `session.attach` sends this first. It is what is visible, with the modes
and the cursor; not the scrollback, nor the primary screen beneath an alternate one, nor what DECSC
saved. Each row is drawn cell by cell and not by the library's own formatter, which writes blanks
as spaces and loses where a line was wrapped. Pure; used by `screen`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from telex.terminal.cells import PLAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.terminal.cells import Cell, Cursor, Row, Style

_MODE: Final = re.compile(r"\x1b\[(\??\d+)([hl])")
_REGION: Final = re.compile(r"\x1b\[(\d+);\d+([rs])")
_ALTERNATE: Final = {"?47", "?1047", "?1049"}
"""Modes that choose the screen. One may stay set when another has left the alternate screen, so
which screen it is decides, and not they."""
_FIRST: Final = {"?2027"}
"""What must be there before the drawing: what a character is."""
_NEVER: Final = {"?3", "?2026", "?6"}
"""Modes not to be set again as they are: changing the width clears the screen, a held update is no
state, and the origin is set with the cursor."""
_ATTRIBUTES: Final = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "underline": 4,
    "blink": 5,
    "inverse": 7,
    "invisible": 8,
    "strikethrough": 9,
}


@dataclass(frozen=True, slots=True)
class State:
    """What is not in the rows, as the emulator writes it."""

    cursor: Cursor
    alternate_screen: bool
    pending_wrap: bool
    """Whether the last column was just written, so that the next character goes to the next row."""
    title: str | None
    modes: str
    tabs: str
    region: str
    pen: str
    """Style, character sets and keyboard of what is printed next."""


def restoring(rows: Sequence[Row], state: State) -> bytes:
    """The bytes. They start from a terminal that was just made or reset."""
    modes = _MODE.findall(state.modes)
    entered = [mode for mode, end in modes if mode in _ALTERNATE and end == "h"] or ["?1049"]
    parts = [f"\x1b[{mode}h" for mode in entered] if state.alternate_screen else []
    parts += [f"\x1b[{mode}{end}" for mode, end in modes if mode in _FIRST]
    parts += ["\x1b[m\x1b[H\x1b[2J", *_draw(rows), "\x1b[m", state.tabs]
    parts += [
        f"\x1b[{mode}{end}" for mode, end in modes if mode not in _ALTERNATE | _FIRST | _NEVER
    ]
    parts.append(state.region)
    parts += _place(rows, state, dict(modes))
    parts.append(state.pen)
    if state.title is not None:
        parts.append(f"\x1b]2;{state.title}\x1b\\")
    return "".join(parts).encode("utf-8", "replace")


def _draw(rows: Sequence[Row]) -> Iterator[str]:
    """From the top, every cell: a wrapped row leaves something in the row below."""
    for y, row in enumerate(rows):
        yield f"\x1b[{y + 1}H"
        yield from _cells(row.cells)
        if row.wrapped and y + 1 < len(rows):
            yield _wrap(row.cells[-1], rows[y + 1].cells[0], len(row.cells))


def _cells(cells: Sequence[Cell]) -> Iterator[str]:
    for (style, empty), group in groupby(cells, key=lambda cell: (cell.style, _empty(cell))):
        members = list(group)
        yield _sgr(style)
        if empty:
            # Erased, not printed: a blank that was never written is not a space.
            yield f"\x1b[{len(members)}X\x1b[{len(members)}C"
        else:
            yield "".join([cell.text for cell in members])


def _empty(cell: Cell) -> bool:
    return not cell.text and cell.width == 1


def _wrap(last: Cell, following: Cell, cols: int) -> str:
    """Something to wrap with, for the row below to draw over.

    A line that ends in a blank was wrapped by a wide character that did not fit.
    """
    if _empty(last):
        return f"\x1b[{cols}G{_sgr(last.style)}{following.text if following.width == 2 else '中'}"
    return _sgr(following.style) + (following.text or " ")


def _place(rows: Sequence[Row], state: State, modes: dict[str, str]) -> Iterator[str]:
    pending = state.pending_wrap and modes.get("?7") != "l"
    row, col = state.cursor.row, state.cursor.col
    top = left = 0
    if modes.get("?6") == "h":
        starts = {end: int(start) - 1 for start, end in _REGION.findall(state.region)}
        top, left = starts.get("r", 0), starts.get("s", 0)
        yield "\x1b[?6h"
    cell = rows[row].cells[col]
    if pending and cell.width == 0:
        col, cell = col - 1, rows[row].cells[col - 1]
    yield f"\x1b[{row - top + 1};{col - left + 1}H"
    if pending and cell.text:
        yield _sgr(cell.style) + cell.text


def _sgr(style: Style) -> str:
    if style is PLAIN:
        return "\x1b[m"
    codes = [str(code) for name, code in _ATTRIBUTES.items() if getattr(style, name)]
    codes += _colour(style.foreground, 38) + _colour(style.background, 48)
    return f"\x1b[0;{';'.join(codes)}m"


def _colour(word: str, base: int) -> list[str]:
    kind, *numbers = word.split(":")
    return [] if kind == "default" else [str(base), "5" if kind == "idx" else "2", *numbers]
