"""Which children and descriptors this process has, besides those that stay on purpose.

The guardian and the fork servers stay from their first use until the tests end.
"""

from __future__ import annotations

import contextlib
import os

from fork_server import SERVER
from telex.processes import guardian


def children() -> set[int]:
    """Return the pids of the children of every thread.

    A thread that exits meanwhile passes its children to another thread, whose children may have been
    read before: then all are read again.
    """
    if not os.path.isdir("/proc/self/task"):
        return set()
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found = {pid for thread in os.listdir("/proc/self/task") for pid in _children(thread)}
            return found - guardian.pids() - SERVER.pids()
    raise AssertionError("threads exited faster than their children could be counted")


def _children(thread: str) -> list[int]:
    with open(f"/proc/self/task/{thread}/children", "rb", buffering=0) as file:
        return list(map(int, file.read().split()))


def descriptors() -> dict[int, str]:
    """Return the open descriptors, and what each leads to."""
    found = {}
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):  # the descriptor of this listing is closed by now
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return {fd: target for fd, target in found.items() if fd not in guardian.fds() | SERVER.fds()}
