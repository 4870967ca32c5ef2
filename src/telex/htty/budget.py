"""What HTTP/2 lets a peer do for ever, and we do not: a budget for each kind of idle work.

Each budget is a bucket that fills itself within `HTTY_BUDGET_SECONDS`. Nobody who uses a page comes
near one; whoever empties it is flooding, and `connection` ends with ENHANCE_YOUR_CALM.
"""

from __future__ import annotations

from enum import Enum

from telex.wire import limits


class Kind(Enum):
    """What is counted. The value is how a person calls it."""

    RESET = "reset streams"
    PING = "pings"
    SETTINGS = "SETTINGS frames"
    EMPTY = "empty frames"
    UNKNOWN = "frames of no use"
    WINDOW = "window updates"


ALLOWED = {
    Kind.RESET: limits.HTTY_RESETS,
    Kind.PING: limits.HTTY_PINGS,
    Kind.SETTINGS: limits.HTTY_SETTINGS,
    Kind.EMPTY: limits.HTTY_EMPTY_FRAMES,
    Kind.UNKNOWN: limits.HTTY_UNKNOWN_FRAMES,
    Kind.WINDOW: limits.HTTY_WINDOW_UPDATES,
}


class Budget:
    """The buckets of one connection."""

    def __init__(self) -> None:
        self._left = {kind: float(allowed) for kind, allowed in ALLOWED.items()}
        self._counted = dict.fromkeys(ALLOWED, 0.0)

    def spend(self, kind: Kind, now: float) -> bool:
        """One more of them. Whether there was one left."""
        left = self.left(kind, now) - 1
        self._left[kind] = max(left, 0.0)
        self._counted[kind] = now
        return left >= 0

    def left(self, kind: Kind, now: float) -> float:
        """How many may still come at once."""
        allowed = ALLOWED[kind]
        earned = (now - self._counted[kind]) * allowed / limits.HTTY_BUDGET_SECONDS
        return min(self._left[kind] + earned, allowed)
