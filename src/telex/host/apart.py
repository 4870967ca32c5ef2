"""A descriptor of our own for something we share with the shell and its other programs.

Whether reading and writing wait belongs to the open file, not to the descriptor: a program that
makes its stdout non-blocking makes everybody's so, and after its end `cat` fails with "resource
temporarily unavailable". So a terminal or a pipe is opened once more. Where that cannot be
(sockets, another user's terminal), the shared one is changed, and changed back.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAITLESS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextlib.contextmanager
def apart(fd: int, flags: int) -> Iterator[int]:
    """The same thing under a number of our own, non-blocking; `flags` as for `os.open`."""
    own = _opened_again(fd, flags)
    shared = own is None and not ready_always(fd) and os.get_blocking(fd)
    if own is None:
        own = os.dup(fd)
    try:
        if shared:
            os.set_blocking(fd, False)
        yield own
    finally:
        if shared:
            os.set_blocking(fd, True)
        os.close(own)


def ready_always(fd: int) -> bool:
    """Whether it is a file, or as good as one: never waits, and no event loop watches it."""
    kind = os.fstat(fd).st_mode
    return stat.S_ISREG(kind) or stat.S_ISBLK(kind) or (stat.S_ISCHR(kind) and not os.isatty(fd))


def _opened_again(fd: int, flags: int) -> int | None:
    for path in _paths(fd):
        with contextlib.suppress(OSError):
            return os.open(path, flags | _WAITLESS)
    return None


def _paths(fd: int) -> Iterator[str]:
    if os.isatty(fd):
        with contextlib.suppress(OSError):
            yield os.ttyname(fd)
        # After `su` the terminal is another user's. By this name it is open to whom it controls.
        with contextlib.suppress(OSError):
            os.tcgetpgrp(fd)
            yield "/dev/tty"
    elif sys.platform == "linux" and stat.S_ISFIFO(os.fstat(fd).st_mode):
        yield f"/proc/self/fd/{fd}"
