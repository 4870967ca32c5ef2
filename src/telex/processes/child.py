"""A child of ours: wait for it, and end it with everything that came of it.

The kernel says when it exits (a pidfd in the event loop): no thread, no SIGCHLD handler, nothing
global that a host program could trip over. It is reaped then and there, whether or not anybody
waits. Where there are no pidfds, one thread per child waits in its stead.

`spawn.start` makes them. A child belongs to the event loop it was started in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from dataclasses import dataclass, replace
from signal import Signals
from typing import TYPE_CHECKING

from telex.processes import guardian, proc
from telex.processes.termination import LOOK_AGAIN_SECONDS, POLITE, TreeTermination
from telex.processes.tree import Root, Tree

if TYPE_CHECKING:
    from io import FileIO
    from types import TracebackType

    from telex.processes.termination import Ladder, Told
    from telex.processes.tree import Table


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended: with a code, or by a signal.

    Neither is known if something else in this program reaped it, by waiting for any child or by
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
    """A started child. Whoever started it ends it, by `end` or by leaving `async with`."""

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
        """Our ends of its pipes, non-blocking. Whoever wraps one in a transport closes that."""
        self.exit: Exit | None = None
        """How it ended, once it has."""
        self._mark = mark
        self._root = Root(pid, proc.started(pid) or proc.now())
        self._told: Told = {}
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
        """When it started, on the system's own clock; with `pid` it names the child for ever."""
        return self._root.started

    @property
    def tree(self) -> Tree:
        """What to look for when looking for its members."""
        return Tree((self._root,), self._mark, self._root.started)

    async def wait(self) -> Exit:
        """How the child itself ended. Any number may wait; a cancelled wait takes nothing away."""
        return await asyncio.shield(self._exited)

    async def end(self, ladder: Ladder = POLITE) -> Exit:
        """End the child's whole tree, also if the child itself is gone already.

        Returns when no member is left, or raises `TreeSurvived`. It may be called again and at the
        same time, with another ladder or the same: no member gets a signal twice. A cancelled end
        leaves the rest to the next one, or to the guardian.
        """
        with TreeTermination(ladder, self._told) as ending:
            while ending.proceed(await _look(), self.tree, self._loop.time()):
                await _wait(ending)
        ended = await self.wait()
        guardian.leave(self._root)
        return ended

    async def __aenter__(self) -> Child:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.end()
        finally:
            for pipe in (self.stdin, self.stdout, self.stderr):
                if pipe is not None:
                    pipe.close()

    def _watch(self) -> int | None:
        with contextlib.suppress(ProcessLookupError):  # reaped behind our back; the thread sees
            if (fd := proc.pidfd(self.pid)) is not None:
                self._loop.add_reader(fd, self._reap)
                return fd
        threading.Thread(target=self._reap_in_thread, daemon=True).start()
        return None

    def _reap(self) -> None:
        """Take the exit status, if there is one yet."""
        reaped_at = proc.now()  # before it is: until then the number cannot be another's
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
        with contextlib.suppress(RuntimeError):  # the loop is closed, and so nobody waits
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
    """Reap the children of loops that were closed over them; nobody else will ever look."""
    for loop in [loop for loop in list(_unreaped) if loop.is_closed()]:
        children = _unreaped.pop(loop, set())  # of several threads here at once, one gets them
        for child in children:
            child._unwatch()
            child._reap()
        if alive := {child for child in children if child.exit is None}:
            _unreaped[loop] = alive


_looks: dict[asyncio.AbstractEventLoop, asyncio.Future[Table]] = {}


async def _look() -> Table:
    """The table at some moment after this call. All who ask in one turn of the loop share a look:
    ending a thousand children at once would otherwise read the whole table a thousand times.
    """
    loop = asyncio.get_running_loop()
    if loop not in _looks:
        _looks[loop] = loop.create_future()
        loop.call_soon(_take_look, loop)
    return await asyncio.shield(_looks[loop])


def _take_look(loop: asyncio.AbstractEventLoop) -> None:
    look = _looks.pop(loop)
    try:
        look.set_result(proc.scan(guardian.living()))
    except OSError as error:
        look.set_exception(error)


async def _wait(ending: TreeTermination) -> None:
    """Until all that are waited for have ended, or it is time to proceed."""
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
    if ending.blind:
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
