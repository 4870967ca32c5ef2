"""The small program between us and a command, which adopts all orphans of the command.

It is a subreaper (Linux): a process below it that loses its parent becomes its child, even one that
left its session and cleared its environment, which nothing else would find (see `tree`). It starts
the command in a session of its own and waits. When the command has exited, it ends the processes
that the command left behind, and then exits with the command's status. So its tree is the command's
whole tree for as long as it lives, and it lives until every other process of the tree has exited.

It cannot help against a command that kills it first (`kill -9 $PPID`): such a tree is searched for
in the usual way.

`spawn` starts it, with every signal blocked: `python -I -S reaper.py SIGNALS WORD… -- PATH ARGV…`.
If a terminating signal arrives before the command is started, the command is not started. If one
arrives in the command's first moments, it is passed on to the command. Later, the process that ends
our tree signals the command itself. The reaper imports almost nothing unless it has processes to
end, because each command waits for its start. (`_signal` is loaded anyway, and `signal` takes as
long as the rest of Python.)

With words, the command is restricted by them (`restrict`) or is not started. The restrictions are
applied between fork and exec, so that the reaper itself can still end what it started, and so that
one Python serves both. The reaper creates the command's directory for temporary files, and removes
it when no process is left.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # unknown to mypy: see above
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # defined here, so that `typing` is not loaded
    from typing import Any, NoReturn

_TERMINATING = {_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM}
_SET_CHILD_SUBREAPER = 36
_STARTUP_SECONDS = 0.3
_CANNOT_BE_RUN = 126
_TEMPORARY = (b"TMPDIR", b"TMP", b"TEMP")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_MARK = "\0"
"""A mark that no process carries: members are found only as children."""


def main() -> None:
    end = sys.argv.index("--")
    (signals, *words), (path, *argv) = sys.argv[1:end], sys.argv[end + 1 :]
    defaults = [int(number) for number in signals.split(",")]
    _become_subreaper()
    for number in _pending_signals():
        _exit_like(-number)
    temporary = None
    try:
        if words:
            command, temporary = _start_restricted(path, argv, defaults, words)
        else:
            command = _start(path, argv, defaults)
    except OSError as error:
        _fail(f"{path} cannot be run: {error.strerror}")
    _release_stdio()
    status = _watch_startup(command)
    if status is None:
        status = _wait_for(command)
    if _has_children():
        _end_leftovers()
    try:
        if temporary is not None:
            _remove(temporary)
    finally:  # exit with the command's status even if the directory cannot be removed
        _exit_like(os.waitstatus_to_exitcode(status))


def _start(path: str, argv: list[str], defaults: list[int]) -> int:
    environment = _restrict().environment()
    return os.posix_spawn(path, argv, environment, setsid=True, setsigmask=(), setsigdef=defaults)


def _start_restricted(
    path: str, argv: list[str], defaults: list[int], words: list[str]
) -> tuple[int, str | None]:
    """Start the command. Return its pid and its directory for temporary files.

    It uses `fork` and not `posix_spawn`, which runs no code of ours in the child. That is safe,
    because there is only one thread here.
    """
    restrict = _restrict()
    environment, wanted = restrict.environment(), restrict.split(words)
    temporary = None
    for word, *rest in list(wanted):
        if word == "temporary":
            temporary = os.path.join(rest[1], f"telex-{os.urandom(12).hex()}")
            os.mkdir(temporary, 0o700)
            environment.update(dict.fromkeys(_TEMPORARY, os.fsencode(temporary)))
            wanted.append(["path", rest[0], temporary])
    try:
        command = os.fork()
    except OSError:
        if temporary is not None:
            _remove(temporary)
        raise
    if command == 0:
        try:
            os.setsid()
            for number in defaults:
                _signal.signal(number, _signal.SIG_DFL)
            _exec_restricted(restrict, path, argv, environment, wanted)
        finally:  # the child must never return into the parent's code
            _fail(f"{path} cannot be run: {sys.exc_info()[1]!r}")
    return command, temporary


def _exec_restricted(
    restrict: Any, path: str, argv: list[str], environment: dict[bytes, bytes], words: Any
) -> None:
    try:
        restrict.restrict(words)
    except OSError as error:
        _fail(f"the kernel refused the sandbox ({error.strerror}); the command was not run")
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    try:
        os.execve(path, argv, environment)
    except OSError as error:
        _fail(f"{path} cannot be run: {error.strerror}")


def _fail(what: str) -> NoReturn:
    os.write(2, f"{what}\n".encode("utf-8", "surrogateescape"))
    os._exit(_CANNOT_BE_RUN)


def _restrict() -> Any:
    """Import the module beside this file by its own name. By its name in telex it would import the
    package, which takes half as long as Python itself."""
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import restrict  # type: ignore[import-not-found]  # unknown to mypy by this name

    return restrict


def _remove(directory: str) -> None:
    """Remove a directory tree, as far as possible.

    No process is left that could add or replace a file there. Directories are entered by
    descriptor, one at a time, because they may be deeper than a path can be long, than Python can
    recurse, and than there are descriptors.
    """
    at = _entered(directory, None)
    if at is None:
        return
    above: list[tuple[str, list[str]]] = []
    waiting = _emptied(at)
    while waiting or above:
        if waiting:
            name = waiting.pop()
            inner = _entered(name, at)
            if inner is None:
                continue
            above.append((name, waiting))
            waiting = _emptied(inner)
        else:
            name, waiting = above.pop()
            inner = os.open("..", _DIRECTORY, dir_fd=at)
            _removed(os.rmdir, name, inner)
        os.close(at)
        at = inner
    os.close(at)
    os.rmdir(directory)


def _entered(name: str, beside: int | None) -> int | None:
    """Return a descriptor of a directory, even if its mode does not allow entering it."""
    try:
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW | _DIRECTORY, dir_fd=beside)
    except OSError:
        return None
    try:
        os.chmod(f"/proc/self/fd/{found}", 0o700)  # by descriptor: no link is followed
        return os.open(".", _DIRECTORY, dir_fd=found)
    except OSError:
        return None
    finally:
        os.close(found)


def _emptied(directory: int) -> list[str]:
    """Remove the entries of a directory. Return the names of directories that are not empty."""
    return [
        name
        for name in os.listdir(directory)
        if not _removed(os.unlink, name, directory) and not _removed(os.rmdir, name, directory)
    ]


def _removed(remove: Any, name: str, directory: int) -> bool:
    try:
        remove(name, dir_fd=directory)
    except OSError:
        return False
    return True


def _become_subreaper() -> None:
    import ctypes

    # Where a sandbox forbids it, the command runs as it would without a reaper.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))


def _pending_signals() -> set[int]:
    pending: set[int] = _signal.sigpending()
    return _TERMINATING & pending


def _release_stdio() -> None:
    """Close our copies of the pipes, so that they reach EOF when the command exits."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


def _watch_startup(command: int) -> int | None:
    """Return the command's status, if it exits in its first moments.

    A process that ends our tree in this time may have scanned before the command existed. So a
    signal that we get is passed on to the command; a command that was in the scan gets it twice.
    Later every scan contains the command, so it gets each signal once and can exit cleanly.
    """
    until = time.monotonic() + _STARTUP_SECONDS
    while (left := until - time.monotonic()) > 0:
        received = _signal.sigtimedwait({_signal.SIGCHLD, *_TERMINATING}, left)
        if received is None:
            return None
        if received.si_signo in _TERMINATING:
            os.killpg(command, received.si_signo)
        done, status = os.waitpid(command, os.WNOHANG)
        if done:
            return status
    return None


def _wait_for(command: int) -> int:
    while True:
        done, status = os.waitpid(-1, 0)
        if done == command:
            return status


def _has_children() -> bool:
    """Whether a child is left; exited children are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end_leftovers() -> None:
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from telex.processes.guardian import advance
    from telex.processes.termination import BRISK, TreeSurvived, TreeTermination
    from telex.processes.tree import Root, Table, Tree

    def ours(moment: Table) -> Tree:
        children = (row for row in moment.rows.values() if row.ppid == os.getpid())
        return Tree(tuple(Root(row.pid, row.started) for row in children), _NO_MARK, 0)

    try:
        while _has_children():
            with TreeTermination(BRISK, {}) as ending:
                while advance(ending, ours):
                    _has_children()
    except TreeSurvived:
        return  # the process that started us scans again, and reports them


def _exit_like(code: int) -> None:
    if code >= 0:
        os._exit(code)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has written its own core dump
    if -code != _signal.SIGKILL:
        _signal.signal(-code, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [-code])
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


if __name__ == "__main__":
    main()
