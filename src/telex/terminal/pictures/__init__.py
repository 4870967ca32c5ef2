"""Pictures of snapshots: text, ANSI, SVG, HTML or PNG. A snapshot in, bytes out.

    draw(snapshot, "png")              a dark picture at scale 2, with its cursor
    draw(snapshot, kind_of("a.svg"))   the kind is taken from the name of the file
    draw(crop(snapshot, region), "png")

    theme          the colours of a terminal as RGB
    layout         the pieces of each row, with their places and colours; underlines as shapes
    box_drawing    lines, blocks and dots as shapes
    text           a screen as text or ANSI
    svg            a screen as SVG, and as an HTML page around it
    png            a screen as PNG, with images for emoji

Pictures are not redacted here: `redact.mask` comes first, as for everything that leaves a session.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from telex.terminal import limits
from telex.terminal.cells import BLANK, Row
from telex.terminal.pictures import svg, text
from telex.terminal.pictures.layout import pixels
from telex.terminal.pictures.theme import DARK, LIGHT, Theme, UnknownColour

if TYPE_CHECKING:
    import os

    from telex.terminal.cells import Cell, Region, Snapshot

__all__ = [
    "DARK",
    "LIGHT",
    "Kind",
    "PictureTooLarge",
    "Theme",
    "UnknownColour",
    "UnknownPictureKind",
    "crop",
    "draw",
    "kind_of",
    "write_picture",
]

Kind = Literal["text", "ansi", "svg", "html", "png"]

_SUFFIXES: Final[dict[str, Kind]] = {
    ".png": "png",
    ".svg": "svg",
    ".html": "html",
    ".ansi": "ansi",
    ".ans": "ansi",
    ".txt": "text",
}


class UnknownPictureKind(ValueError):
    """The name of a file has no suffix of a picture."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: not the suffix of a picture; use {', '.join(_SUFFIXES)}")


class NoSuchRegion(ValueError):
    """The region is empty, or not within the screen."""

    def __init__(self, region: Region, snapshot: Snapshot) -> None:
        size = snapshot.size
        super().__init__(
            f"{region} is not within the screen of {size.cols} columns and {size.rows} rows"
        )


class PictureTooLarge(ValueError):
    """A PNG of this screen would exceed the limit of pixels."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__(
            f"a PNG of {width} x {height} pixels is over the limit of {limits.PICTURE_PIXELS};"
            " use a smaller scale, a smaller screen, or svg"
        )


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """Return the kind of picture for a file of this name."""
    kind = _SUFFIXES.get(Path(path).suffix.lower())
    if kind is None:
        raise UnknownPictureKind(str(path))
    return kind


def draw(
    snapshot: Snapshot,
    kind: Kind,
    *,
    theme: Theme = DARK,
    cursor: bool = True,
    scale: int = 2,
) -> bytes:
    """Draw a picture. `theme` and `cursor` apply to kinds with colours, `scale` only to PNG."""
    match kind:
        case "text":
            return text.plain(snapshot)
        case "ansi":
            return text.ansi(snapshot)
        case "svg":
            return svg.draw(snapshot, theme, cursor)
        case "html":
            return svg.draw_page(snapshot, theme, cursor)
        case "png":
            return _png(snapshot, theme, cursor, scale)


def crop(snapshot: Snapshot, region: Region) -> Snapshot:
    """Return a part of a screen. A wide character that is cut leaves a blank."""
    row, col, rows, cols = region
    below, right = row + rows, col + cols
    size, cursor = snapshot.size, snapshot.cursor
    if not (0 <= row < below <= size.rows and 0 <= col < right <= size.cols):
        raise NoSuchRegion(region, snapshot)
    seen = cursor.visible and row <= cursor.row < below and col <= cursor.col < right
    return replace(
        snapshot,
        size=replace(size, rows=rows, cols=cols),
        cursor=replace(cursor, row=cursor.row - row, col=cursor.col - col, visible=seen),
        rows=tuple([Row(_part(line.cells, col, right)) for line in snapshot.rows[row:below]]),
    )


def _part(cells: tuple[Cell, ...], start: int, end: int) -> tuple[Cell, ...]:
    part = list(cells[start:end])
    if part and not part[0].width:
        part[0] = BLANK
    if part and part[-1].width == 2:
        part[-1] = BLANK
    return tuple(part)


def write_picture(path: Path, picture: bytes) -> None:
    """Write the whole picture, or leave no file: part of a picture would look like a whole one."""
    with path.open("wb", buffering=0) as file:
        try:
            view = memoryview(picture)
            while view:
                view = view[file.write(view) :]
        except OSError as error:
            if path.is_file():  # not a device such as /dev/stdout
                path.unlink()
            raise OSError(error.errno, error.strerror, str(path)) from error


def _png(snapshot: Snapshot, theme: Theme, cursor: bool, scale: int) -> bytes:
    width, height = pixels(snapshot.size, scale)
    if width * height > limits.PICTURE_PIXELS:
        raise PictureTooLarge(width, height)
    # Importing Pillow takes longer than drawing any other kind, and only PNG needs it.
    from telex.terminal.pictures import png

    return png.draw(snapshot, theme, cursor, scale)
