"""A program's output that no emulator has seen yet, in as few bytes as draw the same screen. Pure.

A model of the person's screen is needed only when a question is shown there, and an emulator costs
a quarter of a second to load and as much time for each byte as all the rest. So output is kept
until then, or until the run is idle. Of a long run of plain lines only the last are kept: they have
scrolled everything else away.
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
"""How one ends: far faster to look for, and mostly there is nothing that ends like one."""
_MARGINS: Final = re.compile(rb"\x1b\[\?[0-9;]*69[0-9;]*h")
"""That there may be some to the left and right."""


class OutputBacklog:
    """Of one terminal."""

    def __init__(self, size: Size) -> None:
        self.size = size
        """Now."""
        self.began = size
        """When the first of it was printed."""
        self.boundary = SequenceBoundary()
        self._parts: deque[bytes | Size] = deque()
        self._weight = 0
        self._plain = False
        """Whether the last part is nothing but lines, enough of them to fill the screen."""
        self._unread: list[bytes] = []
        """Parts in which nobody looked for a region yet."""
        self._region = self._margins = False

    @property
    def pending(self) -> bool:
        """Whether there is something."""
        return bool(self._parts)

    @property
    def above_soft_limit(self) -> bool:
        """Parse it when idle."""
        return self._weight > limits.UNSEEN_BYTES // 16

    @property
    def above_hard_limit(self) -> bool:
        """Parse it now, idle or not."""
        return self._weight > limits.UNSEEN_BYTES // 4

    @property
    def full(self) -> bool:
        return self._weight > limits.UNSEEN_BYTES

    def take(self, most: int | None = None) -> list[bytes | Size]:
        """What was printed, and the sizes that the terminal took, since last time: all of it, or
        the first, until that is `most` bytes or more."""
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
            self._unread.append(data)
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
        """The last of these lines, enough to fill the screen wherever the cursor is: to the last
        row, and then all that was above it away. Empty if they do not."""
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
        """Lines scroll all of the screen only where no part of it is set apart."""
        if self._unread:
            unread = b"".join(self._unread)
            begun = unread[unread.rfind(b"\x1b") :][:64] if self.boundary.open else b""
            self._unread = [begun] if begun else []
            if _REGION_END.search(unread) and (found := _REGION.findall(unread)):
                self._region = bool(found[-1])
            # Nobody uses margins, so that they may have ended is not worth a look.
            self._margins = self._margins or (b"69" in unread and bool(_MARGINS.search(unread)))
        return self._region or self._margins


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


class SequenceBoundary:
    """Finds where something else may be written between a program's bytes: not within an escape
    sequence, and not within a character. Right before an ESC is such a place, because an ESC ends
    whatever was open. Only the last escape of a stream is looked at: `rfind` is what it costs.
    """

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
