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
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from telex.automation.protocol import ScreenSnapshot
    from telex.terminal.cells import Row, Snapshot

VERSION: Final = 1
_FIRST: Final = ("bold", "dim", "italic", "underline", "inverse")
ATTRIBUTES: Final = {1: (*_FIRST, "strikethrough", "blink", "invisible")}
"""The attributes of a cell, beside its colours, that each version of the format compares."""
UNDERLINES: Final = {1: ("double", "curly", "dotted", "dashed")}
"""The kinds of underlines beside the plain one: `curly-underline`."""
FILL: Final = "▒"
"""Stands in a masked cell."""
PLAIN: Final = ""

_NAMES: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_COLOUR: Final = re.compile(rf"(?:bright-)?(?:{'|'.join(_NAMES)})|color\d{{1,3}}|#[0-9a-f]{{6}}")

_MARKS_BLANKS: Final = re.compile("inverse|underline|strikethrough")
"""Attributes that are seen on a blank."""


class BadGolden(ValueError):
    """The text is not a golden screen. The message names the line."""

    __module__ = "telex.testing"


class NewerGolden(BadGolden):
    """A newer telex wrote the file, in a version of the format that this one does not know."""

    __module__ = "telex.testing"


class GoldenCell(NamedTuple):
    """One cell: its character, and its style in words."""

    text: str = " "
    """A character with its combining characters; empty if the character before covers the cell."""
    style: str = PLAIN
    """Attributes and colours, as in `bold red on blue`."""


BLANK: Final = GoldenCell()


@dataclass(frozen=True, slots=True)
class GoldenScreen:
    """The compared part of a screen."""

    rows: tuple[tuple[GoldenCell, ...], ...]
    cols: int
    cursor: tuple[int, int] | None = None
    """Row and column; None if the cursor is hidden."""
    title: str = ""


@dataclass(frozen=True, slots=True)
class PatternMask:
    """Hides the text that a regular expression (of `re`) finds in a row."""

    pattern: str


@dataclass(frozen=True, slots=True)
class RegionMask:
    """Hides a rectangle of cells. Both ends are part of it."""

    top: int
    bottom: int
    left: int
    right: int


Mask = PatternMask | RegionMask


@dataclass(frozen=True, slots=True)
class GoldenFile:
    """The content of one file: a screen, already masked, and the masks."""

    screen: GoldenScreen
    masks: tuple[Mask, ...] = ()
    version: int = field(default=VERSION, compare=False)


# From a screen.


def from_wire(snapshot: ScreenSnapshot, version: int = VERSION) -> GoldenScreen:
    """Return the golden screen of a public snapshot with all its cells."""
    rows = [
        [golden_cell(cell.text, cell.wide_continuation, words(cell.style, version)) for cell in row]
        for _, row in groupby(snapshot.cells, key=lambda cell: cell.row)
    ]
    return _screen(golden_rows(rows, snapshot.size.rows, snapshot.size.cols), snapshot)


def from_cells(snapshot: Snapshot, version: int = VERSION) -> GoldenScreen:
    """Return the golden screen of a snapshot of the terminal itself."""
    size = snapshot.size
    rows = [_row_of_cells(row, size.cols, version) for row in snapshot.rows[: size.rows]]
    missing = [(BLANK,) * size.cols] * (size.rows - len(rows))
    return _screen((*rows, *missing), snapshot)


@lru_cache(maxsize=512)
def _row_of_cells(row: Row, cols: int, version: int) -> tuple[GoldenCell, ...]:
    """Convert a row. Unchanged rows of a terminal are the same objects from look to look."""
    cells = [
        golden_cell(cell.text, not cell.width, words(cell.style, version)) for cell in row.cells
    ]
    return golden_rows([cells], 1, cols)[0]


def _screen(
    rows: tuple[tuple[GoldenCell, ...], ...], snapshot: ScreenSnapshot | Snapshot
) -> GoldenScreen:
    at = snapshot.cursor
    cursor = (at.row, at.col) if at.visible else None
    title = "".join(map(_shown, snapshot.title or ""))
    return GoldenScreen(rows, snapshot.size.cols, cursor, title)


def from_text(text: str, rows: int, cols: int) -> GoldenScreen:
    """Return a screen of plain narrow characters."""
    given = [[golden_cell(char, False, PLAIN) for char in line] for line in text.split("\n")]
    return GoldenScreen(golden_rows(given, rows, cols), cols)


@lru_cache(maxsize=4096)
def words(style: Any, version: int = VERSION) -> str:
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
        return f"{bright}{_NAMES[index % 8]}" if index < 16 else f"color{index}"
    return "#{:02x}{:02x}{:02x}".format(*map(int, numbers)) if kind == "rgb" else ""


@lru_cache(maxsize=8192)
def golden_cell(text: str, covered: bool, style: str) -> GoldenCell:
    """Return a cell as it is compared. Of a blank, only the visible part of its style counts: how a
    program erased a cell leaves no trace on the screen."""
    if covered:
        return GoldenCell("", style)
    shown = "".join(map(_shown, text)) or " "
    if shown == " " and style and not _MARKS_BLANKS.search(style):
        _, on, colour = f" {style}".partition(" on ")
        style = f"on {colour}" if on else PLAIN
    return GoldenCell(shown, style)


def _shown(char: str) -> str:
    """Return a character, or U+FFFD for a control character or half a surrogate pair."""
    return "\ufffd" if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") else char


def golden_rows(
    rows: Sequence[Sequence[GoldenCell]], height: int, cols: int
) -> tuple[tuple[GoldenCell, ...], ...]:
    """Return exactly so many rows of so many cells, as they are compared."""
    given = [list(row[:cols]) for row in rows[:height]]
    for row in given:
        before = ""
        for col, cell in enumerate(row):
            if not cell.text and not before:  # covered by nothing
                row[col] = GoldenCell(" ", cell.style)
            before = cell.text
        _style_blanks(row)
        row.extend([BLANK] * (cols - len(row)))
    given += [[BLANK] * cols] * (height - len(given))
    return tuple(map(tuple, given))


def _style_blanks(row: list[GoldenCell]) -> None:
    """Give blanks between two words of one style that style, if they look like it: most programs
    draw whole phrases, and a run with gaps is hard to read."""
    inked = [col for col, cell in enumerate(row) if cell.text.strip(" ")]
    for left, right in pairwise(inked):
        style = row[left].style
        if right - left > 1 and style and style == row[right].style:
            blank = golden_cell(" ", False, style)
            gap = range(left + 1, right)
            if blank.style != style and all(row[col] in (blank, ("", style)) for col in gap):
                for col in gap:
                    row[col] = GoldenCell(row[col].text, style)


# Masks.


def mask_screen(screen: GoldenScreen, masks: Iterable[Mask]) -> GoldenScreen:
    """Return the screen with `FILL`, in no style, wherever a mask applies."""
    hidden: set[tuple[int, int]] = set()
    for mask in masks:
        match mask:
            case PatternMask(pattern):
                hidden.update(_found(screen, re.compile(pattern)))
            case RegionMask(top, bottom, left, right):
                across = range(left, right + 1)
                hidden.update((row, col) for row in range(top, bottom + 1) for col in across)
    if not hidden:
        return screen
    rows = [list(row) for row in screen.rows]
    for row, col in hidden:
        if 0 <= row < len(rows) and 0 <= col < screen.cols:
            for place in _whole(rows[row], col):
                rows[row][place] = GoldenCell(FILL)
    again = [[golden_cell(cell.text, not cell.text, cell.style) for cell in row] for row in rows]
    shown = golden_rows(again, len(rows), screen.cols)
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


def row_text(row: Iterable[GoldenCell]) -> str:
    """Return the text of a row, without the blanks at its end."""
    return "".join([cell.text for cell in row]).rstrip(" ")


def text_rows(screen: GoldenScreen) -> list[str]:
    """Return the texts of the rows, without blank rows at the end."""
    return "\n".join([row_text(row) for row in screen.rows]).rstrip("\n").split("\n")


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
        *[f"mask {_mask_words(mask)}" for mask in golden.masks],
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


def _mask_words(mask: Mask) -> str:
    match mask:
        case PatternMask(pattern):
            return json.dumps(pattern, ensure_ascii=False)
        case RegionMask(top, bottom, left, right):
            return f"rows {top}-{bottom} columns {left}-{right}"


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
    if version not in READERS:
        raise NewerGolden(
            f"the file has version {version} of the golden format, and this telex reads up to "
            f"{VERSION}: use a newer telex, or write the file again with `pytest --telex-update`"
        )
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
    try:
        while number < len(lines) and lines[number].strip():
            name, _, value = lines[number].strip().partition(" ")
            found = _HEAD[name].fullmatch(value) if name in _HEAD else None
            if found is None:
                raise ValueError(f"{value!r} does not fit {name!r}")
            head[name] = found
            masks += [_mask(found)] if name == "mask" else []
            number += 1
        cols, height = map(int, head["size"].groups())
        at, title = head["cursor"], head.get("title")
        rows = _Rows(cols, height)
        while (number := number + 1) < len(lines):
            if lines[number].strip():
                rows.add(lines[number])
        screen = GoldenScreen(
            rows.finished(),
            cols,
            None if at[1] is None else (int(at[1]), int(at[2])),
            json.loads(title[0]) if title else "",
        )
    except (ValueError, KeyError, re.error) as error:
        why = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise BadGolden(f"line {number + 1} is not one of a golden screen: {why}") from error
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
        self._texts = [""] * height
        self._runs: list[list[tuple[int, int, str]]] = [[] for _ in range(height)]
        self._wide: list[set[int]] = [set() for _ in range(height)]
        self._joined: list[dict[int, int]] = [{} for _ in range(height)]

    def add(self, line: str) -> None:
        found = _ROW.fullmatch(line)
        if found is None or int(found[1]) >= len(self._texts):
            raise ValueError("a row is its number, one of | : ~, and its content")
        row, kind, rest = int(found[1]), found[2], found[3]
        if kind == "|":
            self._texts[row] = rest
        elif kind == ":":
            self._runs[row] += [_run(part) for part in rest.split(";")]
        else:
            self._add_widths(row, rest)

    def _add_widths(self, row: int, rest: str) -> None:
        for part in rest.split(";"):
            word, *values = part.split()
            if word == "wide":
                self._wide[row] |= set(map(int, values))
            elif word == "joined":
                pairs = [value.partition(":") for value in values]
                self._joined[row] |= {int(col): int(count) for col, _, count in pairs}
            else:
                raise ValueError(f"{word!r} is neither `wide` nor `joined`")

    def finished(self) -> tuple[tuple[GoldenCell, ...], ...]:
        rows = [self._row(number) for number in range(len(self._texts))]
        return golden_rows(rows, len(rows), self._cols)

    def _row(self, number: int) -> list[GoldenCell]:
        text, at, texts = self._texts[number], 0, list[str]()
        while at < len(text) or len(texts) < self._cols:
            count = self._joined[number].get(len(texts), 1)
            wide = len(texts) in self._wide[number]
            texts.append(text[at : at + count] or " ")
            texts += [""] if wide else []
            at += count
        if len(texts) > self._cols:
            raise ValueError(f"row {number} is longer than {self._cols} columns")
        styles = [PLAIN] * self._cols
        for first, last, style in self._runs[number]:
            styles[first : last + 1] = [style] * (min(last, self._cols - 1) + 1 - first)
        return [
            golden_cell(text, not text, style) for text, style in zip(texts, styles, strict=True)
        ]


def _run(part: str) -> tuple[int, int, str]:
    found = _RUN.fullmatch(part.rstrip())
    if found is None or int(found[2]) < int(found[1]):
        raise ValueError(f"{part.strip()!r} is not FIRST-LAST and a style")
    return int(found[1]), int(found[2]), _in_order(found[3])


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
