"""Waits for the end of a foreign process group: for the exit of its last process.

The kernel reports the exit of a process (a pidfd) but not of a group. So the wait is for one
member, and then for the next, until none is left. Zombies do not count: they neither send nor read.
Without pidfds, or without a free descriptor, the group is checked once a second.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from telex.processes import proc

if TYPE_CHECKING:
    from telex.processes.tree import Process

_POLL_SECONDS: Final = 1.0


async def gone(group: int) -> None:
    """Wait until no process is left in the group. Returns at once if there is none."""
    while (member := _member(group)) is not None:
        await _ended(member)
    if _hidden(group):
        await asyncio.get_running_loop().create_future()  # its end cannot be observed


def _member(group: int) -> Process | None:
    """Return a living member: the leader while it lives, because it usually exits last."""
    found = proc.scan().rows.values()
    members = [one for one in found if one.pgid == group and one.alive]
    return min(members, key=lambda one: one.pid != group, default=None)


def _hidden(group: int) -> bool:
    """Whether a member exists that we cannot see: another user's, where /proc is restricted."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return False  # only zombies are left


async def _ended(process: Process) -> None:
    try:
        fd = proc.pidfd(process.pid)
    except ProcessLookupError:
        return
    if fd is None:
        await asyncio.sleep(_POLL_SECONDS)
        return
    loop = asyncio.get_running_loop()
    exited = asyncio.Event()
    try:
        if proc.started(process.pid) == process.started:  # otherwise the pid was recycled
            loop.add_reader(fd, exited.set)
            await exited.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
