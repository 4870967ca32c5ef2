"""Terminates a process tree: which signal is sent to which process, and when the next one.

A ladder is data: a sequence of signals, each with its longest wait. A `TreeTermination` goes
through one ladder. It gets the process table and the time, sends the signals that are due, and
returns descriptors to wait on: `child` waits in the event loop, `guardian` in a plain loop.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from signal import SIGCONT, SIGHUP, SIGKILL, SIGSTOP, SIGTERM, Signals
from typing import TYPE_CHECKING, Final

from telex.processes.proc import ProcessHandle
from telex.processes.tree import Identity, members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.processes.tree import Process, Table, Tree


@dataclass(frozen=True, slots=True)
class Rung:
    """One signal to every member, and the longest wait for their exit."""

    signal: Signals
    seconds: float
    hangup: bool = False
    """A member that ignores the signal gets SIGHUP with it. An interactive shell ignores SIGTERM,
    and would be waited for in vain."""


Ladder = tuple[Rung, ...]

POLITE: Final[Ladder] = (Rung(SIGHUP, 0.5), Rung(SIGTERM, 1.5), Rung(SIGKILL, 5.0))
"""First the signal of a closed terminal, then that of a stopped service, then the one that cannot
be ignored. Interactive shells ignore SIGTERM and obey SIGHUP; for most servers it is the other way
round. The first two waits add up to less than three seconds, after which no process may be left."""

BRISK: Final[Ladder] = (Rung(SIGTERM, 0.5, hangup=True), Rung(SIGKILL, 10.0))
"""For trees whose owner has died, and sessions that are closed."""

AT_ONCE: Final[Ladder] = (Rung(SIGKILL, 5.0),)

RESCAN_SECONDS: Final = 0.02
"""Interval of scans without pidfds, when the kernel does not report exits."""

UNSETTLED_SCANS: Final = 50
"""After so many unsettled scans in a row without a member, the tree counts as ended."""

SentSignals = dict[Identity, set[Signals]]
"""The signals that each process was sent. All terminations of one child share it, so that a second
one with a faster ladder adds its own signals and repeats none."""


class TreeSurvived(Exception):
    """The ladder has ended, and members are left: they ignore signals, are not ours, or hang."""

    def __init__(self, left: Sequence[Process]) -> None:
        self.pids = sorted(process.pid for process in left)
        listed = ", ".join(map(str, self.pids))
        super().__init__(
            f"processes {listed} did not exit: they ignore signals, run as another user, or wait "
            "for a device; try again, or kill them by hand"
        )


class TreeTermination:
    """One pass through a ladder. A context manager, because it holds a descriptor per member."""

    def __init__(self, ladder: Ladder, sent: SentSignals) -> None:
        self._rungs = iter(ladder)
        self._rung = Rung(SIGCONT, 0.0)  # before the first rung; its wait is over at once
        self._sent = sent
        self._handles: dict[Identity, ProcessHandle] = {}
        self._unsettled = 0
        self.until = float("-inf")
        """When to proceed at the latest, even if some members still run."""

    @property
    def waited_for(self) -> list[int]:
        """The descriptors that become readable when members exit."""
        return [handle.fd for handle in self._handles.values() if handle.fd is not None]

    @property
    def needs_polling(self) -> bool:
        """Whether some member has no such descriptor, so that only another scan shows its exit."""
        return any(handle.fd is None for handle in self._handles.values())

    def proceed(self, table: Table, tree: Tree, now: float) -> bool:
        """Send the signals that are due. Returns False when no member is left.

        Raises:
            TreeSurvived: The ladder has ended and members are left.
        """
        left = members(table, tree, self._sent)
        self._release_except({member.identity for member in left})
        if not left:
            self._unsettled += 1
            return not table.settled and self._unsettled < UNSETTLED_SCANS
        self._unsettled = 0
        if now >= self.until:
            self._step(left, now)
        self._signal_all(left)
        if self._rung.signal is SIGKILL:
            _kill_groups(left)
        return True

    def _step(self, left: list[Process], now: float) -> None:
        rung = next(self._rungs, None)
        if rung is None:
            raise TreeSurvived(left)
        self._rung, self.until = rung, now + rung.seconds

    def _signal_all(self, left: list[Process]) -> None:
        """Send the rung's signal to all members that have not had it, as if at one moment.

        Sending it one by one would cause races: a shell whose child exits before the shell itself
        gets the signal runs its next command, and a reader takes the unfinished output of its
        writer for complete. So all members are stopped first, and are resumed when each has its
        signal. The same is true of SIGKILL. Stopped members are resumed newest first, because the
        newest is usually a child: a parent that watches its children's stops (a shell, our own
        `passthrough.session_leader`) must not find one that is still stopped.
        """
        number = self._rung.signal
        left = sorted(left, key=lambda member: (member.started, member.pid))
        sent = [self._sent.setdefault(member.identity, set()) for member in left]
        due = [
            (handle, had)
            for member, had in zip(left, sent, strict=True)
            if (handle := self._handle(member)) and (number not in had or number is SIGKILL)
        ]
        handles = [handle for handle, _ in due]
        _send(SIGSTOP, handles)
        for handle, had in due:
            if self._rung.hangup and SIGHUP not in had and handle.ignores(number):
                had.add(SIGHUP)
                _send(SIGHUP, [handle])
            had.add(number)
        _send(number, handles)
        _send(SIGCONT, handles[::-1])  # a stopped process gets its signal only when it is resumed

    def _handle(self, member: Process) -> ProcessHandle | None:
        if member.identity not in self._handles:
            try:
                self._handles[member.identity] = ProcessHandle(member)
            except ProcessLookupError:
                return None
        return self._handles[member.identity]

    def _release_except(self, keep: set[Identity]) -> None:
        for identity in self._handles.keys() - keep:
            self._handles.pop(identity).release()

    def __enter__(self) -> TreeTermination:
        return self

    def __exit__(self, *_: object) -> None:
        self._release_except(set())


def _send(number: Signals, handles: Sequence[ProcessHandle]) -> None:
    for handle in handles:
        # It has exited since the scan, or is not ours: the next scan will show which.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            handle.send(number)


def _kill_groups(left: list[Process]) -> None:
    """Kill the members' process groups too, because some processes fork faster than we scan.

    A group is killed as a whole, including processes that are just being forked into it. It is a
    member's group, so it belongs to the tree; our own group is spared whatever the table says.
    """
    for pgid in {member.pgid for member in left} - {0, 1, os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pgid, SIGKILL)
