"""Stops telex when the program stops, and continues both.

Ctrl-Z is a byte like any other. It goes to the child's terminal, whose line discipline turns it
into a signal. The program may ignore it, handle it, or stop. If the program stops, its session
leader stops too, and SIGCHLD reports that to us. Then the person's shell must get its terminal
back. The shell takes it when its own job stops, so we stop our whole process group: a script that
runs telex stops as well.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telex.terminal.pty import Pty


def has_stopped(pid: int) -> bool:
    """Whether a child has stopped since the last call. Does not consume its exit status."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None
    except ChildProcessError:
        return False  # it has exited and was reaped


def stop() -> None:
    """Stop our process group. Returns when it is continued.

    If no shell could continue us (`xterm -e telex run …`), the kernel does not stop us, and the
    program continues at once, as it would without telex.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    try:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.signal(signal.SIGCONT, signal.SIG_IGN)  # ignored or not, it continues us
        os.killpg(0, signal.SIGTSTP)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def relay(pty: Pty, number: int) -> None:
    """Send a signal on to the foreground process group of the child's terminal."""
    group = pty.foreground()
    if group and pty.child.exit is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def wake(pty: Pty) -> None:
    """Continue a stopped program, and let it draw again, by a SIGWINCH."""
    if pty.child.exit is None:
        os.kill(pty.child.pid, signal.SIGCONT)
        relay(pty, signal.SIGWINCH)
