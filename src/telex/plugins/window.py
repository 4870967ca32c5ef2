"""How often something happened lately. Pure: the time is passed in.

A sliding window and not a count: five failures in three minutes are a crash loop, five in a month
are not, and a count that never decays cannot tell them apart. `plugin` counts protocol errors in
one, and `keeper` failures.
"""

from __future__ import annotations

from collections import deque


class Window:
    """At most `most` happenings within `seconds`."""

    def __init__(self, most: int, seconds: float) -> None:
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=most)

    def add(self, now: float) -> bool:
        """It happened. True if that was once too often."""
        self._times.append(now)
        return self.full_until(now) is not None

    def count(self, now: float) -> int:
        """How many still count."""
        return sum(now - time < self._seconds for time in self._times)

    def last(self) -> float | None:
        return self._times[-1] if self._times else None

    def full_until(self, now: float) -> float | None:
        """When it will no longer be full, if it is: when the first of them is old enough."""
        full = self.count(now) == self._times.maxlen
        return self._times[0] + self._seconds if full else None
