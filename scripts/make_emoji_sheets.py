"""Make the emoji of PNG pictures: sheets of small images, and the list of what is on them.

    python -m scripts.make_emoji_sheets NotoColorEmoji.ttf emoji-test.txt

The font is that of Debian's `fonts-noto-color-emoji`, the list that of its `unicode-data`. Pillow
needs libraqm here, which joins the characters of a sequence to one image; drawing a picture does
not need it. Run it again for a new version of Unicode.

A sequence with skin tones is left out if it joins several emoji: these are a third of all emoji,
and their image without a tone is drawn instead.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from telex.terminal.pictures.png import (
    COLUMNS,
    FOLDER,
    JOINER,
    LIST,
    ROWS,
    SIZE,
    TONES,
    sheet_name,
)

FONT_SIZE = 109
"""The only size of the font's bitmaps."""
IMAGE = 136
"""The width of a bitmap; its height is 128."""
QUALITY = 40
"""Images are mostly drawn at two thirds of their size, where no flaw of this quality is seen."""

FLAG_LETTERS = [chr(point) for point in range(0x1F1E6, 0x1F200)]


def sequences(emoji_test: str) -> list[str]:
    """Return the emoji of Unicode's list, and the letters that flags are made of."""
    lines = re.findall(r"(?m)^([0-9A-F ]+?) *; (?:fully-qualified|component)", emoji_test)
    listed = ["".join(chr(int(point, 16)) for point in line.split()) for line in lines]
    return [text for text in listed if not (JOINER in text and TONES.search(text))] + FLAG_LETTERS


def image(text: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    if font.getlength(text) > IMAGE:
        raise SystemExit(f"{text}: the font has no single image of it; is libraqm there?")
    square = Image.new("RGBA", (IMAGE, IMAGE))
    pen = ImageDraw.Draw(square)
    pen.text((0, (IMAGE - 128) // 2), text, font=font, embedded_color=True)
    return square.resize((SIZE, SIZE), Image.Resampling.LANCZOS)


def main(font_path: str, list_path: str) -> None:
    font = ImageFont.truetype(font_path, FONT_SIZE, layout_engine=ImageFont.Layout.RAQM)
    listed = sequences(Path(list_path).read_text("utf-8"))
    folder = Path(__file__).parents[1] / "src/telex/terminal/pictures" / FOLDER
    for old in folder.glob("*.webp"):
        old.unlink()
    for first in range(0, len(listed), COLUMNS * ROWS):
        sheet = Image.new("RGBA", (COLUMNS * SIZE, ROWS * SIZE))
        for place, text in enumerate(listed[first : first + COLUMNS * ROWS]):
            row, col = divmod(place, COLUMNS)
            sheet.paste(image(text, font), (col * SIZE, row * SIZE))
        path = folder / sheet_name(first // (COLUMNS * ROWS))
        sheet.save(path, "WEBP", quality=QUALITY, alpha_quality=QUALITY, method=6)
    (folder / LIST).write_text("\n".join(listed) + "\n", "utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(listed)} emoji, {size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
