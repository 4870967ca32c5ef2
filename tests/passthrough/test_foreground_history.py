"""Who asks: the worst of those seen lately, and for how long a run is the same."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING

from passthrough.person import SIZE
from telex.passthrough.foreground_history import LATELY_SECONDS, ForegroundHistory
from telex.terminal import limits
from telex.terminal.pty import Pty, open_pty

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Told:
    def __init__(self, *argv: str) -> None:
        self.said = b""
        self._news = asyncio.Event()
        self.pty: Pty = open_pty(argv, size=SIZE, output=self._hear, ended=lambda: None)

    def _hear(self, data: bytes) -> None:
        self.said += data
        self._news.set()

    async def says(self, text: bytes) -> None:
        async with asyncio.timeout(10):
            while text not in self.said:
                self._news.clear()
                await self._news.wait()


@contextlib.asynccontextmanager
async def running(*argv: str) -> AsyncIterator[Told]:
    told = Told(*argv)
    async with told.pty:
        yield told


@contextlib.asynccontextmanager
async def after_ssh(path: Path, served: int) -> AsyncIterator[tuple[ForegroundHistory, Pty]]:
    """`ssh` was seen at the time 0, printed so much, and a shell is there now."""
    ssh = path / "ssh"
    ssh.write_text("#!/bin/sh\necho connected; read line\n")
    ssh.chmod(0o700)
    script = f"set -m; {ssh}; echo home; read line"
    async with running("bash", "-c", script) as told:
        await told.says(b"connected")
        seen = ForegroundHistory()
        seen.sample(told.pty, 0.0)
        assert seen.origin(told.pty, 0.0).program == "ssh"
        seen.note_read(served, 0.0)
        told.pty.write(b"\r")
        await told.says(b"home")
        yield seen, told.pty


async def test_what_was_not_read_for_long_still_comes_from_who_was_there_before(
    tmp_path: Path,
) -> None:
    async with after_ssh(tmp_path, 10) as (seen, pty):
        seen.sample(pty, 60.0)
        assert seen.origin(pty, 60.0).program == "ssh"
        seen.note_read(10, 60.0)
        seen.sample(pty, 60.1)
        assert seen.origin(pty, 60.1).kind == "remote"  # asked in that read, served a moment later


async def test_once_a_read_emptied_the_terminal_who_is_gone_is_gone(tmp_path: Path) -> None:
    async with after_ssh(tmp_path, 10) as (seen, pty):
        seen.sample(pty, 60.0)
        seen.note_read(10, 60.0)
        seen.sample(pty, 61.0)
        assert seen.origin(pty, 61.0).kind == "local"


async def test_a_read_that_left_something_keeps_who_was_there(tmp_path: Path) -> None:
    async with after_ssh(tmp_path, limits.OUTPUT_BYTES) as (seen, pty):
        for time in (60.0, 61.0, 62.0):
            seen.sample(pty, time)
            assert seen.origin(pty, time).kind == "remote"
            seen.note_read(limits.OUTPUT_BYTES, time)
        for time in range(100, 110):  # more than the kernel holds
            seen.sample(pty, time)
            seen.note_read(limits.OUTPUT_BYTES, time)
        assert seen.origin(pty, 110.0).kind == "local"


async def test_within_a_while_who_has_left_is_still_counted(tmp_path: Path) -> None:
    async with after_ssh(tmp_path, 10) as (seen, pty):
        for tenth in range(1, int(LATELY_SECONDS * 10)):
            seen.sample(pty, tenth / 10)
            assert seen.origin(pty, tenth / 10).kind == "remote"
            seen.note_read(10, tenth / 10)
        for tenth in range(30, 40):
            seen.sample(pty, tenth / 10)
            seen.note_read(10, tenth / 10)
        assert seen.origin(pty, 4.0).kind == "local"


async def test_who_ended_before_the_first_look_is_judged_by_what_is_there(tmp_path: Path) -> None:
    async def origin(*argv: str) -> str:
        async with running(*argv) as told:
            await told.pty.child.wait()
            await told.says(b"said")
            seen = ForegroundHistory()
            seen.sample(told.pty, 0.0)
            return seen.origin(told.pty, 0.0).kind

    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho said\n")
    ssh.chmod(0o700)
    assert await origin("echo", "said") == "local"
    assert await origin(str(ssh), "host") == "remote"
    assert await origin("sh", "-c", f"exec {ssh} host") == "remote"
    assert await origin("sh", "-c", "bash -c 'exec -a ssh sleep 100' & echo said") == "remote"


async def test_who_ended_has_no_claim_to_the_answers_of_who_was_there_before() -> None:
    async with running("bash", "-c", "set -m; echo first; read line; echo second; read") as told:
        await told.says(b"first")
        seen = ForegroundHistory()
        seen.sample(told.pty, 0.0)
        assert seen.origin(told.pty, 0.0).run is not None
        seen._see(told.pty, 2**22 + 1, 0.1)  # a group that is no more
        assert seen._samples[-1].names == ("bash",)
        assert seen._samples[-1].run is None


async def test_a_process_that_becomes_another_program_is_another_run(tmp_path: Path) -> None:
    """Of the same interpreter by the same name, and in the time between two looks."""
    second = tmp_path / "second.py"
    second.write_text("print('second', flush=True); input()")
    first = f"import os, sys; print('first', flush=True); input(); os.execv({sys.executable!r}, "
    first += f"[sys.executable, {str(second)!r}])"
    async with running(sys.executable, "-c", first) as told:
        await told.says(b"first")
        seen = ForegroundHistory()
        seen.sample(told.pty, 0.0)
        before = seen.origin(told.pty, 0.0)
        seen.sample(told.pty, 0.1)
        assert seen.origin(told.pty, 0.1) == before
        told.pty.write(b"\r")
        await told.says(b"second")
        seen.sample(told.pty, 0.15)
        after = seen.origin(told.pty, 0.15)
    assert before.run is not None
    assert after.run is not None
    assert before.run[0] == after.run[0]
    assert before.run != after.run
