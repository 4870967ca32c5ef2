"""Starts a child, on pipes or on a terminal, and registers it with the guardian from the start.

Errors that can be detected beforehand are checked beforehand: a missing program, a program that is
not executable and a missing directory each raise their own exception, and nothing is started. No
descriptor leaks on any path.

`start` does not await, so it cannot be cancelled between the start and the entry in the ledger.
"""

from __future__ import annotations

import asyncio
import enum
import errno
import os
import signal
import stat
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING, Final

from telex.processes import guardian, reaper
from telex.processes.child import Child, reap_abandoned
from telex.processes.child_environment import COOKIE, child_environment
from telex.processes.launch import clear_of_stdio, dup, launch, null

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from telex.processes.launch import Action
    from telex.processes.sandbox import Confinement


class StartFailed(Exception):
    """No child was started; the subclasses say why."""


class NoSuchProgram(StartFailed):
    """There is no program of that name."""

    exit_code = 127
    """The exit code of a shell in this case, and of our own commands."""


class NotExecutable(StartFailed):
    """The name exists, but it cannot be run."""

    exit_code = 126


class NoSuchDirectory(StartFailed):
    """The child cannot start in that directory."""


class NoSuchTerminal(StartFailed):
    """The path is not a usable terminal."""


class StartRefused(StartFailed):
    """The system has no resources for another process, or refuses this one."""


class PipeEnd(enum.Enum):
    """Where a standard stream of a child leads, if not to an open descriptor."""

    PIPE = "pipe"
    """To this process, through a pipe."""
    NULL = "null"
    """To /dev/null."""


Plug = PipeEnd | int
_Command = tuple[str, list[str]]
"""The path of the program to run, and the argv that it gets."""

_IS_LINUX: Final = sys.platform == "linux"
_GNU_ENV: Final = "/usr/bin/env"
_HAS_GNU_ENV: Final = _IS_LINUX and os.path.basename(os.path.realpath(_GNU_ENV)) == "env"
"""Whether `env` is a real `env` and not busybox, whose `env` cannot change the directory."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """Standard streams on pipes, or on descriptors that the caller keeps and closes."""

    stdin: Plug = PipeEnd.PIPE
    stdout: Plug = PipeEnd.PIPE
    stderr: Plug = PipeEnd.PIPE


PIPED: Final = Pipes()


@dataclass(frozen=True, slots=True)
class ControllingTerminal:
    """A terminal that becomes the child's controlling terminal."""

    path: str
    """The slave of a PTY whose master the caller has open."""


def start(
    argv: Sequence[str],
    *,
    stdio: Pipes | ControllingTerminal = PIPED,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    reaping: bool = False,
    confinement: Confinement | None = None,
) -> Child:
    """Start a child of the running event loop.

    `argv[0]` is searched as the child would do it: in the child's PATH, from its directory.

    Args:
        env: The environment; None means ours, by the rules of `child_environment`.
        reaping: On Linux, run the command behind a `reaper`. The reaper exits with the command's
            status, some milliseconds later, and no process of the command's tree is lost while it
            lives. A program that does not know its Python starts the command directly.
        confinement: Run the command behind a reaper too, restricted as far as this kernel supports
            it (`sandbox`). If the kernel supports a restriction but refuses it, nothing runs.

    Raises:
        StartFailed: No child was started; the subclass says why.
    """
    asyncio.get_running_loop()  # raises without a loop, before anything is started
    if env is None:
        env = child_environment(os.environ, terminal=isinstance(stdio, ControllingTerminal))
    path, argv = _command(argv, env, cwd)
    blocked: Collection[int] = ()
    words = confinement.words() if confinement else []
    if words and not sys.executable:
        raise StartRefused(
            f"{path} is not started: its sandbox needs Python, and the path of Python is unknown"
        )
    if (reaping or words) and _IS_LINUX and sys.executable:
        path, argv = _reaped(path, argv, words)
        blocked = signal.valid_signals()
    given = dict(env) if cwd is None else {**env, "PWD": os.path.abspath(cwd)}
    reap_abandoned()
    mark = _guarded()
    given[COOKIE] = os.environ.get(COOKIE, "") + mark.removesuffix(":")
    try:
        with ExitStack() as theirs, ExitStack() as ours:
            actions, files = _wire(stdio, theirs, ours)
            child = _adopted(launch(path, argv, given, actions, blocked=blocked), mark, files)
            ours.pop_all()
    except OSError as error:
        raise _refusal(path, error) from error
    return child


def _guarded() -> str:
    try:
        return guardian.ensure()
    except guardian.GuardianFailed as failure:
        raise StartRefused(f"no child is started without a guardian: {failure}") from failure


def _refusal(path: str, error: OSError) -> StartFailed:
    if error.errno in {errno.ENOENT, errno.ENOEXEC, errno.EACCES}:
        return NotExecutable(
            f"{path} cannot be run: {error.strerror}; check its #! line, or whether it was built "
            "for this system"
        )
    return StartRefused(f"the system cannot start {path}: {error.strerror}")


def _adopted(pid: int, mark: str, files: list[FileIO | None]) -> Child:
    try:
        return Child(pid, mark, *files)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _command(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> _Command:
    """Return the command that runs the program in its directory."""
    if not argv or not argv[0]:
        raise NoSuchProgram("the command is empty; give at least the name of a program")
    if cwd is None:
        return resolve(argv[0], env, os.curdir), list(argv)
    directory = _directory(cwd)
    path = resolve(argv[0], env, directory)
    if os.path.samefile(directory, os.curdir):
        return path, list(argv)
    return _from(directory, path, argv)


def _reaped(path: str, argv: Sequence[str], words: Sequence[str]) -> _Command:
    defaults = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    signals = ",".join(str(int(number)) for number in defaults)
    program = [sys.executable, "-I", "-S", reaper.__file__]
    return sys.executable, [*program, signals, *words, "--", path, *argv]


def _from(directory: str, path: str, argv: Sequence[str]) -> _Command:
    """Return a command that first changes the directory, which `posix_spawn` cannot do.

    `env` passes every variable on unchanged. A shell drops variables with names that it does not
    support, such as exported functions, so it is the second choice. (`env` would take a path with
    `=` for a variable.)
    """
    if _HAS_GNU_ENV and "=" not in path:
        return _GNU_ENV, ["env", "-C", directory, path, *argv[1:]]
    script = 'cd -- "$0" && unset OLDPWD && exec "$@"'
    return "/bin/sh", ["sh", "-c", script, directory, path, *argv[1:]]


def _directory(cwd: str) -> str:
    if not os.path.isdir(cwd):
        raise NoSuchDirectory(f"the child cannot start in {cwd}: there is no such directory")
    if not os.access(cwd, os.X_OK):
        raise NoSuchDirectory(f"the child cannot start in {cwd}: permission denied")
    return os.path.abspath(cwd)


def resolve(program: str, env: Mapping[str, str], directory: str) -> str:
    """Return the program's path, searched as a shell in that directory would."""
    places = [""] if os.sep in program else env.get("PATH", os.defpath).split(os.pathsep)
    paths = [os.path.join(directory, place, program) for place in places]
    there = [path for path in paths if os.path.exists(path)]
    for path in there:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    if there:
        raise NotExecutable(f"{there[0]} cannot be run: it is not an executable file")
    searched = "" if os.sep in program else " in its PATH"
    remedy = "check its name, or install it"
    if " " in program:
        remedy = "pass its arguments separately from its name"
    raise NoSuchProgram(f"there is no program {program}{searched}; {remedy}")


def _wire(
    stdio: Pipes | ControllingTerminal, theirs: ExitStack, ours: ExitStack
) -> tuple[list[Action], list[FileIO | None]]:
    """Return the file actions of the child, and our ends of its pipes."""
    match stdio:
        case ControllingTerminal(path):
            return _take_control(path), [None, None, None]
        case Pipes(stdin, stdout, stderr):
            wires = [
                _plug(at, plug, theirs, ours) for at, plug in enumerate((stdin, stdout, stderr))
            ]
            return [action for action, _ in wires], [file for _, file in wires]


def _take_control(path: str) -> list[Action]:
    try:
        usable = stat.S_ISCHR(os.stat(path).st_mode) and os.access(path, os.R_OK | os.W_OK)
    except OSError:
        usable = False
    if not usable:
        raise NoSuchTerminal(f"{path} is not a usable terminal; keep its master open")
    # On Linux, a session leader without a terminal gets the first one it opens as its own.
    return [(os.POSIX_SPAWN_OPEN, 0, path, os.O_RDWR, 0), dup(0, 1), dup(0, 2)]


def _plug(
    target: int, plug: Plug, theirs: ExitStack, ours: ExitStack
) -> tuple[Action, FileIO | None]:
    """Connect one standard stream. Return its file action, and our end of the pipe."""
    match plug:
        case PipeEnd.NULL:
            return null(target), None
        case PipeEnd.PIPE:
            reading, writing = os.pipe()
            near, far = (writing, reading) if target == 0 else (reading, writing)
            file = ours.enter_context(FileIO(near, "wb" if target == 0 else "rb"))
            os.set_blocking(near, False)
            return _given(far, target, theirs), file
        case _:
            return _given(os.dup(plug), target, theirs), None


def _given(source: int, target: int, theirs: ExitStack) -> Action:
    source = clear_of_stdio(source)  # so that no action overwrites the source of another
    theirs.callback(os.close, source)
    return dup(source, target)
