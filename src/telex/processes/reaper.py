"""The small program that stands between us and a command, so that none of its orphans is lost.

It is a subreaper (Linux): whoever loses its parent below it becomes its child, also one that left
its session and cleared its environment, which nothing else would find (see `tree`). It starts the
command in a session of its own and waits; when the command has ended, it ends what that left, and
then ends as the command did. So its tree is the command's whole tree for as long as it lives, and
it lives until nobody else does.

What it does not help against is a command that kills it first (`kill -9 $PPID`): that one is looked
for as others are.

`spawn` starts it, with every signal blocked: `python -I -S reaper.py SIGNALS PATH ARGV…`. Who was
told to end before there is a command starts none, and passes it on in the command's first moments;
afterwards whoever ends our tree tells the command itself. Unless there is somebody to end it
imports next to nothing: each command waits for its start. (`_signal` is there anyway, and `signal`
takes as long as the rest of Python.)
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # unknown to mypy: see above
import os
import sys
import time

_ENDING = {_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM}
_SET_CHILD_SUBREAPER = 36
_YOUNG_SECONDS = 0.3
_NO_MARK = "\0"
"""Nobody carries it: who belongs is known by being a child."""


def main() -> None:
    signals, path, *argv = sys.argv[1:]
    _become_subreaper()
    for number in _told():
        _end_as(-number)
    try:
        command = os.posix_spawn(
            path,
            argv,
            _environment(),
            setsid=True,
            setsigmask=(),
            setsigdef=[int(number) for number in signals.split(",")],
        )
    except OSError as error:
        os.write(2, f"{path} cannot be run: {error.strerror}\n".encode("utf-8", "surrogateescape"))
        os._exit(126)
    _let_go_of_stdio()
    status = _young(command)
    if status is None:
        status = _waited_for(command)
    if _has_children():
        _end_the_rest()
    _end_as(os.waitstatus_to_exitcode(status))


def _become_subreaper() -> None:
    import ctypes

    # Where a sandbox forbids it, the command has what it has without us.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))


def _told() -> set[int]:
    pending: set[int] = _signal.sigpending()
    return _ENDING & pending


def _let_go_of_stdio() -> None:
    """Pipes end with the command, not with us."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


def _young(command: int) -> int | None:
    """Its status, if it ends in its first moments. Who ends us then may have looked before there
    was a command, so it hears of it through us; one that was seen hears it twice. Later it was
    seen for sure, and is left to say its farewell."""
    until = time.monotonic() + _YOUNG_SECONDS
    while (left := until - time.monotonic()) > 0:
        told = _signal.sigtimedwait({_signal.SIGCHLD, *_ENDING}, left)
        if told is None:
            return None
        if told.si_signo in _ENDING:
            os.killpg(command, told.si_signo)
        done, status = os.waitpid(command, os.WNOHANG)
        if done:
            return status
    return None


def _waited_for(command: int) -> int:
    while True:
        done, status = os.waitpid(-1, 0)
        if done == command:
            return status


def _has_children() -> bool:
    """Whether somebody is left; who has ended is reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end_the_rest() -> None:
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from telex.processes.ending import BRISK, Ending, TreeSurvived
    from telex.processes.guardian import proceeded
    from telex.processes.tree import Root, Table, Tree

    def ours(moment: Table) -> Tree:
        children = (row for row in moment.rows.values() if row.ppid == os.getpid())
        return Tree(tuple(Root(row.pid, row.started) for row in children), _NO_MARK, 0)

    try:
        while _has_children():
            with Ending(BRISK, {}) as ending:
                while proceeded(ending, ours):
                    _has_children()
    except TreeSurvived:
        return  # whoever started us looks again, and says so


def _end_as(code: int) -> None:
    if code >= 0:
        os._exit(code)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has left its own
    if -code != _signal.SIGKILL:
        _signal.signal(-code, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [-code])
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


def _environment() -> dict[bytes, bytes]:
    """As it was given to us: where the locale says nothing, Python sets LC_CTYPE for itself."""
    environment = dict(os.environb)
    environment.pop(b"LC_CTYPE", None)
    with open("/proc/self/environ", "rb") as file:
        for given in file.read().split(b"\0"):
            if given.startswith(b"LC_CTYPE="):
                environment[b"LC_CTYPE"] = given.removeprefix(b"LC_CTYPE=")
    return environment


if __name__ == "__main__":
    main()
