"""The differences of two screens: in words, and as rows side by side.

    row 3, columns 5-8: bold → plain; 'Save' → 'Safe'

Rows and columns are counted from 0. Pure; used for recordings and for golden screens.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from telex.terminal.shown_screen import BLANK, ShownCell, ShownScreen, row_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WORDS_SHOWN: Final = 14
ROWS_SHOWN: Final = 10
"""Together with their heads about 40 lines: a difference that fits on a screen."""


@dataclass(frozen=True, slots=True)
class ScreenDifference:
    """One place where two screens differ, and how."""

    words: str
    row: int | None = None
    """None if the difference is not about cells."""
    first: int = 0
    last: int = 0
    """The columns, both included."""

    def __str__(self) -> str:
        if self.row is None:
            return self.words
        columns = f"column {self.first}" if self.first == self.last else self._columns()
        return f"row {self.row}, {columns}: {self.words}"

    def _columns(self) -> str:
        return f"columns {self.first}-{self.last}"


def differences(expected: ShownScreen, actual: ShownScreen) -> list[ScreenDifference]:
    """Return every difference, from the top; none if and only if the screens are equal."""
    found: list[ScreenDifference] = []
    sizes = [f"{screen.cols}x{len(screen.rows)}" for screen in (expected, actual)]
    if sizes[0] != sizes[1]:
        found.append(ScreenDifference(f"size: {sizes[0]} → {sizes[1]}"))
    for number, (old, new) in enumerate(_rows(expected, actual)):
        if old != new:
            found += _row_differences(number, old, new)
    if expected.cursor != actual.cursor:
        places = [_place(screen.cursor) for screen in (expected, actual)]
        found.append(ScreenDifference(f"cursor: {places[0]} → {places[1]}"))
    if expected.title != actual.title:
        found.append(ScreenDifference(f"title: {expected.title!r} → {actual.title!r}"))
    return found


def _rows(
    expected: ShownScreen, actual: ShownScreen
) -> Iterator[tuple[tuple[ShownCell, ...], tuple[ShownCell, ...]]]:
    """Return the rows of both in pairs, filled up with blanks where one is smaller."""
    cols = max(expected.cols, actual.cols)
    for number in range(max(len(expected.rows), len(actual.rows))):
        rows = [
            screen.rows[number] if number < len(screen.rows) else ()
            for screen in (expected, actual)
        ]
        old, new = [(*row, *[BLANK] * (cols - len(row))) for row in rows]
        yield old, new


def _place(cursor: tuple[int, int] | None) -> str:
    return "hidden" if cursor is None else f"row {cursor[0]} column {cursor[1]}"


def _row_differences(
    number: int, old: Sequence[ShownCell], new: Sequence[ShownCell]
) -> Iterator[ScreenDifference]:
    """Yield the changed places of a row. Words about style and text of one place are joined."""
    spans = [*_style_spans(old, new), *_text_spans(old, new)]
    spans.sort(key=lambda span: span[:2])
    while spans:
        first, last, *_ = spans[0]
        parts: list[str] = []
        while spans and spans[0][0] <= last:
            _, end, words = spans.pop(0)
            last = max(last, end)
            parts.append(words)
        # Text last, as in: bold → plain; 'Save' → 'Safe'.
        parts = sorted(dict.fromkeys(parts), key=lambda part: part.startswith("'"))
        yield ScreenDifference("; ".join(parts), number, first, last)


def _style_spans(
    old: Sequence[ShownCell], new: Sequence[ShownCell]
) -> Iterator[tuple[int, int, str]]:
    styles = [(one.style, other.style) for one, other in zip(old, new, strict=True)]
    for (before, after), members in groupby(enumerate(styles), key=lambda placed: placed[1]):
        if before != after:
            columns = [col for col, _ in members]
            yield columns[0], columns[-1], f"{before or 'plain'} → {after or 'plain'}"


def _text_spans(
    old: Sequence[ShownCell], new: Sequence[ShownCell]
) -> Iterator[tuple[int, int, str]]:
    """Yield the changed texts, each extended to whole words: 'Save' → 'Safe', not 'v' → 'f'."""
    changed = [one.text != other.text for one, other in zip(old, new, strict=True)]
    inked = [one.text != " " or other.text != " " for one, other in zip(old, new, strict=True)]
    col = 0
    while col < len(changed):
        if not changed[col]:
            col += 1
            continue
        first = last = col
        while first > 0 and inked[first - 1]:
            first -= 1
        while last + 1 < len(changed) and (inked[last + 1] or any(changed[last + 1 : last + 3])):
            last += 1
        texts = ["".join([cell.text for cell in row[first : last + 1]]) for row in (old, new)]
        yield first, last, f"{_quoted(texts[0])} → {_quoted(texts[1])}"
        col = last + 1


def _quoted(text: str) -> str:
    return f"'{text.rstrip(' ')}'" if text.strip(" ") else "blank" if text else "''"


# For a person in a terminal.


def told(expected: ShownScreen, actual: ShownScreen, columns: int) -> list[str]:
    """Return the differences for a person: sentences, then the changed rows side by side."""
    found = differences(expected, actual)
    lines = [f"  {difference}" for difference in found[:WORDS_SHOWN]]
    if len(found) > WORDS_SHOWN:
        lines.append(f"  … and {len(found) - WORDS_SHOWN} more")
    changed = sorted({one.row for one in found if one.row is not None})
    if changed:
        lines += ["", *side_by_side(expected, actual, changed[:ROWS_SHOWN], columns, found)]
    if len(changed) > ROWS_SHOWN:
        lines.append(f"  … and {len(changed) - ROWS_SHOWN} more rows")
    return lines


def side_by_side(
    expected: ShownScreen,
    actual: ShownScreen,
    numbers: Iterable[int],
    columns: int,
    found: Sequence[ScreenDifference],
) -> list[str]:
    """Return rows of both screens beside each other, with marks below the changed columns.

    Args:
        expected: The screen at the left.
        actual: The screen at the right.
        numbers: The rows to show.
        columns: The width of the person's terminal. A longer row is cut around its first change.
        found: The differences to mark.
    """
    pairs = list(_rows(expected, actual))
    chosen = [number for number in numbers if number < len(pairs)]
    longest = max([len(row_text(row)) for number in chosen for row in pairs[number]], default=0)
    longest = max([longest, *[one.last + 1 for one in found if one.row in chosen]])
    width = max(10, min(longest, (columns - 10) // 2, max(expected.cols, actual.cols)))
    lines = [f"      {'golden':{width}} │ screen"]
    for number in chosen:
        marked = {
            col for one in found if one.row == number for col in range(one.first, one.last + 1)
        }
        start = 0 if max(marked, default=0) < width else max(0, min(marked) - width // 4)
        halves = [_cut(row, start, width) for row in pairs[number]]
        lines.append(f"  {number:3} {halves[0]} │ {halves[1]}".rstrip())
        marks = "".join(["^" if start + col in marked else " " for col in range(width)])
        lines.append(f"      {marks} │ {marks}".rstrip())
    return lines


def _cut(row: Sequence[ShownCell], start: int, width: int) -> str:
    cells = row[start : start + width]
    text = "".join([cell.text for cell in cells])
    return text + " " * (width - sum(1 for _ in cells))
