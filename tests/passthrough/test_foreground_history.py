"""The origin of a request is the least trusted recent one; a run ends with an exec."""

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


class RunningProgram:
    def __init__(self, *argv: str) -> None:
        self.output = b""
        self._news = asyncio.Event()
        self.pty: Pty = open_pty(argv, size=SIZE, output=self._read, ended=lambda: None)

    def _read(self, data: bytes) -> None:
        self.output += data
        self._news.set()

    async def says(self, text: bytes) -> None:
        async with asyncio.timeout(60):
            while text not in self.output:
                self._news.clear()
                await self._news.wait()


@contextlib.asynccontextmanager
async def running(*argv: str) -> AsyncIterator[RunningProgram]:
    program = RunningProgram(*argv)
    async with program.pty:
        yield program


@contextlib.asynccontextmanager
async def after_ssh(path: Path, served: int) -> AsyncIterator[tuple[ForegroundHistory, Pty]]:
    """`ssh` was sampled at time 0 and printed so much; now a shell is in the foreground."""
    ssh = path / "ssh"
    ssh.write_text("#!/bin/sh\necho connected; read line\n")
    ssh.chmod(0o700)
    script = f"set -m; {ssh}; echo home; read line"
    async with running("bash", "-c", script) as program:
        await program.says(b"connected")
        seen = ForegroundHistory()
        seen.sample(program.pty, 0.0)
        assert seen.origin(program.pty, 0.0).program == "ssh"
        seen.note_read(served, 0.0)
        program.pty.write(b"\r")
        await program.says(b"home")
        yield seen, program.pty


async def test_output_that_was_not_read_for_long_keeps_its_earlier_origin(
    tmp_path: Path,
) -> None:
    async with after_ssh(tmp_path, 10) as (seen, pty):
        seen.sample(pty, 60.0)
        assert seen.origin(pty, 60.0).program == "ssh"
        seen.note_read(10, 60.0)
        seen.sample(pty, 60.1)
        assert seen.origin(pty, 60.1).kind == "remote"  # sent in that read, served a moment later


async def test_samples_from_before_an_emptying_read_are_dropped(tmp_path: Path) -> None:
    async with after_ssh(tmp_path, 10) as (seen, pty):
        seen.sample(pty, 60.0)
        seen.note_read(10, 60.0)
        seen.sample(pty, 61.0)
        assert seen.origin(pty, 61.0).kind == "local"


async def test_a_read_that_did_not_empty_the_terminal_keeps_the_samples(tmp_path: Path) -> None:
    async with after_ssh(tmp_path, limits.OUTPUT_BYTES) as (seen, pty):
        for time in (60.0, 61.0, 62.0):
            seen.sample(pty, time)
            assert seen.origin(pty, time).kind == "remote"
            seen.note_read(limits.OUTPUT_BYTES, time)
        for time in range(100, 110):  # more than the kernel holds
            seen.sample(pty, time)
            seen.note_read(limits.OUTPUT_BYTES, time)
        assert seen.origin(pty, 110.0).kind == "local"


async def test_a_remote_program_still_counts_for_a_while_after_it_left(tmp_path: Path) -> None:
    async with after_ssh(tmp_path, 10) as (seen, pty):
        for tenth in range(1, int(LATELY_SECONDS * 10)):
            seen.sample(pty, tenth / 10)
            assert seen.origin(pty, tenth / 10).kind == "remote"
            seen.note_read(10, tenth / 10)
        for tenth in range(30, 40):
            seen.sample(pty, tenth / 10)
            seen.note_read(10, tenth / 10)
        assert seen.origin(pty, 4.0).kind == "local"


async def test_a_program_that_exited_before_the_first_sample_is_judged_by_the_others(
    tmp_path: Path,
) -> None:
    async def origin(*argv: str) -> str:
        async with running(*argv) as program:
            await program.pty.child.wait()
            await program.says(b"said")
            seen = ForegroundHistory()
            seen.sample(program.pty, 0.0)
            return seen.origin(program.pty, 0.0).kind

    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho said\n")
    ssh.chmod(0o700)
    assert await origin("echo", "said") == "local"
    assert await origin(str(ssh), "host") == "remote"
    assert await origin("sh", "-c", f"exec {ssh} host") == "remote"
    assert await origin("sh", "-c", "bash -c 'exec -a ssh sleep 100' & echo said") == "remote"


async def test_an_exited_group_does_not_get_the_run_of_the_previous_group() -> None:
    async with running("bash", "-c", "set -m; echo first; read line; echo second; read") as program:
        await program.says(b"first")
        seen = ForegroundHistory()
        seen.sample(program.pty, 0.0)
        assert seen.origin(program.pty, 0.0).run is not None
        seen._add_sample(program.pty, 2**22 + 1, 0.1)  # a group that has exited
        assert seen._samples[-1].names == ("bash",)
        assert seen._samples[-1].run is None


async def test_a_process_that_becomes_another_program_is_another_run(tmp_path: Path) -> None:
    """The same interpreter with the same name, between two samples."""
    second = tmp_path / "second.py"
    second.write_text("print('second', flush=True); input()")
    first = f"import os, sys; print('first', flush=True); input(); os.execv({sys.executable!r}, "
    first += f"[sys.executable, {str(second)!r}])"
    async with running(sys.executable, "-c", first) as program:
        await program.says(b"first")
        seen = ForegroundHistory()
        seen.sample(program.pty, 0.0)
        before = seen.origin(program.pty, 0.0)
        seen.sample(program.pty, 0.1)
        assert seen.origin(program.pty, 0.1) == before
        program.pty.write(b"\r")
        await program.says(b"second")
        seen.sample(program.pty, 0.15)
        after = seen.origin(program.pty, 0.15)
    assert before.run is not None
    assert after.run is not None
    assert before.run[0] == after.run[0]
    assert before.run != after.run
