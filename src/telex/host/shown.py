"""What the person sees of a program: a screen that is fed when somebody looks at it.

For `question`, which draws over it, and for what must be known of the program's modes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.terminal.cells import Cursor, Size, Snapshot
from telex.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.host.backlog import Backlog


class Shown(Screen):
    """One person's terminal, as far as the program on it is concerned."""

    def __init__(self, size: Size, backlog: Backlog) -> None:
        super().__init__(size, scrollback=0)
        self._backlog = backlog
        self.muted = False

    def feed(self, data: bytes) -> bytes:
        """Shown later. What it would answer, the person's own terminal answers."""
        if not self.muted:
            self._backlog.add(data)
        return b""

    def resize(self, size: Size) -> bytes:
        self.size = size
        self._backlog.resized(size)
        return b""

    def catch_up(self, most: int | None = None) -> None:
        """See all of it, or some."""
        for part in self._backlog.take(most):
            if isinstance(part, Size):
                super().resize(part)
            else:
                super().feed(part)

    @property
    def cursor(self) -> Cursor:
        self.catch_up()
        return super().cursor

    def restore(self, seen: Snapshot | None = None) -> bytes:
        self.catch_up()
        return super().restore(seen)

    def modes(self, numbers: Iterable[int]) -> frozenset[int]:
        """Those of these private modes that the program has set."""
        self.catch_up()
        return frozenset([number for number in numbers if self._terminal.mode(number)])

    def lower(self, rows: int) -> None:
        """The program began so many rows further down than at the top, as it turned out."""
        self.catch_up()
        if rows > 0 and not self.alternate_screen:
            super().feed(b"\x1b[%dT\x1b[%dB" % (rows, rows))
