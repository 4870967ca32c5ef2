"""Redaction of everything that leaves a session: its screen, and texts and data about it.

`Masker` hides secrets in place: every row keeps its cells, every cell its column and its style. A
secret on a screen is not a contiguous run of text. It continues in the next row where the line was
too long, a colour may change inside it, and programs that draw boxes and panes break their lines
themselves. So the rows are read as text in two ways, and secrets found in either are masked in the
cells:

*as printed*: soft-wrapped rows are one line, all other rows are lines of their own. The second
reading is used where a row reaches the margin without a soft wrap, or contains borders.

*as drawn*: between the same borders, a row that reaches the margin continues in the next one,
without its indentation. One reading cannot serve for both: joined, `…x` and `sk-…` would be one
word.

The rows above the first row can be given as `above`, so that a secret that has partly scrolled away
is still recognised. `RedactedMoment` finds secrets that a plugin quotes, `redact_values` removes
secrets from plain data, and `draw_screen` draws a screen without them.
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
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from telex.redaction import Redactor
    from telex.terminal.cells import Snapshot
    from telex.terminal.input_state import InputState
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import KeptMoment


FILL: Final = "*"
_BORDERS: Final = frozenset("│┃║┆┊╎▏▕▌▐")
"""Characters that separate panes. They are never part of a secret, so they are never masked."""
_BORDER: Final = re.compile(f"[{''.join(sorted(_BORDERS))}]")
_NARROW: Final = re.compile(r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u2500-\u259f]*+")
"""Characters that take exactly one cell: neither wide nor combining. Most rows have only these, and
their columns need not be looked up in the cells.
"""
_MARGIN: Final = 4
"""The number of blanks at the end of a row that still count as its margin: padding, a scroll bar.
"""

Hidden = dict[int, set[int]]
"""The columns to mask, by row number."""


LineStart = tuple[int, int]
"""The row and the column where a line of text begins. From there the line has every cell."""


class _Drawing(NamedTuple):
    """A row split at its borders: the text before each border, and after the last."""

    borders: tuple[int, ...]
    strips: tuple[tuple[int, str], ...]
    """Column and text, without the surrounding blanks."""


def mask(snapshot: Snapshot, redactor: Redactor, above: Sequence[Row] = ()) -> Snapshot:
    """Return the snapshot without secrets, also in its title; the same object if there are none."""
    return Masker(redactor).snapshot(snapshot, above)


def mask_rows(
    rows: tuple[Row, ...], redactor: Redactor, above: Sequence[Row] = ()
) -> tuple[Row, ...]:
    """Return the rows without secrets. Rows that have none are the same objects."""
    return Masker(redactor).rows(rows, above)


class Masker:
    """Masks one screen repeatedly, and caches the last result.

    An unchanged screen is not read again, and a row masked as before is the same object as before,
    so that code that compares rows by identity sees no change where there was none.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._replacement = redactor.replacement if _one_cell_each(redactor.replacement) else ""
        self._seen: tuple[tuple[Row, ...], tuple[Row, ...]] = ((), ())
        self._answer: tuple[Row, ...] = ()
        self._made: dict[Row, tuple[set[int], Row]] = {}
        self._drawings: dict[Row, _Drawing] = {}

    def snapshot(self, snapshot: Snapshot, above: Sequence[Row] = ()) -> Snapshot:
        """Return the snapshot without secrets; the same object if there are none."""
        rows = self.rows(snapshot.rows, above)
        title = snapshot.title and self._redactor.redact(snapshot.title)
        if rows is snapshot.rows and title == snapshot.title:
            return snapshot
        return replace(snapshot, rows=rows, title=title)

    def rows(self, rows: tuple[Row, ...], above: Sequence[Row] = ()) -> tuple[Row, ...]:
        """Return the rows without secrets; the same tuple if there are none."""
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
        """Put the replacement over each run of hidden cells, if it fits, and `*` over the rest."""
        cells = list(row.cells)
        for begin, end in _stretches(columns):
            size = end - begin
            text = self._replacement if len(self._replacement) <= size else ""
            for col, char in enumerate(text.ljust(size, FILL), begin):
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
        """Find the secrets of a text, and add their cells to the hidden ones. Return the text."""
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
        """Return the text of each pane: the parts between the same borders in neighbouring rows."""
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
    return row.printed_text if row.wrapped else f"{row.text}\n"


# As drawn.


def _has_borders(text: str) -> bool:
    return not text.isascii() and any(border in text for border in _BORDERS)


def _reaches_margin(row: Row) -> bool:
    """Return whether a row without a soft wrap may still continue in the next one."""
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
    """Return the columns of characters in a line that starts at `first`; both of a wide one."""
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
    """Return runs of neighbouring columns as (begin, end)."""
    for _, members in groupby(enumerate(sorted(columns)), key=lambda each: each[1] - each[0]):
        stretch = [col for _, col in members]
        yield stretch[0], stretch[-1] + 1


def _one_cell_each(text: str) -> bool:
    """Return whether every character takes one cell, so that the text can replace cells."""
    return text.isprintable() and not any(
        combining(char) or east_asian_width(char) in "WF" for char in text
    )


# Quotes.


SHORTEST_SECRET: Final = 4
"""Shorter secrets are ignored: their characters occur in half of all words."""
SHARED_CHARS: Final = 8
"""The length of a substring that a text and a secret do not share by chance."""


_LONGEST_SECRET: Final = 512


def secrets_in(text: str, redactor: Redactor) -> set[str]:
    """Return the secrets of a text."""
    return {text[begin:end] for begin, end in redactor.spans(text)} - {redactor.replacement}


def hide_parts(snapshot: Snapshot, secrets: Iterable[str]) -> Snapshot:
    """Hide parts of known secrets in a masked screen: a program may have drawn a secret in pieces,
    or over the half of it, so that no rule recognises the rest."""
    parts = _parts(secrets)
    rows = tuple([_without(row, parts) for row in snapshot.rows]) if parts else ()
    return replace(snapshot, rows=rows) if parts else snapshot


def hide_parts_of_text(text: str, secrets: Iterable[str], fill: str, replacement: str) -> str:
    """Hide parts of known secrets in a text: each character by the fill, else all by a text."""
    hidden = _hidden_places(text, _parts(secrets))
    runs = groupby(enumerate(text), key=lambda one: one[0] in hidden)
    pieces = [(covered, "".join([char for _, char in members])) for covered, members in runs]
    return "".join([fill * len(one) or replacement if covered else one for covered, one in pieces])


def _parts(secrets: Iterable[str]) -> set[str]:
    return {
        secret[at : at + SHARED_CHARS]
        for secret in secrets
        for at in range(max(min(len(secret), _LONGEST_SECRET) - SHARED_CHARS, 0) + 1)
        if len(secret) >= SHORTEST_SECRET
    }


def _hidden_places(text: str, parts: set[str]) -> set[int]:
    return {
        place
        for size in {len(part) for part in parts}
        for at in range(len(text) - size + 1)
        if text[at : at + size] in parts
        for place in range(at, at + size)
    }


def _without(row: Row, parts: set[str]) -> Row:
    starts = [col for col, cell in enumerate(row.cells) for _ in cell.text or " " * cell.width]
    text = "".join([cell.text or " " * cell.width for cell in row.cells])
    columns = {starts[place] for place in _hidden_places(text, parts)}
    if not columns:
        return row
    cells = [Cell(FILL, cell.style) if n in columns else cell for n, cell in enumerate(row.cells)]
    return Row(tuple(cells), row.wrapped)


class RedactedMoment:
    """A moment with and without its secrets: it decides whether a text about it quotes a secret.

    A rule recognises a secret by its context (`password=`). A plugin's predicate sees the
    unredacted screen and may return the secret alone, which no rule recognises. So the texts of a
    predicate are compared with the text that was hidden in the moment it describes.
    """

    def __init__(self, moment: KeptMoment, redactor: Redactor) -> None:
        self._moment = moment
        self._redactor = redactor

    def shows(self, text: str) -> bool:
        """Return whether the redacted moment contains the text anyway."""
        moment = self._moment
        shown = (moment.text, moment.transcript.tail, *[lines.text for lines in moment.lines])
        return any(text in one for one in shown)

    def quotes_secret(self, text: str) -> bool:
        """Return whether the text contains a hidden text, is part of one, or shares a part with
        one.
        """
        plain = _plain(text)
        return any(_shares(plain, secret) for secret in self._secrets)

    @cached_property
    def _secrets(self) -> frozenset[str]:
        hidden = frozenset(map(_plain, self._hidden()))
        return frozenset(secret for secret in hidden if len(secret) >= SHORTEST_SECRET)

    def _hidden(self) -> Iterator[str]:
        moment = self._moment
        for seen, masked in zip(moment.unmasked.rows, moment.snapshot.rows, strict=True):
            if seen is not masked:
                yield from _masked(seen, masked)
        printed = strip_escapes(moment.transcript.unredacted_tail())
        for text in (printed, moment.unmasked.title or ""):
            for start, end in self._redactor.spans(text):
                yield text[start:end]


def _masked(seen: Row, masked: Row) -> Iterator[str]:
    cells = zip(seen.cells, masked.cells, strict=True)
    for hidden, run in groupby(cells, key=lambda pair: pair[0] != pair[1]):
        if hidden:
            yield "".join([before.text for before, _ in run])


def _plain(text: str) -> str:
    """Remove the differences that plugins make most: case, and the blanks of a wrapped line."""
    return "".join(text.split()).casefold()


def _shares(text: str, secret: str) -> bool:
    if secret in text or (len(text) >= SHORTEST_SECRET and text in secret):
        return True
    return any(
        secret[at : at + SHARED_CHARS] in text for at in range(len(secret) - SHARED_CHARS + 1)
    )


def masked_state(state: InputState, seen: Snapshot, redactor: Redactor) -> InputState:
    """Return an input state whose texts are those of a masked screen."""
    shown = seen.plain_text
    joined = "".join([row.printed_text for row in seen.rows])

    def mask(text: str) -> str:
        return text if text in shown or text in joined else redactor.replacement

    return replace(
        state,
        prompt=None if state.prompt is None else mask(state.prompt),
        choices=tuple(map(mask, state.choices)),
    )


def draw_screen(session: PtySession, redactor: Redactor | None) -> bytes:
    """Return the bytes that draw the present screen on a fresh terminal, ready for further output.

    The secrets are removed from the rows and not from the bytes: the bytes move the cursor, and
    they begin in the middle of lines that have partly scrolled away.
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
    """Return plain data with the secrets in its strings redacted. `kept` decides whether a string
    under a key may be sent at all.
    """
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
