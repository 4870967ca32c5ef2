"""The layout of a screen: its pieces with their places and colours, shared by drawn pictures.

A `Piece` is a run of cells that is drawn at once. There are three forms, because pictures must keep
their columns in any font of the viewer:

    text    letters that every monospaced font has: many at once
    alone   other characters, which may come from a font of another width: one at a time
    drawn   lines, blocks and dots that must touch their neighbours: drawn as shapes, not by a font

Used by `svg`, `html` and `png`. Characters that could affect the reader of a picture (controls,
bidirectional overrides, lone surrogates) are removed here; `text` uses the same rule.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from telex.terminal.cells import PLAIN
from telex.terminal.pictures.box_drawing import Polygon, Rect, is_drawn
from telex.terminal.pictures.theme import RGB, Theme, blend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.terminal.cells import Row, Size, Snapshot, Style, UnderlineStyle
    from telex.terminal.pictures.box_drawing import Shape


CELL_WIDTH: Final = 9
CELL_HEIGHT: Final = 18
BASELINE: Final = 14
FONT_SIZE: Final = 15
"""The size of a cell in units; the scale is the number of pixels per unit. The bundled font is 9.03
wide at this size, so that its letters fill whole cells, and two cells side by side are a square.
"""
PADDING: Final = CELL_WIDTH
STRIKE: Final = (9, 10)

CLUSTER_CHARACTERS: Final = 32
"""The number of combining marks drawn on a letter, as in Unicode's stream-safe text (UAX #15 §13),
which has at most 30. More could not be distinguished, and would let one cell cost as much as many.
"""

_ACTING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_COMMON: Final = re.compile("[ -~\u00a1-\u00ac\u00ae-\u017f]")
"""Characters that every monospaced font has: ASCII and Latin, without the soft hyphen."""
_DARK_HALF: Final = {f"idx:{index}": f"idx:{index + 8}" for index in range(8)}
_DIM: Final = 0.55


class Form(Enum):
    TEXT = "text"
    ALONE = "alone"
    DRAWN = "drawn"


@dataclass(frozen=True, slots=True)
class Ink:
    """A style with its colours resolved to RGB."""

    foreground: RGB
    background: RGB
    bold: bool = False
    italic: bool = False
    underline: UnderlineStyle | None = None
    underline_colour: RGB | None = None
    """None if it is the foreground."""
    strikethrough: bool = False
    invisible: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    col: int
    width: int
    """The width in cells."""
    text: str
    ink: Ink
    form: Form


def pixels(size: Size, scale: int = 1) -> tuple[int, int]:
    """Return the width and height of a picture, with its padding."""
    width = size.cols * CELL_WIDTH + 2 * PADDING
    return width * scale, (size.rows * CELL_HEIGHT + 2 * PADDING) * scale


def inert(text: str) -> str:
    """Return the text without characters that have an effect instead of a shape."""
    return _ACTING.sub("", text)


@lru_cache(maxsize=4096)
def ink(style: Style, theme: Theme) -> Ink:
    foreground = theme.colour(_brightened(style), theme.foreground)
    background = theme.colour(style.background, theme.background)
    if style.inverse:
        foreground, background = background, foreground
    if style.dim:
        foreground = blend(foreground, background, _DIM)
    return Ink(
        foreground,
        background,
        style.bold,
        style.italic,
        style.underline_style if style.underline and not style.invisible else None,
        _underline_colour(style, theme),
        style.strikethrough and not style.invisible,
        style.invisible,
    )


def _underline_colour(style: Style, theme: Theme) -> RGB | None:
    default = style.underline_color == "default"
    return None if default else theme.colour(style.underline_color, theme.foreground)


def _brightened(style: Style) -> str:
    """Return the foreground of a style: bold makes the first eight colours bright, as in xterm.

    xterm.js and most terminals do the same. Some do not, but programs with eight colours rely on
    it: `dialog` draws half its frame in bold white on white.
    """
    name = style.foreground
    return _DARK_HALF.get(name, name) if style.bold else name


def lay_out(snapshot: Snapshot, theme: Theme, cursor: bool) -> Iterator[list[Piece]]:
    """Return the pieces of each row, from the top, without plain blanks at the end of a row."""
    place = _cursor_place(snapshot) if cursor else None
    for number, row in enumerate(snapshot.rows[: snapshot.size.rows]):
        inks = [ink(cell.style, theme) for cell in row.cells[: snapshot.size.cols]]
        if place is not None and place[0] == number:
            under = inks[place[1]]
            inks[place[1]] = replace(under, foreground=theme.background, background=theme.cursor)
        yield _pieces(row, inks, ink(PLAIN, theme))


def _cursor_place(snapshot: Snapshot) -> tuple[int, int] | None:
    """Return the cell of the cursor; beyond the last column it is the last cell."""
    at = snapshot.cursor
    if not at.visible or not 0 <= at.row < min(snapshot.size.rows, len(snapshot.rows)):
        return None
    cells = snapshot.rows[at.row].cells[: snapshot.size.cols]
    col = min(at.col, len(cells) - 1)
    while col > 0 and not cells[col].width:
        col -= 1
    return (at.row, col) if col >= 0 else None


def _pieces(row: Row, inks: list[Ink], plain: Ink) -> list[Piece]:
    """Join neighbours of one ink and form; the second cell of a wide character belongs to it."""
    pieces: list[Piece] = []
    run, began = "", 0
    last: tuple[Ink, Form] | None = None
    for col, (cell, colours) in enumerate(zip(row.cells, inks, strict=False)):
        if not cell.width:
            continue
        text, form = _shown(cell.text, cell.width)
        if last == (colours, form) and form is not Form.ALONE:
            run += text
            continue
        if last is not None:
            pieces.append(Piece(began, col - began, run, *last))
        run, began, last = text, col, (colours, form)
    if last is not None and not (run.isspace() and last[0] is plain):
        pieces.append(Piece(began, len(inks) - began, run, *last))
    return pieces


@lru_cache(maxsize=8192)
def _shown(text: str, width: int) -> tuple[str, Form]:
    """Return the text shown for a cell: a space if it is empty, U+FFFD if it cannot be shown."""
    if not text:
        text = " "
    if width == 1 and _COMMON.fullmatch(text):
        return text, Form.TEXT
    if width == 1 and is_drawn(text):
        return text, Form.DRAWN
    return inert(text)[:CLUSTER_CHARACTERS] or "\ufffd", Form.ALONE


# Underlines as shapes: single, double, curly, dotted and dashed, for one cell.
#
# Each pattern ends where it begins, so that it continues in the next cell. Used by `svg` and
# `png`.


_TOP: Final = BASELINE + 2
_DOTS: Final = 3
_DASH: Final = 6
_STEPS: Final = 16
_SWING: Final = 1.25
"""How far a curl leaves its middle: with the line's own thickness it stays inside its cell."""


@lru_cache(maxsize=64)
def underline_shapes(style: UnderlineStyle, scale: int) -> tuple[Shape, ...]:
    """Return the underline of one cell, in pixels from the cell's upper left corner."""
    match style:
        case "single":
            return (_line(_TOP, scale),)
        case "double":
            return _line(_TOP - 1, scale), _line(_TOP + 1, scale)
        case "dotted":
            step = CELL_WIDTH / _DOTS
            return tuple(_bar(dot * step, step / 2, scale) for dot in range(_DOTS))
        case "dashed":
            return (_bar((CELL_WIDTH - _DASH) / 2, _DASH, scale),)
        case "curly":
            return (_curl(scale),)


def _line(top: int, scale: int) -> Rect:
    return Rect(0, top * scale, CELL_WIDTH * scale, (top + 1) * scale)


def _bar(start: float, width: float, scale: int) -> Shape:
    """Return a part of a line: exact on whole pixels, smooth between them."""
    left, right = start * scale, (start + width) * scale
    top, bottom = _TOP * scale, (_TOP + 1) * scale
    if left == int(left) and right == int(right):
        return Rect(int(left), top, int(right), bottom)
    return Polygon(((left, top), (right, top), (right, bottom), (left, bottom)))


def _curl(scale: int) -> Polygon:
    """Return one wave, as thick as a line: its upper edge to the right, its lower edge back."""
    places = [(step / _STEPS, -math.sin(step / _STEPS * math.tau)) for step in range(_STEPS + 1)]
    upper = [(x * CELL_WIDTH * scale, (_TOP - 0.25 + y * _SWING) * scale) for x, y in places]
    lower = [(x, y + scale) for x, y in reversed(upper)]
    return Polygon((*upper, *lower))
