"""The moments a caller can point back at: "what is new since then?"

Whoever is told a sequence number, or given the mark of an input, may come back with it. So at each
such moment the visible rows are kept, as they stood; unchanged rows are the same strings, and so a
mark is cheap. The oldest are forgotten, and a number from before them means: all is new.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from telex.terminal.cells import Cursor
from telex.terminal.since import Mark
from telex.wire import limits

if TYPE_CHECKING:
    from telex.protocols.pty_automation import Since

THE_BEGINNING: Final = Mark(sequence=0, rows=(), cursor=Cursor(), transcript=0, typed="")


class Marks:
    """The marks of one session, newest last."""

    def __init__(self) -> None:
        self._named: OrderedDict[str, Mark] = OrderedDict()
        self._told: OrderedDict[int, Mark] = OrderedDict()
        self._count = 0

    def name(self, mark: Mark) -> str:
        """Keep the mark of an input, and say how it is called."""
        self._count += 1
        name = f"m{self._count}"
        self._named[name] = mark
        _forget(self._named)
        return name

    def tell(self, mark: Mark) -> None:
        """Keep a moment whose number somebody is about to be told."""
        self._told[mark.sequence] = mark
        self._told.move_to_end(mark.sequence)
        _forget(self._told)

    def find(self, since: Since) -> Mark | None:
        """What stood there at that moment; None for a name we never gave."""
        if isinstance(since, str):
            return self._find_name(since)
        before = (mark for number, mark in reversed(self._told.items()) if number <= since)
        return next(before, THE_BEGINNING)

    def _find_name(self, name: str) -> Mark | None:
        if name in self._named:
            return self._named[name]
        number = name.removeprefix("m")
        was_ours = number.isdecimal() and len(number) < 20 and 0 < int(number) <= self._count
        return THE_BEGINNING if was_ours and name == f"m{int(number)}" else None


def _forget(marks: OrderedDict[str, Mark] | OrderedDict[int, Mark]) -> None:
    if len(marks) > limits.MARKS_KEPT:
        marks.popitem(last=False)
