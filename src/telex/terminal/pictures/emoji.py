"""Emoji in colour: images by sequence, from the sheets in `fonts/emoji`.

`scripts/make_emoji_sheets.py` makes the sheets. A sequence (a family, a flag, a hand with a skin
tone) is one image, found by its text: no font has to be asked how its characters join. A sequence
that has no image is drawn without its skin tones, or as its first emoji. Only the sheets with emoji
of the screen are loaded. Used by `png`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Final, NamedTuple

from PIL import Image

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
