"""Many sessions in one process: how late the last of them is when all are busy, and what they hold
when none is. Smaller counts by default; `TELEX_SOAK=1` for those of the table.

Memory is counted in proportion (PSS): what a process shares with others counts as its part of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.figures import Row, memory
from telex.processes import guardian
from telex.terminal import actions
from telex.terminal.pty import Program
from telex.terminal.session import PtySession
from telex.terminal.waits import matchers

SOAK = os.environ.get("TELEX_SOAK") == "1"
ACTIVE = 200
IDLE = 4000 if SOAK else 500
SECONDS = 20 if SOAK else 5
MOST_SECONDS = 45
"""Whoever has not started them all by then is measured with what there is."""
PAUSE = 0.01
"""Between one typed line and the next, on whatever session."""
STARTED_AT_ONCE = 50
TELLING = """
import os, select, termios, time
mode = termios.tcgetattr(0)
mode[3] &= ~termios.ECHO
termios.tcsetattr(0, termios.TCSANOW, mode)
due = time.monotonic()
while True:
    told, _, _ = select.select([0], [], [], max(0, due - time.monotonic()))
    if told:
        os.write(1, os.read(0, 4096))
    else:
        os.write(1, b"x" * 98 + b"\\n")
        due += 0.1
"""
"""Prints 1 KB a second, and says again what it is told; in one process, because 200 that start
others 10 times a second measure the system instead of us."""


def run() -> list[Row]:
    return [*asyncio.run(_active()), *_idle()]


# Busy ones.


async def _active() -> list[Row]:
    """All of them print; now one, now another is typed at."""
    _allow_files()
    telling = Program((sys.executable, "-I", "-S", "-c", TELLING))
    async with AsyncExitStack() as stack:
        sessions = [stack.push_async_exit(PtySession(telling)) for _ in range(ACTIVE)]
        await asyncio.gather(*(session.wait(matchers.ContainsText("xx")) for session in sessions))
        before = _printed(sessions)
        began, spent = time.perf_counter(), time.process_time()
        took: list[float] = []
        while time.perf_counter() < began + SECONDS:
            session = sessions[len(took) % ACTIVE]
            took.append(await _answered(session, f"said{len(took)}."))
            await asyncio.sleep(PAUSE)
        passed = time.perf_counter() - began
        busy = (time.process_time() - spent) / passed
        printed = (_printed(sessions) - before) / 1e3 / ACTIVE / passed
        await asyncio.gather(*(session.close() for session in sessions))
    took.sort()
    figure = f"{ACTIVE} active sessions, typed to found"
    return [
        Row(f"{figure}, p50", took[len(took) // 2] * 1e3, "ms"),
        Row(f"{figure}, p99", took[len(took) * 99 // 100] * 1e3, "ms", target="< 100"),
        Row(f"the same: one core is busy, {printed:.1f} KB/s each", busy * 100, "%"),
    ]


def _printed(sessions: list[PtySession]) -> int:
    return sum(session.transcript.cursor for session in sessions)


async def _answered(session: PtySession, line: str) -> float:
    began = time.perf_counter()
    await session.act(actions.Text(f"{line}\n"))
    await session.wait(matchers.ContainsText(line))
    return time.perf_counter() - began


# Idle ones, each contestant in a process of its own.


def _idle() -> list[Row]:
    ours, theirs = _held_by("telex"), _held_by("tui-test")
    figure, count = f"{ours['sessions']:,} idle sessions", f"tui-test ({theirs['sessions']:,})"
    rows = [
        Row(f"{figure}, {what}", ours[key], unit, theirs[key], count, target)
        for what, key, unit, target in [
            ("memory", "memory", "MB", "<= 250 at 4,000"),
            ("threads", "threads", "", "1"),
            ("descriptors", "descriptors", "", ""),
            ("started in", "seconds", "s", ""),
        ]
    ]
    each = ours["grown"] / ours["sessions"] * 1e3, theirs["grown"] / theirs["sessions"] * 1e3
    return [
        *rows,
        Row("memory of one more session", each[0], "KB", each[1], "tui-test"),
        Row("the guardian's memory", ours["guardian"], "MB"),
        Row("left behind: children, descriptors", ours["left"], ""),
    ]


def _held_by(contestant: str) -> dict[str, float]:
    argv = [sys.executable, "-m", "benchmarks.sessions", contestant]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


async def _hold(contestant: str) -> dict[str, float]:
    _allow_files()
    start: Any = _start_ours if contestant == "telex" else _start_theirs
    async with AsyncExitStack() as stack:
        first = await start(stack)
        before, descriptors, children = memory(), _descriptors(), _children()
        began = time.perf_counter()
        held = [first]
        while len(held) < IDLE and time.perf_counter() < began + MOST_SECONDS:
            if not (more := await _some(start, stack, IDLE - len(held))):
                break
            held += more
        figures = {
            "sessions": len(held),
            "seconds": time.perf_counter() - began,
            "memory": memory(),
            "grown": memory() - before,
            "threads": len(os.listdir("/proc/self/task")),
            "descriptors": _descriptors(),
            "guardian": sum(map(memory, guardian.pids())) if contestant == "telex" else 0.0,
        }
        await asyncio.gather(*(session.close() for session in held[1:]))
        figures["left"] = _descriptors() - descriptors + _children() - children
    return figures


async def _some(start: Any, stack: AsyncExitStack, wanted: int) -> list[Any]:
    """A few more at once, or none when the system has no terminal left."""
    count = min(wanted, STARTED_AT_ONCE)
    begun = await asyncio.gather(*(start(stack) for _ in range(count)), return_exceptions=True)
    return [one for one in begun if not isinstance(one, BaseException)]


async def _start_ours(stack: AsyncExitStack) -> PtySession:
    session = await stack.enter_async_context(PtySession(Program(("cat",))))
    await session.act(actions.Text("ready\n"))
    await session.wait(matchers.ContainsText("ready"))
    return session


async def _start_theirs(stack: AsyncExitStack) -> object:
    terminal: Any = await stack.enter_async_context(peers.tui_test("cat"))
    await terminal.type("ready\n")
    await terminal.get_by_text("ready").first().wait()
    return terminal


def _allow_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_hold(sys.argv[1]))))
