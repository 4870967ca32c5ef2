"""Keeps a program's output until an emulator parses it, in as few bytes as draw the same. Pure.

A model of the person's screen is needed only when a question is shown there. An emulator takes a
quarter of a second to import, and for each byte as much time as all other work. So output is kept
until a question needs it, or until the program is idle. Of many plain lines only the last are kept:
they have scrolled everything else away.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Final

from telex.passthrough import limits

if TYPE_CHECKING:
    from telex.terminal.cells import Size


_LINE: Final = b"\r\n"
_REGION: Final = re.compile(rb"\x1b\[([0-9;]*)r")
_REGION_END: Final = re.compile(rb"r(?<=[0-9;\[]r)")
"""The end of such a sequence: far faster to search for, and mostly absent."""
_MARGINS: Final = re.compile(rb"\x1b\[\?[0-9;]*69[0-9;]*h")
"""Enables margins at the left and right."""


class OutputBacklog:
    """Keeps the output and sizes of one terminal until `take` hands them to an emulator."""

    def __init__(self, size: Size) -> None:
        self.size = size
        """The size now."""
        self.began = size
        """The size when the first output was printed."""
        self.boundary = SequenceBoundary()
        self._parts: deque[bytes | Size] = deque()
        self._weight = 0
        self._plain = False
        """Whether the last part consists of plain lines that fill the screen."""
        self._unscanned: list[bytes] = []
        """Parts that have not been searched for a scroll region."""
        self._region = self._margins = False

    @property
    def pending(self) -> bool:
        """Whether there is output or a size to take."""
        return bool(self._parts)

    @property
    def above_soft_limit(self) -> bool:
        """Whether to parse when the program is idle."""
        return self._weight > limits.UNSEEN_BYTES // 16

    @property
    def above_hard_limit(self) -> bool:
        """Whether to parse now, idle or not."""
        return self._weight > limits.UNSEEN_BYTES // 4

    @property
    def full(self) -> bool:
        """Whether to pause the program's output until some of it has been parsed."""
        return self._weight > limits.UNSEEN_BYTES

    def take(self, most: int | None = None) -> list[bytes | Size]:
        """Return and forget output and sizes in their order: all of them, or the first parts until
        they have `most` bytes or more.
        """
        self._has_region()
        taken: list[bytes | Size] = []
        weight = 0
        while self._parts and (most is None or weight < most):
            part = self._parts.popleft()
            taken.append(part)
            weight += len(part) if isinstance(part, bytes) else 0
        self._weight -= weight
        self._plain = self._plain and bool(self._parts)
        return taken

    def add(self, data: bytes) -> None:
        plain = not (b"\x1b" in data or b"\x0e" in data or b"\x0f" in data)
        if not plain or self.boundary.open:
            self._unscanned.append(data)
            self._keep(data, plain=False)
        else:
            fills = self._filling(data)
            if fills and self._plain:
                self._forget_last()
            self._keep(fills or data, plain=bool(fills))
        self.boundary.feed(data)

    def resized(self, size: Size) -> None:
        self.size = size
        self._parts.append(size)
        self._plain = False

    def _filling(self, lines: bytes) -> bytes:
        """Return the last of these lines, enough to fill the screen wherever the cursor is: down to
        the last row, and then enough to scroll away all rows above. Empty if there are too few.
        """
        most = 2 * self.size.rows
        for room in (most * (self.size.cols + 2), len(lines)):
            begin = lines.find(_LINE, max(0, len(lines) - room))
            if begin >= 0 and lines.count(_LINE, begin) >= most:
                return b"" if self._has_region() else lines[begin:]
        return b""

    def _keep(self, data: bytes, *, plain: bool) -> None:
        self._parts.append(data)
        self._weight += len(data)
        self._plain = plain

    def _forget_last(self) -> None:
        last = self._parts.pop()
        assert isinstance(last, bytes)
        self._weight -= len(last)

    def _has_region(self) -> bool:
        """Whether a scroll region or margins may be set, so that lines do not scroll the whole
        screen.
        """
        if self._unscanned:
            output = b"".join(self._unscanned)
            begun = output[output.rfind(b"\x1b") :][:64] if self.boundary.open else b""
            self._unscanned = [begun] if begun else []
            if _REGION_END.search(output) and (found := _REGION.findall(output)):
                self._region = bool(found[-1])
            # Programs hardly use margins, so their end is not worth a search.
            self._margins = self._margins or (b"69" in output and bool(_MARGINS.search(output)))
        return self._region or self._margins


_ESC: Final = b"\x1b"
_SEQUENCE: Final = re.compile(
    rb"\x1b(?:\[[^\x18\x1a\x1b@-~]*[\x18\x1a@-~]"
    rb"|\][^\x07\x18\x1a\x1b]*[\x07\x18\x1a]"
    rb"|[PX^_][^\x18\x1a\x1b]*[\x18\x1a]"
    rb"|(?![\[\]PX^_])[^\x18\x1a\x1b0-~]*[\x18\x1a0-~])"
)
"""A whole sequence. `ESC \\` is a sequence of its own, after the string that it ends."""
_PART: Final = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
_REST: Final = re.compile(rb"[\x80-\xbf]{0,3}")


class SequenceBoundary:
    """Finds places in a program's output where other bytes may be inserted.

    Such a place is not within an escape sequence, and not within a character. There is one right
    before an ESC, because an ESC ends every open sequence. Only the last ESC of the output is
    examined, so the cost is that of `rfind`.
    """

    def __init__(self, unfinished: bytes = b"") -> None:
        self.open = unfinished
        """The beginning of an unfinished sequence or character; empty at a boundary."""

    def feed(self, data: bytes) -> None:
        at = data.rfind(_ESC)
        if at < 0 and self.open:
            data = self.open + data
            at = data.find(_ESC, 0, 1)
        self.open = _unfinished(data, at)

    def next(self, data: bytes) -> int | None:
        """Return how many of these bytes lead to the first boundary; None if there is none."""
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
    """Return the beginning of an unfinished sequence or character. `escape` is the position of the
    last ESC, or -1.
    """
    if escape >= 0:
        whole = _SEQUENCE.match(data, escape)
        if whole is None:
            return data[escape : escape + 2]
        escape = whole.end()
    if data[-1:] < b"\x80":
        return b""
    found = _PART.search(data, max(escape, len(data) - 3, 0))
    return found[0] if found else b""
