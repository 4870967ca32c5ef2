"""How much memory all the scrollbacks of a process may take, and who gets how much of it.

A full scrollback takes 10 MB, as the emulator keeps nine bytes a cell; twenty programs that print
without pause would take 200 MB for what nobody reads. So there is one sum for all. As long as they
fit into it, each keeps as many rows as it may. Beyond it the longest are cut, all to the same
length, and get their room back when others are closed.

Members tell how much they have (`report`) and are told what they may have (`limit`), at once if
they live in the same thread, else when they report next: an emulator is not to be touched from
another thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

from telex.terminal import limits

if TYPE_CHECKING:
    from collections.abc import Iterable


class PooledScrollback(Protocol):
    """One that shares the memory."""

    def limit(self, size: int | None) -> None:
        """It may have so many bytes at most; None: as many as its own limit allows."""
        ...


def common_length(used: Iterable[int], total: int, least: int) -> int | None:
    """To which the longest are to be cut so that all fit into the total; None if they fit."""
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
    """What is known of one."""

    __slots__ = ("limit", "thread", "used")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.used = 0
        self.limit: int | None = None
        """What it was told last."""


class ScrollbackPool:
    """All of them."""

    def __init__(self) -> None:
        self._members: WeakKeyDictionary[PooledScrollback, _Member] = WeakKeyDictionary()
        self._limit: int | None = None
        self._total = 0
        self._lock = threading.Lock()

    def join(self, scrollback: PooledScrollback) -> None:
        """It counts from now on."""
        with self._lock:
            self._members[scrollback] = _Member()
        self._tell(scrollback)

    def leave(self, scrollback: PooledScrollback) -> None:
        with self._lock:
            member = self._members.pop(scrollback, None)
            self._total -= member.used if member else 0
            if self._limit is None:
                return
            self._share()
        self._tell_all()

    def report(self, scrollback: PooledScrollback, used: int) -> None:
        """It has so many bytes now."""
        with self._lock:
            if (member := self._members.get(scrollback)) is None:
                return
            self._total += used - member.used
            member.used = used
            # Not for a little: to cut one is dear, and they fill again.
            over = self._total > limits.SCROLLBACKS_BYTES * (1.0 if self._limit is None else _OVER)
            if over:
                self._share()
        if over:
            self._tell_all()
        else:
            self._tell(scrollback)

    def _is_full(self, member: _Member) -> bool:
        """Whether it would take more if it could."""
        return self._limit is not None and member.used >= self._limit * _FULL

    def _share(self) -> None:
        self._total = sum(member.used for member in self._members.values())  # some were forgotten
        used = [
            limits.SCROLLBACK_BYTES if self._is_full(member) else member.used
            for member in self._members.values()
        ]
        self._limit = common_length(used, limits.SCROLLBACKS_BYTES, limits.SCROLLBACK_LEAST_BYTES)

    def _tell_all(self) -> None:
        with self._lock:
            everybody = [*self._members]
        for scrollback in everybody:
            self._tell(scrollback)

    def _tell(self, scrollback: PooledScrollback) -> None:
        member = self._members.get(scrollback)
        if member is None or member.thread != threading.get_ident():
            return
        if member.limit != self._limit:
            member.limit = self._limit
            scrollback.limit(self._limit)


_OVER: Final = 1.2
_FULL: Final = 0.6
"""Of what it may have. The emulator gives up a page at a time."""

SHARED_POOL: Final = ScrollbackPool()
"""Those of this process."""
