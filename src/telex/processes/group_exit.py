"""When a process group that is not ours is gone: its last process has ended.

The kernel tells of the end of a process (a pidfd), and of no group's. So one member is waited for,
and then the next, until none is left. A zombie is none: it asks nothing and reads nothing. Where
there are no pidfds, or none left, there is a look each second.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from telex.processes import proc

if TYPE_CHECKING:
    from telex.processes.tree import Process

_LOOK_SECONDS: Final = 1.0


async def gone(group: int) -> None:
    """Returns when nobody is left in it, which may be at once."""
    while (member := _member(group)) is not None:
        await _ended(member)
    if _hidden(group):
        await asyncio.get_running_loop().create_future()  # we shall never know


def _member(group: int) -> Process | None:
    """The leader while it lives: mostly it is the last to leave."""
    found = proc.scan().rows.values()
    members = [one for one in found if one.pgid == group and one.alive]
    return min(members, key=lambda one: one.pid != group, default=None)


def _hidden(group: int) -> bool:
    """Whether somebody is there whom we may not see: another user's, where /proc hides them."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return False  # zombies


async def _ended(process: Process) -> None:
    try:
        fd = proc.pidfd(process.pid)
    except ProcessLookupError:
        return
    if fd is None:
        await asyncio.sleep(_LOOK_SECONDS)
        return
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    try:
        if proc.started(process.pid) == process.started:  # else the number is another's by now
            loop.add_reader(fd, told.set)
            await told.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
