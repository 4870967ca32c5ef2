"""The processes of a group that may serve a page, and the moment in which the last of them exits.

`processes.group_exit` detects the end of a group reliably, after a scan of all processes. In the
same time a shell is back at its prompt and reads the bytes that were written for another program.
So the processes that exist at the beginning are watched by descriptors, and their exit is handled
in the same turn of the event loop. (A dedicated thread was not faster: the shell and the thread are
woken together.) A killed process takes a millisecond to exit, in which it reads nothing: `alive`
also checks whether a process is exiting. On systems without such descriptors no process is watched.

It is unknown which of them serves the page. A shell in the same group (`sh -c "serve; bash"`, or
one without job control) continues when the program has exited, and reads; so shells count only if
there is no other process. A process that has a terminal for others (a relay) shows their output:
then the processes in the foreground of that terminal count, if there are any but shells.
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
    """The processes of one group that existed when this was created. Close it afterwards."""

    def __init__(self, group: int, on_exit: Callable[[], None]) -> None:
        """Watch the group; `on_exit` is called when all of its processes have exited."""
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        rows = [one for one in proc.scan().rows.values() if one.alive]
        found = [one.pid for one in rows if one.pgid == group]
        relays = {pid for pid in found if _relays(pid)}
        self.relays = bool(relays)
        """Whether one of them has a terminal for other processes, whose exit cannot be seen here
        (`script`, `sudo`, `expect`), or hides its descriptors."""
        near = [pid for pid in (*found, *_on_terminals_of(relays, rows)) if pid not in relays]
        serving = [pid for pid in near if not proc.is_shell(pid)] or found
        self._fds = {fd: proc.open_stat(pid) for pid in serving if (fd := _pidfd(pid))}
        """The pidfds of the running processes, each with a descriptor of its stat file."""
        self._known = bool(self._fds)
        for fd in self._fds:
            self._loop.add_reader(fd, self._exited, fd)

    def alive(self) -> bool:
        """Whether a process is left that may still read, even if its exit was not reported yet."""
        if not self._known:
            return True  # nothing is known, so assume it
        return not all(_is_exiting(stat) for stat in self._fds.values())

    def close(self) -> None:
        for fd in [*self._fds]:
            self._forget(fd)

    def _exited(self, fd: int) -> None:
        if self._fds.keys() == {fd}:
            self._on_exit()
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
    except PermissionError:  # a process of another user
        return True
    except OSError:  # it has exited
        return False
    return any(_leads_to(pid, fd) in _MASTERS for fd in opened)


def _on_terminals_of(relays: set[int], rows: list[Process]) -> Iterator[int]:
    """Yield the descendants of the relays that are in the foreground of a terminal."""
    above, unseen = {one.pid: one.ppid for one in rows}, set(relays)
    below: set[int] = set()
    while unseen:
        below |= unseen
        unseen = {pid for pid, parent in above.items() if parent in unseen} - below
    for one in rows:
        if one.pid in below - relays and one.pgid == _foreground_group(one.pid):
            yield one.pid


def _foreground_group(pid: int) -> int | None:
    try:
        return proc.stat(pid).foreground
    except OSError:  # it has exited
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
