"""Starts a server that does not run. One lock lets exactly one of many first calls do it.

The lock is a file beside the socket. The call that has the lock starts the server and gives it the
open file as standard input, so that the lock is held until the server listens or has ended, even if
the call is killed. Every other call waits for the lock and then finds the server.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Never

from telex.config import places
from telex.config.places import make_private
from telex.config.runtime_directory import SOCKET_NAME
from telex.processes.child_environment import COOKIE
from telex.processes.launch import clear_of_stdio, dup, launch
from telex.server.verb_client import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOCK: Final = "start.lock"
LOG: Final = "server.log"
LOG_BYTES: Final = 1 << 20
"""A longer log is renamed when a server starts, and the one before it is removed."""
_QUOTED_LINES: Final = 5

_KEPT: Final = ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV")
_KEPT_PREFIXES: Final = ("LC_", "XDG_", "TELEX_", "PYTHON", "LD_", "DYLD_")
_OF_THE_CALLER: Final = ("TELEX_SESSION", "TELEX_SOCKET", "PYTHONSTARTUP", COOKIE)
"""Also the cookie of a process tree: a server that a verb starts inside `telex run` outlives it."""


class CannotStart(Exception):
    """The server ended before it listened; the message has the end of its log."""

    exit_code = 5


def start_server(path: str, deadline: float) -> None:
    """Return when a server listens at the path: a new one, or one that another call starts.

    Args:
        deadline: By the clock of `time.monotonic`.

    Raises:
        NoAnswer: The deadline passed.
        CannotStart: The server ended at once.
    """
    directory = make_private(Path(path).parent)
    with _alarm(deadline):
        lock = _locked(directory)
        try:
            if listens(path):
                return
            _wait_for_release(directory)
            log = _launch(path, lock)
        except OSError as error:
            error.filename = error.filename or str(directory)  # that of a full disk
            raise
        finally:
            os.close(lock)
        os.close(_locked(directory))  # waits until the server listens or has ended
    if not listens(path):
        raise CannotStart(f"the server ended while it started:\n{_end_of(log)}")


def release_start_lock() -> None:
    """Called by a started server when it listens: free the lock, which is its standard input."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.close(nowhere)


def listens(path: str) -> bool:
    """Whether a server accepts connections at the path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:
            return True  # its queue of connections is full
        except OSError:
            return False
    return True


def recorded_server(directory: Path) -> int | None:
    """Return the pid of a server that holds a lock of the directory, also while it starts. None if
    no lock is held."""
    for name in (f"{SOCKET_NAME}.lock", LOCK):
        with contextlib.suppress(FileNotFoundError), (directory / name).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if (written := file.read(20).strip()).isdigit():
                    return int(written)
    return None


def log_file() -> Path:
    """Return the path of the server's log."""
    return places.find().logs / LOG


def _locked(directory: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = clear_of_stdio(os.open(directory / LOCK, flags, 0o600))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _wait_for_release(directory: Path) -> None:
    """Wait for a server that no longer listens and still ends its programs: it holds the socket's
    lock until then, and a new one could not take it."""
    with contextlib.suppress(FileNotFoundError), (directory / f"{SOCKET_NAME}.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def _launch(path: str, lock: int) -> Path:
    log = make_private(places.find().logs) / LOG
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    output = clear_of_stdio(os.open(log, flags, 0o600))
    try:
        # -P: the caller's directory is not searched for modules.
        argv = [sys.executable, "-P", "-m", "telex", "serve", "--socket", path, "--on-demand"]
        actions = [dup(lock, 0), dup(output, 1), dup(output, 2)]
        pid = launch(sys.executable, argv, server_environment(os.environ), actions)
        os.pwrite(lock, f"{pid}\n".ljust(20).encode(), 0)  # for `telex server stop`
    finally:
        os.close(output)
    return log


def server_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a server. It outlives the call that starts it, so it gets none of the
    caller's secrets; a session gets the environment of the call that opens it."""
    return {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
        if name not in _OF_THE_CALLER
    }


def _end_of(log: Path) -> str:
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_QUOTED_LINES:])
    return f"  (no log at {log})"


@contextlib.contextmanager
def _alarm(deadline: float) -> Iterator[None]:
    """Raise NoAnswer at the deadline, also out of a wait for the lock."""

    def ring(*_: object) -> Never:
        raise NoAnswer(
            "the server is being started or stopped and that does not finish; look at it with "
            "`telex server status`"
        )

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
