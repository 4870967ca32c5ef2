"""Fonts of this machine, for what the bundled one lacks: CJK, emoji, other scripts.

No font with these is small enough to bring along (CJK alone is 5 MB and more). So the usual
directories are searched once for fonts we know by name; asking fontconfig would need a process, and
macOS has none. Where nothing is found, `glyphs` draws a box with the character's number.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Final

DIRECTORIES: Final = (
    "~/.local/share/fonts",
    "~/.fonts",
    "/usr/local/share/fonts",
    "/usr/share/fonts",
    "~/Library/Fonts",
    "/Library/Fonts",
    "/System/Library/Fonts",
)
EMOJI: Final = ("NotoColorEmoji.ttf", "Apple Color Emoji.ttc")
"""Fonts with pictures in colour."""
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
"""Fonts with many characters, those made for columns first."""


@lru_cache(maxsize=1)
def installed() -> dict[str, Path]:
    """Where the fonts named above are; of several with one name, the user's own."""
    wanted = {*EMOJI, *OTHERS}
    found: dict[str, Path] = {}
    for directory in DIRECTORIES:
        for folder, _, names in os.walk(Path(directory).expanduser()):
            for name in wanted.intersection(names):
                found.setdefault(name, Path(folder, name))
    return found
