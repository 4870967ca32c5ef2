"""The processes of a group that may serve a page, and the moment in which the last of them ends.

`processes.group_exit` knows it for certain, after a look at all processes; a shell takes no longer
to be back at its prompt and read what was written for another. So those who are there at the
beginning are waited for by descriptors, and their end is acted on in the turn in which it is told,
or asked for. (A thread that waits for nothing else was no sooner there: the shell and it are woken
together.) And one that was killed takes a millisecond to be gone, in which it reads nothing: that
it is on its way out can be asked. Where the system has no such descriptors nobody is known here.

Which of them serves the page nobody tells. A shell in the same group (`sh -c "serve; bash"`, or one
without job control) goes on when the program has ended, and reads; so shells count only where there
is nobody else. And one that has a terminal for others shows what they print: then it is those in
the foreground there, if there are any but shells.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from telex.processes import proc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from telex.processes.tree import Process

_MASTERS: Final = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})


class ProcessGroup:
    """Those of one group who were there when this was made. Close it."""

    def __init__(self, group: int, left: Callable[[], None]) -> None:
        """`left` is called when all of them have."""
        self._left = left
        self._loop = asyncio.get_running_loop()
        rows = [one for one in proc.scan().rows.values() if one.alive]
        found = [one.pid for one in rows if one.pgid == group]
        relays = {pid for pid in found if _relays(pid)}
        self.relays = bool(relays)
        """Whether one of them has a terminal for others, whose end is not seen here: `script`,
        `sudo`, `expect`; or hides what it has."""
        near = [pid for pid in (*found, *_on_terminals_of(relays, rows)) if pid not in relays]
        serving = [pid for pid in near if not proc.is_shell(pid)] or found
        self._fds = {fd: proc.open_stat(pid) for pid in serving if (fd := _pidfd(pid))}
        """Of those who have not left; with what tells how they are."""
        self._known = bool(self._fds)
        for fd in self._fds:
            self._loop.add_reader(fd, self._one_left, fd)

    def alive(self) -> bool:
        """Whether one of them is left that may still read, though no end may have been told."""
        if not self._known:
            return True  # for all that is known
        return not all(_is_exiting(stat) for stat in self._fds.values())

    def close(self) -> None:
        for fd in [*self._fds]:
            self._forget(fd)

    def _one_left(self, fd: int) -> None:
        if self._fds.keys() == {fd}:
            self._left()
        self._forget(fd)

    def _forget(self, fd: int) -> None:
        stat = self._fds.pop(fd)
        self._loop.remove_reader(fd)
        for one in (fd, stat):
            if one is not None:
                os.close(one)


def _is_exiting(stat: int | None) -> bool:
    if stat is None:
        return False
    try:
        return proc.Stat.parse(os.pread(stat, 512, 0)).is_exiting
    except ProcessLookupError:
        return True


def _relays(pid: int) -> bool:
    if not proc.HAS_PROC:
        return False
    try:
        opened = proc.descriptors(pid)
    except PermissionError:  # another user's
        return True
    except OSError:  # it ended
        return False
    return any(_leads_to(pid, fd) in _MASTERS for fd in opened)


def _on_terminals_of(relays: set[int], rows: list[Process]) -> Iterator[int]:
    """Who descends from them, and is in the foreground of a terminal."""
    above, unseen = {one.pid: one.ppid for one in rows}, set(relays)
    below: set[int] = set()
    while unseen:
        below |= unseen
        unseen = {pid for pid, parent in above.items() if parent in unseen} - below
    for one in rows:
        if one.pid in below - relays and one.pgid == _foreground_where_it_is(one.pid):
            yield one.pid


def _foreground_where_it_is(pid: int) -> int | None:
    try:
        return proc.stat(pid).foreground
    except OSError:  # it ended
        return None


def _leads_to(pid: int, fd: str) -> str | None:
    try:
        return proc.link(pid, f"fd/{fd}")
    except OSError:  # it was closed
        return None


def _pidfd(pid: int) -> int | None:
    try:
        return proc.pidfd(pid)
    except ProcessLookupError:
        return None
