"""What programs wait for: how often the answer is right, how soon it comes, and what it costs.

The labels are those of `situations`. The confusion table has a row for each label and a column for
each answer. "waiting while busy" counts every sample in which a busy program was said to wait.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import situations
from benchmarks.figures import Row
from benchmarks.situations import Outcome
from telex.terminal.actions import Text
from telex.terminal.pty import Program
from telex.terminal.session import PtySession
from telex.terminal.waits.matchers import InputWanted

ROUNDS: Final = 25
IDLE: Final = 4000 if os.environ.get("TELEX_SOAK") == "1" else 500
IDLE_SECONDS: Final = 5.0
ASKING: Final = {
    "a prompt, then read": "input('Name: ')",
    "read without a word": "sys.stdin.readline()",
    "a password": "getpass.getpass()",
    "a key, by select": "select.select([0], [], []); os.read(0, 99)",
}
_PROGRAM: Final = """
import getpass, os, select, sys, time
told = os.open({fifo!r}, os.O_WRONLY)
for n in range({rounds}):
    time.sleep(0.02 + 0.007 * (n % 7))
    os.write(told, b'%.6f\\n' % time.monotonic())
    {ask}
"""


def run() -> list[Row]:
    rows, outcomes = asyncio.run(_run())
    print_confusion(outcomes)
    return rows


async def _run() -> tuple[list[Row], list[Outcome]]:
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as home,
        situations.workspace(Path(home)) as made,
    ):
        chosen = [one for one in situations.load() if one.needs is None]
        outcomes = await situations.observe_all(chosen, made, at_once=4)
    outcomes = [one for one in outcomes if not one.ended]
    right = sum(one.right for one in outcomes)
    alarms = sum(len(one.false_alarms) for one in outcomes)
    rows = [
        Row("input state: right answers", 100 * right / len(outcomes), "%", target=">= 98"),
        Row("input state: situations", len(outcomes), "programs", target=">= 80"),
        Row("input state: waiting while busy", alarms, "times", target="0"),
    ]
    for name, ask in ASKING.items():
        delays = await _delays(ask)
        rows.append(
            Row(
                f"from the wait to the answer: {name}, median",
                statistics.median(delays) * 1000,
                "ms",
                target="<= 50",
                spread=(min(delays) * 1000, max(delays) * 1000),
            )
        )
    rows += await _costs()
    return rows, outcomes


async def _delays(ask: str) -> list[float]:
    """Measure the time between a program's call and the end of our wait."""
    with tempfile.TemporaryDirectory() as place:
        fifo = f"{place}/told"
        os.mkfifo(fifo)
        reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            source = _PROGRAM.format(rounds=ROUNDS, fifo=fifo, ask=ask)
            async with PtySession(Program((sys.executable, "-c", source))) as session:
                return [await _delay(session, reading) for _ in range(ROUNDS)]
        finally:
            os.close(reading)


async def _delay(session: PtySession, reading: int) -> float:
    await session.wait(InputWanted(), 30)
    now = time.monotonic()
    began = float(os.read(reading, 64).split()[-1])
    await session.act(Text("x\n"))
    return now - began


async def _costs() -> list[Row]:
    """Measure one look, and the processor time of idle sessions."""
    async with PtySession(Program(("bash", "--norc"))) as session:
        await session.wait(InputWanted(), 30)
        began = time.perf_counter()
        for _ in range(200):
            session.input_state()
        look = (time.perf_counter() - began) / 200
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(IDLE, (hard - 100) // 4)
    sessions: list[PtySession] = []
    try:
        for number in range(count):
            sessions.append(PtySession(Program(("cat",))))
            sessions[-1].input_watch.listen(_heard)
            if number % 50 == 0:
                await asyncio.sleep(0)
        for session in sessions:
            await session.wait(InputWanted(), 60)
        await asyncio.sleep(1)  # what the start has left to do
        spent = time.process_time()
        await asyncio.sleep(IDLE_SECONDS)
        spent = time.process_time() - spent
    finally:
        for at in range(0, len(sessions), 100):
            await asyncio.gather(*(session.close() for session in sessions[at : at + 100]))
    return [
        Row("one look at a shell", look * 1e6, "us"),
        Row(
            f"{count} idle sessions, each watched: processor",
            100 * spent / IDLE_SECONDS,
            "%",
            target="0",
        ),
    ]


def _heard() -> None:
    pass


def print_confusion(outcomes: Sequence[Outcome]) -> None:
    """Print the labels against the answers, and each wrong answer."""
    cells = Counter((one.situation.state, one.answer.state) for one in outcomes)
    states = sorted({state for pair in cells for state in pair})
    width = max(map(len, states)) + 2
    print("label \\ answer".ljust(16) + "".join(state.rjust(width) for state in states))
    for label in states:
        counts = [cells[label, answer] or "." for answer in states]
        print(label.ljust(16) + "".join(str(count).rjust(width) for count in counts))
    for one in outcomes:
        if not one.right:
            print(f"wrong: {one.situation.name}: {one.answer}")
        for alarm in one.false_alarms[:1]:
            print(f"WAITING WHILE BUSY: {one.situation.name}: {alarm}")
    print()
