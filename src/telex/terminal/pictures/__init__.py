"""Pictures of snapshots: text, ANSI, SVG, HTML or PNG. Pure: a snapshot in, bytes out.

    draw(snapshot, "png")              a dark picture at scale 2, with its cursor
    draw(snapshot, kind_of("a.svg"))   the kind is taken from the name of the file

    theme          the colours of a terminal as RGB
    layout         the pieces of each row, with their places and colours
    box_drawing    lines, blocks and dots as shapes
    underlines     underlines as shapes
    emoji          emoji as images
    text, svg, html, png   one module for each kind of picture

Pictures are not redacted here: `redact.mask` comes first, as for everything that leaves a session.
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
    """The name of a file has no suffix of a picture."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: not the suffix of a picture; use {', '.join(_SUFFIXES)}")


class PictureTooLarge(ValueError):
    """A PNG of this screen would exceed the limit of pixels."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__(
            f"a PNG of {width} x {height} pixels is over the limit of {limits.PICTURE_PIXELS};"
            " use a smaller scale, a smaller screen, or svg"
        )


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """Return the kind of picture for a file of this name."""
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
    """Draw a picture. `theme` and `cursor` apply to kinds with colours, `scale` only to PNG."""
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
    # Importing Pillow takes longer than drawing any other kind, and only PNG needs it.
    from telex.terminal.pictures import png

    return png.draw(snapshot, theme, cursor, scale)
