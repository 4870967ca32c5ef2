"""The small program that stands between us and a command, so that none of its orphans is lost.

It is a subreaper (Linux): whoever loses its parent below it becomes its child, also one that left
its session and cleared its environment, which nothing else would find (see `tree`). It starts the
command in a session of its own and waits; when the command has ended, it ends what that left, and
then ends as the command did. So its tree is the command's whole tree for as long as it lives, and
it lives until nobody else does.

What it does not help against is a command that kills it first (`kill -9 $PPID`): that one is looked
for as others are.

`spawn` starts it, with every signal blocked: `python -I -S reaper.py SIGNALS WORD… -- PATH ARGV…`.
Who was told to end before there is a command starts none, and passes it on in the command's first
moments; afterwards whoever ends our tree tells the command itself. Unless there is somebody to end
it imports next to nothing: each command waits for its start. (`_signal` is there anyway, and
`signal` takes as long as the rest of Python.)

With words, the command is restricted by them (`restrict`) or is not started: between fork and exec,
so that the reaper itself stays free to end what it started, and so that one Python does for both.
Its directory for temporary files is the reaper's to make, and to remove when nobody is left.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # unknown to mypy: see above
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # said so that `typing` is not loaded
    from typing import Any, NoReturn

_ENDING = {_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM}
_SET_CHILD_SUBREAPER = 36
_YOUNG_SECONDS = 0.3
_CANNOT_BE_RUN = 126
_TEMPORARY = (b"TMPDIR", b"TMP", b"TEMP")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_MARK = "\0"
"""Nobody carries it: who belongs is known by being a child."""


def main() -> None:
    end = sys.argv.index("--")
    (signals, *words), (path, *argv) = sys.argv[1:end], sys.argv[end + 1 :]
    defaults = [int(number) for number in signals.split(",")]
    _become_subreaper()
    for number in _told():
        _end_as(-number)
    temporary = None
    try:
        if words:
            command, temporary = _start_restricted(path, argv, defaults, words)
        else:
            command = _start(path, argv, defaults)
    except OSError as error:
        _cannot(f"{path} cannot be run: {error.strerror}")
    _let_go_of_stdio()
    status = _young(command)
    if status is None:
        status = _waited_for(command)
    if _has_children():
        _end_the_rest()
    try:
        if temporary is not None:
            _remove(temporary)
    finally:  # whatever becomes of the directory, we end as the command did
        _end_as(os.waitstatus_to_exitcode(status))


def _start(path: str, argv: list[str], defaults: list[int]) -> int:
    environment = _restrict().environment()
    return os.posix_spawn(path, argv, environment, setsid=True, setsigmask=(), setsigdef=defaults)


def _start_restricted(
    path: str, argv: list[str], defaults: list[int], words: list[str]
) -> tuple[int, str | None]:
    """The command, and the directory for its temporary files. `fork` and not `posix_spawn`, which
    runs nothing of ours in the child; there is one thread here, so that it may."""
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
            _become(restrict, path, argv, environment, wanted)
        finally:  # never up into what is the parent's
            _cannot(f"{path} cannot be run: {sys.exc_info()[1]!r}")
    return command, temporary


def _become(
    restrict: Any, path: str, argv: list[str], environment: dict[bytes, bytes], words: Any
) -> None:
    try:
        restrict.restrict(words)
    except OSError as error:
        _cannot(f"the kernel did not take the sandbox ({error.strerror}), so nothing was run")
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    try:
        os.execve(path, argv, environment)
    except OSError as error:
        _cannot(f"{path} cannot be run: {error.strerror}")


def _cannot(what: str) -> NoReturn:
    os.write(2, f"{what}\n".encode("utf-8", "surrogateescape"))
    os._exit(_CANNOT_BE_RUN)


def _restrict() -> Any:
    """The module beside this file, by its own name: as telex's it would bring the package, which
    takes half as long as Python itself."""
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import restrict  # type: ignore[import-not-found]  # unknown to mypy by this name

    return restrict


def _remove(directory: str) -> None:
    """Nobody is left who could put something there, or something else in its place. Directories are
    entered by descriptor, one at a time: they may be deeper than a path can say, than Python calls
    itself, and than there are descriptors. What cannot be removed stays."""
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
    """A descriptor of a directory, which may have been made without the right to enter it."""
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
    """The names that are left in it: of directories that are not empty."""
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
    from telex.processes.guardian import proceeded
    from telex.processes.termination import BRISK, TreeSurvived, TreeTermination
    from telex.processes.tree import Root, Table, Tree

    def ours(moment: Table) -> Tree:
        children = (row for row in moment.rows.values() if row.ppid == os.getpid())
        return Tree(tuple(Root(row.pid, row.started) for row in children), _NO_MARK, 0)

    try:
        while _has_children():
            with TreeTermination(BRISK, {}) as ending:
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


if __name__ == "__main__":
    main()
