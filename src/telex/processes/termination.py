"""Ending a tree: which signal goes to whom, and when the next one.

A ladder is data: signals, and how long each may take. A `TreeTermination` climbs down one.
It gets the process table and the time, sends the signals that are due, and returns the processes to
wait for: `child` waits in the event loop, `guardian` in a plain loop.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from signal import SIGCONT, SIGHUP, SIGKILL, SIGSTOP, SIGTERM, Signals
from typing import TYPE_CHECKING, Final

from telex.processes.proc import Grip
from telex.processes.tree import Identity, members

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from telex.processes.tree import Process, Table, Tree


@dataclass(frozen=True, slots=True)
class Rung:
    """One signal to every member, and the longest wait for them to go."""

    signal: Signals
    seconds: float


Ladder = tuple[Rung, ...]

POLITE: Final[Ladder] = (Rung(SIGHUP, 0.5), Rung(SIGTERM, 1.5), Rung(SIGKILL, 5.0))
"""What closing a terminal does, what stopping a service does, and then what cannot be refused.
Interactive shells ignore SIGTERM and heed SIGHUP, most servers the other way round. The waits add
up to less than the three seconds after which nobody may be left."""

BRISK: Final[Ladder] = (Rung(SIGTERM, 0.5), Rung(SIGKILL, 10.0))
"""For those whose owner is gone."""

AT_ONCE: Final[Ladder] = (Rung(SIGKILL, 5.0),)

LOOK_AGAIN_SECONDS: Final = 0.02
"""Where the kernel does not tell of exits (see `TreeTermination.blind`), how soon to look."""

DOUBTS: Final = 50
"""How many unsettled looks in a row that show nobody are taken to mean nobody."""

Told = dict[Identity, set[Signals]]
"""Who was sent what. Shared by all endings of one child, so that a second one, more impatient than
the first, adds its own signals and repeats none."""


class TreeSurvived(Exception):
    """The ladder is at its end and members are left: deaf, not ours to signal, or stuck."""

    def __init__(self, left: Sequence[Process]) -> None:
        self.pids = sorted(process.pid for process in left)
        listed = ", ".join(map(str, self.pids))
        super().__init__(
            f"processes {listed} did not end: they ignore what they were sent, run as another "
            "user, or wait for a device; end them again, or by hand"
        )


class TreeTermination:
    """One climb down a ladder. A context manager: it holds a descriptor for each member."""

    def __init__(self, ladder: Ladder, told: Told) -> None:
        self._rungs = iter(ladder)
        self._rung = Rung(SIGCONT, 0.0)  # the ground we start from, left at once
        self._told = told
        self._grips: dict[Identity, Grip] = {}
        self._doubts = 0
        self.until = float("-inf")
        """When to proceed at the latest, even if those waited for are still there."""

    @property
    def waited_for(self) -> list[int]:
        """Descriptors that become readable as members end."""
        return [grip.fd for grip in self._grips.values() if grip.fd is not None]

    @property
    def blind(self) -> bool:
        """Whether some member has no such descriptor, so that only looking again tells."""
        return any(grip.fd is None for grip in self._grips.values())

    def proceed(self, table: Table, tree: Tree, now: float) -> bool:
        """Send what is due. False when nobody is left; `TreeSurvived` when nothing helped."""
        left = members(table, tree, self._told)
        self._let_go({member.identity for member in left})
        if not left:
            self._doubts += 1
            return not table.settled and self._doubts < DOUBTS
        self._doubts = 0
        if now >= self.until:
            self._step(left, now)
        self._tell_all(left)
        if self._rung.signal is SIGKILL:
            _kill_groups(left)
        return True

    def _step(self, left: list[Process], now: float) -> None:
        rung = next(self._rungs, None)
        if rung is None:
            raise TreeSurvived(left)
        self._rung, self.until = rung, now + rung.seconds

    def _tell_all(self, left: list[Process]) -> None:
        """The rung's signal to all who have not had it, as if at one moment.

        One by one would not do: a shell whose child ends before it is told itself goes on with its
        next command, and a reader takes what its writer left unfinished for the whole. So all are
        stopped first, and go on when each has its signal. SIGKILL needs that no less. The
        youngest goes on first, mostly a child: a parent that has an eye on its children's stops
        (a shell, our own `host.leader`) must not find one that is still stopped.
        """
        number = self._rung.signal
        left = sorted(left, key=lambda member: (member.started, member.pid))
        told = [self._told.setdefault(member.identity, set()) for member in left]
        due = [
            (grip, had)
            for member, had in zip(left, told, strict=True)
            if (grip := self._grip(member)) and (number not in had or number is SIGKILL)
        ]
        for _, had in due:
            had.add(number)
        grips = [grip for grip, _ in due]
        _send(SIGSTOP, grips)
        _send(number, grips)
        _send(SIGCONT, grips[::-1])  # who is stopped hears it only when it goes on

    def _grip(self, member: Process) -> Grip | None:
        if member.identity not in self._grips:
            try:
                self._grips[member.identity] = Grip(member)
            except ProcessLookupError:
                return None
        return self._grips[member.identity]

    def _let_go(self, keep: set[Identity]) -> None:
        for identity in self._grips.keys() - keep:
            self._grips.pop(identity).release()

    def __enter__(self) -> TreeTermination:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._let_go(set())


def _send(number: Signals, grips: Sequence[Grip]) -> None:
    for grip in grips:
        # It has ended since the look, or it is not ours: the next look will say which.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            grip.send(number)


def _kill_groups(left: list[Process]) -> None:
    """Kill the members' groups too: one by one, those that fork faster than we look would win.

    A group is killed whole, with whoever is just being forked into it. It is a member's, so it is
    the tree's; our own is spared whatever the table said.
    """
    for pgid in {member.pgid for member in left} - {0, 1, os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pgid, SIGKILL)
