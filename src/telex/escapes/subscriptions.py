"""Keeps the subscriptions to a terminal's events, and computes the modes that they need.

This is the terminal's side; the program's side is in `client`. A subscription ends with
`term:unsubscribe`, when its process group leaves the foreground, or when that group exits: the next
program gets plain bytes. A subscriber to `event:revoked` is notified when it is in the foreground
again. A group can outlive the program that subscribed, as in `sh -c "editor; cat"`, so the exit of
the process ends a subscription too. Pure, except that it reads processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.escapes.commands import EVENTS
from telex.processes import proc

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from telex.processes.tree import Process

_TRACKING: Final = (1003, 1002, 1000, 9)
"""Modes of mouse tracking, the most detailed first. In many terminals they are one setting."""
_ENCODING: Final = (1016, 1006, 1015, 1005)
"""Encodings of mouse reports: in pixels and in cells, which `input_events` parses, and old ones."""


REVOKED: Final = "event:revoked"


class Subscriptions:
    """The subscriptions at one terminal. An asker is a process group, or a peer on a socket."""

    def __init__(self) -> None:
        self._names: dict[Hashable, frozenset[str]] = {}
        self._processes: dict[Hashable, Process | None] = {}
        """The process of a group that subscribed; None if it cannot be seen."""
        self._revoked: dict[Hashable, frozenset[str]] = {}

    def subscribe(self, asker: Hashable, names: Iterable[str]) -> frozenset[str]:
        """Subscribe to events, except unknown ones. Return all subscriptions of the asker."""
        known = frozenset(names) & EVENTS.keys()
        if known and isinstance(asker, int) and asker not in self._processes:
            self._processes[asker] = _newest(asker)
        return self._set(asker, self.names_of(asker) | known)

    def unsubscribe(self, asker: Hashable, names: Iterable[str] = ()) -> frozenset[str]:
        """Unsubscribe from these events, or from all. Return the remaining subscriptions."""
        gone = frozenset(names) or self.names_of(asker)
        return self._set(asker, self.names_of(asker) - gone)

    def set_foreground(self, group: int | None) -> None:
        """End the subscriptions of all other process groups, and of a group whose subscribed
        process has exited.
        """
        for asker in [one for one in self._names if isinstance(one, int)]:
            if not _lives(self._processes[asker]):
                self.remove(asker)
            elif asker != group:
                self._revoke(asker)

    def _revoke(self, asker: Hashable) -> None:
        """Revoke all subscriptions. A subscriber to `event:revoked` is kept, to be notified."""
        names = self.names_of(asker) - {REVOKED}
        if names == self.names_of(asker):
            self.remove(asker)
        elif names:
            self._names[asker] = frozenset({REVOKED})
            self._revoked[asker] = self._revoked.get(asker, frozenset()) | names

    def take_revoked(self, asker: Hashable) -> frozenset[str]:
        """Return and forget the revoked subscriptions of which the asker is to be notified."""
        return self._revoked.pop(asker, frozenset())

    def remove(self, asker: Hashable) -> None:
        self._names.pop(asker, None)
        self._processes.pop(asker, None)
        self._revoked.pop(asker, None)

    def names_of(self, asker: Hashable) -> frozenset[str]:
        return self._names.get(asker, frozenset())

    def askers(self, name: str) -> list[Hashable]:
        """Return the subscribers of an event."""
        return [asker for asker, names in self._names.items() if name in names]

    @property
    def names(self) -> frozenset[str]:
        """All events that have a subscriber."""
        return frozenset().union(*self._names.values())

    def needed_modes(self) -> frozenset[int]:
        """Return the private modes in which the terminal reports these events."""
        return frozenset([mode for name in self.names for mode in EVENTS[name].modes])

    def _set(self, asker: Hashable, names: frozenset[str]) -> frozenset[str]:
        if names:
            self._names[asker] = names
        else:
            self.remove(asker)
        return names


def _newest(group: int) -> Process | None:
    """Return the newest process of a group, as the probable subscriber: a shell starts a program
    and waits for it. If the newest one is a child of the subscriber, the subscription ends early,
    which is safe.
    """
    found = proc.scan().rows.values()
    members = [one for one in found if one.pgid == group and one.alive]
    return max(members, key=lambda one: (one.started, one.pid), default=None)


def _lives(process: Process | None) -> bool:
    return process is None or proc.started(process.pid) == process.started


def mode_switches(old: frozenset[int], new: frozenset[int], own: frozenset[int]) -> bytes:
    """Return the bytes that switch from the old needed modes to the new ones.

    The modes that the program has set (`own`) stay, or are set again. After the program changed one
    of its own modes, pass an empty `old`.
    """
    singles = (old | new) - own - {*_TRACKING, *_ENCODING}
    parts = [f"\x1b[?{mode}{'h' if mode in new else 'l'}" for mode in sorted(singles & (old ^ new))]
    for group in (_TRACKING, _ENCODING):
        parts += _switched(_first(group, old | own), _first(group, new | own))
    return "".join(parts).encode("ascii")


def _first(group: tuple[int, ...], modes: frozenset[int]) -> int | None:
    return next((mode for mode in group if mode in modes), None)


def _switched(was: int | None, now: int | None) -> Iterator[str]:
    """Yield off before on. Some terminals need only one of them, and both do no harm."""
    if was != now:
        yield from [f"\x1b[?{mode}{end}" for mode, end in ((was, "l"), (now, "h")) if mode]
