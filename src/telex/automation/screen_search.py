"""Finds things on a screen by text, style and place. Pure: a snapshot and a query in, places out.

The snapshot is that of the protocol, read with `cells="runs"`. A line that the terminal wrapped is
one line, and a wide character has two columns. `locators` has the objects that ask again and again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from telex.automation.errors import Ambiguous, NotFound
from telex.automation.portal import hides_frames
from telex.terminal.cells import Region
from telex.terminal.patterns import Pattern
from telex.terminal.waits.matchers import ScreenRegex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from telex.automation.protocol import CellStyle, ScreenRun, ScreenSnapshot

__tracebackhide__ = hides_frames
COLOURS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_SEPARATED: Final = re.compile(r"[│┃║|┆┊▏▕]|\s{2,}")
"""What separates the items of a row: borders, and more than one blank."""
_FRAME: Final = re.compile(r"[\s\u2500-\u259f\U0001fb00-\U0001fbff]*")
"""Box drawing, block elements and the like."""


@dataclass(frozen=True, slots=True)
class Found:
    """A text on the screen: its place, and the style of its first character. `parts` has its region
    in each row, more than one if its line was wrapped; `place` is the place in words."""

    __module__ = "telex"

    text: str
    region: Region
    """The smallest rectangle around it."""
    style: CellStyle
    parts: tuple[Region, ...]
    """The part in each row: more than one if its line was wrapped."""

    def __repr__(self) -> str:
        """Return its text, masked as a repr gets into logs, and its place."""
        return f"<Found {_quoted(self.text)} at {self.place}>"

    @property
    def place(self) -> str:
        """The place in words."""
        first = self.parts[0]
        last = first.col + first.cols - 1
        rest = f", and {len(self.parts) - 1} more rows" if len(self.parts) > 1 else ""
        return f"row {first.row}, columns {first.col}-{last}{rest}"

    @property
    def middle(self) -> tuple[int, int]:
        """The cell to click."""
        first = self.parts[0]
        return first.row, first.col + (first.cols - 1) // 2


@dataclass(frozen=True, slots=True)
class Query:
    """A description of the thing to find. Every condition that is given must hold."""

    what: str | ScreenRegex | None = None
    """A text, a pattern for a part of a line, or None for any text of that style."""
    style: dict[str, bool | str] = field(default_factory=dict)
    row: int | None = None
    sides: dict[str, Region | Query] = field(default_factory=dict)
    """`below`, `above`, `right_of`, `left_of`: what it is next to."""

    def __str__(self) -> str:
        given = []
        match self.what:
            case str() as text:
                given.append(_quoted(text))
            case ScreenRegex() as pattern:
                given.append(f"regex({_quoted(pattern.value)})")
        given += [f"{name}={value!r}" for name, value in self.style.items()]
        given += [] if self.row is None else [f"row={self.row}"]
        given += [f"{side}={anchor}" for side, anchor in self.sides.items()]
        return f"find({', '.join(given)})"


def colour(given: str | int) -> str:
    """Return a colour as a snapshot has it.

    Args:
        given: A name (`red`, `bright_red`, `default`), a number of the palette, or `#rrggbb`.

    Raises:
        ValueError: There is no such colour.
    """
    if isinstance(given, int) and 0 <= given <= 255:
        return f"idx:{given}"
    given = str(given)
    name = given.removeprefix("bright_")
    if name in COLOURS:
        return f"idx:{COLOURS.index(name) + 8 * (name != given)}"
    if re.fullmatch(r"#[0-9a-fA-F]{6}", given):
        red, green, blue = bytes.fromhex(given[1:])
        return f"rgb:{red}:{green}:{blue}"
    if given == "default" or given.startswith(("idx:", "rgb:")):
        return given
    raise ValueError(
        f"{given!r} is not a colour: use {', '.join(COLOURS)}, bright_red, 0-255, #rrggbb"
    )


class _Line:
    """A line of text and the rows that show it."""

    def __init__(self) -> None:
        self.text = ""
        self.starts: list[int] = []
        """The offset of each row's text."""
        self.rows: list[tuple[int, list[ScreenRun]]] = []

    def add(self, row: int, runs: list[ScreenRun]) -> None:
        pieces, col = [], 0
        for run in runs:
            pieces.append(" " * (run.col - col) + run.text)
            col = run.col + run.width
        self.starts.append(len(self.text))
        self.rows.append((row, runs))
        self.text += "".join(pieces)

    def cells(self, nth: int) -> list[tuple[int, int, CellStyle | None]]:
        """Return column, width and style of each character of the nth row."""
        cells: list[tuple[int, int, CellStyle | None]] = []
        col = 0
        for run in self.rows[nth][1]:
            cells += [(blank, 1, None) for blank in range(col, run.col)]
            col = run.col
            widths: Iterable[int] = run.widths if run.widths is not UNSET else [1] * len(run.text)
            for width in widths:
                cells.append((col, width, run.style))
                col += width
        return cells

    def found(self, start: int, end: int) -> Found:
        """Return what stands at a span of the line, which is not empty."""
        parts, style = [], None
        ends = [*self.starts[1:], len(self.text)]
        for nth, (begin, stop) in enumerate(zip(self.starts, ends, strict=True)):
            if begin < end and start < stop:
                cells = self.cells(nth)[max(start - begin, 0) : end - begin]
                style = style or cells[0][2]
                first, last = cells[0], max(cells, key=lambda cell: cell[0] + cell[1])
                width = last[0] + last[1] - first[0]
                parts.append(Region(self.rows[nth][0], first[0], 1, width))
        left = min(part.col for part in parts)
        right = max(part.col + part.cols for part in parts)
        region = Region(parts[0].row, left, len(parts), right - left)
        return Found(self.text[start:end], region, style or _plain(), tuple(parts))

    def styles(self, start: int, end: int) -> Iterator[CellStyle]:
        """Return the styles of the characters in a span that are not blank."""
        ends = [*self.starts[1:], len(self.text)]
        for nth, (begin, stop) in enumerate(zip(self.starts, ends, strict=True)):
            if begin < end and start < stop:
                first = max(start - begin, 0)
                for at, cell in enumerate(self.cells(nth)[first : end - begin], begin + first):
                    if self.text[at] != " ":
                        yield cell[2] or _plain()

    def styled(self, wanted: dict[str, bool | str]) -> Iterator[tuple[int, int]]:
        """Return the spans of neighbouring characters with a style, without blanks around them."""
        at = 0
        matching: list[tuple[int, int]] = []
        for start, (_, runs) in zip(self.starts, self.rows, strict=True):
            at, col = start, 0
            for run in runs:
                at += run.col - col
                col = run.col + run.width
                if _has(run.style, wanted):
                    if matching and matching[-1][1] == at:
                        matching[-1] = (matching[-1][0], at + len(run.text))
                    else:
                        matching.append((at, at + len(run.text)))
                at += len(run.text)
        for begin, end in matching:
            text = self.text[begin:end]
            if stripped := text.strip():
                first = begin + text.index(stripped)
                yield first, first + len(stripped)


def _has(style: CellStyle, wanted: dict[str, bool | str]) -> bool:
    return all(
        bool(getattr(style, name)) is value
        if isinstance(value, bool)
        else getattr(style, name) == value
        for name, value in wanted.items()
    )


def _plain() -> CellStyle:
    from telex.automation.protocol import CellStyle

    return CellStyle("default", "default", False, False, False, False, False)


def _lines(snapshot: ScreenSnapshot) -> list[_Line]:
    runs: dict[int, list[ScreenRun]] = {}
    for run in snapshot.runs or ():
        runs.setdefault(run.row, []).append(run)
    wrapped = set(snapshot.wrapped or ())
    lines, line = [], _Line()
    for row in range(snapshot.size.rows):
        line.add(row, runs.get(row, []))
        if row not in wrapped:
            lines.append(line)
            line = _Line()
    return [*lines, line] if line.rows else lines


def find_all(snapshot: ScreenSnapshot, query: Query) -> list[Found]:
    """Return everything that a query finds, from the top to the bottom. Raises as `find_one`, for
    what it is next to."""
    anchors = {side: _anchor(snapshot, query, side) for side in query.sides}
    row = query.row
    if row is not None and row < 0:
        row += snapshot.size.rows
    found = []
    for line in _lines(snapshot):
        for start, end in _spans(line, query):
            one = line.found(start, end)
            if (row is None or one.region.row == row) and _beside(one.region, anchors):
                found.append(one)
    return found


_compiled: Final = lru_cache(64)(Pattern)


def _spans(line: _Line, query: Query) -> Iterator[tuple[int, int]]:
    match query.what:
        case None:
            yield from line.styled(query.style)
            return
        case str() as text:
            spans = [found.span() for found in re.finditer(re.escape(text), line.text)]
        case pattern:
            spans = [found.span for found in _compiled(pattern.value).finditer(line.text)]
    for start, end in spans:
        if start == end:
            continue
        if query.style and not all(_has(one, query.style) for one in line.styles(start, end)):
            continue
        yield start, end


def _anchor(snapshot: ScreenSnapshot, query: Query, side: str) -> Region:
    given = query.sides[side]
    if not isinstance(given, Query):
        return given
    try:
        return find_one(snapshot, given).region
    except (NotFound, Ambiguous) as error:
        error.args = (f"{query}: {side}={error.args[0]}",)
        raise


def _beside(one: Region, anchors: dict[str, Region]) -> bool:
    return all(_SIDES[side](one, anchor) for side, anchor in anchors.items())


def _same_rows(one: Region, other: Region) -> bool:
    return one.row < other.row + other.rows and other.row < one.row + one.rows


_SIDES: Final[dict[str, Any]] = {
    "below": lambda one, anchor: one.row >= anchor.row + anchor.rows,
    "above": lambda one, anchor: one.row + one.rows <= anchor.row,
    "right_of": lambda one, anchor: _same_rows(one, anchor) and one.col >= anchor.col + anchor.cols,
    "left_of": lambda one, anchor: _same_rows(one, anchor) and one.col + one.cols <= anchor.col,
}


def find_one(snapshot: ScreenSnapshot, query: Query) -> Found:
    """Return the one thing that a query finds.

    Raises:
        NotFound: Nothing on the screen fits.
        Ambiguous: Several things fit; the message lists them with their places.
    """
    found = find_all(snapshot, query)
    if len(found) == 1:
        return found[0]
    screen = {"screen_tail": _masked(snapshot.plain_text)}
    if not found:
        raise NotFound(f"{query} finds nothing on the screen", screen)
    candidates = [f"  {one.place}: {_quoted(one.text)}" for one in found[:_LISTED]]
    rest = [] if len(found) <= _LISTED else [f"  and {len(found) - _LISTED} more"]
    hint = "say which with row=, below=, right_of=, or a style; all() gives all of them"
    sentence = "\n".join([f"{query} finds {len(found)}: {hint}", *candidates, *rest])
    raise Ambiguous(sentence, {"places": [one.region for one in found[:_LISTED]], **screen})


_LISTED: Final = 10
"""The number of candidates in an error."""


def _masked(text: str) -> str:
    """Mask secrets in a text for an exception: it gets into logs."""
    from telex.redaction import Redactor

    return Redactor().redact(text)


def _quoted(text: str) -> str:
    """Quote a text in a sentence, without its secrets."""
    from telex.redaction import Redactor

    return Redactor().quote(text)


def explain_miss(snapshot: ScreenSnapshot, query: Query) -> tuple[str, Query | None]:
    """Return why a query finds nothing: in words, and the part whose text is not on the screen.

    That part is None if each text is there: then a style or a place is different.
    """
    for side, anchor in query.sides.items():
        if isinstance(anchor, Query):
            try:
                find_one(snapshot, anchor)
            except LookupError as error:
                if isinstance(error, NotFound):
                    why, missing = explain_miss(snapshot, anchor)
                    return f"{side}={anchor}: {why}", missing
                return f"{side}={str(error.args[0]).partition(':')[0]}", None
    if query.what is None:
        return "no text on the screen has that style and place", None
    elsewhere = find_all(snapshot, replace(query, sides={}, row=None, style={}))
    if not elsewhere:
        return "the text is not on the screen", query
    if placed := find_all(snapshot, replace(query, style={})):
        has = [f"{name}={getattr(placed[0].style, name)!r}" for name in query.style]
        return f"{placed[0].place} has the text, but with {', '.join(has)}", None
    return f"the text is elsewhere: {elsewhere[0].place}", None


def highlighted(snapshot: ScreenSnapshot) -> Found | None:
    """Return the one item in inverse or, if nothing is, on a background of its own.

    Bars at the top and bottom do not count if there is more, and frames never.
    """
    found = _items(find_all(snapshot, Query(style={"inverse": True})))
    if not found:
        backgrounds = {run.style.background for run in snapshot.runs or () if run.text.strip()}
        if len(backgrounds) < 2:
            return None  # every row looks alike
        for one in sorted(backgrounds - {"default"}):
            alone = _alone(snapshot, one)
            found += [
                item
                for item in _items(find_all(snapshot, Query(style={"background": one})))
                if any(row == item.region.row and item.region.col in cols for row, cols in alone)
            ]
    edges = (0, snapshot.size.rows - 1)
    items = [one for one in found if one.region.row not in edges] or found
    return items[0] if len(items) == 1 else None


def _items(found: list[Found]) -> list[Found]:
    """Return what is no frame: programs draw borders with inverse glyphs too."""
    return [one for one in found if not _FRAME.fullmatch(one.text)]


def _alone(snapshot: ScreenSnapshot, background: str) -> list[tuple[int, range]]:
    """Return the places with a background, without those of panels and buttons: these have rows
    above or below that begin in the same column. A selected row may be between them."""
    places: list[tuple[int, range]] = []
    for run in snapshot.runs or ():
        if run.style.background == background:
            row, cols = run.row, range(run.col, run.col + run.width)
            if places and places[-1][0] == row and places[-1][1].stop == cols.start:
                cols = range(places.pop()[1].start, cols.stop)
            places.append((row, cols))

    def in_panel(row: int, cols: range) -> bool:
        near = [
            other
            for at, other in places
            if 0 < abs(at - row) <= 2 and other.start < cols.stop and cols.start < other.stop
        ]
        return bool(near) and all(other.start == cols.start for other in near)

    return [place for place in places if not in_panel(*place)]


def focused(snapshot: ScreenSnapshot) -> Found | None:
    """Return the item that has the cursor; if the cursor is hidden, the highlighted one.

    An item is what stands between borders, or between two or more blanks.
    """
    cursor = snapshot.cursor
    if not cursor.visible:
        return highlighted(snapshot)
    for line in _lines(snapshot):
        for nth, (row, _) in enumerate(line.rows):
            if row == cursor.row:
                cells = line.cells(nth)
                inside = sum(col < cursor.col for col, _, _ in cells)
                beyond = cursor.col - (cells[-1][0] + cells[-1][1] if cells else 0)
                return _item(line, line.starts[nth] + inside + max(0, beyond))
    return None


def _item(line: _Line, at: int) -> Found | None:
    begin = 0
    for separator in [*_SEPARATED.finditer(line.text), None]:
        end = len(line.text) if separator is None else separator.start()
        text = line.text[begin:end]
        # The cursor stands behind what was typed, perhaps after one blank.
        if begin <= at <= end + 1 and text.strip():
            first = begin + len(text) - len(text.lstrip())
            return line.found(first, first + len(text.strip()))
        if separator is not None:
            begin = separator.end()
    return None
