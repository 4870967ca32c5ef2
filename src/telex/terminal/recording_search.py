"""Where and when a text stood on the screens of a recording.

Every screen is searched: the one after each output and each resize. A line that was too long for
its row is one line, and blanks count where the program printed them. A text that scrolls stays the
same text. A text that is redrawn at its place within `REDRAW_SECONDS` has not gone: programs often
erase a row before they draw it again.

Pure; used by `telex when`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from telex.terminal.patterns import Pattern
from telex.terminal.playback import Playback

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.redaction import Redactor
    from telex.terminal.cells import Cell, Row
    from telex.terminal.recording import Recording

REDRAW_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Sighting:
    """A text that stood on the screen for a while. Rows and columns are counted from 0.

    Attributes:
        appeared: When it appeared, in seconds since the beginning.
        gone: When it was gone; None if it stood until the end.
        row: The row where it appeared; it may have scrolled since.
        col: The column where it begins.
        line: The whole line where it appeared.
    """

    appeared: float
    gone: float | None
    row: int
    col: int
    line: str


@dataclass(slots=True)
class _Standing:
    """A match on the present screen."""

    place: Row
    row: int
    col: int
    text: str
    sighting: Sighting

    @property
    def spot(self) -> tuple[int, int, str]:
        return self.row, self.col, self.text


@dataclass(frozen=True, slots=True)
class _LineMatch:
    """A match in one line: the number of its row within the line, its column and its text."""

    row: int
    col: int
    text: str


def text_pattern(text: str, *, ignore_case: bool = False) -> Pattern:
    """Return the pattern of a plain text."""
    return Pattern(("(?i)" if ignore_case else "") + re.escape(text))


def search(recording: Recording, pattern: Pattern, redactor: Redactor | None) -> list[Sighting]:
    """Return each time that the pattern stood on the screen, in the order of appearance.

    The search reads the screens as they were recorded, and the lines that it returns are redacted.
    """
    with Playback(recording) as playback:
        found = _Search(playback, pattern, redactor)
        last: tuple[Row, ...] = ()
        for time in playback.steps():
            rows = playback.screen.rows()
            if rows is not last:
                found.look(rows, time)
                last = rows
        return found.finish()


class _Search:
    def __init__(self, playback: Playback, pattern: Pattern, redactor: Redactor | None) -> None:
        self._playback = playback
        self._pattern = pattern
        self._redactor = redactor
        self._known: dict[tuple[Row, ...], list[_LineMatch]] = {}
        """The matches of each line of the last screen."""
        self._standing: list[_Standing] = []
        self._gone: list[_Standing] = []
        """Texts that went a moment ago and may be redrawn."""
        self._ended: list[Sighting] = []

    def finish(self) -> list[Sighting]:
        ended = [*self._ended, *[one.sighting for one in (*self._gone, *self._standing)]]
        return sorted(ended, key=lambda one: (one.appeared, one.row, one.col))

    def look(self, rows: tuple[Row, ...], time: float) -> None:
        """Compare the matches of a new screen with those of the last one."""
        before, now, new = self._standing, [], []
        for row, place, match in self._matches(rows):
            same = _carried(before, row, place, match)
            if same is None:
                new.append(_Standing(place, row, match.col, match.text, _NEVER))
                continue
            before.remove(same)
            same.place, same.row = place, row
            now.append(same)
        self._let_go(before, time)
        if new:
            lines = self._lines()
            for one in new:
                now.append(self._redrawn(one) or one)
                if one.sighting is _NEVER:
                    one.sighting = Sighting(time, None, one.row, one.col, lines[one.row])
        self._standing = now

    def _matches(self, rows: tuple[Row, ...]) -> Iterator[tuple[int, Row, _LineMatch]]:
        known, self._known = self._known, {}
        for number, line in _lines(rows):
            found = known.get(line)
            if found is None:
                found = list(_found(self._pattern, line))
            self._known[line] = found
            for match in found:
                yield number + match.row, line[match.row], match

    def _let_go(self, gone: list[_Standing], time: float) -> None:
        for one in gone:
            one.sighting = replace(one.sighting, gone=time)
        kept = [one for one in self._gone if time - (one.sighting.gone or 0) <= REDRAW_SECONDS]
        self._ended += [one.sighting for one in self._gone if one not in kept]
        self._gone = [*kept, *gone]

    def _redrawn(self, new: _Standing) -> _Standing | None:
        """Return the text that stood at the same place a moment ago."""
        for one in self._gone:
            if one.spot == new.spot:
                self._gone.remove(one)
                new.sighting = replace(one.sighting, gone=None)
                return new
        return None

    def _lines(self) -> dict[int, str]:
        """Return the text of each row's whole line, without secrets."""
        shown = self._playback.masked(self._redactor).rows
        return {
            number + at: "".join([row.printed_text for row in line]).rstrip(" ")
            for number, line in _lines(shown)
            for at in range(len(line))
        }


_NEVER: Final = Sighting(0.0, None, 0, 0, "")


def _carried(
    before: Sequence[_Standing], row: int, place: Row, match: _LineMatch
) -> _Standing | None:
    """Return the match on the last screen that is the same text: in the same row, which may have
    scrolled; redrawn at its place; or redrawn higher in an equal row."""
    alike = [one for one in before if one.col == match.col and one.text == match.text]
    for one in alike:
        if one.place is place:
            return one
    for one in alike:
        if one.row == row:
            return one
    for one in alike:
        if one.row > row and one.place.text == place.text:
            return one
    return None


# Lines.


def _lines(rows: tuple[Row, ...]) -> Iterator[tuple[int, tuple[Row, ...]]]:
    """Return each line with the number of its first row. A line continues in wrapped rows."""
    first = 0
    for number, row in enumerate(rows):
        if not row.wrapped or number + 1 == len(rows):
            yield first, rows[first : number + 1]
            first = number + 1


def _found(pattern: Pattern, line: tuple[Row, ...]) -> Iterator[_LineMatch]:
    texts = [row.printed_text for row in line]
    text = "".join(texts)
    for match in pattern.finditer(text):
        start, end = match.span
        if start == end:
            continue
        at, row = start, 0
        while at >= len(texts[row]):
            at -= len(texts[row])
            row += 1
        yield _LineMatch(row, _column(line[row].cells, at), text[start:end])


def _column(cells: Sequence[Cell], offset: int) -> int:
    """Return the column of a character of a row's text."""
    at = 0
    for col, cell in enumerate(cells):
        if cell.width:
            at += len(cell.text or " ")
            if at > offset:
                return col
    return len(cells) - 1
