"""Who subscribed to which events at a terminal, for how long, and which modes the terminal needs.

The terminal's side; the program's is in `client`. A subscription ends with `term:unsubscribe`, when
its process group leaves the foreground, or with that group's end: the next program gets plain
bytes. A subscriber to `event:revoked` is informed of the second when it is in the foreground again.
A group can outlive the program that asked, as in `sh -c "editor; cat"`: so the process counts too.
Pure, but for looks at processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.escapes.commands import EVENTS
from telex.processes import proc

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from telex.processes.tree import Process

_TRACKING: Final = (1003, 1002, 1000, 9)
"""How much of the mouse is told, most first. To many terminals these are one setting."""
_SPELLING: Final = (1016, 1006, 1015, 1005)
"""How it is told: in pixels or cells, of which `events` understands both; and the old ways."""


REVOKED: Final = "event:revoked"


class Subscriptions:
    """The subscriptions at one terminal. An asker is a process group, or a peer on a socket."""

    def __init__(self) -> None:
        self._names: dict[Hashable, frozenset[str]] = {}
        self._processes: dict[Hashable, Process | None] = {}
        """Which process of a group asked; None if there is none to be seen."""
        self._taken_back: dict[Hashable, frozenset[str]] = {}

    def subscribe(self, asker: Hashable, names: Iterable[str]) -> frozenset[str]:
        """What it is subscribed to now; an event that is not known is not in it."""
        known = frozenset(names) & EVENTS.keys()
        if known and isinstance(asker, int) and asker not in self._processes:
            self._processes[asker] = _newest(asker)
        return self._set(asker, self.names_of(asker) | known)

    def unsubscribe(self, asker: Hashable, names: Iterable[str] = ()) -> frozenset[str]:
        """What it is subscribed to now. Without names, nothing."""
        gone = frozenset(names) or self.names_of(asker)
        return self._set(asker, self.names_of(asker) - gone)

    def set_foreground(self, group: int | None) -> None:
        """This process group is in the foreground now: no other one is told anything more, and it
        only while the process that asked is there."""
        for asker in [one for one in self._names if isinstance(one, int)]:
            if not _lives(self._processes[asker]):
                self.remove(asker)
            elif asker != group:
                self._take_back(asker)

    def _take_back(self, asker: Hashable) -> None:
        """All of it; but who wants to know of that is told when it is back, and is kept for it."""
        names = self.names_of(asker) - {REVOKED}
        if names == self.names_of(asker):
            self.remove(asker)
        elif names:
            self._names[asker] = frozenset({REVOKED})
            self._taken_back[asker] = self._taken_back.get(asker, frozenset()) | names

    def take_revoked(self, asker: Hashable) -> frozenset[str]:
        """What it is to be told that it lost, once."""
        return self._taken_back.pop(asker, frozenset())

    def remove(self, asker: Hashable) -> None:
        self._names.pop(asker, None)
        self._processes.pop(asker, None)
        self._taken_back.pop(asker, None)

    def names_of(self, asker: Hashable) -> frozenset[str]:
        return self._names.get(asker, frozenset())

    def askers(self, name: str) -> list[Hashable]:
        """Who is told of this event."""
        return [asker for asker, names in self._names.items() if name in names]

    @property
    def names(self) -> frozenset[str]:
        """What anybody is subscribed to."""
        return frozenset().union(*self._names.values())

    def needed_modes(self) -> frozenset[int]:
        """The private modes without which the terminal would not tell."""
        return frozenset([mode for name in self.names for mode in EVENTS[name].modes])

    def _set(self, asker: Hashable, names: frozenset[str]) -> frozenset[str]:
        if names:
            self._names[asker] = names
        else:
            self.remove(asker)
        return names


def _newest(group: int) -> Process | None:
    """Who of a group asks, as well as that can be told: a shell starts a program and waits for it.
    If it is a helper of who asks, the subscription ends early, which is the safe side."""
    found = proc.scan().rows.values()
    members = [one for one in found if one.pgid == group and one.alive]
    return max(members, key=lambda one: (one.started, one.pid), default=None)


def _lives(process: Process | None) -> bool:
    return process is None or proc.started(process.pid) == process.started


def mode_switches(old: frozenset[int], new: frozenset[int], own: frozenset[int]) -> bytes:
    """The bytes from what was needed to what is needed now, where the program has modes of its own:
    these stay, or come back. After the program changed one of its own, `old` is nothing."""
    singles = (old | new) - own - {*_TRACKING, *_SPELLING}
    parts = [f"\x1b[?{mode}{'h' if mode in new else 'l'}" for mode in sorted(singles & (old ^ new))]
    for group in (_TRACKING, _SPELLING):
        parts += _switched(_first(group, old | own), _first(group, new | own))
    return "".join(parts).encode("ascii")


def _first(group: tuple[int, ...], modes: frozenset[int]) -> int | None:
    return next((mode for mode in group if mode in modes), None)


def _switched(was: int | None, now: int | None) -> Iterator[str]:
    """Off before on. Some terminals need only one of them, and none minds both."""
    if was != now:
        yield from [f"\x1b[?{mode}{end}" for mode, end in ((was, "l"), (now, "h")) if mode]
