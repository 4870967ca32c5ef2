"""The rows of a screen as lines of text: what a program printed, and not what the grid made of it.

A snapshot has one line for each row, without blanks at its end. Two things are lost there: a line
that the terminal wrapped at the margin is cut in two, and the blank of a prompt is missing. So a
text or pattern that is not in the snapshot's text is also searched in these readings of the rows:

*joined*: a wrapped row continues in the next one.
*with blanks*: joined, and each row has the blanks at its end that the program printed. Blanks left
of the cursor in its row count as printed: some programs move the cursor instead.

The order is fixed: what is found in the snapshot's text is found as before. Pure; used by
`conditions` and `near_misses`.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.terminal.cells import Cursor, Row


class PrintedLines:
    """One reading of the rows: its text, and the place of each row in it."""

    __slots__ = ("_ends", "starts", "text")

    def __init__(self, rows: Sequence[Row], pieces: Sequence[str]) -> None:
        """`pieces` has the text of each row."""
        lines = zip(rows, pieces, strict=True)
        whole = [piece if row.wrapped else f"{piece}\n" for row, piece in lines]
        self.text = "".join(whole).rstrip("\n")
        self.starts = [0, *accumulate(map(len, whole))]
        """The offset of each row."""
        self._ends = [start + len(piece) for start, piece in zip(self.starts, pieces, strict=False)]

    def row_at(self, offset: int) -> int:
        """Return the row of an offset."""
        return bisect_right(self.starts, offset, hi=len(self._ends)) - 1

    def place(self, row: int, begin: int, end: int, text: str) -> tuple[int, int]:
        """Return the place of a span of a row's text. Blanks at the end of the row follow its last
        character: they are as new as that."""
        start = self.starts[row]
        return start + begin, self._ends[row] if end == len(text) else start + end


def printed_lines(rows: tuple[Row, ...], cursor: Cursor) -> tuple[PrintedLines, ...]:
    """Return the readings that differ from the text of a snapshot."""
    joined = [row.printed_text if row.wrapped else row.text for row in rows]
    blanks = [row.printed_text for row in rows]
    if cursor.row < len(rows):
        blanks[cursor.row] = _up_to_cursor(rows[cursor.row], cursor.col)
    readings = []
    if any(row.wrapped for row in rows):
        readings.append(PrintedLines(rows, joined))
    if blanks != joined:
        readings.append(PrintedLines(rows, blanks))
    return tuple(readings)


def _up_to_cursor(row: Row, col: int) -> str:
    text = row.printed_text
    if len(text) >= col:
        return text
    if text.isascii():
        return text.ljust(col)
    shown = sum([cell.width > 0 for cell in row.cells[:col]])
    return text.ljust(shown)
