"""The one call that makes a process. `spawn`, `guardian` and `proc` are its only users, and
`passthrough.page_opener`, whose child is not to end with us.

`posix_spawn` and not `fork`: its cost does not grow with our memory, and no Python runs between
fork and exec, where threads make it unsafe. A new process is clean: a session of its own, no
inherited signal dispositions, and no descriptor beyond the three it is given.
"""

from __future__ import annotations

import fcntl
import os
import signal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

Action = tuple[Any, ...]
"""A file action as `os.posix_spawn` takes it."""

_LOW: Final = frozenset(range(3, 64))
# Python ignores SIGPIPE, `nohup` ignores SIGHUP, and exec keeps what is ignored.
_DEFAULT: Final = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


def launch(
    path: str,
    argv: list[str],
    environment: Mapping[str, str],
    actions: Iterable[Action],
    *,
    blocked: Collection[int] = (),
) -> int:
    """The pid of a new process, which has already become the program at `path`.

    The actions may set descriptors 0, 1 and 2. Raises what the kernel said, as OSError.
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
    """The same open file under a number that no action overwrites; the given one is closed.

    Programs started with descriptors 0 to 2 closed get those very numbers for their first pipe.
    """
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _inheritable() -> list[int]:
    """What would leak. Python's own descriptors never do; those our parent left to us would.

    Low numbers are asked each time, all others once, at the first start: with thousands of sessions
    open, asking every one cost several times what starting a process costs.
    """
    return [fd for fd in _left_to_us() | _LOW if _is_inheritable(fd)]


@lru_cache(maxsize=1)
def _left_to_us() -> frozenset[int]:
    numbers = map(int, os.listdir("/dev/fd"))
    return frozenset(fd for fd in numbers if fd > 2 and _is_inheritable(fd))


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False  # the descriptor of the listing itself
