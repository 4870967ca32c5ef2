"""The small program that leads the child's session, so that the child can stop.

The kernel lets no process be stopped from its keyboard whose process group nobody in its session
looks after: a program that leads its session itself, as under `script`, does not hear Ctrl-Z. A
shell is what usually looks after it. This is the least of a shell: it starts one program in a group
of its own, in the foreground. When that stops, this stops; continued, it continues it; and it ends
as the program ended.

`program_run` starts it as `python -I -S session_leader.py MODES PATH ARGV…`, so it imports
nothing of telex, and no site.
"""

from __future__ import annotations

import os
import signal
import sys
import termios

TYPE_CHECKING = False  # type checkers know better, and `typing` takes longer than all of the rest
if TYPE_CHECKING:
    from typing import Any

READY = b"\0"
"""The first byte printed: from here on the terminal may be typed into. Earlier, keys would be
echoed by rules that do not hold, and a Ctrl-Z would hit nobody."""

_TERMINAL = 0
_SPARED = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}


def main() -> None:
    modes, path, *argv = sys.argv[1:]
    # Whatever ends the program ends us, a moment later and with its exit code. A leader that went
    # first would take the terminal with it.
    for number in signal.valid_signals() - _SPARED:
        signal.signal(number, signal.SIG_IGN)
    _prepare(modes)
    pid = os.fork()
    if not pid:
        _become(path, argv)
    os._exit(_look_after(pid))


def program_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The program's own, of a command that may have been started by this."""
    return argv[argv.index(__file__) + 3 :] if __file__ in argv else argv


def _prepare(modes: str) -> None:
    """The terminal as the person's was; if that is not known, as a filter needs it."""
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
        said = (
            f"telex: {path} cannot be run: {error.strerror}; check its #! line, or whether it was "
        )
        os.write(2, f"{said}built for this system\n".encode("utf-8", "surrogateescape"))
    finally:
        os._exit(126)


def _look_after(pid: int) -> int:
    """Its exit code, with a signal counted from 128 up as shells do."""
    while True:
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        os.kill(os.getpid(), signal.SIGSTOP)
        # Somebody continued us, and means both.
        try:
            os.tcsetpgrp(_TERMINAL, pid)
            os.killpg(pid, signal.SIGCONT)
        except OSError:
            continue  # it was killed while it was stopped; the next look says how


if __name__ == "__main__":
    main()
