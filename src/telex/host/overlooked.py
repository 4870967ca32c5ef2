"""The last of what a program printed, in which nobody has looked for questions yet.

What a program asks its terminal only matters once the terminal says something that may be an
answer, or we ask something ourselves. Until then a look at every escape of a program that paints
would be time for nothing. Pure; used by `escaping`, for `attributes` and `asking`.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from telex.wire import limits

_MOST: Final = limits.UNSEEN_BYTES // 64
"""More than is printed before an answer comes, on a line however long."""
_SECONDS: Final = 5.0
"""Nobody waits longer for an answer."""


_PART: Final = 4096
"""Less than this is not kept by itself, since a program may print single letters."""


class Overlooked:
    """Of one terminal."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._weight = 0
        self._last = 0.0

    def add(self, data: bytes, now: float) -> None:
        self._last = now
        self._weight += len(data)
        if self._parts and len(self._parts[-1]) < _PART:
            self._parts[-1] += data
        else:
            self._parts.append(data)
        while self._weight > _MOST and len(self._parts) > 1:
            self._weight -= len(self._parts.popleft())

    def take(self, now: float) -> bytes:
        """All of it, once."""
        taken = b"".join(self._parts) if now <= self._last + _SECONDS else b""
        self._parts.clear()
        self._weight = 0
        return taken
