"""Start a child, on pipes or on a terminal: fast, clean, and owned from its first moment.

What can be known beforehand is checked beforehand: a missing program, a program that may not be
run, a missing directory are exceptions named for it, and nothing was started then. No descriptor
leaks on any way out.

`start` does not await: between the start and its entry in the ledger nothing can cancel it.
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
    """No child was started."""


class NoSuchProgram(StartFailed):
    """There is no program of that name."""

    exit_code = 127
    """What a shell gives for it, and so does a command of ours."""


class NotExecutable(StartFailed):
    """There is something of that name, and it cannot be run."""

    exit_code = 126


class NoSuchDirectory(StartFailed):
    """The child cannot start in that directory."""


class NoSuchTerminal(StartFailed):
    """The path is not a terminal's."""


class StartRefused(StartFailed):
    """The system has no room for another process, or for this one."""


class PipeEnd(enum.Enum):
    """Where one of a child's standard streams leads, if not to a descriptor we have already."""

    PIPE = "pipe"
    """To us, through a pipe."""
    NULL = "null"
    """Nowhere."""


Plug = PipeEnd | int
_Command = tuple[str, list[str]]
"""What is run, and the arguments it sees."""

_IS_LINUX: Final = sys.platform == "linux"
_GNU_ENV: Final = "/usr/bin/env"
_HAS_GNU_ENV: Final = _IS_LINUX and os.path.basename(os.path.realpath(_GNU_ENV)) == "env"
"""Whether `env` is a program of its own, not a busybox, whose `env` cannot change directory."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """The child talks through pipes, or through descriptors the caller keeps and closes."""

    stdin: Plug = PipeEnd.PIPE
    stdout: Plug = PipeEnd.PIPE
    stderr: Plug = PipeEnd.PIPE


PIPED: Final = Pipes()


@dataclass(frozen=True, slots=True)
class ControllingTerminal:
    """The child is on a terminal, and in control of it."""

    path: str
    """The slave of a PTY whose master the caller holds."""


def start(
    argv: Sequence[str],
    *,
    stdio: Pipes | ControllingTerminal = PIPED,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    reaping: bool = False,
    confinement: Confinement | None = None,
) -> Child:
    """A new child of the running event loop. Raises `StartFailed` in one of its kinds.

    `argv[0]` is looked up as the child would: in its own PATH, from its own directory. Without
    an environment it gets ours by the rules of `child_environment`.

    With `reaping`, on Linux, the child is a `reaper` that runs the command: it ends as that does,
    some milliseconds later, and nobody of the command's tree gets lost while it lives. A program
    that does not know its Python starts the command itself.

    With a confinement the command is behind a reaper too, and held to it as far as this kernel can
    (`sandbox`); what it can and then does not do is an error, and nothing runs.
    """
    asyncio.get_running_loop()  # without one to watch the child, nothing is started
    if env is None:
        env = child_environment(os.environ, terminal=isinstance(stdio, ControllingTerminal))
    path, argv = _command(argv, env, cwd)
    blocked: Collection[int] = ()
    words = confinement.words() if confinement else []
    if words and not sys.executable:
        raise StartRefused(
            f"{path} is not started: its sandbox needs Python, and has no path to it"
        )
    if (reaping or words) and _IS_LINUX and sys.executable:
        path, argv = _reaped(path, argv, words)
        blocked = signal.valid_signals()
    told = dict(env) if cwd is None else {**env, "PWD": os.path.abspath(cwd)}
    reap_abandoned()
    mark = _guarded()
    told[COOKIE] = os.environ.get(COOKIE, "") + mark.removesuffix(":")
    try:
        with ExitStack() as theirs, ExitStack() as ours:
            actions, files = _wire(stdio, theirs, ours)
            child = _adopted(launch(path, argv, told, actions, blocked=blocked), mark, files)
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
    return StartRefused(f"the system did not start {path}: {error.strerror}")


def _adopted(pid: int, mark: str, files: list[FileIO | None]) -> Child:
    try:
        return Child(pid, mark, *files)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _command(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> _Command:
    """What to run so that the program runs in its directory."""
    if not argv or not argv[0]:
        raise NoSuchProgram("no program was named; give at least its name")
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
    """The same command by way of a program that changes directory: `posix_spawn` cannot.

    `env` hands every variable on untouched. A shell drops those whose names it cannot hold, such as
    exported functions, so it is second best. (`env` would take a path with `=` for a variable.)
    """
    if _HAS_GNU_ENV and "=" not in path:
        return _GNU_ENV, ["env", "-C", directory, path, *argv[1:]]
    script = 'cd -- "$0" && unset OLDPWD && exec "$@"'
    return "/bin/sh", ["sh", "-c", script, directory, path, *argv[1:]]


def _directory(cwd: str) -> str:
    if not os.path.isdir(cwd):
        raise NoSuchDirectory(f"the child cannot start in {cwd}: there is no such directory")
    if not os.access(cwd, os.X_OK):
        raise NoSuchDirectory(f"the child cannot start in {cwd}: we may not enter it")
    return os.path.abspath(cwd)


def resolve(program: str, env: Mapping[str, str], directory: str) -> str:
    """The program's path, found as a shell in that directory would find it."""
    places = [""] if os.sep in program else env.get("PATH", os.defpath).split(os.pathsep)
    paths = [os.path.join(directory, place, program) for place in places]
    there = [path for path in paths if os.path.exists(path)]
    for path in there:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    if there:
        raise NotExecutable(f"{there[0]} cannot be run: it is not a file we may execute")
    looked = "" if os.sep in program else ", nor anywhere in its PATH"
    remedy = "check its name, or install it"
    if " " in program:
        remedy = "its arguments are given apart from its name"
    raise NoSuchProgram(f"there is no program {program}{looked}; {remedy}")


def _wire(
    stdio: Pipes | ControllingTerminal, theirs: ExitStack, ours: ExitStack
) -> tuple[list[Action], list[FileIO | None]]:
    """What the child does to its descriptors, and our ends of what leads to us."""
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
        raise NoSuchTerminal(f"{path} is not a terminal of ours; keep its master open meanwhile")
    # On Linux the leader of a session without a terminal gets the first one it opens as its own.
    return [(os.POSIX_SPAWN_OPEN, 0, path, os.O_RDWR, 0), dup(0, 1), dup(0, 2)]


def _plug(
    target: int, plug: Plug, theirs: ExitStack, ours: ExitStack
) -> tuple[Action, FileIO | None]:
    """One standard stream."""
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
    source = clear_of_stdio(source)  # where one action would undo another
    theirs.callback(os.close, source)
    return dup(source, target)
