"""The small program that leads the child's session, so that Ctrl-Z can stop the child.

The kernel does not stop an orphaned process group from the keyboard: Ctrl-Z has no effect on a
program that leads its own session, as under `script`. Usually a shell is the parent in the same
session that prevents this. This program is the smallest such shell: it starts one program in a
process group of its own, in the foreground. It stops when the program stops, continues the program
when it is continued, and exits with the program's exit code.

`program_run` starts it as `python -I -S session_leader.py MODES PATH ARGV…`, so it imports nothing
of telex, and no site.
"""

from __future__ import annotations

import os
import signal
import sys
import termios

TYPE_CHECKING = False  # type checkers take it for true; to import `typing` is slower than the rest
if TYPE_CHECKING:
    from typing import Any

READY = b"\0"
"""The first byte printed: from now on the terminal may receive input. Earlier, keys would be echoed
by the wrong modes, and a Ctrl-Z would have no effect."""

_TERMINAL = 0
_SPARED = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}


def main() -> None:
    modes, path, *argv = sys.argv[1:]
    # Signals end the program, and then we exit with its exit code. If the leader exited first, the
    # terminal would hang up.
    for number in signal.valid_signals() - _SPARED:
        signal.signal(number, signal.SIG_IGN)
    _prepare(modes)
    pid = os.fork()
    if not pid:
        _become(path, argv)
    os._exit(_wait(pid))


def program_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program's own argv, from a command that may have been started by this file."""
    return argv[argv.index(__file__) + 3 :] if __file__ in argv else argv


def _prepare(modes: str) -> None:
    """Set the modes of the person's terminal; without them, those that a pipeline needs."""
    if modes:
        numbers = [int(number) for number in modes.split(",")]
        wanted: list[Any] = [*numbers[:6], numbers[6:]]
    else:
        wanted = termios.tcgetattr(_TERMINAL)
        wanted[1] &= ~termios.ONLCR
        wanted[3] &= ~termios.ECHO
    termios.tcsetattr(_TERMINAL, termios.TCSANOW, wanted)


def _become(path: str, argv: list[str]) -> None:
    try:
        os.setpgid(0, 0)
        os.tcsetpgrp(_TERMINAL, os.getpid())  # SIGTTOU is still ignored here
        for number in signal.valid_signals() - _SPARED:
            signal.signal(number, signal.SIG_DFL)
        os.write(_TERMINAL, READY)
        os.execv(path, argv)
    except OSError as error:
        message = (
            f"telex: {path} cannot be run: {error.strerror}; check its #! line, or whether it was "
        )
        os.write(2, f"{message}built for this system\n".encode("utf-8", "surrogateescape"))
    finally:
        os._exit(126)


def _wait(pid: int) -> int:
    """Stop and continue with the program. Return its exit code; for a signal, 128 plus it."""
    while True:
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        os.kill(os.getpid(), signal.SIGSTOP)
        # We were continued: continue the program too.
        try:
            os.tcsetpgrp(_TERMINAL, pid)
            os.killpg(pid, signal.SIGCONT)
        except OSError:
            continue  # it was killed while it was stopped; `waitpid` returns how


if __name__ == "__main__":
    main()
