"""What a terminal may answer a program: a fixed list of forms, and nothing else.

An answer is typed into whatever reads the terminal next: if the program that asked has died, that
is a shell. So an answer holds numbers and fixed words only, never text that a program chose, and
no line end. The emulator already refuses what is known to be dangerous (title reports, clipboard
reads, answerback); this list stands behind it, so that a new version of it cannot open a door.
Pure; used by `screen`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

UNKNOWN_SETTING: Final = b"\x1bP0$r\x1b\\"
"""To a DECRQSS for a setting that we do not have."""
UNKNOWN_CAPABILITY: Final = b"\x1bP0+r\x1b\\"
"""To an XTGETTCAP, for each name: a program reads terminfo for these."""

_NUMBER: Final = rb"[0-9]{1,5}"
_END: Final = rb"(?:\x07|\x1b\\)"
_RGB: Final = rb"rgb:[0-9a-f]{4}/[0-9a-f]{4}/[0-9a-f]{4}"

_FORMS: Final = [
    rb"\x1b\[\?62;22(?:;N){0,16}c",  # DA1
    rb"\x1b\[>N;N;Nc",  # DA2
    rb"\x1bP!\|[0-9A-F]{8}\x1b\\",  # DA3
    rb"\x1b\[0n",  # DSR: operating status
    rb"\x1b\[\??N;N(?:;N)?R",  # DSR: cursor position
    rb"\x1b\[\?997;[12]n",  # colour scheme
    rb"\x1b\[\??N;[0-4]\$y",  # DECRPM
    rb"\x1bP>\|" + re.escape(f"telex {__version__}".encode()) + rb"\x1b\\",  # XTVERSION
    rb"\x1b\[(?:4|6|8);N;Nt",  # size in pixels, of a cell, in cells
    rb"\x1b\[48;N;N;N;Nt",  # size, told when it changes (mode 2048)
    rb"\x1b\[\?N?u",  # kitty keyboard flags
    rb"(?:\x1b\]4;[0-9]{1,3};" + _RGB + _END + rb"){1,256}",  # a colour of the palette
    rb"\x1b\]1[0-2];" + _RGB + _END,  # foreground, background, cursor
    rb"\x1bP1\$r[0-9;:]{0,64}(?:m|r|s| q|\"p)\x1b\\",  # DECRQSS of a setting that we have
    re.escape(UNKNOWN_SETTING),
    re.escape(UNKNOWN_CAPABILITY),
]
_ALLOWED: Final = re.compile(b"|".join(_FORMS).replace(b"N", _NUMBER))


def allowed(answers: Sequence[bytes]) -> list[bytes]:
    """Those that have a form of the list, in their order."""
    return [answer for answer in answers if _ALLOWED.fullmatch(answer)]
