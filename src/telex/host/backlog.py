"""What a program printed and no emulator has seen yet, in as few bytes as draw the same screen.

A model of the person's screen is needed only when something is asked there, and an emulator costs a
quarter of a second to load and as much time for each byte as all the rest. So what was printed is
kept until then, or until there is nothing else to do. Of a long run of plain lines only the last
are kept: they have scrolled everything else away. Pure; used by `escaping` and `shown`.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Final

from telex.host.boundary import Boundary
from telex.wire import limits

if TYPE_CHECKING:
    from telex.terminal.cells import Size

_LINE: Final = b"\r\n"
_REGION: Final = re.compile(rb"\x1b\[([0-9;]*)r")
_REGION_END: Final = re.compile(rb"r(?<=[0-9;\[]r)")
"""How one ends: far faster to look for, and mostly there is nothing that ends like one."""
_MARGINS: Final = re.compile(rb"\x1b\[\?[0-9;]*69[0-9;]*h")
"""That there may be some to the left and right."""


class Backlog:
    """Of one terminal."""

    def __init__(self, size: Size) -> None:
        self.size = size
        """Now."""
        self.began = size
        """When the first of it was printed."""
        self.boundary = Boundary()
        self._parts: deque[bytes | Size] = deque()
        self._weight = 0
        self._plain = False
        """Whether the last part is nothing but lines, enough of them to fill the screen."""
        self._unread: list[bytes] = []
        """Parts in which nobody looked for a region yet."""
        self._region = self._margins = False

    @property
    def waits(self) -> bool:
        """There is something."""
        return bool(self._parts)

    @property
    def large(self) -> bool:
        """It is time to have it seen, when there is time."""
        return self._weight > limits.UNSEEN_BYTES // 16

    @property
    def pressing(self) -> bool:
        """It is time to have it seen, and there will be none."""
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
