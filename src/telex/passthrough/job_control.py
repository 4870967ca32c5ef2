"""Stopping with the program, and going on with it.

Ctrl-Z is a byte like any other and goes to the child's terminal, whose line discipline makes a
signal of it. The program may ignore it, handle it, or stop. If it stops, its session leader stops
too, and this is where we notice. Then the person's shell must get its terminal back, and it does
that when it sees its own job stop: ours, the whole process group, so that a script we run in stops
as well.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telex.terminal.pty import Pty


def has_stopped(pid: int) -> bool:
    """Whether this child of ours has stopped since we last asked. Takes no exit status away."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None
    except ChildProcessError:
        return False  # it has exited and was reaped


def stop() -> None:
    """Stop our process group; returns when it goes on.

    With nobody to continue us (`xterm -e telex run …`) the kernel does not stop us, and the program
    goes on at once, as it would have without us.
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
    """Give a signal that came to us to whoever the child's terminal would have given it."""
    group = pty.foreground()
    if group and pty.child.exit is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def wake(pty: Pty) -> None:
    """Continue a stopped program. One that never stopped is told to draw itself again."""
    if pty.child.exit is None:
        os.kill(pty.child.pid, signal.SIGCONT)
        relay(pty, signal.SIGWINCH)
