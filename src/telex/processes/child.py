"""A child process: wait for it, and end it with its whole tree; and wait for a foreign group.

The kernel reports its exit (a pidfd in the event loop): there is no thread, no SIGCHLD handler, and
no global state that could disturb a host program. The child is reaped at once, whether or not
a task waits for it. Without pidfds, one thread per child waits instead.

`spawn.start` creates children. A child belongs to the event loop in which it was started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from dataclasses import dataclass, replace
from signal import Signals
from typing import TYPE_CHECKING, Final

from telex.processes import guardian, proc
from telex.processes.termination import POLITE, RESCAN_SECONDS, TreeTermination
from telex.processes.tree import Root, Tree

if TYPE_CHECKING:
    from io import FileIO

    from telex.processes.termination import Ladder, SentSignals
    from telex.processes.tree import Process, Table


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended: with a code, or by a signal.

    Neither is known if other code in this program reaped it, by waiting for any child or by
    ignoring SIGCHLD.
    """

    code: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        if self.signal is not None:
            names = {known.value: known.name for known in Signals}
            return f"ended by {names.get(self.signal, f'signal {self.signal}')}"
        return "ended" if self.code is None else f"exited with code {self.code}"


class Child:
    """A started child. Its owner must end it, by `end` or by leaving `async with`."""

    def __init__(
        self,
        pid: int,
        mark: str,
        stdin: FileIO | None,
        stdout: FileIO | None,
        stderr: FileIO | None,
    ) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        """Our ends of its pipes, non-blocking. A transport that wraps one must close it."""
        self.exit: Exit | None = None
        """How it ended, once it has exited."""
        self._mark = mark
        self._root = Root(pid, proc.started(pid) or proc.now())
        self._sent: SentSignals = {}
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[Exit] = self._loop.create_future()
        guardian.enter(self._root)
        try:
            self._pidfd = self._watch()
        except BaseException:
            guardian.leave(self._root)
            raise
        _unreaped.setdefault(self._loop, set()).add(self)

    def __repr__(self) -> str:
        return f"<Child {self.pid} {self.exit or 'running'}>"

    @property
    def started(self) -> int:
        """When it started, on the system's clock; together with `pid` it is unique."""
        return self._root.started

    @property
    def tree(self) -> Tree:
        """The description of its tree, for finding its members."""
        return Tree((self._root,), self._mark, self._root.started)

    async def wait(self) -> Exit:
        """Wait for the child's own exit.

        Several tasks may wait; cancelling one affects no other.
        """
        return await asyncio.shield(self._exited)

    async def end(self, ladder: Ladder = POLITE) -> Exit:
        """End the child's whole tree, even if the child itself has already exited.

        Returns when no member is left, or raises `TreeSurvived`. It may be called again and
        concurrently, with the same or another ladder: no member gets a signal twice. After a
        cancelled call, the next call or the guardian ends the rest.
        """
        with TreeTermination(ladder, self._sent) as ending:
            while ending.proceed(await _scan(), self.tree, self._loop.time()):
                await _wait(ending)
        ended = await self.wait()
        guardian.leave(self._root)
        return ended

    async def __aenter__(self) -> Child:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.end()
        finally:
            for pipe in (self.stdin, self.stdout, self.stderr):
                if pipe is not None:
                    pipe.close()

    def _watch(self) -> int | None:
        with contextlib.suppress(ProcessLookupError):  # already reaped by others; the thread sees
            if (fd := proc.pidfd(self.pid)) is not None:
                self._loop.add_reader(fd, self._reap)
                return fd
        threading.Thread(target=self._reap_in_thread, daemon=True).start()
        return None

    def _reap(self) -> None:
        """Collect the exit status, if there is one yet."""
        reaped_at = proc.now()  # taken before: until it is reaped, its pid cannot be reused
        try:
            done, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            self._finish(Exit(), reaped_at)
        else:
            if done:
                self._finish(_exit(status), reaped_at)

    def _reap_in_thread(self) -> None:
        try:
            ended = _exit(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:
            ended = Exit()
        reaped_at = proc.now()
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no task waits
            self._loop.call_soon_threadsafe(self._finish, ended, reaped_at)

    def _finish(self, ended: Exit, reaped_at: int) -> None:
        self.exit = ended
        self._root = replace(self._root, ended=reaped_at)
        _unreaped.get(self._loop, set()).discard(self)
        self._unwatch()
        if not self._loop.is_closed():
            self._exited.set_result(ended)
        guardian.exited(self.tree)

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def _exit(status: int) -> Exit:
    code = os.waitstatus_to_exitcode(status)
    return Exit(code=code) if code >= 0 else Exit(signal=-code)


_unreaped: dict[asyncio.AbstractEventLoop, set[Child]] = {}


def reap_abandoned() -> None:
    """Reap the children of closed event loops, which no other code reaps."""
    for loop in [loop for loop in list(_unreaped) if loop.is_closed()]:
        children = _unreaped.pop(loop, set())  # of several threads here, only one gets them
        for child in children:
            child._unwatch()
            child._reap()
        if alive := {child for child in children if child.exit is None}:
            _unreaped[loop] = alive


_scans: dict[asyncio.AbstractEventLoop, asyncio.Future[Table]] = {}


async def _scan() -> Table:
    """Return a scan of the process table made after this call.

    All callers in one turn of the loop share a scan: otherwise ending a thousand children at once
    would read the whole table a thousand times.
    """
    loop = asyncio.get_running_loop()
    if loop not in _scans:
        _scans[loop] = loop.create_future()
        loop.call_soon(_make_scan, loop)
    return await asyncio.shield(_scans[loop])


def _make_scan(loop: asyncio.AbstractEventLoop) -> None:
    scan = _scans.pop(loop)
    try:
        scan.set_result(proc.scan(guardian.living()))
    except OSError as error:
        scan.set_exception(error)


async def _wait(ending: TreeTermination) -> None:
    """Wait until all watched members have exited, or it is time to proceed."""
    loop = asyncio.get_running_loop()
    left = set(ending.waited_for)
    all_ended = loop.create_future()

    def ended(fd: int) -> None:
        loop.remove_reader(fd)
        left.discard(fd)
        if not left and not all_ended.done():
            all_ended.set_result(None)

    for fd in left:
        loop.add_reader(fd, ended, fd)
    try:
        if left:
            async with asyncio.timeout_at(ending.until):
                await all_ended
    except TimeoutError:
        return
    finally:
        for fd in left:
            loop.remove_reader(fd)
    if ending.needs_polling:
        await asyncio.sleep(RESCAN_SECONDS)


# Waits for the end of a foreign process group: for the exit of its last process.
#
# The kernel reports the exit of a process (a pidfd) but not of a group. So the wait is for one
# member, and then for the next, until none is left. Zombies do not count: they neither send nor
# read. Without pidfds, or without a free descriptor, the group is checked once a second.


_POLL_SECONDS: Final = 1.0


async def group_gone(group: int) -> None:
    """Wait until no process is left in the group. Returns at once if there is none."""
    while (member := _member(group)) is not None:
        await _ended(member)
    if _hidden(group):
        await asyncio.get_running_loop().create_future()  # its end cannot be observed


def _member(group: int) -> Process | None:
    """Return a living member: the leader while it lives, because it usually exits last."""
    found = proc.scan().rows.values()
    members = [one for one in found if one.pgid == group and one.alive]
    return min(members, key=lambda one: one.pid != group, default=None)


def _hidden(group: int) -> bool:
    """Whether a member exists that we cannot see: another user's, where /proc is restricted."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return False  # only zombies are left


async def _ended(process: Process) -> None:
    try:
        fd = proc.pidfd(process.pid)
    except ProcessLookupError:
        return
    if fd is None:
        await asyncio.sleep(_POLL_SECONDS)
        return
    loop = asyncio.get_running_loop()
    exited = asyncio.Event()
    try:
        if proc.started(process.pid) == process.started:  # otherwise the pid was recycled
            loop.add_reader(fd, exited.set)
            await exited.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
