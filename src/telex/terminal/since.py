"""What is new since a mark: on the screen, and in the transcript.

A mark is taken when something is typed. A wait with `since` must not be satisfied by what stood on
the screen before, nor by the terminal's echo of the typing itself; `echo` finds the latter.

On the screen a character is old if it stood there at the mark, wherever it scrolled to since, and
new otherwise. Where things scrolled to is known exactly as long as the program only printed lines:
counting line breaks back from the cursor finds the line the mark was made in, and nothing above it
was touched. Looking at texts alone could not tell a prompt from the same prompt printed again.
A program that moves its cursor up and down is compared with the mark by its rows instead: where
most of them went, the others are thought to have gone too. Nothing is kept when the screen was
cleared. In a row that differs a character is old if it is what it was at its place: of `10%` that
becomes `20%` the first is new.

Pure; used by `matchers` and `nearest`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from operator import ne
from typing import TYPE_CHECKING, Final

from telex.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from telex.terminal.cells import Cursor, Row
    from telex.terminal.evidence import Moment

_TO_ALTERNATE: Final = r"\x1b\[\?(?:\d+;)*(?:47|1047|1049)(?:;\d+)*"
_ALTERNATE_AND_BACK: Final = re.compile(rf"(?s){_TO_ALTERNATE}h.*?{_TO_ALTERNATE}l")
_CLEARS: Final = re.compile(
    rf"\x1bc|\x1b\[2J|\x1b\[(?:1?(?:;1?)?)[Hf](?:\x1b\[[\d;]*m)?\x1b\[0?J|{_TO_ALTERNATE}[hl]"
)
_MOVES_ROWS: Final = re.compile(r"\x1b(?:[78DEM]|\[[\d;?]*[ABEFHLMSTdefrsu]|\[1J)")
_LINE_BREAKS: Final = "\n\v\f"
_DIFFERENT: Final = re.compile(rb"\x01+")


@dataclass(frozen=True, slots=True)
class Mark:
    """A session at the moment something was typed."""

    sequence: int
    rows: tuple[str, ...]
    """The texts of the visible rows."""
    cursor: Cursor
    transcript: int
    """The transcript's cursor."""
    typed: str = ""
    """What was typed right after; it may begin with what was typed before it in the same line and
    has not been echoed yet. Empty where no echo is to be expected."""


class New:
    """The places of a text that are new, as spans in ascending order."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = [end for _, end in ordered]

    def touches(self, start: int, end: int) -> bool:
        """Whether there is something new in a match, or, if it is empty, beside it."""
        if start == end:
            start, end = start - 1, end + 1
        nth = bisect_right(self._ends, start)
        return nth < len(self._starts) and self._starts[nth] < end

    def finds(self, wanted: str, text: str) -> bool:
        """Whether a text occurs with something new in it."""
        at = text.find(wanted)
        while at >= 0:
            if self.touches(at, at + len(wanted)):
                return True
            nth = bisect_right(self._ends, at)  # go where the next new place is
            beyond = self._starts[nth] if nth < len(self._starts) else len(text) + 1
            at = text.find(wanted, max(at + 1, beyond - len(wanted)))
        return False


def new_on_screen(mark: Mark, moment: Moment) -> New:
    """What is new in `moment.text`."""
    printed = moment.transcript.since(mark.transcript)
    if not printed:  # whatever moved since, by a resize, was here before
        return New(())
    complete = moment.transcript.cursor - mark.transcript == len(printed)
    rows = moment.rows
    place = _place(mark, rows, moment.cursor, printed if complete else None)
    echoed = _echoed(mark, rows, place, moment.cursor)
    spans: list[tuple[int, int]] = []
    start = 0
    for number, row in enumerate(rows):
        fresh = place.new_in(number, row.text)
        if fresh:
            spans += [(start + a, start + b) for a, b in _without(fresh, echoed.get(number, ()))]
        start += len(row.text) + 1
    return New(spans)


def new_in_transcript(mark: Mark, printed: str) -> New:
    """What is new in the text that was printed since a mark: all but the echo."""
    spans = echo.in_printed(mark.typed, _prompt(mark), printed) if mark.typed else []
    return New(_without([(0, len(printed))], spans))


# Where the rows of the mark are now.


@dataclass(frozen=True, slots=True)
class _Place:
    """How the rows of a screen belong to those of a mark."""

    old: tuple[str, ...]
    shift: int | None
    """Row n was row n + shift; None if nothing is left of the mark."""
    untouched: int = 0
    """So many rows at the top are old whatever they say."""
    in_place: frozenset[int] = frozenset()
    """Rows that did not move with the others: what did not change there is old as well."""

    def new_in(self, number: int, text: str) -> list[tuple[int, int]]:
        """The spans of a row that are new."""
        if number < self.untouched or not text:
            return []
        if number in self.in_place and self.old[number] == text:
            return []
        was = number + self.shift if self.shift is not None else -1
        before = self.old[was] if 0 <= was < len(self.old) else ""
        return _differing(text, before)


def _differing(text: str, before: str) -> list[tuple[int, int]]:
    if text == before:
        return []
    shared = min(len(text), len(before))
    spans = [found.span() for found in _DIFFERENT.finditer(bytes(map(ne, text, before)))]
    if shared < len(text):
        spans.append((shared, len(text)))
    return spans


def _place(mark: Mark, rows: tuple[Row, ...], cursor: Cursor, printed: str | None) -> _Place:
    if printed is not None:
        if "\x1b" in printed:
            printed = _ALTERNATE_AND_BACK.sub("", printed)
            if _CLEARS.search(printed):
                return _Place(mark.rows, None)
        if "\x1b" not in printed or not _MOVES_ROWS.search(printed):
            return _counted(mark, rows, cursor, sum(map(printed.count, _LINE_BREAKS)))
    return _compared(mark, rows)


def _counted(mark: Mark, rows: tuple[Row, ...], cursor: Cursor, breaks: int) -> _Place:
    """Go up as many line breaks as were printed: there is the line that the mark was made in."""
    last = min(cursor.row, len(rows) - 1)
    while breaks:
        last -= 1
        if last < 0:
            return _Place(mark.rows, None)
        breaks -= not rows[last].wrapped
    first = last
    while first > 0 and rows[first - 1].wrapped:
        first -= 1
    # The line may be wrapped, and which of its rows it was is known by what stood there.
    prompt = _prompt(mark).rstrip(" ")
    candidates = range(first, last + 1)
    row = next((n for n in candidates if rows[n].text.startswith(prompt)), first)
    return _Place(mark.rows, mark.cursor.row - row, untouched=row)


def _compared(mark: Mark, rows: tuple[Row, ...]) -> _Place:
    """Let the rows that there was one of, and is one of, say where they went.

    The row of the cursor has no say: a prompt looks like the next prompt.
    """
    texts = [row.text for row in rows]
    now, then = _once(texts), _once(mark.rows)
    then.pop(mark.rows[mark.cursor.row] if mark.cursor.row < len(mark.rows) else "", None)
    votes = Counter(then[text] - now[text] for text in now.keys() & then.keys())
    shift, most = max(votes.items(), key=lambda vote: (vote[1], vote[0] == 0), default=(0, 0))
    if shift < 0 and most < 2:  # downwards is rare; one row may be chance
        shift = 0
    staying = () if not shift else set(range(min(len(texts), len(mark.rows)))) - {mark.cursor.row}
    return _Place(mark.rows, shift, in_place=frozenset(staying))


def _once(texts: Sequence[str]) -> dict[str, int]:
    """Where each text stands that is not blank and stands in one row only."""
    times = Counter(texts)
    return {text: n for n, text in enumerate(texts) if text and times[text] == 1}


# The echo, in the rows it is shown in.


def _prompt(mark: Mark) -> str:
    """What stood left of the cursor."""
    if mark.cursor.row >= len(mark.rows):
        return ""
    return mark.rows[mark.cursor.row].ljust(mark.cursor.col)[: mark.cursor.col]


def _echoed(
    mark: Mark, rows: tuple[Row, ...], place: _Place, cursor: Cursor
) -> dict[int, list[tuple[int, int]]]:
    """The spans of each row that are the echo of what was typed."""
    if not mark.typed:
        return {}
    row, offset = _cursor_then(mark, rows, place)
    lines = list(_lines(rows, row))
    unfinished = next((n for n, line in enumerate(lines) if line.holds(cursor.row)), None)
    texts = [line.text for line in lines]
    spans: dict[int, list[tuple[int, int]]] = {}
    for nth, start, end in echo.in_lines(mark.typed, _prompt(mark), texts, offset, unfinished):
        for number, a, b in lines[nth].places(start, end):
            spans.setdefault(number, []).append((a, b))
    return spans


def _cursor_then(mark: Mark, rows: tuple[Row, ...], place: _Place) -> tuple[int, int | None]:
    """Where the cursor of the mark is now: its row and the place in its text; or that it is gone,
    and the first row there is."""
    row = -1 if place.shift is None else mark.cursor.row - place.shift
    if not 0 <= row < len(rows):
        return 0, None
    left = rows[row].cells[: mark.cursor.col]
    return row, sum([len(cell.text) or 1 for cell in left if cell.width])


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of text, and the rows it is shown in."""

    first: int
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def holds(self, row: int) -> bool:
        return self.first <= row < self.first + len(self.pieces)

    def places(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Row, begin and end of what is shown of a part of the line."""
        for row, piece in enumerate(self.pieces, self.first):
            if start < len(piece) and end > 0:
                yield row, max(start, 0), min(end, len(piece))
            start, end = start - len(piece), end - len(piece)


def _lines(rows: tuple[Row, ...], begin: int) -> Iterator[_Line]:
    first, pieces = begin, []
    for number in range(begin, len(rows)):
        row = rows[number]
        if row.wrapped:  # what wraps is full; blanks at its end are part of the line
            pieces.append("".join([cell.text or " " for cell in row.cells if cell.width]))
            continue
        yield _Line(first, (*pieces, row.text))
        first, pieces = number + 1, []
    if pieces:
        yield _Line(first, tuple(pieces))


def _without(
    spans: Sequence[tuple[int, int]], holes: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """What is left of spans when holes are cut into them."""
    for start, end in spans:
        at = start
        for a, b in sorted(holes):
            if a < end and b > at:
                if at < a:
                    yield at, a
                at = b
        if at < end:
            yield at, end
