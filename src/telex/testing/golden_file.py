"""Golden screens, and the text format of their files.

A golden screen has the rows of a terminal with their styles, the cursor and the title. Its file is
meant to be read in a diff:

    telex golden 1
    size 80x24
    cursor row 2 column 6
    title "Todo"
    mask "\\\\d\\\\d:\\\\d\\\\d"
    mask rows 0-0 columns 60-79

      0|Todo list
      0: 0-8 bold red; 20-26 on blue
      1|日本
      1~ wide 0 2

Rows and columns are counted from 0, as everywhere in telex. A row is written without the blanks at
its end, so an editor that strips them changes nothing. `:` has the styles of a row, `~` the
characters that take two cells and those that consist of several code points. Blank rows at the end
are left out.

The number in the first line is the version of the format. A reader for each version stays here for
good. A version fixes the attributes that are compared (`ATTRIBUTES`), so a later telex, which may
see more of a cell, still accepts an old file. Pure; `golden_fixture` reads and writes the files.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

from telex.terminal.shown_screen import (
    ATTRIBUTES,
    BLANK,
    COLOURS,
    PLAIN,
    UNDERLINES,
    ShownCell,
    ShownScreen,
    row_text,
    screen_of,
    shown_cell,
    shown_rows,
    style_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from telex.automation.protocol import ScreenSnapshot

GoldenCell = ShownCell
GoldenScreen = ShownScreen

VERSION: Final = 1
"""The version of the format that is written; it has the words of the same version."""
LAST: Final = 9999
"""The highest row and column that a file can have."""
FILL: Final = "▒"
"""Stands in a masked cell."""
_COLOUR: Final = re.compile(rf"(?:bright-)?(?:{'|'.join(COLOURS)})|color\d{{1,3}}|#[0-9a-f]{{6}}")


class BadGolden(ValueError):
    """The text is not a golden screen. The message names the line."""

    __module__ = "telex.testing"


class NewerGolden(BadGolden):
    """A newer telex wrote the file, in a version of the format that this one does not know."""

    __module__ = "telex.testing"


@dataclass(frozen=True, slots=True)
class PatternMask:
    """Hides the text that a regular expression (of `re`) finds in a row."""

    pattern: str

    def __str__(self) -> str:
        return json.dumps(self.pattern, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class RegionMask:
    """Hides a rectangle of cells. Both ends are part of it."""

    top: int
    bottom: int
    left: int
    right: int

    def __str__(self) -> str:
        return f"rows {self.top}-{self.bottom} columns {self.left}-{self.right}"


Mask = PatternMask | RegionMask


@dataclass(frozen=True, slots=True)
class GoldenFile:
    """The content of one file: a screen, already masked, and the masks."""

    screen: GoldenScreen
    masks: tuple[Mask, ...] = ()
    version: int = field(default=VERSION, compare=False)


def from_wire(snapshot: ScreenSnapshot, version: int = VERSION) -> GoldenScreen:
    """Return the golden screen of a public snapshot with all its cells."""
    rows = [
        [
            shown_cell(cell.text, cell.wide_continuation, style_words(cell.style, version))
            for cell in row
        ]
        for _, row in groupby(snapshot.cells, key=lambda cell: cell.row)
    ]
    return screen_of(shown_rows(rows, snapshot.size.rows, snapshot.size.cols), snapshot)


# Masks.


def mask_screen(screen: GoldenScreen, masks: Iterable[Mask]) -> GoldenScreen:
    """Return the screen with `FILL`, in no style, wherever a mask applies."""
    hidden: set[tuple[int, int]] = set()
    for mask in masks:
        match mask:
            case PatternMask(pattern):
                hidden.update(_found(screen, re.compile(pattern)))
            case RegionMask(top, bottom, left, right):
                down = range(max(top, 0), min(bottom + 1, len(screen.rows)))
                across = range(max(left, 0), min(right + 1, screen.cols))
                hidden.update((row, col) for row in down for col in across)
    if not hidden:
        return screen
    rows = [list(row) for row in screen.rows]
    for row, col in hidden:
        for place in _whole(rows[row], col):
            rows[row][place] = GoldenCell(FILL)
    again = [[shown_cell(cell.text, not cell.text, cell.style) for cell in row] for row in rows]
    shown = shown_rows(again, len(rows), screen.cols)
    return GoldenScreen(shown, screen.cols, screen.cursor, screen.title)


def _found(screen: GoldenScreen, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    for number, row in enumerate(screen.rows):
        places = [col for col, cell in enumerate(row) for _ in cell.text]
        for found in pattern.finditer(row_text(row)):
            yield from ((number, col) for col in places[found.start() : found.end()])


def _whole(row: list[GoldenCell], col: int) -> list[int]:
    """Return the cells of the character at this column: two, if it is wide."""
    if not row[col].text:
        return [col - 1, col]
    wide = col + 1 < len(row) and not row[col + 1].text
    return [col, col + 1] if wide else [col]


# Writing.


def write_golden(golden: GoldenFile) -> str:
    """Return the text of a file, in the newest version of the format."""
    screen = golden.screen
    at = screen.cursor
    lines = [
        f"telex golden {VERSION}",
        f"size {screen.cols}x{len(screen.rows)}",
        "cursor hidden" if at is None else f"cursor row {at[0]} column {at[1]}",
        *([f"title {json.dumps(screen.title, ensure_ascii=False)}"] if screen.title else []),
        *[f"mask {mask}" for mask in golden.masks],
        "",
    ]
    last = max([n for n, row in enumerate(screen.rows) if set(row) != {BLANK}], default=-1)
    for number, row in enumerate(screen.rows[: last + 1]):
        lines.append(f"{number:3}|{row_text(row)}")
        if styles := "; ".join(_style_runs(row)):
            lines.append(f"{number:3}: {styles}")
        if widths := "; ".join(_widths(row)):
            lines.append(f"{number:3}~ {widths}")
    return "\n".join(lines) + "\n"


def _style_runs(row: Sequence[GoldenCell]) -> Iterator[str]:
    for style, members in groupby(enumerate(row), key=lambda placed: placed[1].style):
        columns = [col for col, _ in members]
        if style:
            yield f"{columns[0]}-{columns[-1]} {style}"


def _widths(row: Sequence[GoldenCell]) -> Iterator[str]:
    if wide := [col - 1 for col, cell in enumerate(row) if not cell.text]:
        yield f"wide {' '.join(map(str, wide))}"
    if joined := [f"{col}:{len(cell.text)}" for col, cell in enumerate(row) if len(cell.text) > 1]:
        yield f"joined {' '.join(joined)}"


# Reading.


def decode_golden(data: bytes) -> GoldenFile:
    """Read the bytes of a file. A byte order mark, which some editors write, is skipped."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise BadGolden(f"line {number} is not UTF-8: {error.reason}") from error
    return read_golden(text)


def read_golden(text: str) -> GoldenFile:
    """Read a file of any version up to the present one.

    Raises:
        NewerGolden: The version is not known yet.
        BadGolden: The text is not a golden screen.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    first = re.fullmatch(r"telex golden (\d{1,9})", lines[0].rstrip())
    if not first:
        raise BadGolden("line 1 is not `telex golden` and the version of the format")
    version = int(first[1])
    if version > VERSION:
        raise NewerGolden(
            f"line 1 has version {version} of the golden format, and this telex reads up to "
            f"{VERSION}: use a newer telex, or remove the file and write it with `--telex-update`"
        )
    if version not in READERS:
        raise BadGolden(f"line 1 has version {version}, and the first version is {min(READERS)}")
    return READERS[version](lines)


_HEAD: Final = {
    "size": re.compile(r"(\d{1,4})x(\d{1,4})"),
    "cursor": re.compile(r"hidden|row (\d{1,4}) column (\d{1,4})"),
    "title": re.compile(r'".*"'),
    "mask": re.compile(r'".*"|rows (\d{1,4})-(\d{1,4}) columns (\d{1,4})-(\d{1,4})'),
}
_ROW: Final = re.compile(r" *(\d{1,4})([|:~])(.*)")
_RUN: Final = re.compile(r" *(\d{1,4})-(\d{1,4}) ([^;]+)")


def _read_1(lines: list[str]) -> GoldenFile:
    head: dict[str, re.Match[str]] = {}
    masks: list[Mask] = []
    number = 1
    title = ""
    try:
        while number < len(lines) and lines[number].strip():
            name, _, value = lines[number].strip().partition(" ")
            found = _HEAD[name].fullmatch(value) if name in _HEAD else None
            if found is None:
                raise ValueError(f"{value!r} does not fit {name!r}")
            if name in head:
                raise ValueError(f"there is a second {name!r}")
            if name == "mask":
                masks.append(_mask(found))
                number += 1
                continue
            head[name] = found
            title = json.loads(value) if name == "title" else title
            number += 1
        cols, height = map(int, head["size"].groups())
        at = head["cursor"]
        rows = _Rows(cols, height)
        while (number := number + 1) < len(lines):
            if lines[number].strip():
                rows.add(lines[number], number)
        cells = []
        for row in range(height):
            number = rows.lines.get(row, number)
            cells.append(rows.cells(row))
    except (ValueError, KeyError, re.error, OverflowError, RecursionError) as error:
        why = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise BadGolden(f"line {number + 1} is not one of a golden screen: {why}") from error
    cursor = None if at[1] is None else (int(at[1]), int(at[2]))
    screen = GoldenScreen(tuple(cells), cols, cursor, title)
    return GoldenFile(screen, tuple(masks), 1)


def _mask(found: re.Match[str]) -> Mask:
    if found[1] is not None:
        return RegionMask(*map(int, found.groups()))
    pattern = str(json.loads(found[0]))
    re.compile(pattern)
    return PatternMask(pattern)


class _Rows:
    """Collects the lines about rows: text, styles, widths."""

    def __init__(self, cols: int, height: int) -> None:
        self._cols = cols
        self._height = height
        self.lines: dict[int, int] = {}
        """The last line about each row."""
        self._texts: dict[int, str] = {}
        self._runs: dict[int, list[tuple[int, int, str]]] = {}
        self._wide: dict[int, set[int]] = {}
        self._joined: dict[int, dict[int, int]] = {}
        self._blank = (BLANK,) * cols

    def add(self, line: str, number: int) -> None:
        found = _ROW.fullmatch(line)
        if found is None:
            raise ValueError("a row is its number, one of | : ~, and its content")
        row, kind, rest = int(found[1]), found[2], found[3]
        if row >= self._height:
            raise ValueError(f"row {row} is outside of a screen of {self._height} rows")
        self.lines[row] = number
        if kind == ":":
            self._runs.setdefault(row, []).extend([self._run(part) for part in rest.split(";")])
        elif kind == "~":
            self._add_widths(row, rest)
        elif row in self._texts:
            raise ValueError(f"there is a second row {row}")
        else:
            self._texts[row] = rest

    def _run(self, part: str) -> tuple[int, int, str]:
        found = _RUN.fullmatch(part.rstrip())
        if found is None or int(found[2]) < int(found[1]):
            raise ValueError(f"{part.strip()!r} is not FIRST-LAST and a style")
        return self._col(found[1]), self._col(found[2]), _in_order(found[3])

    def _col(self, digits: str) -> int:
        if not re.fullmatch("[0-9]{1,4}", digits):
            raise ValueError(f"{digits!r} is not a column")
        if int(digits) >= self._cols:
            raise ValueError(f"column {digits} is outside of a screen of {self._cols} columns")
        return int(digits)

    def _add_widths(self, row: int, rest: str) -> None:
        for part in rest.split(";"):
            word, _, values = part.strip().partition(" ")
            if word == "wide":
                self._wide.setdefault(row, set()).update(map(self._col, values.split()))
            elif word == "joined":
                for value in values.split():
                    col, _, count = value.partition(":")
                    if not re.fullmatch("[1-9][0-9]{0,3}", count):
                        raise ValueError(f"{value!r} is not COLUMN:CHARACTERS")
                    self._joined.setdefault(row, {})[self._col(col)] = int(count)
            else:
                raise ValueError(f"{word!r} is neither `wide` nor `joined`")

    def cells(self, number: int) -> tuple[GoldenCell, ...]:
        if number not in self.lines:
            return self._blank
        text, at, texts = self._texts.get(number, ""), 0, list[str]()
        joined, wide = self._joined.get(number, {}), self._wide.get(number, ())
        while at < len(text) or len(texts) < self._cols:
            count = joined.get(len(texts), 1)
            covers = len(texts) in wide
            texts.append(text[at : at + count] or " ")
            texts += [""] if covers else []
            at += count
        if len(texts) > self._cols:
            raise ValueError(f"row {number} is longer than {self._cols} columns")
        styles = [PLAIN] * self._cols
        for first, last, style in self._runs.get(number, ()):
            styles[first : last + 1] = [style] * (last + 1 - first)
        cells = [
            shown_cell(text, not text, style) for text, style in zip(texts, styles, strict=True)
        ]
        return shown_rows([cells], 1, self._cols)[0]


def _in_order(style: str) -> str:
    """Return the words of a style in the order of `words`, as a person may have written them."""
    front, on, back = f" {style.strip()} ".partition(" on ")
    given = front.split()
    known = [*ATTRIBUTES[1], *[f"{kind}-underline" for kind in UNDERLINES[1]]]
    attributes = [word for word in given if word in known]
    attributes.sort(key=lambda word: ATTRIBUTES[1].index(word.rpartition("-")[2]))
    lines = [word for word in given if word.startswith("line-")]
    colours = [word for word in given if word not in (*attributes, *lines)]
    for word in [*colours, *back.split(), *[line.removeprefix("line-") for line in lines]]:
        if not _COLOUR.fullmatch(word):
            raise ValueError(f"{word!r} is not an attribute or a colour")
    if max(len(colours), len(lines), len(back.split())) > 1:
        raise ValueError(f"{style.strip()!r} has two colours for one thing")
    return " ".join([*attributes, *colours, *lines, *([f"on {back.strip()}"] if on else [])])


READERS: Final[dict[int, Callable[[list[str]], GoldenFile]]] = {1: _read_1}
"""The reader of each version."""
