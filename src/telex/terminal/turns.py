"""Whose output is worked on next, where many programs print more than there is time for.

What a program prints now and then is read as it comes. One that prints without pause waits in a
line with the others that do, and in each turn of the event loop only as many of them are served as
fit into two milliseconds: between two turns everybody else is heard. Without that, twenty of them
took two milliseconds each, and whoever typed into another program waited for all of them, several
times until the answer was there.

One line for each event loop. Used by `pty` and `session`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable


class Turns:
    """The line of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._line: OrderedDict[Callable[[], None], None] = OrderedDict()
        self._next: asyncio.Handle | None = None

    def queue(self, work: Callable[[], None]) -> None:
        """Do it when it is its turn, once. It stands in line only once."""
        self._line.setdefault(work)
        if self._next is None:
            self._next = self._loop.call_soon(self._serve)

    def withdraw(self, work: Callable[[], None]) -> None:
        """Not to be done any more."""
        self._line.pop(work, None)

    def __contains__(self, work: Callable[[], None]) -> bool:
        return work in self._line

    def _serve(self) -> None:
        until = self._loop.time() + limits.TURN_MILLISECONDS / 1000
        try:
            for _ in range(len(self._line)):  # each once, however fast it is
                if not self._line:  # withdrawn by one before
                    break
                work, _ = self._line.popitem(last=False)
                work()
                if self._loop.time() >= until:
                    break
        finally:
            self._next = self._loop.call_soon(self._serve) if self._line else None


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


def turns() -> Turns:
    """Those of the running event loop."""
    loop = asyncio.get_running_loop()
    if (found := _of_loops.get(loop)) is None:
        found = _of_loops[loop] = Turns(loop)
    return found


class Allowance:
    """How much of one program's output is taken as it comes: `LIGHT_BYTES`, refilled in a quarter
    of a second. Pure."""

    def __init__(self, now: float) -> None:
        self._left = float(limits.LIGHT_BYTES)
        self._at = now

    def spend(self, size: int, now: float) -> None:
        """So much was printed."""
        refilled = self._left + (now - self._at) * limits.LIGHT_BYTES * 4
        self._left = min(float(limits.LIGHT_BYTES), refilled) - size
        self._left = max(self._left, -float(limits.LIGHT_BYTES))
        self._at = now

    def is_spent(self, now: float) -> bool:
        """Whether it has to wait its turn."""
        self.spend(0, now)
        return self._left <= 0
