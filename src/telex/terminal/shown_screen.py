"""Screens as a person sees them: characters, styles in words, the visible cursor and the title.

Two screens that look the same are equal here, however a program drew them: of a blank, only the
visible part of its style counts, and a cell that was never written is a plain blank.

Pure. `screen_difference` tells the difference of two; golden screens of `telex.testing` are such
screens, and their files contain these words.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from telex.terminal.cells import Row, Snapshot

WORDS: Final = 1
"""The newest version of the words. A golden file is compared in those of its own version."""
_FIRST: Final = ("bold", "dim", "italic", "underline", "inverse")
ATTRIBUTES: Final = {1: (*_FIRST, "strikethrough", "blink", "invisible")}
"""The attributes of a cell, beside its colours, that each version has."""
UNDERLINES: Final = {1: ("double", "curly", "dotted", "dashed")}
"""The kinds of underlines beside the plain one: `curly-underline`."""
COLOURS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
PLAIN: Final = ""

_MARKS_BLANKS: Final = re.compile("inverse|underline|strikethrough")
"""Attributes that are seen on a blank."""


class ShownCell(NamedTuple):
    """One cell: its character, and its style in words."""

    text: str = " "
    """A character with its combining characters; empty if the character before covers the cell."""
    style: str = PLAIN
    """Attributes and colours, as in `bold red on blue`."""


BLANK: Final = ShownCell()


@dataclass(frozen=True, slots=True)
class ShownScreen:
    """A screen: its cells, its cursor and its title."""

    rows: tuple[tuple[ShownCell, ...], ...]
    cols: int
    cursor: tuple[int, int] | None = None
    """Row and column; None if the cursor is hidden."""
    title: str = ""


def from_cells(snapshot: Snapshot, version: int = WORDS) -> ShownScreen:
    """Return the screen of a snapshot of the terminal itself."""
    size = snapshot.size
    rows = [shown_row(row, size.cols, version) for row in snapshot.rows[: size.rows]]
    missing = [(BLANK,) * size.cols] * (size.rows - len(rows))
    return screen_of((*rows, *missing), snapshot)


@lru_cache(maxsize=512)
def shown_row(row: Row, cols: int, version: int = WORDS) -> tuple[ShownCell, ...]:
    """Convert a row. Unchanged rows of a terminal are the same objects from look to look."""
    cells = [
        shown_cell(cell.text, not cell.width, style_words(cell.style, version))
        for cell in row.cells
    ]
    return shown_rows([cells], 1, cols)[0]


def screen_of(rows: tuple[tuple[ShownCell, ...], ...], seen: Any) -> ShownScreen:
    """Return a screen of these rows, with the cursor and the title of a snapshot: of the terminal
    itself, or of a public one."""
    cursor = (seen.cursor.row, seen.cursor.col) if seen.cursor.visible else None
    return ShownScreen(rows, seen.size.cols, cursor, "".join(map(_shown, seen.title or "")))


def from_text(text: str, rows: int, cols: int) -> ShownScreen:
    """Return a screen of plain narrow characters."""
    given = [[shown_cell(char, False, PLAIN) for char in line] for line in text.split("\n")]
    return ShownScreen(shown_rows(given, rows, cols), cols)


@lru_cache(maxsize=4096)
def style_words(style: Any, version: int = WORDS) -> str:
    """Return a style in words: attributes, foreground, colour of the underline, background."""
    found = [name for name in ATTRIBUTES[version] if getattr(style, name)]
    if style.underline and style.underline_style in UNDERLINES[version]:
        found[found.index("underline")] = f"{style.underline_style}-underline"
    line = style.underline_color if style.underline else "default"
    for before, colour in (("", style.foreground), ("line-", line), ("on ", style.background)):
        if shown := _colour(colour):
            found.append(before + shown)
    return " ".join(found)


def _colour(name: str) -> str:
    kind, *numbers = name.split(":")
    if kind == "idx":
        index = int(numbers[0])
        bright = "bright-" if index >= 8 else ""
        return f"{bright}{COLOURS[index % 8]}" if index < 16 else f"color{index}"
    return "#{:02x}{:02x}{:02x}".format(*map(int, numbers)) if kind == "rgb" else ""


@lru_cache(maxsize=8192)
def shown_cell(text: str, covered: bool, style: str) -> ShownCell:
    """Return a cell as it is compared. Of a blank, only the visible part of its style counts: how a
    program erased a cell leaves no trace on the screen."""
    if covered:
        return ShownCell("", style)
    shown = "".join(map(_shown, text)) or " "
    if shown == " " and style and not _MARKS_BLANKS.search(style):
        _, on, colour = f" {style}".partition(" on ")
        style = f"on {colour}" if on else PLAIN
    return ShownCell(shown, style)


def _shown(char: str) -> str:
    """Return a character, or U+FFFD for a control character or half a surrogate pair."""
    return "\ufffd" if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") else char


def shown_rows(
    rows: Sequence[Sequence[ShownCell]], height: int, cols: int
) -> tuple[tuple[ShownCell, ...], ...]:
    """Return exactly so many rows of so many cells, as they are compared."""
    given = [list(row[:cols]) for row in rows[:height]]
    for row in given:
        before = ""
        for col, cell in enumerate(row):
            if not cell.text and not before:  # covered by nothing
                row[col] = ShownCell(" ", cell.style)
            before = cell.text
        _style_blanks(row)
        row.extend([BLANK] * (cols - len(row)))
    given += [[BLANK] * cols] * (height - len(given))
    return tuple(map(tuple, given))


def _style_blanks(row: list[ShownCell]) -> None:
    """Give blanks between two words of one style that style, if they look like it: most programs
    draw whole phrases, and a run with gaps is hard to read."""
    inked = [col for col, cell in enumerate(row) if cell.text.strip(" ")]
    for left, right in pairwise(inked):
        style = row[left].style
        if right - left > 1 and style and style == row[right].style:
            blank = shown_cell(" ", False, style)
            gap = range(left + 1, right)
            if blank.style != style and all(row[col] in (blank, ("", style)) for col in gap):
                for col in gap:
                    row[col] = ShownCell(row[col].text, style)


def row_text(row: Iterable[ShownCell]) -> str:
    """Return the text of a row, without the blanks at its end."""
    return "".join([cell.text for cell in row]).rstrip(" ")


def text_rows(screen: ShownScreen) -> list[str]:
    """Return the texts of the rows, without blank rows at the end."""
    return "\n".join([row_text(row) for row in screen.rows]).rstrip("\n").split("\n")
