"""The content of a screen as values: styles, cells, rows, and a snapshot of them.

`screen` makes them, `redact` masks them, `waits` matches them, `pictures` draws them, `automation`
sends them. No emulator is known here. Rows and cells are shared between snapshots: an unchanged row
is the same object, so values derived from a row may be cached by its identity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a terminal. Pixels are 0 if unknown."""

    rows: int = 24
    cols: int = 80
    pixel_width: int = 0
    pixel_height: int = 0

    @classmethod
    def parse(cls, text: str) -> Size | None:
        """Read COLSxROWS, the form of recordings, command lines and messages."""
        found = _SIZE.fullmatch(text)
        return cls(rows=int(found[2]), cols=int(found[1])) if found else None

    def __str__(self) -> str:
        return f"{self.cols}x{self.rows}"


_SIZE: Final = re.compile(r"([0-9]{1,5})x([0-9]{1,5})")
STANDARD: Final = Size()


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of the cursor, counted from 0."""

    row: int = 0
    col: int = 0
    visible: bool = True


class Region(NamedTuple):
    """A rectangle of cells, counted from 0: its top row, leftmost column, height and width."""

    row: int
    """The top row."""
    col: int
    """The leftmost column."""
    rows: int
    """The height."""
    cols: int
    """The width."""


Region.__module__ = "telex"  # public; the body of a named tuple cannot say so


UnderlineStyle = Literal["single", "double", "curly", "dotted", "dashed"]
UNDERLINES: Final[tuple[UnderlineStyle, ...]] = ("single", "double", "curly", "dotted", "dashed")
"""In the order of SGR 4:1 to 4:5."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a cell is drawn. A colour is `default`, `idx:N` or `rgb:R:G:B`, as on the wire."""

    foreground: str = "default"
    background: str = "default"
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False
    strikethrough: bool = False
    blink: bool = False
    invisible: bool = False
    underline_style: UnderlineStyle = "single"
    underline_color: str = "default"
    """The default is the foreground."""


PLAIN: Final = Style()


def underline_sgr(style: Style) -> list[str]:
    """Return the SGR codes of an underline: its style and its colour."""
    if not style.underline:
        return []
    number = UNDERLINES.index(style.underline_style) + 1
    codes = ["4" if number == 1 else f"4:{number}"]
    kind, _, levels = style.underline_color.partition(":")
    if levels:
        codes.append(f"58:5:{levels}" if kind == "idx" else f"58:2::{levels}")
    return codes


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the grid."""

    text: str = ""
    """One character with its combining characters; empty if never written."""
    style: Style = PLAIN
    width: int = 1
    """2 for the head of a wide character, 0 for the cell that it covers."""


BLANK: Final = Cell()


@dataclass(frozen=True, slots=True)
class StyledRun:
    """Neighbouring cells with one style."""

    col: int
    width: int
    """The width in cells."""
    text: str
    style: Style


class Row:
    """One row of the grid: its cells, and whether its line continues in the next row."""

    def __init__(self, cells: tuple[Cell, ...], wrapped: bool = False) -> None:
        self.cells = cells
        """One cell for each column."""
        self.wrapped = wrapped
        """Whether the line was too long and continues in the next row."""

    @classmethod
    def of(cls, text: str, cols: int, wrapped: bool = False) -> Row:
        """Make a row of narrow characters in the plain style, for tests and small pictures."""
        cells = [Cell(char) for char in text[:cols]]
        return cls((*cells, *[BLANK] * (cols - len(cells))), wrapped)

    def __repr__(self) -> str:
        return f"<Row {self.text!r}{' wrapped' if self.wrapped else ''}>"

    @property
    def cols(self) -> int:
        """The number of cells."""
        return len(self.cells)

    @cached_property
    def text(self) -> str:
        """The text of the row, without trailing blanks."""
        return "".join([cell.text or " " for cell in self.cells if cell.width]).rstrip(" ")

    @cached_property
    def printed_text(self) -> str:
        """The text of the row with the blanks at its end that the program printed."""
        size = len(self.cells)
        while size and not self.cells[size - 1].text and self.cells[size - 1].width:
            size -= 1  # never written, or left empty because a wide character did not fit
        return "".join([cell.text or " " for cell in self.cells[:size] if cell.width])

    @cached_property
    def runs(self) -> tuple[StyledRun, ...]:
        """The runs of one style, without plain trailing blanks."""
        return tuple(_runs(self.cells))


def _runs(cells: tuple[Cell, ...]) -> Iterable[StyledRun]:
    last = max((n for n, cell in enumerate(cells) if cell is not BLANK), default=-1)
    col = 0
    for style, members in groupby(cells[: last + 1], key=lambda cell: cell.style):
        group = list(members)
        text = "".join([cell.text or " " for cell in group if cell.width])
        yield StyledRun(col, len(group), text, style)
        col += len(group)


@dataclass(frozen=True)
class Snapshot:
    """One moment of the visible screen."""

    size: Size
    cursor: Cursor
    sequence: int
    rows: tuple[Row, ...]
    alternate_screen: bool = False
    application_cursor: bool = False
    application_keypad: bool = False
    title: str | None = None

    @cached_property
    def plain_text(self) -> str:
        """The text of the rows, without blank rows at the end."""
        return "\n".join([row.text for row in self.rows]).rstrip("\n")
