"""How much a screen is given at once, so that one program does not hold up all the others.

Nearly all output is cheap: a whole read goes in one call. But a terminal reset is two bytes and
takes 10 microseconds, a repeated character eight bytes and 200, and on a large screen clearing it
takes longer still. All that is dear begins with an ESC. So output is counted in escapes; and when
some were dear, fewer are given the next time, whatever they are: a list of dear ones would never
be complete.

Pure: whoever feeds the screen says how long it took. Used by `session`.
"""

from __future__ import annotations

from typing import Final

from telex.wire import limits

SLOW_SECONDS: Final = 0.001
"""Half a turn: what takes longer should have been less."""


class Pace:
    """The pace of one screen."""

    def __init__(self) -> None:
        self._escapes = limits.SCREEN_ESCAPES

    def stride(self, data: bytes) -> int:
        """Into pieces of what length to cut this. It is all of it, mostly."""
        escapes = data.count(b"\x1b")
        if escapes <= self._escapes:
            return len(data)
        return max(1, len(data) * self._escapes // escapes)

    def took(self, seconds: float) -> bool:
        """A piece took so long. Whether that is too long, and the next must be shorter."""
        if slow := seconds > SLOW_SECONDS:
            self._escapes = max(1, int(self._escapes * SLOW_SECONDS / seconds))
        elif self._escapes < limits.SCREEN_ESCAPES:
            self._escapes = min(2 * self._escapes, limits.SCREEN_ESCAPES)
        return slow
