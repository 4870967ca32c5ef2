"""Starting, ending and looking at processes, beside what Python brings along.

Each figure is the median of several rounds, and the contestants take turns within a round, so that
a noisy machine is noisy for all of them.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import Row
from telex.processes import guardian, proc
from telex.processes.spawn import PipeEnd, Pipes, start

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ROUNDS, STARTS, TREES = 5, 100, 20
PROGRAM = "/bin/true"
OUTPUT = Pipes(stdin=PipeEnd.NULL, stderr=PipeEnd.NULL)
TREE = "setsid sleep 1000 & (setsid sleep 1000 &); echo up; exec sleep 1000"


async def by_telex() -> None:
    """The child, its pipe, its exit; and that nobody of its tree is left."""
    async with start([PROGRAM], stdio=OUTPUT) as child:
        await child.wait()


async def by_telex_without_end() -> None:
    child = start([PROGRAM], stdio=OUTPUT)
    await child.wait()
    if child.stdout:
        child.stdout.close()


async def by_popen() -> None:
    with subprocess.Popen(
        [PROGRAM],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        child.wait()


async def by_asyncio() -> None:
    child = await asyncio.create_subprocess_exec(
        PROGRAM,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    await child.wait()


CONTESTANTS: dict[str, Callable[[], Awaitable[None]]] = {
    "telex": by_telex_without_end,
    "telex, tree ended too": by_telex,
    "subprocess.Popen": by_popen,
    "asyncio.create_subprocess_exec": by_asyncio,
}


async def starts() -> list[Row]:
    """Children started, waited for and reaped, one after another."""
    rates: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(ROUNDS):
        for name, once in CONTESTANTS.items():
            began = time.perf_counter()
            for _ in range(STARTS):
                await once()
            rates[name].append(STARTS / (time.perf_counter() - began))
    ours, with_tree, popen, by_loop = (statistics.median(rate) for rate in rates.values())
    return [
        Row("children started and reaped", ours, "/s", popen, "subprocess.Popen"),
        Row("the same", ours, "/s", by_loop, "create_subprocess_exec"),
        Row("children, each tree ended too", with_tree, "/s"),
    ]


async def ends() -> list[Row]:
    """From asking to nobody left, for a child and two that left its session."""
    took = []
    for _ in range(TREES):
        child = start(["sh", "-c", TREE], stdio=OUTPUT)
        assert child.stdout
        os.set_blocking(child.stdout.fileno(), True)
        child.stdout.read(3)
        began = time.perf_counter()
        await child.end()
        took.append(time.perf_counter() - began)
        child.stdout.close()
    return [Row("a tree of three sessions ended in", statistics.median(took) * 1e3, "ms")]


def looks() -> list[Row]:
    took, count = [], 0
    for _ in range(20):
        began = time.perf_counter()
        count = len(proc.scan().rows)
        took.append(time.perf_counter() - began)
    (pid,) = guardian.pids()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return [
        Row(f"one look at {count} processes", statistics.median(took) * 1e3, "ms"),
        Row("the guardian's memory", resident / 1024, "MiB"),
    ]


async def _all() -> list[Row]:
    return [*await starts(), *await ends(), *looks()]


def run() -> list[Row]:
    return asyncio.run(_all())
