"""What needs what, and what may begin when. Pure; `tasks` runs it.

A failure stops what needs it, at any distance, and nothing else.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from telex.config.layers import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Requires = Mapping[str, Sequence[str]]
    """What each needs, by id."""


def problems(requires: Requires) -> Iterator[str]:
    """Why there is no order, by id; nothing where there is one."""
    for one, needed in requires.items():
        for other in needed:
            if other not in requires:
                near = nearest(other, requires)
                meant = f"; did you mean {near}?" if near else ""
                yield f"{one} requires {other}, which is not there{meant}"
    if (path := cycle(requires)) is not None:
        yield f"these require each other in a circle: {' → '.join(path)}"


def cycle(requires: Requires) -> list[str] | None:
    """A circle, from one id over what it requires back to itself."""
    try:
        TopologicalSorter(requires).prepare()
    except CycleError as error:
        path: list[str] = error.args[1]
        return path[::-1]  # told the other way round, as what comes before what
    return None


def stages(requires: Requires) -> list[list[str]]:
    """All ids: first those that need nothing, then those that need only these, and so on."""
    schedule = Schedule(requires)
    found = []
    while ready := schedule.ready():
        found.append(ready)
        for one in ready:
            schedule.finished(one, ok=True)
    return found


class Schedule:
    """What may begin, as things finish. There must be an order."""

    def __init__(self, requires: Requires) -> None:
        self.stopped: dict[str, str] = {}
        """What will not begin, each with what it requires and does not have."""
        self._requires = requires
        self._failed: set[str] = set()
        self._sorter = TopologicalSorter(requires)
        self._sorter.prepare()

    def ready(self) -> list[str]:
        """What may begin now and was not told yet."""
        found: list[str] = []
        while told := self._sorter.get_ready():
            found += (one for one in told if not self._stop(one))
        return found

    def finished(self, one: str, *, ok: bool) -> None:
        """What was begun has ended."""
        if not ok:
            self._failed.add(one)
        self._sorter.done(one)

    def _stop(self, one: str) -> bool:
        lacks = (need for need in self._requires[one] if need in self._failed)
        if (lack := next(lacks, None)) is None:
            return False
        self.stopped[one] = lack
        self.finished(one, ok=False)
        return True
