"""What a screen looks like, as values: styles, cells, rows, and a snapshot of all of them.

Made by `screen`, masked by `redact`, looked at by `waits`, drawn by `pictures`, sent by
`automation`. Nothing here knows an emulator. Rows and cells are shared between snapshots: a row
that did not change is the same object, so whatever is derived from a row may be kept by its
identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Size:
    """A terminal's size. Pixels are 0 where nobody knows them."""

    rows: int = 24
    cols: int = 80
    pixel_width: int = 0
    pixel_height: int = 0


STANDARD: Final = Size()


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next character goes, counted from 0."""

    row: int = 0
    col: int = 0
    visible: bool = True


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


PLAIN: Final = Style()


@dataclass(frozen=True, slots=True)
class Cell:
    """One place in the grid."""

    text: str = ""
    """One character with what combines with it; empty where nothing was written."""
    style: Style = PLAIN
    width: int = 1
    """2 for the head of a wide character, 0 for the place it covers."""


BLANK: Final = Cell()


@dataclass(frozen=True, slots=True)
class StyledRun:
    """Neighbouring cells of one style."""

    col: int
    width: int
    """In cells."""
    text: str
    style: Style


class Row:
    """One line of the grid: its cells, and whether it goes on in the next row."""

    def __init__(self, cells: tuple[Cell, ...], wrapped: bool = False) -> None:
        self.cells = cells
        """As many as the screen has columns."""
        self.wrapped = wrapped
        """Whether the line was too long and continues in the next row."""

    @classmethod
    def of(cls, text: str, cols: int, wrapped: bool = False) -> Row:
        """A row of narrow characters in one plain style: for tests and small pictures."""
        cells = [Cell(char) for char in text[:cols]]
        return cls((*cells, *[BLANK] * (cols - len(cells))), wrapped)

    def __repr__(self) -> str:
        return f"<Row {self.text!r}{' wrapped' if self.wrapped else ''}>"

    @property
    def cols(self) -> int:
        """How many cells it has."""
        return len(self.cells)

    @cached_property
    def text(self) -> str:
        """What a person reads in it, without the blanks at its end."""
        return "".join([cell.text or " " for cell in self.cells if cell.width]).rstrip(" ")

    @cached_property
    def runs(self) -> tuple[StyledRun, ...]:
        """The cells by style, plain blanks at the end left out."""
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
        """The rows as a person reads them; blank rows at the end are left out."""
        return "\n".join([row.text for row in self.rows]).rstrip("\n")
