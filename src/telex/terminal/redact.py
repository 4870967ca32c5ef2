"""Secrets out of what leaves a session: out of its screen, and out of what is said about it.

`Masker` hides them in place: every row keeps its cells, every cell its place and its style. A
secret on a screen is not a run of text. It goes on in the next row where the line was too long, a
colour may change inside it, and programs that draw boxes and panes break their lines themselves.
So the rows are read as text in two ways, and what either of them gives away is masked in the cells:

*as printed*: soft-wrapped rows are one line, all others are lines of their own; and where a row
reaches the margin without a soft wrap, or borders stand in it,

*as drawn*: between the same borders, a row that reaches the margin goes on in the next one, without
its indentation. One reading cannot serve for both: joined, `…x` and `sk-…` would be one word.

What stands above the first row can be given as `above`, so that a secret that is half scrolled away
is still known for one. `RedactedMoment` finds secrets that a plugin quotes, `redact_values` takes
them out of plain data, and `draw_screen` draws a screen without them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unicodedata import combining, east_asian_width

from telex.terminal.cells import Cell, Row
from telex.terminal.transcript import strip_escapes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from telex.redaction import Redactor
    from telex.terminal.cells import Snapshot
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import KeptMoment


FILL: Final = "*"
_BORDERS: Final = frozenset("│┃║┆┊╎▏▕▌▐")
"""They part panes and are part of no secret, so they are never masked."""
_BORDER: Final = re.compile(f"[{''.join(sorted(_BORDERS))}]")
_NARROW: Final = re.compile(r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u2500-\u259f]*+")
"""One character a cell, for certain: nothing wide, nothing that combines. Most rows are like this,
and then the columns need not be looked up in the cells."""
_MARGIN: Final = 4
"""As drawn, so many blanks at the end of a row still count as its margin: padding, a scroll bar."""

Hidden = dict[int, set[int]]
"""The columns to mask, by the number of the row."""


LineStart = tuple[int, int]
"""The row and the column where a line of text begins. From there the line has every cell."""


class _Drawing(NamedTuple):
    """A row by its borders: what stands before each of them, and after the last."""

    borders: tuple[int, ...]
    strips: tuple[tuple[int, str], ...]
    """Column and text, without the blanks around it."""


def mask(snapshot: Snapshot, redactor: Redactor, above: Sequence[Row] = ()) -> Snapshot:
    """The snapshot without secrets, its title too; the same object if there are none."""
    return Masker(redactor).snapshot(snapshot, above)


def mask_rows(
    rows: tuple[Row, ...], redactor: Redactor, above: Sequence[Row] = ()
) -> tuple[Row, ...]:
    """The rows without secrets. Those that have none are the same objects."""
    return Masker(redactor).rows(rows, above)


class Masker:
    """Masks one screen over and over, and remembers the last time.

    An unchanged screen is not read again, and a row masked as before is the same object as before,
    so that whoever compares rows by identity sees no change where there was none.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._replacement = redactor.replacement if _one_cell_each(redactor.replacement) else ""
        self._seen: tuple[tuple[Row, ...], tuple[Row, ...]] = ((), ())
        self._answer: tuple[Row, ...] = ()
        self._made: dict[Row, tuple[set[int], Row]] = {}
        self._drawings: dict[Row, _Drawing] = {}

    def snapshot(self, snapshot: Snapshot, above: Sequence[Row] = ()) -> Snapshot:
        """The snapshot without secrets; the same object if there are none."""
        rows = self.rows(snapshot.rows, above)
        title = snapshot.title and self._redactor.redact(snapshot.title)
        if rows is snapshot.rows and title == snapshot.title:
            return snapshot
        return replace(snapshot, rows=rows, title=title)

    def rows(self, rows: tuple[Row, ...], above: Sequence[Row] = ()) -> tuple[Row, ...]:
        """The rows without secrets; the same tuple if there are none."""
        seen = (rows, tuple(above))
        if seen != self._seen:
            hidden = self._hidden((*above, *rows))
            self._answer = self._masked(rows, hidden, len(above))
            self._seen = seen
        return rows if self._answer == rows else self._answer

    def _masked(self, rows: tuple[Row, ...], hidden: Hidden, first: int) -> tuple[Row, ...]:
        before, self._made = self._made, {}
        answer = list(rows)
        for number, row in enumerate(rows):
            if columns := hidden.get(first + number):
                made = before.get(row)
                if made is None or made[0] != columns:
                    made = (columns, self._masked_row(row, columns))
                self._made[row] = made
                answer[number] = made[1]
        return tuple(answer)

    def _masked_row(self, row: Row, columns: set[int]) -> Row:
        """Over each run of hidden cells the replacement, where it fits, and `*` over the rest."""
        cells = list(row.cells)
        for begin, end in _stretches(columns):
            size = end - begin
            said = self._replacement if len(self._replacement) <= size else ""
            for col, char in enumerate(said.ljust(size, FILL), begin):
                cells[col] = Cell(char, cells[col].style)
        return Row(tuple(cells), row.wrapped)

    def _hidden(self, rows: tuple[Row, ...]) -> Hidden:
        hidden: Hidden = {}
        printed = [_as_printed(row) for row in rows]
        text = self._look(rows, printed, [(number, 0) for number in range(len(rows))], hidden)
        if _has_borders(text) or any(map(_reaches_margin, rows)):
            self._look(rows, *self._as_drawn(rows), hidden)
        return hidden

    def _look(
        self, rows: tuple[Row, ...], lines: list[str], places: list[LineStart], hidden: Hidden
    ) -> str:
        """Find the secrets of a text in the cells that its lines are made of. Returns the text."""
        text = "".join(lines)
        if not (spans := self._redactor.spans(text)):
            return text
        starts = list(accumulate(map(len, lines), initial=0))
        for begin, end in spans:
            for number in range(bisect_right(starts, begin) - 1, bisect_left(starts, end)):
                row, col = places[number]
                stop = min(end - starts[number], len(lines[number].removesuffix("\n")))
                found = _columns(rows[row].cells, col, begin - starts[number], stop)
                hidden.setdefault(row, set()).update(found)
        return text

    def _as_drawn(self, rows: tuple[Row, ...]) -> tuple[list[str], list[LineStart]]:
        """Pane by pane: what stands between the same borders in neighbouring rows."""
        drawings = [self._drawings.get(row) or _drawing(row) for row in rows]
        self._drawings = dict(zip(rows, drawings, strict=True))
        lines, places = [], []
        for borders, members in groupby(enumerate(drawings), key=lambda each: each[1].borders):
            pane = list(members)
            for number in range(len(borders) + 1):
                lines += [drawing.strips[number][1] for _, drawing in pane]
                places += [(row, drawing.strips[number][0]) for row, drawing in pane]
        return lines, places


# As printed.


def _as_printed(row: Row) -> str:
    if not row.wrapped:
        return f"{row.text}\n"
    if len(row.text) == row.cols:
        return row.text
    # Its blanks count, but for the place that was left because a wide character did not fit.
    size = row.cols
    while size and not row.cells[size - 1].text and row.cells[size - 1].width:
        size -= 1
    return _text(row.cells[:size])


# As drawn.


def _has_borders(text: str) -> bool:
    return not text.isascii() and any(border in text for border in _BORDERS)


def _reaches_margin(row: Row) -> bool:
    """Whether a row that is not soft-wrapped may go on in the next one all the same."""
    if row.wrapped or not row.text:
        return False
    if row.text.isascii():
        return len(row.text) >= row.cols - _MARGIN
    return bool(_text(row.cells[-_MARGIN - 1 :]).strip(" "))


def _drawing(row: Row) -> _Drawing:
    narrow = _NARROW.fullmatch(row.text)
    grid = row.text if narrow else "".join([cell.text[:1] or " " for cell in row.cells])
    borders = tuple([found.start() for found in _BORDER.finditer(grid)])
    strips = []
    for border, end in pairwise((-1, *borders, row.cols)):
        text = grid[border + 1 : end].rstrip(" ")
        begin = border + 1 + len(text) - len(text.lstrip(" "))
        stop = border + 1 + len(text)
        text = text.lstrip(" ") if narrow else _text(row.cells[begin:stop])
        goes_on = text and (end - stop <= _MARGIN or (row.wrapped and end == row.cols))
        strips.append((begin, text if goes_on else f"{text}\n"))
    return _Drawing(borders, tuple(strips))


# Cells.


def _text(cells: Sequence[Cell]) -> str:
    return "".join([cell.text or " " for cell in cells if cell.width])


def _columns(cells: Sequence[Cell], first: int, begin: int, end: int) -> Iterator[int]:
    """The columns of some characters of the line that starts at `first`; of a wide one, both."""
    at, inside = 0, False
    for col in range(first, len(cells)):
        cell = cells[col]
        if cell.width:
            if at >= end:
                return
            at += len(cell.text or " ")
            inside = at > begin and cell.text not in _BORDERS
        if inside:
            yield col


def _stretches(columns: set[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring columns together, as (begin, end)."""
    for _, members in groupby(enumerate(sorted(columns)), key=lambda each: each[1] - each[0]):
        stretch = [col for _, col in members]
        yield stretch[0], stretch[-1] + 1


def _one_cell_each(text: str) -> bool:
    """Whether every character of it takes one cell, so that it can be laid over a secret."""
    return text.isprintable() and not any(
        combining(char) or east_asian_width(char) in "WF" for char in text
    )


# Quotes.


SHORTEST_SECRET: Final = 4
"""Fewer characters of a secret say nothing about it: they stand in half of all words."""
SHARED_CHARS: Final = 8
"""So many characters in a row that a text has in common with a secret are no chance."""


class RedactedMoment:
    """One moment without its secrets: does a text that was made of it quote one?

    A rule knows a secret by what stands around it (`password=`). A plugin's predicate sees the
    screen as it is and may say the secret alone, where no rule knows it any more. So what it says
    is compared with what was hidden in the moment that it speaks of.
    """

    def __init__(self, moment: KeptMoment, redactor: Redactor) -> None:
        self._moment = moment
        self._redactor = redactor

    def shows(self, text: str) -> bool:
        """Whether it can be read in what is told of the moment anyway."""
        return text in self._moment.text or text in self._moment.transcript.tail

    def quotes_secret(self, text: str) -> bool:
        """Whether it has a hidden text in it, or is or has a part of one."""
        said = _plain(text)
        return any(_shares(said, secret) for secret in self._secrets)

    @cached_property
    def _secrets(self) -> frozenset[str]:
        hidden = frozenset(map(_plain, self._hidden()))
        return frozenset(secret for secret in hidden if len(secret) >= SHORTEST_SECRET)

    def _hidden(self) -> Iterator[str]:
        moment = self._moment
        for seen, told in zip(moment.unmasked.rows, moment.snapshot.rows, strict=True):
            if seen is not told:
                yield from _masked(seen, told)
        printed = strip_escapes(moment.transcript.unredacted_tail())
        for text in (printed, moment.unmasked.title or ""):
            for start, end in self._redactor.spans(text):
                yield text[start:end]


def _masked(seen: Row, told: Row) -> Iterator[str]:
    cells = zip(seen.cells, told.cells, strict=True)
    for hidden, run in groupby(cells, key=lambda pair: pair[0] != pair[1]):
        if hidden:
            yield "".join([before.text for before, _ in run])


def _plain(text: str) -> str:
    """Without what plugins change most: case, and the blanks that a wrapped line has in it."""
    return "".join(text.split()).casefold()


def _shares(said: str, secret: str) -> bool:
    if secret in said or (len(said) >= SHORTEST_SECRET and said in secret):
        return True
    return any(
        secret[at : at + SHARED_CHARS] in said for at in range(len(secret) - SHARED_CHARS + 1)
    )


def draw_screen(session: PtySession, redactor: Redactor | None) -> bytes:
    """The bytes that draw the screen as it is now on a fresh terminal, ready for what comes next.

    The secrets are taken out of the rows, not of the bytes: those move the cursor about, and begin
    in the middle of what has half scrolled away.
    """
    if redactor is None:
        return session.screen.restore() + session.transcript.unfinished[0].encode()
    seen = session.screen.snapshot(session.sequence)
    return session.screen.restore(mask(seen, redactor, session.rows_above()))


def redact_values(
    value: Any,
    redactor: Redactor | None,
    kept: Callable[[str, str], bool] = lambda value, key: True,
    key: str = "",
) -> Any:
    """Plain data without the secrets in its strings. `kept` says whether a string, found under a
    key, can be told at all."""
    if redactor is None:
        return value
    match value:
        case dict():
            return {
                redactor.redact(name): redact_values(one, redactor, kept, name)
                for name, one in value.items()
            }
        case list() | tuple():
            return [redact_values(one, redactor, kept) for one in value]
        case str():
            return redactor.redact(value) if kept(value, key) else redactor.replacement
        case _:
            return value
