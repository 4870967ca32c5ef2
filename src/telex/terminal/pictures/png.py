"""The screen as a PNG, without a browser: backgrounds first, then text, so that italics may
overlap.

All coordinates are whole pixels: a cell is 9 by 18, times the scale. The text of each cell is drawn
once and cached: lines and blocks come from `box_drawing`, emoji from `emoji`, letters from the
bundled fonts: one for most scripts, one for Chinese, Japanese and Korean. A character that these
lack is drawn with a font of this machine; without one it is a box with its code point. Nothing is
drawn larger than its cells, except the slant of italics. Fonts and emoji are loaded when a
character on the screen needs them. Characters are placed one after another (`Layout.BASIC`),
because cells have no ligatures and no direction.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from telex.terminal.pictures.box_drawing import CellBox, Polygon, Rect, Shape, is_drawn, shapes
from telex.terminal.pictures.layout import (
    BASELINE,
    CELL_HEIGHT,
    CELL_WIDTH,
    FONT_SIZE,
    PADDING,
    STRIKE,
    Form,
    Piece,
    lay_out,
    pixels,
    underline_shapes,
)

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

    from telex.terminal.cells import Snapshot, UnderlineStyle
    from telex.terminal.pictures.theme import Theme


# Fonts of this machine, for scripts and symbols that the bundled fonts lack. The usual directories
# are searched once for fonts with known names: fontconfig would need a process, and macOS does not
# have it.


LETTERS: Final = "DejaVuSansMono.ttf"
BOLD: Final = "DejaVuSansMono-Bold.ttf"
CJK: Final = "DroidSansFallback.ttf"
"""The bundled fonts."""

DIRECTORIES: Final = (
    "~/.local/share/fonts",
    "~/.fonts",
    "/usr/local/share/fonts",
    "/usr/share/fonts",
    "~/Library/Fonts",
    "/Library/Fonts",
    "/System/Library/Fonts",
)
OTHERS: Final = (
    "NotoSansMonoCJK-Regular.ttc",
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJKjp-Regular.otf",
    "SourceHanSans-Regular.ttc",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
    "wqy-microhei.ttc",
    "wqy-zenhei.ttc",
    "DroidSansFallbackFull.ttf",
    "Arial Unicode.ttf",
    "DejaVuSans.ttf",
    "NotoSansSymbols2-Regular.ttf",
    "NotoSansSymbols-Regular.ttf",
    "Apple Symbols.ttf",
    "FreeMono.ttf",
    "unifont.otf",
    "unifont.ttf",
)
"""Fonts with many characters; monospaced fonts come first."""


@lru_cache(maxsize=1)
def installed_fonts() -> dict[str, Path]:
    """Return the paths of the fonts named above; of several with one name, the user's own."""
    wanted = set(OTHERS)
    found: dict[str, Path] = {}
    for directory in DIRECTORIES:
        for folder, _, names in os.walk(Path(directory).expanduser()):
            for name in wanted.intersection(names):
                found.setdefault(name, Path(folder, name))
    return found


# The text of one cell, in pixels.


_SLANT: Final = 0.2
"""The slant of DejaVu's own oblique."""
_OVERSAMPLE: Final = 4
_NOT_A_CHARACTER: Final = "\uffff"


@dataclass(frozen=True, slots=True)
class Glyph:
    """The image of a cell's text: a mask for one colour, or a picture with its own colours."""

    mask: Image.Image
    picture: Image.Image | None = None
    left: int = 0
    """The distance of its left edge from that of the cell."""


@dataclass(frozen=True)
class Face:
    """A font at one size, which knows the characters it lacks."""

    font: FreeTypeFont
    missing: bytes

    def has(self, char: str) -> bool:
        """Return whether the font has a character. Pillow cannot tell, so the glyph is compared
        with that of a missing character.
        """
        return char.isspace() or bytes(self.font.getmask(char)) != self.missing


@lru_cache(maxsize=64)
def _face(name: str, size: int) -> Face:
    """Load a bundled font or a font of this machine by the name of its file."""
    source = BytesIO(_font_file(name))
    font = ImageFont.truetype(source, size, layout_engine=ImageFont.Layout.BASIC)
    return Face(font, bytes(font.getmask(_NOT_A_CHARACTER)))


@lru_cache(maxsize=8)
def _font_file(name: str) -> bytes:
    bundled = name in (LETTERS, BOLD, CJK)
    path = files(__package__).joinpath("fonts", name) if bundled else installed_fonts()[name]
    return path.read_bytes()


@lru_cache(maxsize=8192)
def glyph(text: str, cells: int, bold: bool, italic: bool, scale: int) -> Glyph:
    """Return the image of a text in this many cells."""
    frame = CellBox(CELL_WIDTH * scale, CELL_HEIGHT * scale, scale)
    if cells == 1 and is_drawn(text):
        return Glyph(_shaped(shapes(text, frame), frame))
    text = unicodedata.normalize("NFC", text)
    if is_emoji(text, cells) or not _bundled_font(text[0]):
        picture = emoji_image(text)
        if picture is not None:
            return _fitted(picture, cells * frame.width, frame.height)
    if italic:
        large = _lettered(text, cells, bold, scale * _OVERSAMPLE)
        return _slanted(large, cells * frame.width, frame.height)
    return Glyph(_lettered(text, cells, bold, scale))


def _shaped(parts: tuple[Shape, ...], frame: CellBox) -> Image.Image:
    """Draw rectangles exactly; slopes and curves are reduced from a larger drawing, for smooth
    edges.
    """
    mask = Image.new("L", (frame.width, frame.height))
    for part in parts:
        match part:
            case Rect(left, top, right, bottom, shade):
                mask.paste(round(255 * shade), (left, top, right, bottom))
            case Polygon(points):
                smooth = _smooth(points, frame)
                mask.paste(255, (0, 0), smooth)
    return mask


def _smooth(points: tuple[tuple[float, float], ...], frame: CellBox) -> Image.Image:
    by = 2 * _OVERSAMPLE
    large = Image.new("L", (frame.width * by, frame.height * by))
    # Pillow includes the right and lower edge of a polygon: half a pixel less corrects that.
    corners = [(x * by - 0.5, y * by - 0.5) for x, y in points]
    ImageDraw.Draw(large).polygon(corners, fill=255)
    return large.reduce(by)


def _lettered(text: str, cells: int, bold: bool, scale: int) -> Image.Image:
    base, marks = text[0], text[1:]
    mask = Image.new("L", (cells * CELL_WIDTH * scale, CELL_HEIGHT * scale))
    own = _face(BOLD if bold else LETTERS, FONT_SIZE * scale)
    if cells == 1 and own.has(base):
        _letter(mask, base, own, 0, scale)
    elif name := _bundled_font(base) or _installed_font(base):
        _centred(mask, base, name, bold, scale)
    else:
        _numbered(mask, base, scale)
    for mark in marks:
        if unicodedata.combining(mark) and own.has(mark):
            _letter(mask, mark, own, (mask.width - CELL_WIDTH * scale) // 2, scale)
    return mask


def _letter(mask: Image.Image, char: str, face: Face, left: float, scale: int) -> None:
    at = (left, BASELINE * scale)
    ImageDraw.Draw(mask).text(at, char, fill=255, font=face.font, anchor="ls")


def _bundled_font(char: str) -> str | None:
    return next((name for name in (LETTERS, CJK) if _face(name, FONT_SIZE).has(char)), None)


def _installed_font(char: str) -> str | None:
    names = (name for name in OTHERS if name in installed_fonts())
    return next((name for name in names if _face(name, FONT_SIZE).has(char)), None)


def _centred(mask: Image.Image, char: str, name: str, bold: bool, scale: int) -> None:
    """Draw a character of a font with other widths, in the middle of its cells and no wider."""
    size = (FONT_SIZE + 1) * scale
    wide = _face(name, size).font.getlength(char)
    if wide > mask.width:
        size = int(size * mask.width / wide)
    face = _face(name, size)
    left = (mask.width - face.font.getlength(char)) / 2
    _letter(mask, char, face, left, scale)
    if bold:
        _letter(mask, char, face, left + scale / 2, scale)


def _numbered(mask: Image.Image, char: str, scale: int) -> None:
    """Draw a box with the character's code point, two or three digits per line."""
    digits = f"{ord(char):04X}"
    across = 2 if mask.width < CELL_HEIGHT * scale else (len(digits) + 1) // 2
    lines = [digits[start : start + across] for start in range(0, len(digits), across)]
    pen = ImageDraw.Draw(mask)
    box = (scale // 2, 2 * scale, mask.width - 1 - scale // 2, mask.height - 1 - 2 * scale)
    pen.rectangle(box, outline=160, width=max(1, scale // 2))
    face = _face(LETTERS, 5 * scale if len(lines) > 2 else 6 * scale)
    step = (mask.height - 5 * scale) / len(lines)
    for number, line in enumerate(lines):
        middle = (mask.width / 2, 2.5 * scale + (number + 0.5) * step)
        pen.text(middle, line, fill=255, font=face.font, anchor="mm")


def _slanted(large: Image.Image, width: int, height: int) -> Glyph:
    """Slant a letter to the right around the middle of its height, with room on both sides."""
    room = width // 4
    by = _OVERSAMPLE
    middle = 10 / CELL_HEIGHT * large.height
    matrix = (1, _SLANT, -room * by - _SLANT * middle, 0, 1, 0)
    canvas = (large.width + 2 * room * by, large.height)
    leaned = large.transform(canvas, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    return Glyph(leaned.reduce(by), left=-room)


def _fitted(picture: Image.Image, width: int, height: int) -> Glyph:
    """Return an emoji as large as its cells allow, in the middle of them."""
    size = min(width, height)
    canvas = Image.new("RGBA", (width, height))
    small = picture.resize((size, size), Image.Resampling.LANCZOS)
    canvas.paste(small, ((width - size) // 2, (height - size) // 2))
    return Glyph(canvas.getchannel("A"), canvas)


@lru_cache(maxsize=64)
def _underline(style: UnderlineStyle, scale: int) -> Image.Image:
    """Return the underline of one cell."""
    frame = CellBox(CELL_WIDTH * scale, CELL_HEIGHT * scale, scale)
    return _shaped(underline_shapes(style, scale), frame)


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
    """Return a horizontal band of a piece's cells, in pixels."""
    left, above = PADDING + piece.col * CELL_WIDTH, PADDING + row * CELL_HEIGHT
    right = left + piece.width * CELL_WIDTH
    return left * scale, (above + top) * scale, right * scale, (above + bottom) * scale


def _ink(image: Image.Image, row: int, piece: Piece, scale: int) -> None:
    ink = piece.ink
    left, top, _, _ = _box(row, piece, 0, CELL_HEIGHT, scale)
    clusters = [piece.text] if piece.form is Form.ALONE else piece.text
    for place, text in enumerate(clusters):
        if text.isspace():
            continue
        drawn = glyph(
            text, piece.width if piece.form is Form.ALONE else 1, ink.bold, ink.italic, scale
        )
        at = left + place * CELL_WIDTH * scale + drawn.left, top
        image.paste(drawn.picture or ink.foreground, at, drawn.mask)
    if ink.underline:
        line = _underline(ink.underline, scale)
        for place in range(piece.width):
            at = left + place * line.width, top
            image.paste(ink.underline_colour or ink.foreground, at, line)
    if ink.strikethrough:
        image.paste(ink.foreground, _box(row, piece, *STRIKE, scale))


# Emoji in colour: images by sequence, from the sheets in `fonts/emoji`.
#
# `scripts/make_emoji_sheets.py` makes the sheets. A sequence (a family, a flag, a hand with a
# skin tone) is one image, found by its text: no font has to be asked how its characters join. A
# sequence that has no image is drawn without its skin tones, or as its first emoji. Only the
# sheets with emoji of the screen are loaded.


FOLDER: Final = "fonts/emoji"
LIST: Final = "emoji.txt"
"""One emoji on each line, in the order of the sheets: first each row, then the next sheet."""
SIZE: Final = 54
"""Pixels of an image. Two cells of a picture are 36 at its usual scale."""
COLUMNS: Final = 16
ROWS: Final = 4

JOINER: Final = "\u200d"
TONES: Final = re.compile("(?<=.)[\U0001f3fb-\U0001f3ff]")
_AS_TEXT: Final = "\ufe0e"
_AS_EMOJI: Final = "\ufe0f"


class Emoji(NamedTuple):
    number: int
    """Its place on the sheets."""
    on_request: bool
    """Whether it is a letter unless the next character requests an emoji, as for ❤."""


def is_emoji(text: str, cells: int) -> bool:
    """Return whether a cell's text is drawn as an emoji even if a font has it as a letter.

    A narrow cell has room for a letter only, except for sequences such as a keycap.
    """
    if (cells, len(text)) == (1, 1):
        return False
    found = _find(text)
    if found is None or _AS_TEXT in text:
        return False
    if cells == 1:
        return _bare(text) in _listed() and not found.on_request
    return _AS_EMOJI in text or not found.on_request


def emoji_image(text: str) -> Image.Image | None:
    """Return the image of an emoji, or None if there is none."""
    found = _find(text)
    if found is None:
        return None
    sheet, place = divmod(found.number, COLUMNS * ROWS)
    row, col = divmod(place, COLUMNS)
    return _sheet(sheet).crop((col * SIZE, row * SIZE, (col + 1) * SIZE, (row + 1) * SIZE))


def sheet_name(number: int) -> str:
    return f"{number:02}.webp"


def _find(text: str) -> Emoji | None:
    listed, bare = _listed(), _bare(text)
    likely = (bare, TONES.sub("", bare), bare[:1])
    return next((listed[one] for one in likely if one in listed), None)


def _bare(text: str) -> str:
    return text.replace(_AS_EMOJI, "").rstrip(JOINER)


@lru_cache(maxsize=1)
def _listed() -> dict[str, Emoji]:
    lines = files(__package__).joinpath(FOLDER, LIST).read_text("utf-8").split()
    return {
        _bare(text): Emoji(number, len(text) == 2 and _AS_EMOJI in text)
        for number, text in enumerate(lines)
    }


@lru_cache(maxsize=8)
def _sheet(number: int) -> Image.Image:
    data = files(__package__).joinpath(FOLDER, sheet_name(number)).read_bytes()
    return Image.open(BytesIO(data)).convert("RGBA")
