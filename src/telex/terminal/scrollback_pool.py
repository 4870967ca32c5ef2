"""The memory of all scrollbacks in a process, and its distribution among them.

A full scrollback takes 10 MB, because the emulator uses nine bytes per cell; twenty programs that
print without pause would take 200 MB for rows that are never read. So there is one limit for the
sum. As long as all scrollbacks fit, each keeps as many rows as its own limit allows. Above the sum
the longest are cut, all to the same length, and get their memory back when others are closed.

Scrollbacks report their size (`report`) and get a limit (`limit`): at once if they belong to the
same thread, otherwise with their next report, because an emulator must not be used from another
thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

from telex.terminal import limits

if TYPE_CHECKING:
    from collections.abc import Iterable


class PooledScrollback(Protocol):
    """A scrollback that shares the pool's memory."""

    def limit(self, size: int | None) -> None:
        """Set the maximum size in bytes; None for the scrollback's own limit."""
        ...


def common_length(used: Iterable[int], total: int, least: int) -> int | None:
    """Return the length to cut the longest to, so that all fit the total; None if they fit."""
    sizes = sorted(used)
    if sum(sizes) <= total:
        return None
    left = total
    for number, size in enumerate(sizes):
        share = left // (len(sizes) - number)
        if size > share:
            return max(least, share)
        left -= size
    return None


class _Member:
    """The thread, size and limit of one scrollback."""

    __slots__ = ("limit", "thread", "used")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.used = 0
        self.limit: int | None = None
        """The limit that was set last."""


class ScrollbackPool:
    """The scrollbacks of one process, and their common limit."""

    def __init__(self) -> None:
        self._members: WeakKeyDictionary[PooledScrollback, _Member] = WeakKeyDictionary()
        self._limit: int | None = None
        self._total = 0
        self._lock = threading.Lock()

    def join(self, scrollback: PooledScrollback) -> None:
        """Count this scrollback from now on, and set its limit."""
        with self._lock:
            self._members[scrollback] = _Member()
        self._apply_limit(scrollback)

    def leave(self, scrollback: PooledScrollback) -> None:
        with self._lock:
            member = self._members.pop(scrollback, None)
            self._total -= member.used if member else 0
            if self._limit is None:
                return
            self._share()
        self._apply_limit_to_all()

    def report(self, scrollback: PooledScrollback, used: int) -> None:
        """Record the present size of a scrollback in bytes, and apply the limit."""
        with self._lock:
            if (member := self._members.get(scrollback)) is None:
                return
            self._total += used - member.used
            member.used = used
            # Small excesses are accepted: cutting a scrollback is expensive, and it fills again.
            over = self._total > limits.SCROLLBACKS_BYTES * (1.0 if self._limit is None else _OVER)
            if over:
                self._share()
        if over:
            self._apply_limit_to_all()
        else:
            self._apply_limit(scrollback)

    def _is_full(self, member: _Member) -> bool:
        """Return whether the scrollback would grow if its limit allowed it."""
        return self._limit is not None and member.used >= self._limit * _FULL

    def _share(self) -> None:
        self._total = sum(member.used for member in self._members.values())  # some were collected
        used = [
            limits.SCROLLBACK_BYTES if self._is_full(member) else member.used
            for member in self._members.values()
        ]
        self._limit = common_length(used, limits.SCROLLBACKS_BYTES, limits.SCROLLBACK_LEAST_BYTES)

    def _apply_limit_to_all(self) -> None:
        with self._lock:
            members = [*self._members]
        for scrollback in members:
            self._apply_limit(scrollback)

    def _apply_limit(self, scrollback: PooledScrollback) -> None:
        member = self._members.get(scrollback)
        if member is None or member.thread != threading.get_ident():
            return
        if member.limit != self._limit:
            member.limit = self._limit
            scrollback.limit(self._limit)


_OVER: Final = 1.2
_FULL: Final = 0.6
"""The share of its limit at which a scrollback counts as full: the emulator frees whole pages."""

SHARED_POOL: Final = ScrollbackPool()
"""The scrollbacks of this process."""
