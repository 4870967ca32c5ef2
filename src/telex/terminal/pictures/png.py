"""The screen as a PNG, with no browser: backgrounds first, then ink, so that slants may lean over.

Whole pixels throughout: a cell is 9 by 18, times the scale.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from PIL import Image

from telex.terminal.pictures.glyphs import glyph
from telex.terminal.pictures.layout import (
    CELL_HEIGHT,
    CELL_WIDTH,
    PADDING,
    STRIKE,
    UNDERLINE,
    Form,
    Piece,
    lay_out,
    pixels,
)

if TYPE_CHECKING:
    from telex.terminal.cells import Snapshot
    from telex.terminal.pictures.theme import Theme


def draw(snapshot: Snapshot, theme: Theme, cursor: bool, scale: int) -> bytes:
    image = Image.new("RGB", pixels(snapshot.size, scale), theme.background)
    rows = list(lay_out(snapshot, theme, cursor))
    for number, pieces in enumerate(rows):
        for piece in pieces:
            if piece.ink.background != theme.background:
                image.paste(piece.ink.background, _box(number, piece, 0, CELL_HEIGHT, scale))
    for number, pieces in enumerate(rows):
        for piece in pieces:
            if not piece.ink.invisible:
                _ink(image, number, piece, scale)
    out = BytesIO()
    image.save(out, "PNG", compress_level=3)
    return out.getvalue()


def _box(row: int, piece: Piece, top: int, bottom: int, scale: int) -> tuple[int, int, int, int]:
    """A band of a piece's cells, in pixels."""
    left, above = PADDING + piece.col * CELL_WIDTH, PADDING + row * CELL_HEIGHT
    right = left + piece.width * CELL_WIDTH
    return left * scale, (above + top) * scale, right * scale, (above + bottom) * scale


def _ink(image: Image.Image, row: int, piece: Piece, scale: int) -> None:
    ink = piece.ink
    left, top, _, _ = _box(row, piece, 0, CELL_HEIGHT, scale)
    clusters = [piece.text] if piece.form is Form.ALONE else piece.text
    for place, text in enumerate(clusters):
        if text == " ":
            continue
        drawn = glyph(
            text, piece.width if piece.form is Form.ALONE else 1, ink.bold, ink.italic, scale
        )
        at = left + place * CELL_WIDTH * scale + drawn.left, top
        image.paste(drawn.picture or ink.foreground, at, drawn.mask)
    for struck, (above, below) in ((ink.underline, UNDERLINE), (ink.strikethrough, STRIKE)):
        if struck:
            image.paste(ink.foreground, _box(row, piece, above, below, scale))
