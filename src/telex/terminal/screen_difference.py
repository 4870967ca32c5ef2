"""The difference between two screens, row by row and in words.

    row 3, columns 5-8: 'Save' → 'Safe'; bold → plain

Rows and columns are counted from 0. Cells that were never written look like plain blanks and are
equal to them. Pure; used by `recording_comparison`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from telex.terminal.cells import BLANK, PLAIN, Cell, Style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.terminal.cells import Row, Snapshot

_COLOURS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs between two screens."""

    row: int
    says: tuple[str, ...]
    """The differing stretches in words."""
    old: str
    """The text of the row on the first screen."""
    new: str


def row_differences(old: Sequence[Row], new: Sequence[Row]) -> tuple[RowDifference, ...]:
    """Return the rows that differ, from the top. A row that one screen lacks counts as blank."""
    found = []
    for number in range(max(len(old), len(new))):
        before = old[number] if number < len(old) else None
        after = new[number] if number < len(new) else None
        says = tuple(_says(number, before, after))
        if says:
            texts = ["" if row is None else row.text for row in (before, after)]
            found.append(RowDifference(number, says, *texts))
    return tuple(found)


def screen_differences(old: Snapshot, new: Snapshot) -> tuple[str, ...]:
    """Return how the screens differ beside their rows: size, cursor and title."""
    return tuple(
        f"{name}: {before} → {after}"
        for name, before, after in (
            ("size (columns x rows)", old.size, new.size),
            ("cursor", _cursor(old), _cursor(new)),
            ("title", repr(old.title or ""), repr(new.title or "")),
        )
        if before != after
    )


def _cursor(seen: Snapshot) -> str:
    cursor = seen.cursor
    place = f"row {cursor.row}, column {cursor.col}"
    return place if cursor.visible else f"hidden at {place}"


def same_rows(old: Row, new: Row) -> bool:
    """Return whether two rows look the same."""
    return old.text == new.text and _painted(old) == _painted(new)


def _painted(row: Row | None) -> list[Cell]:
    """Return the cells without the plain blanks at the end."""
    cells = [_shown(cell) for cell in row.cells] if row is not None else []
    while cells and cells[-1] is BLANK:
        cells.pop()
    return cells


def _shown(cell: Cell) -> Cell:
    if cell.text != " ":
        return cell
    # The colour and weight of letters are not visible without one.
    style = replace(
        cell.style, foreground="default", bold=False, dim=False, italic=False, invisible=False
    )
    if cell.style.inverse:
        style = replace(style, foreground=cell.style.foreground)
    return BLANK if style == PLAIN else Cell("", style)


def _says(number: int, old: Row | None, new: Row | None) -> list[str]:
    before, after = _painted(old), _painted(new)
    size = max(len(before), len(after))
    before += [BLANK] * (size - len(before))
    after += [BLANK] * (size - len(after))
    differing = _differing(before, after)
    says = []
    for differs, members in groupby(range(size), key=lambda col: col in differing):
        if differs:
            columns = list(members)
            first, last = columns[0], columns[-1]
            place = f"column {first}" if first == last else f"columns {first}-{last}"
            pair = before[first : last + 1], after[first : last + 1]
            says.append(f"row {number}, {place}: {_change(*pair)}")
    return says


def _differing(before: Sequence[Cell], after: Sequence[Cell]) -> set[int]:
    """Return the columns that differ. A different text counts as whole words, with the blank
    between two of them: of 'Save' and 'Safe' not the third letter alone."""
    cells = list(zip(before, after, strict=True))
    found = {col for col, (old, new) in enumerate(cells) if old != new}
    letters = {col for col, (old, new) in enumerate(cells) if old.text != new.text}
    inside = {col for col, (old, new) in enumerate(cells) if old.text.strip() and new.text.strip()}
    for columns in (range(1, len(cells)), range(len(cells) - 2, -1, -1)):
        for col in columns:
            neighbour = col - columns.step
            if neighbour in letters and col in inside and neighbour in inside:
                letters.add(col)
    blanks = {col for col in range(len(cells)) if {col - 1, col + 1} <= letters}
    return found | letters | blanks


def _change(old: Sequence[Cell], new: Sequence[Cell]) -> str:
    texts = [_text(old), _text(new)]
    parts = [] if texts[0] == texts[1] else [f"{texts[0]!r} → {texts[1]!r}"]
    styles = [_styles(old), _styles(new)]
    if styles[0] != styles[1]:
        parts.append(f"{styles[0]} → {styles[1]}")
    return "; ".join(parts)


def _text(cells: Sequence[Cell]) -> str:
    return "".join([cell.text or " " for cell in cells if cell.width])


def _styles(cells: Sequence[Cell]) -> str:
    """Return the styles of the cells in words, each once. Blanks say nothing if there is text."""
    written = [cell for cell in cells if cell is not BLANK] or cells
    return ", then ".join([_words(style) for style, _ in groupby(cell.style for cell in written)])


def _words(style: Style) -> str:
    words = []
    for field in fields(Style):
        value = getattr(style, field.name)
        if field.name not in ("foreground", "background") and value != field.default:
            words.append(field.name if value is True else f"{field.name} {value}")
    if style.foreground != "default":
        words.append(_colour(style.foreground))
    if style.background != "default":
        words.append(f"on {_colour(style.background)}")
    return " ".join(words) or "plain"


def _colour(name: str) -> str:
    kind, *numbers = name.split(":")
    if kind == "idx" and int(numbers[0]) < 16:
        bright = "bright " if int(numbers[0]) >= 8 else ""
        return bright + _COLOURS[int(numbers[0]) % 8]
    if kind == "idx":
        return f"colour {numbers[0]}"
    return "#" + "".join([f"{int(number):02x}" for number in numbers])
