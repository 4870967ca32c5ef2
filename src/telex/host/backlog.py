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
_ACTS: Final = (b"\x1b", b"\x0e", b"\x0f")
"""What makes text more than text: escapes, and the shifts between character sets."""
_REGION: Final = re.compile(rb"\x1b\[([0-9;]*)[rs]")


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
        self._region = False

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
        if not any(byte in data for byte in _ACTS):  # far faster than one regex
            plain = not self.boundary.open and not self._has_region()
            lines = data.rsplit(_LINE, self.size.rows + 1) if plain else ()
            if len(lines) > self.size.rows + 1:
                if self._plain:
                    self._forget_last()
                data = _LINE + _LINE.join(lines[1:])
                self._keep(data, plain=True)
                self.boundary.feed(data)
                return
        else:
            self._unread.append(data)
        self._keep(data, plain=False)
        self.boundary.feed(data)

    def resized(self, size: Size) -> None:
        self.size = size
        self._parts.append(size)
        self._plain = False

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
        found = _REGION.findall(b"".join(self._unread)) if self._unread else ()
        if found:
            self._region = bool(found[-1])
        self._unread.clear()
        return self._region
