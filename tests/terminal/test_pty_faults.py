"""Terminals in numbers and under strain: nothing lost, nobody starved, nothing left behind."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from processes.trees import SHAPES, Lifeline, shape
from telex.processes.child import Exit
from telex.processes.termination import AT_ONCE
from telex.terminal import limits
from telex.terminal.cells import Size
from telex.terminal.pty import open_pty
from terminal.test_pty import opened, shell

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

LETTERS = bytes(itertools.islice(itertools.cycle(range(33, 127)), 256 * 1024))
LENGTHS = (1, 2, 79, 4095, 4096, 4097, 10_000, 65_535, 65_536, 70_001, 262_143, 262_144)


async def in_batches(work: Iterable[Awaitable[None]], each: int) -> None:
    left = iter(work)
    while batch := list(itertools.islice(left, each)):
        await asyncio.gather(*batch)


@pytest.mark.counted
@pytest.mark.each_loop
async def test_the_last_output_of_a_child_that_exits_at_once_is_never_lost(
    counted: Callable[[int, int], int], tmp_path: Path
) -> None:
    letters = tmp_path / "letters"
    letters.write_bytes(LETTERS)

    async def one(length: int) -> None:
        pty, heard = opened(["head", "-c", str(length), str(letters)])
        async with pty:
            assert await heard.end() == LETTERS[:length]
            assert pty.child.exit == Exit(0)

    count = counted(100, 5_000)
    await in_batches((one(LENGTHS[n % len(LENGTHS)]) for n in range(count)), 8)


@pytest.mark.counted
async def test_hostile_trees_end_whole(counted: Callable[[int, int], int]) -> None:
    async def one(name: str) -> None:
        line = Lifeline()
        argv, count = shape(name)
        # The end of a session's leader is a SIGHUP to the others, before they can be deaf to it.
        argv[2] = f"trap '' HUP; exec 2>/proc/{os.getpid()}/fd/{line.writing}; {argv[2]}"
        pty, heard = opened(argv)
        try:
            async with pty:
                await line.ready(count)
            await line.gone()
            assert heard.ends == 1
        finally:
            line.close()

    names = itertools.islice(itertools.cycle(SHAPES), counted(len(SHAPES), 1_000))
    await in_batches(map(one, names), len(SHAPES))


@pytest.mark.counted
@pytest.mark.each_loop
async def test_opening_and_closing_leaves_nothing_behind(
    counted: Callable[[int, int], int],
) -> None:
    async def one(number: int) -> None:
        pty, heard = shell("stty raw -echo; echo up; exec cat")
        if number % 4:
            await heard.text(b"up")
        if number % 4 > 1:
            pty.write(LETTERS)
        if number % 4 > 2:
            await heard.text(LETTERS[:100])
        pty.close()
        await pty.end(AT_ONCE)

    await one(0)  # the guardian is started
    threads, fds = threading.active_count(), os.listdir("/proc/self/fd")
    await in_batches(map(one, range(counted(50, 2_500))), 10)
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == len(fds)


async def test_a_flood_leaves_every_turn_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the budget of bytes between two turns of anybody else, time or no time."""
    monkeypatch.setattr("telex.terminal.limits.TURN_MILLISECONDS", 10_000)
    loop = asyncio.get_running_loop()
    turns = [0]

    def anybody_else() -> None:
        turns.append(0)
        if not pty.child.exit:
            loop.call_soon(anybody_else)

    def output(data: bytes) -> None:
        turns[-1] += len(data)

    pty, _ = opened(["yes"], output=output)
    async with pty:
        anybody_else()
        while sum(turns) < 10_000_000:
            await asyncio.sleep(0)
    assert limits.OUTPUT_BYTES < max(turns) <= limits.TURN_BYTES + limits.OUTPUT_BYTES


async def test_output_that_is_expensive_to_process_gets_a_turn_by_time() -> None:
    loop = asyncio.get_running_loop()
    calls = [0]

    def anybody_else() -> None:
        calls.append(0)
        if not pty.child.exit:
            loop.call_soon(anybody_else)

    def output(data: bytes) -> None:
        assert len(data) <= limits.OUTPUT_BYTES
        calls[-1] += 1
        until = time.monotonic() + limits.TURN_MILLISECONDS / 1000
        while time.monotonic() < until:
            pass

    pty, _ = opened(["yes"], output=output)
    async with pty:
        anybody_else()
        while sum(calls) < 100:
            await asyncio.sleep(0)
    assert max(calls) == 1


STARVED = """
import asyncio, os, resource
from telex.processes import guardian
from telex.processes.spawn import StartFailed
from telex.terminal.cells import Size
from telex.terminal.pty import open_pty

def open_now():
    listed = {int(fd) for fd in os.listdir("/proc/self/fd")} - guardian.fds()
    return {fd for fd in listed if os.path.exists(f"/proc/self/fd/{fd}")}

async def main():
    await asyncio.sleep(0)
    before, hard = open_now(), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    refused = started = limit = 0
    while started < 3:
        limit += 1
        over = asyncio.Event()
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        try: pty = open_pty(["/bin/true"], size=Size(), output=lambda _: None, ended=over.set)
        except StartFailed: pty = None
        else: await over.wait()  # also when there is no descriptor to hold the line with
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        refused += pty is None
        started += pty is not None
        if pty: await pty.__aexit__(None, None, None)
        assert open_now() == before, (limit, open_now(), before)
    print(refused)
asyncio.run(main())
"""


def test_running_out_of_descriptors_at_any_point_leaks_none() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARVED], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) > 10


async def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed, not asserted: starting beside a large parent, and the loop without a reader."""
    ballast = bytearray(os.urandom(1)) * (300 << 20)
    best = min([await _start_seconds() for _ in range(20)])
    speed = await _bytes_a_second()
    del ballast
    with capsys.disabled():
        print(f"\npty: start {best * 1e3:.2f} ms in a 300 MB parent; read {speed / 1e6:.0f} MB/s")


async def _start_seconds() -> float:
    over = asyncio.Event()
    began = time.perf_counter()
    pty = open_pty(["/bin/true"], size=Size(), output=lambda _: None, ended=over.set)
    took = time.perf_counter() - began
    async with pty:
        await over.wait()
    return took


async def _bytes_a_second() -> float:
    pty, heard = opened(["sh", "-c", "stty raw; exec cat /dev/zero"])
    async with pty:
        await heard.text(b"\0")
        began, before = time.perf_counter(), len(heard.said)
        await heard.until(lambda: len(heard.said) > before + 20_000_000)
        return (len(heard.said) - before) / (time.perf_counter() - began)
