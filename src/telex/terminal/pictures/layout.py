"""What stands where and in which ink: the part that every drawn picture shares.

A `Piece` is a stretch of cells that is drawn in one go. There are three forms, because pictures
must keep their columns in whatever font a viewer has:

    text    letters that every monospaced font has: many at once
    alone   anything else, which may come from another font of another width: one at a time
    drawn   lines, blocks and dots that must touch their neighbours: we draw these, no font does

Used by `svg`, `html` and `png`. Text that could act on its reader (controls, bidirectional
overrides, lone surrogates) is taken out here; `text` uses the same rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from telex.terminal.cells import PLAIN
from telex.terminal.pictures.box_drawing import is_drawn
from telex.terminal.pictures.theme import RGB, Theme, blend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.terminal.cells import Row, Size, Snapshot, Style

CELL_WIDTH: Final = 9
CELL_HEIGHT: Final = 18
BASELINE: Final = 14
FONT_SIZE: Final = 15
"""In units; a picture's scale says how many pixels one has. The bundled font is 9.03 wide at this
size, so that its letters fill whole cells, and two cells side by side are a square."""
PADDING: Final = CELL_WIDTH
UNDERLINE: Final = (BASELINE + 2, BASELINE + 3)
STRIKE: Final = (9, 10)

CLUSTER_CHARACTERS: Final = 32
"""Unicode's stream-safe text (UAX #15 §13) has at most 30 marks on a letter. The rest is not drawn:
it could not be told apart, and a cell must not cost more than a cell."""

_ACTING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_COMMON: Final = re.compile("[ -~\u00a1-\u00ac\u00ae-\u017f]")
"""What a monospaced font surely has: ASCII and Latin, without the soft hyphen."""
_DARK_HALF: Final = {f"idx:{index}": f"idx:{index + 8}" for index in range(8)}
_DIM: Final = 0.55


class Form(Enum):
    TEXT = "text"
    ALONE = "alone"
    DRAWN = "drawn"


@dataclass(frozen=True, slots=True)
class Ink:
    """A style with its colours mixed: nothing left to look up."""

    foreground: RGB
    background: RGB
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strikethrough: bool = False
    invisible: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    col: int
    width: int
    """In cells."""
    text: str
    ink: Ink
    form: Form


def pixels(size: Size, scale: int = 1) -> tuple[int, int]:
    """How wide and high a picture is, its padding included."""
    width = size.cols * CELL_WIDTH + 2 * PADDING
    return width * scale, (size.rows * CELL_HEIGHT + 2 * PADDING) * scale


def inert(text: str) -> str:
    """The text without the characters that act instead of showing."""
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
        style.underline and not style.invisible,
        style.strikethrough and not style.invisible,
        style.invisible,
    )


def _brightened(style: Style) -> str:
    """Bold makes the first eight colours bright, as in xterm, xterm.js and most others.

    Some terminals leave this out, but programs of eight colours count on it: `dialog` draws
    half its frame in bold white on white.
    """
    name = style.foreground
    return _DARK_HALF.get(name, name) if style.bold else name


def lay_out(snapshot: Snapshot, theme: Theme, cursor: bool) -> Iterator[list[Piece]]:
    """The pieces of each row, from the top. Plain blanks at a row's end are left out."""
    place = _cursor_place(snapshot) if cursor else None
    for number, row in enumerate(snapshot.rows[: snapshot.size.rows]):
        inks = [ink(cell.style, theme) for cell in row.cells[: snapshot.size.cols]]
        if place is not None and place[0] == number:
            under = inks[place[1]]
            inks[place[1]] = replace(under, foreground=theme.background, background=theme.cursor)
        yield _pieces(row, inks, ink(PLAIN, theme))


def _cursor_place(snapshot: Snapshot) -> tuple[int, int] | None:
    """The cell the cursor stands on; past the last column it waits on the last."""
    at = snapshot.cursor
    if not at.visible or not 0 <= at.row < min(snapshot.size.rows, len(snapshot.rows)):
        return None
    cells = snapshot.rows[at.row].cells[: snapshot.size.cols]
    col = min(at.col, len(cells) - 1)
    while col > 0 and not cells[col].width:
        col -= 1
    return (at.row, col) if col >= 0 else None


def _pieces(row: Row, inks: list[Ink], plain: Ink) -> list[Piece]:
    """Neighbours of one ink and form, joined; what a wide character covers belongs to it."""
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
    """What is shown for a cell. Nothing written is a space, nothing showable is U+FFFD."""
    if not text:
        text = " "
    if width == 1 and _COMMON.fullmatch(text):
        return text, Form.TEXT
    if width == 1 and is_drawn(text):
        return text, Form.DRAWN
    return inert(text)[:CLUSTER_CHARACTERS] or "\ufffd", Form.ALONE
