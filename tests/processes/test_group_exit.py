"""Waiting for the end of a process group."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from telex.processes.child import group_gone

FORKED = """
import os, sys
if os.fork():
    os._exit(0)
print("left", flush=True)
sys.stdin.read(1)
"""


async def test_a_group_ends_with_its_last_process_and_not_with_its_leader() -> None:
    """The leader is not reaped meanwhile: a zombie does not count."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    group = subprocess.Popen([sys.executable, "-c", FORKED], process_group=0, **pipes)
    assert group.stdin is not None
    assert group.stdout is not None
    with group.stdin, group.stdout:
        assert group.stdout.readline() == b"left\n"
        waiting = asyncio.create_task(group_gone(group.pid))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.2)
        group.stdin.write(b".")
        group.stdin.flush()
        await asyncio.wait_for(waiting, 60)
    os.waitpid(group.pid, 0)
    group.returncode = 0
    await asyncio.wait_for(group_gone(group.pid), 60)
