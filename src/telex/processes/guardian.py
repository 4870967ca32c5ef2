"""The guardian: a small process that outlives us by a moment and ends what we started.

It does nothing until our end of a pipe closes, which the kernel does for us however we die. Then
it makes the person's terminal what it was, if we had taken it (`hold_terminal`), reads the ledger
and ends the trees of the children in it; children we had no time to write down carry our token in
their environment.

Sharing a ledger makes the two independent. Starting a child costs one small write and wakes nobody,
no message can be lost or block us, and a guardian that was killed is replaced by one that reads the
same ledger. What no guardian helps against: somebody killing it and us together.

`spawn` and `child` report through the functions here; `main` is the guardian itself. It runs
isolated (`python -I -S`), in a session of its own and with every signal blocked.
"""

from __future__ import annotations

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
from telex.processes.terminal_restore import TerminalState, restore
from telex.processes.termination import BRISK, LOOK_AGAIN_SECONDS, TreeTermination
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
"""So many exited children may stay written down before we look which of them left nobody behind."""


class GuardianFailed(Exception):
    """The guardian does not run, and without it no child is started."""


class _Watch:
    """Our side: who we are, whom we have, and the process that will see to them."""

    def __init__(self) -> None:
        self.token = os.urandom(8).hex()
        self.numbers = itertools.count(1)
        # Both ends are ours to keep: a guardian that was killed gets a successor on the same pipe.
        self.pipe = tuple(map(clear_of_stdio, os.pipe()))
        try:
            self.ledger = ledger.Ledger(clear_of_stdio(ledger.memory()))
        except OSError:
            for end in self.pipe:
                os.close(end)
            raise
        self.pid: int | None = None
        self.terminal: int | None = None
        """The person's terminal, while we have it."""
        self._living: set[Identity] = set()
        self._since = proc.now()
        self._exited: dict[Identity, Tree] = {}
        self._resolve_at = _UNRESOLVED

    def ensure(self) -> None:
        code = self.reap()
        if code > 0:
            raise GuardianFailed(
                f"it ended with code {code}; if telex was changed or removed while it runs, "
                "start it again"
            )
        if self.pid is None:
            self.pid = self._start()

    def reap(self) -> int:
        """Notice that the guardian has ended; its exit code, where it had a say in that."""
        if self.pid is None:
            return 0
        try:
            done, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else in this program waits for any child
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
            # Blocked from its first instruction on: there is no moment at which to hit it.
            blocked=signal.valid_signals(),
        )

    def hold(self, terminal: int) -> None:
        """One that runs already cannot be given a terminal: another takes its place."""
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
        """Strike out the exited whose trees are gone, seldom enough that it costs nothing."""
        moment = proc.scan(self.living())
        gone = [name for name, tree in self._exited.items() if not members(moment, tree)]
        for identity in gone if moment.settled else ():
            self.leave(identity)
        self._resolve_at = _UNRESOLVED + 2 * len(self._exited)

    def leave(self, identity: Identity) -> None:
        self._living.discard(identity)
        self._exited.pop(identity, None)
        self.ledger.erase(identity)


_lock = threading.Lock()
_watch: _Watch | None = None


def _ours() -> _Watch:
    global _watch
    _watch = _watch or _Watch()
    return _watch


def _begin_anew() -> None:
    """In a forked copy of us: the children are not its own, and it must not keep the pipe open."""
    global _lock, _watch
    for fd in fds():
        os.close(fd)
    _lock, _watch = threading.Lock(), None


os.register_at_fork(after_in_child=_begin_anew)


def ensure() -> str:
    """Have a living guardian, and a mark for one more child (see `tree.Tree`).

    Comes before each start, so that a guardian that was killed is replaced.
    """
    with _lock:
        try:
            watch = _ours()
            watch.ensure()
        except OSError as error:
            raise GuardianFailed(f"the system did not start it: {error.strerror}") from error
        return f":{watch.token}.{next(watch.numbers)}:"


def hold_terminal(terminal: int) -> None:
    """Have a guardian that can reach this terminal too. Raises GuardianFailed."""
    with _lock:
        try:
            _ours().hold(terminal)
        except OSError as error:
            raise GuardianFailed(f"the system did not start it: {error.strerror}") from error


def note_terminal(note: TerminalState | None) -> None:
    """How the terminal is to be left from now on if we are killed; None: as it is."""
    with _lock:
        if _watch is not None:
            _watch.ledger.note(b"" if note is None else note.encode())


def drop_terminal() -> None:
    """The terminal is the person's again."""
    with _lock:
        if _watch is not None:
            _watch.drop_terminal()


def enter(root: Root) -> None:
    """A child was started."""
    with _lock:
        _ours().enter(root)


def exited(tree: Tree) -> None:
    """The root has exited and was reaped; what came of it may live on."""
    with _lock:
        _ours().exited(tree)


def leave(root: Root) -> None:
    """Nobody of its tree is left."""
    with _lock:
        _ours().leave(root.identity)


def living() -> frozenset[int]:
    """The pids of children not yet reaped."""
    with _lock:
        return _ours().living()


def pids() -> set[int]:
    """The guardians alive for this process: one, or none before the first start."""
    with _lock:
        if _watch is not None:
            _watch.reap()
        return {_watch.pid} if _watch and _watch.pid else set()


def fds() -> set[int]:
    """The descriptors that stay open for the guardian, from the first start to our end."""
    if _watch is None:
        return set()
    terminal = set() if _watch.terminal is None else {_watch.terminal}
    return {*_watch.pipe, _watch.ledger.fd} | terminal


def _interpreter() -> str:
    if not sys.executable or getattr(sys, "frozen", False):
        raise GuardianFailed(
            "it needs to know which Python this is; run telex with an installed one, not from "
            "a frozen program"
        )
    return sys.executable


def main() -> None:
    """The guardian's whole life."""
    token, since = sys.argv[2], int(sys.argv[3])
    os.chdir("/")
    terminal = os.dup(_TERMINAL_FD)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, _TERMINAL_FD)  # whatever goes wrong here is not for the person's screen
    os.close(nowhere)
    os.read(_PIPE_FD, 1)  # nobody ever writes: this returns when the last writer is gone
    if (note := TerminalState.decode(ledger.read_note(_LEDGER_FD))) is not None:
        restore(terminal, note)
    os.close(terminal)
    tree = Tree(ledger.read(_LEDGER_FD, now=proc.now()), f":{token}.", since)
    with TreeTermination(BRISK, {}) as ending:
        while proceeded(ending, lambda moment: tree):
            pass


def proceeded(ending: TreeTermination, tree: Callable[[Table], Tree]) -> bool:
    """One look and what it asks for, in a process without an event loop; False when nobody is left.
    Also for `reaper`, whose tree is another at each look."""
    moment = proc.scan()
    if not ending.proceed(moment, tree(moment), time.monotonic()):
        return False
    _wait(ending)
    return True


def _wait(ending: TreeTermination) -> None:
    """Until all that are waited for have ended, or it is time to proceed."""
    poll = select.poll()
    left = ending.waited_for
    for fd in left:
        poll.register(fd, select.POLLIN)
    while left and (seconds := ending.until - time.monotonic()) > 0:
        for fd, _ in poll.poll(seconds * 1000):
            poll.unregister(fd)
            left.remove(fd)
    if ending.blind:
        time.sleep(LOOK_AGAIN_SECONDS)
