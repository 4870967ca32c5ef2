"""Where something else may be written between a program's bytes: not within an escape sequence, and
not within a character. Right before an ESC is such a place, because an ESC ends whatever was open.

Pure; used by `question`, which draws over what a program shows and must spoil none of it.
"""

from __future__ import annotations

import re
from typing import Final

_ESC: Final = b"\x1b"
_SEQUENCE: Final = re.compile(
    rb"\x1b(?:\[[^\x18\x1a\x1b@-~]*[\x18\x1a@-~]"
    rb"|\][^\x07\x18\x1a\x1b]*[\x07\x18\x1a]"
    rb"|[PX^_][^\x18\x1a\x1b]*[\x18\x1a]"
    rb"|(?![\[\]PX^_])[^\x18\x1a\x1b0-~]*[\x18\x1a0-~])"
)
"""A whole one. `ESC \\` is one of its own, after the string that it ends."""
_PART: Final = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
_REST: Final = re.compile(rb"[\x80-\xbf]{0,3}")


class Boundary:
    """Follows a stream. Only its last escape is looked at: `rfind` is what it costs."""

    def __init__(self) -> None:
        self.open = b""
        """The beginning of what is not finished; empty at a boundary."""

    def feed(self, data: bytes) -> None:
        at = data.rfind(_ESC)
        if at < 0 and self.open:
            data = self.open + data
            at = data.find(_ESC, 0, 1)
        self.open = _unfinished(data, at)

    def next(self, data: bytes) -> int | None:
        """How much of these bytes leads to the first boundary; None if all of them do not."""
        if not self.open:
            return 0
        if not self.open.startswith(_ESC):
            end = _REST.match(data).end()  # type: ignore[union-attr]  # it matches nothing, too
            return end if end < len(data) or not _unfinished(self.open + data, -1) else None
        if whole := _SEQUENCE.match(self.open + data):
            return whole.end() - len(self.open)
        at = data.find(_ESC)
        if at < 0 or at + 1 == len(data):
            return None
        return at + 2 if data[at + 1 : at + 2] == b"\\" else at


def _unfinished(data: bytes, escape: int) -> bytes:
    """The beginning of what is not finished; `escape` is where the last one stands, or -1."""
    if escape >= 0:
        whole = _SEQUENCE.match(data, escape)
        if whole is None:
            return data[escape : escape + 2]
        escape = whole.end()
    if data[-1:] < b"\x80":
        return b""
    found = _PART.search(data, max(escape, len(data) - 3, 0))
    return found[0] if found else b""
