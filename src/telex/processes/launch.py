"""The one call that creates a process.

Used only by `spawn`, `guardian` and `proc`, and by `passthrough.page_opener`, whose child must
survive us. It uses `posix_spawn` and not `fork`: its cost does not grow with our memory, and no
Python runs between fork and exec, where threads make it unsafe. The new process has a session of
its own, default signal dispositions, and no descriptor besides the three it is given.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

Action = tuple[Any, ...]
"""A file action in the form of `os.posix_spawn`."""

_LOW: Final = frozenset(range(3, 64))
# Python ignores SIGPIPE, `nohup` ignores SIGHUP, and ignored signals stay ignored across exec.
_DEFAULT: Final = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


def launch(
    path: str,
    argv: list[str],
    environment: Mapping[str, str],
    actions: Iterable[Action],
    *,
    blocked: Collection[int] = (),
) -> int:
    """Start the program at `path` and return its pid; exec has already succeeded.

    Args:
        actions: May set descriptors 0, 1 and 2.
        blocked: The signals that are blocked in the new process.

    Raises:
        OSError: The kernel's error.
    """
    return os.posix_spawn(
        path,
        argv,
        environment,
        file_actions=[*actions, *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable())],
        setsid=True,
        setsigmask=blocked,
        setsigdef=_DEFAULT,
    )


def dup(source: int, target: int) -> Action:
    return os.POSIX_SPAWN_DUP2, source, target


def null(target: int) -> Action:
    return os.POSIX_SPAWN_OPEN, target, os.devnull, os.O_RDWR, 0


def clear_of_stdio(fd: int) -> int:
    """Return the same open file with a number above 2, and close the given one.

    No file action overwrites such a number. A program started with descriptors 0 to 2 closed gets
    just these numbers for its first pipe.
    """
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _inheritable() -> list[int]:
    """Return the descriptors that would leak into a child.

    Python's own descriptors are never inheritable; those inherited from our parent are. Low numbers
    are checked each time, all others once, at the first start: with thousands of open sessions,
    checking every descriptor took several times as long as starting a process.
    """
    found = [fd for fd in _inherited() | _LOW if _is_inheritable(fd)]
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return found
    for fd in found:
        if fd >= allowed:  # `posix_spawn` refuses to close a number beyond the limit
            os.set_inheritable(fd, False)
    return [fd for fd in found if fd < allowed]


@lru_cache(maxsize=1)
def _inherited() -> frozenset[int]:
    numbers = map(int, os.listdir("/dev/fd"))
    return frozenset(fd for fd in numbers if fd > 2 and _is_inheritable(fd))


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False  # the descriptor of the directory listing itself
