"""Pictures of a snapshot as clients have it: back from wire types to a screen, and to a file.

`ScreenSnapshot.save` is the public way here. The rows come from the cells, or from the runs that
stand for them on a large screen.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import UNSET
from msgspec.structs import asdict

from telex.terminal.cells import BLANK, Cell, Cursor, Region, Row, Size, Snapshot, Style
from telex.terminal.pictures import DARK, LIGHT, crop, draw, kind_of, write_picture
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.automation.protocol import CellStyle, ScreenSnapshot

ThemeName = Literal["dark", "light"]
_THEMES: Final = {"dark": DARK, "light": LIGHT}


class NoCells(ValueError):
    """The snapshot has only text."""

    def __init__(self) -> None:
        super().__init__(
            "this snapshot has text without cells, as that of a match; draw one from snapshot()"
        )


def save_picture(
    snapshot: ScreenSnapshot,
    path: str | Path,
    *,
    region: tuple[int, int, int, int] | None,
    theme: ThemeName,
    cursor: bool,
    scale: int,
) -> Path:
    """Draw a snapshot to a file. See `ScreenSnapshot.save`."""
    kind = kind_of(path)
    if theme not in _THEMES:
        raise ValueError(f"there is no theme {theme!r}; use {' or '.join(map(repr, _THEMES))}")
    if not 1 <= scale <= 8:
        raise ValueError(f"a scale of {scale} is not from 1 to 8")
    seen = screen_of(snapshot)
    if region is not None:
        seen = crop(seen, Region(*region))
    write_picture(Path(path), draw(seen, kind, theme=_THEMES[theme], cursor=cursor, scale=scale))
    return Path(path)


def screen_of(snapshot: ScreenSnapshot) -> Snapshot:
    """Return the screen that a snapshot shows. Raises NoCells."""
    if not snapshot.cells and snapshot.runs is UNSET:
        raise NoCells
    size = Size(snapshot.size.rows, snapshot.size.cols)
    grid = [[BLANK] * size.cols for _ in range(size.rows)]
    for row, col, cell in _placed(snapshot):
        if 0 <= row < size.rows and 0 <= col < size.cols:  # a server may send anything
            grid[row][col] = cell
    at = snapshot.cursor
    return Snapshot(
        size=size,
        cursor=Cursor(at.row, at.col, at.visible),
        sequence=snapshot.sequence,
        rows=tuple([Row(tuple(cells)) for cells in grid]),
        title=snapshot.title,
    )


def _placed(snapshot: ScreenSnapshot) -> Iterator[tuple[int, int, Cell]]:
    for one in snapshot.cells:
        width = 2 if one.wide else 0 if one.wide_continuation else 1
        cell = Cell(one.text, _style(one.style), width)
        yield one.row, one.col, BLANK if cell == BLANK else cell
    for run in snapshot.runs or ():
        width = min(max(run.width, 1), snapshot.size.cols)
        for col, cell in enumerate(_split(run.text, width), run.col):
            yield run.row, col, replace(cell, style=_style(run.style))


@lru_cache(maxsize=1024)
def _style(style: CellStyle) -> Style:
    return Style(**asdict(style))


@lru_cache(maxsize=1024)
def _split(text: str, width: int) -> tuple[Cell, ...]:
    """Return the cells of a run. The emulator measures its characters, by the mode that fits."""
    if text.isascii():
        return tuple([Cell(char) for char in text[:width]])
    measured: tuple[Cell, ...] = ()
    for mode in ("", "\x1b[?2027h"):
        screen = Screen(Size(1, width + 1), scrollback=0)
        screen.feed((mode + text).encode("utf-8", "replace"))
        measured = screen.rows()[0].cells[:width]
        fits = screen.cursor.col == width
        screen.close()
        if fits:
            break
    return measured
