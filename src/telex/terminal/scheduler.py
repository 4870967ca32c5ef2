"""Sharing of the event loop between programs that print more than there is time to process.

Occasional output of a program is read as it arrives. A program that prints without pause spends its
token bucket (`TokenBucket`) and then queues (`OutputScheduler`): each turn of the event loop serves
only as many programs as fit into two milliseconds, and everything else runs between two turns.
Without the queue, each of twenty such programs took two milliseconds, and input to another program
waited for all of them, several times until its response arrived. `Pace` bounds how much of one read
a screen is fed at once.

There is one scheduler for each event loop. Used by `pty`, `session` and attachments.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from telex.terminal import limits

if TYPE_CHECKING:
    from collections.abc import Callable


class OutputScheduler:
    """The queue of one event loop: first come, first served, within the time of a turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._line: OrderedDict[Callable[[], None], None] = OrderedDict()
        self._next: asyncio.Handle | None = None

    def queue(self, work: Callable[[], None]) -> None:
        """Run `work` once, when its turn comes. Work that is queued already is not queued again."""
        self._line.setdefault(work)
        if self._next is None:
            self._next = self._loop.call_soon(self._serve)

    def withdraw(self, work: Callable[[], None]) -> None:
        """Remove `work` from the queue."""
        self._line.pop(work, None)

    def __contains__(self, work: Callable[[], None]) -> bool:
        return work in self._line

    def _serve(self) -> None:
        until = self._loop.time() + limits.TURN_MILLISECONDS / 1000
        try:
            for _ in range(len(self._line)):  # each at most once per turn, however fast it is
                if not self._line:  # earlier work in this turn withdrew it
                    break
                work, _ = self._line.popitem(last=False)
                work()
                if self._loop.time() >= until:
                    break
        finally:
            self._next = self._loop.call_soon(self._serve) if self._line else None


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, OutputScheduler] = WeakKeyDictionary()


def output_scheduler() -> OutputScheduler:
    """Return the scheduler of the running event loop."""
    loop = asyncio.get_running_loop()
    if (found := _of_loops.get(loop)) is None:
        found = _of_loops[loop] = OutputScheduler(loop)
    return found


class TokenBucket:
    """How much output of one program is read as it arrives: `LIGHT_BYTES`, refilled in a quarter of
    a second. Pure.
    """

    def __init__(self, now: float) -> None:
        self._left = float(limits.LIGHT_BYTES)
        self._at = now

    def spend(self, size: int, now: float) -> None:
        """Count output of this size."""
        refilled = self._left + (now - self._at) * limits.LIGHT_BYTES * 4
        self._left = min(float(limits.LIGHT_BYTES), refilled) - size
        self._left = max(self._left, -float(limits.LIGHT_BYTES))
        self._at = now

    def is_spent(self, now: float) -> bool:
        """Return whether the program has to queue."""
        self.spend(0, now)
        return self._left <= 0


SLOW_SECONDS: Final = 0.001
"""Half a turn: a piece that takes longer was too large."""


class Pace:
    """How much output one screen is fed at once, so that its program does not block the others.

    Nearly all output is cheap: a whole read is fed in one call. But a terminal reset has two bytes
    and takes 10 microseconds, a repeated character has eight bytes and takes 200, and clearing a
    large screen takes longer still. All expensive output begins with an ESC. So output is counted
    in escapes, and after expensive ones fewer are fed the next time, whatever they are: a list of
    the expensive ones would never be complete. Pure: the caller measures the time of a piece.
    """

    def __init__(self) -> None:
        self._escapes = limits.SCREEN_ESCAPES

    def stride(self, data: bytes) -> int:
        """Return the length of the pieces to cut this data into; mostly its whole length."""
        escapes = data.count(b"\x1b")
        if escapes <= self._escapes:
            return len(data)
        return max(1, len(data) * self._escapes // escapes)

    def took(self, seconds: float) -> bool:
        """Record the time of a piece. Return whether it was too long, and the next is shorter."""
        if slow := seconds > SLOW_SECONDS:
            self._escapes = max(1, int(self._escapes * SLOW_SECONDS / seconds))
        elif self._escapes < limits.SCREEN_ESCAPES:
            self._escapes = min(2 * self._escapes, limits.SCREEN_ESCAPES)
        return slow
