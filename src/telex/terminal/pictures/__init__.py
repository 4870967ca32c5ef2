"""A snapshot as a picture: text, ANSI, SVG, HTML or PNG. Pure: a snapshot in, bytes out.

    draw(snapshot, "png")              a dark picture, twice as large, with its cursor
    draw(snapshot, kind_of("a.svg"))   the kind by a file's name

    theme          what the terminal's colours look like
    layout         what stands where and in which ink
    box            lines, blocks and dots as shapes
    text, svg, html, png   one kind each
    glyphs         letters as pixels, for `png` only
    system_fonts   fonts of this machine, for what the bundled one lacks

Redaction is not done here: `redact.mask` comes first, for pictures as for every outlet.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal

from telex.terminal import limits
from telex.terminal.pictures import html, svg, text
from telex.terminal.pictures.layout import pixels
from telex.terminal.pictures.theme import DARK, LIGHT, Theme, UnknownColour

if TYPE_CHECKING:
    import os

    from telex.terminal.cells import Snapshot

__all__ = [
    "DARK",
    "LIGHT",
    "Kind",
    "PictureTooLarge",
    "Theme",
    "UnknownColour",
    "UnknownPictureKind",
    "draw",
    "kind_of",
]

Kind = Literal["text", "ansi", "svg", "html", "png"]

_SUFFIXES: Final[dict[str, Kind]] = {
    ".txt": "text",
    ".ans": "ansi",
    ".svg": "svg",
    ".html": "html",
    ".png": "png",
}


class UnknownPictureKind(ValueError):
    """A file's name says nothing about what to draw into it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: no picture ends like this; use {', '.join(_SUFFIXES)}")


class PictureTooLarge(ValueError):
    """A PNG of this screen would have more pixels than we are willing to hold."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__(
            f"a PNG of {width} x {height} pixels is over the limit of {limits.PICTURE_PIXELS};"
            " use a smaller scale, a smaller screen, or svg"
        )


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """What a file of this name holds."""
    kind = _SUFFIXES.get(PurePath(path).suffix.lower())
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
    """The picture. `theme` and `cursor` matter where colours are drawn, `scale` for PNG alone."""
    match kind:
        case "text":
            return text.plain(snapshot)
        case "ansi":
            return text.ansi(snapshot)
        case "svg":
            return svg.draw(snapshot, theme, cursor)
        case "html":
            return html.draw(snapshot, theme, cursor)
        case "png":
            return _png(snapshot, theme, cursor, scale)


def _png(snapshot: Snapshot, theme: Theme, cursor: bool, scale: int) -> bytes:
    width, height = pixels(snapshot.size, scale)
    if width * height > limits.PICTURE_PIXELS:
        raise PictureTooLarge(width, height)
    # Pillow takes longer to import than everything else here to run, and only this needs it.
    from telex.terminal.pictures import png

    return png.draw(snapshot, theme, cursor, scale)
