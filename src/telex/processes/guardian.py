"""The guardian: a small process that outlives this one and ends the processes that it started.

It does nothing until our end of a pipe closes, which the kernel does however we die. Then it
restores the person's terminal, if we had taken it (`hold_terminal`), reads the ledger and ends the
trees of the children in it. Children that we had no time to record carry our token in their
environment.

Sharing a ledger makes the two processes independent. Starting a child costs one small write and
wakes no process, no message can be lost or block us, and a guardian that was killed is replaced by
one that reads the same ledger. The guardian cannot help in one case: when it and we are killed
together. Then the next telex command ends what a server has left (`leftovers`).

`spawn` and `child` report through the functions here; `main` is the guardian itself. It runs
isolated (`python -I -S`), in a session of its own and with every signal blocked.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from telex.processes import ledger, proc
from telex.processes.launch import clear_of_stdio, dup, launch, null
from telex.processes.ledger import TerminalState, restore
from telex.processes.leftovers import ledger_path
from telex.processes.termination import BRISK, RESCAN_SECONDS, TreeTermination
from telex.processes.tree import Tree, members

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.processes.tree import Identity, Root, Table

_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); from telex.processes.guardian import main; main()"
)
_SOURCE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PIPE_FD, _LEDGER_FD, _TERMINAL_FD = 0, 1, 2

_UNRESOLVED: Final = 64
"""After so many exited children are recorded, we check which of them left no process behind."""


class GuardianFailed(Exception):
    """The guardian does not run, and without it no child is started."""


class _Watch:
    """Our side: our token, our children, and the guardian process."""

    def __init__(self) -> None:
        self.token = os.urandom(8).hex()
        self.numbers = itertools.count(1)
        self._since = proc.now()
        # We keep both ends: if the guardian is killed, its successor gets the same pipe.
        self.pipe = tuple(map(clear_of_stdio, os.pipe()))
        try:
            self.ledger = ledger.Ledger(clear_of_stdio(self._ledger_file()))
        except OSError:
            for end in self.pipe:
                os.close(end)
            raise
        self.pid: int | None = None
        self.terminal: int | None = None
        """The person's terminal, while we have taken it."""
        self._living: set[Identity] = set()
        self._exited: dict[Identity, Tree] = {}
        self._resolve_at = _UNRESOLVED

    def _ledger_file(self) -> int:
        if _ledger_directory is None:
            return ledger.memory()
        global _ledger_path
        _ledger_path = ledger_path(_ledger_directory, proc.boot(), self.token, self._since)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(_ledger_path, flags, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)  # the guardian shares it: free when both have ended
        return fd

    def ensure(self) -> None:
        code = self.reap()
        if code > 0:
            raise GuardianFailed(
                f"it exited with code {code}; if telex was updated or removed while it runs, "
                "restart it"
            )
        if self.pid is None:
            self.pid = self._start()

    def reap(self) -> int:
        """Check whether the guardian has exited. Returns its exit code; negative for a signal."""
        if self.pid is None:
            return 0
        try:
            done, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # other code in this program waits for any child
            done, status = self.pid, 0
        if done:
            self.pid = None
        return os.waitstatus_to_exitcode(status)

    def _start(self) -> int:
        python = _interpreter()
        return launch(
            python,
            [python, "-I", "-S", "-c", _PROGRAM, _SOURCE, self.token, str(self._since)],
            os.environ,
            [
                dup(self.pipe[0], _PIPE_FD),
                dup(self.ledger.fd, _LEDGER_FD),
                null(_TERMINAL_FD) if self.terminal is None else dup(self.terminal, _TERMINAL_FD),
            ],
            # Blocked from its first instruction on, so that no signal can hit it.
            blocked=signal.valid_signals(),
        )

    def hold(self, terminal: int) -> None:
        """Give the terminal to a new guardian: a running one cannot get another descriptor."""
        self.drop_terminal()
        self.terminal = clear_of_stdio(os.dup(terminal))
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = None
        self.ensure()

    def drop_terminal(self) -> None:
        self.ledger.note(b"")
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None

    def enter(self, root: Root) -> None:
        self.ledger.write(root)
        self._living.add(root.identity)

    def living(self) -> frozenset[int]:
        return frozenset(pid for pid, _ in self._living)

    def exited(self, tree: Tree) -> None:
        (root,) = tree.roots
        self._living.discard(root.identity)
        self.ledger.write(root)
        self._exited[root.identity] = tree
        if len(self._exited) >= self._resolve_at:
            self._resolve()

    def _resolve(self) -> None:
        """Remove exited children whose trees have ended, rarely enough to cost nothing."""
        moment = proc.scan(self.living())
        ended = [name for name, tree in self._exited.items() if not members(moment, tree)]
        for identity in ended if moment.settled else ():
            self.leave(identity)
        self._resolve_at = _UNRESOLVED + 2 * len(self._exited)

    def leave(self, identity: Identity) -> None:
        self._living.discard(identity)
        self._exited.pop(identity, None)
        self.ledger.erase(identity)


_lock = threading.Lock()
_watch: _Watch | None = None
_ledger_directory: str | None = None
_ledger_path: str | None = None


def _current() -> _Watch:
    global _watch
    _watch = _watch or _Watch()
    return _watch


def _reset_after_fork() -> None:
    """Reset a forked copy of us: it has no children, and must not keep the pipe open."""
    global _lock, _watch, _ledger_directory, _ledger_path
    for fd in fds():
        os.close(fd)
    _lock, _watch = threading.Lock(), None
    _ledger_directory = _ledger_path = None  # the file belongs to our parent


os.register_at_fork(after_in_child=_reset_after_fork)


def ensure() -> str:
    """Make sure that a guardian runs, and return a mark for one more child (see `tree.Tree`).

    Called before each start, so that a guardian that was killed is replaced.
    """
    with _lock:
        try:
            watch = _current()
            watch.ensure()
        except OSError as error:
            raise GuardianFailed(f"the system cannot start it: {error.strerror}") from error
        return f":{watch.token}.{next(watch.numbers)}:"


def keep_ledger_in(directory: str) -> None:
    """Keep the ledger in a file, so that `leftovers` can read it if we and the guardian are killed
    together. Call it before the first child is started."""
    global _ledger_directory
    _ledger_directory = directory


def remove_ledger() -> None:
    """Remove the file again, after every child has ended."""
    global _ledger_path
    if _ledger_path is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_ledger_path)
        _ledger_path = None


def hold_terminal(terminal: int) -> None:
    """Start a guardian that has this terminal open too. Raises GuardianFailed."""
    with _lock:
        try:
            _current().hold(terminal)
        except OSError as error:
            raise GuardianFailed(f"the system cannot start it: {error.strerror}") from error


def note_terminal(note: TerminalState | None) -> None:
    """Set how the guardian restores the terminal if we are killed; None leaves it as it is."""
    with _lock:
        if _watch is not None:
            _watch.ledger.note(b"" if note is None else note.encode())


def drop_terminal() -> None:
    """Give the terminal back to the person: the guardian will not restore it."""
    with _lock:
        if _watch is not None:
            _watch.drop_terminal()


def enter(root: Root) -> None:
    """Record a child that was started."""
    with _lock:
        _current().enter(root)


def exited(tree: Tree) -> None:
    """Record that the root has exited and was reaped; its descendants may still run."""
    with _lock:
        _current().exited(tree)


def leave(root: Root) -> None:
    """Forget a child: no process of its tree is left."""
    with _lock:
        _current().leave(root.identity)


def living() -> frozenset[int]:
    """Return the pids of children that are not reaped yet."""
    with _lock:
        return _current().living()


def pids() -> set[int]:
    """Return the pids of this process's guardians: one, or none before the first start."""
    with _lock:
        if _watch is not None:
            _watch.reap()
        return {_watch.pid} if _watch and _watch.pid else set()


def fds() -> set[int]:
    """Return the descriptors that stay open for the guardian, from the first start on."""
    if _watch is None:
        return set()
    terminal = set() if _watch.terminal is None else {_watch.terminal}
    return {*_watch.pipe, _watch.ledger.fd} | terminal


def _interpreter() -> str:
    if not sys.executable or getattr(sys, "frozen", False):
        raise GuardianFailed(
            "the path of Python is unknown; run telex with an installed Python, not from a frozen "
            "program"
        )
    return sys.executable


def main() -> None:
    """Run the guardian: wait for the end of the parent, then clean up."""
    token, since = sys.argv[2], int(sys.argv[3])
    os.chdir("/")
    terminal = os.dup(_TERMINAL_FD)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, _TERMINAL_FD)  # error messages must not appear on the person's screen
    os.close(nowhere)
    os.read(_PIPE_FD, 1)  # nothing is ever written: it returns when the last writer has closed
    if (note := TerminalState.decode(ledger.read_note(_LEDGER_FD))) is not None:
        restore(terminal, note)
    os.close(terminal)
    tree = Tree(ledger.read(_LEDGER_FD, now=proc.now()), f":{token}.", since)
    with TreeTermination(BRISK, {}) as ending:
        while advance(ending, lambda moment: tree):
            pass


def advance(ending: TreeTermination, tree: Callable[[Table], Tree]) -> bool:
    """Scan once, proceed and wait, without an event loop. Returns False when no member is left.

    Also used by `reaper`, whose tree differs at each scan.
    """
    moment = proc.scan()
    if not ending.proceed(moment, tree(moment), time.monotonic()):
        return False
    _wait(ending)
    return True


def _wait(ending: TreeTermination) -> None:
    """Wait until all watched members have exited, or it is time to proceed."""
    poll = select.poll()
    left = ending.waited_for
    for fd in left:
        poll.register(fd, select.POLLIN)
    while left and (seconds := ending.until - time.monotonic()) > 0:
        for fd, _ in poll.poll(seconds * 1000):
            poll.unregister(fd)
            left.remove(fd)
    if ending.needs_polling:
        time.sleep(RESCAN_SECONDS)
