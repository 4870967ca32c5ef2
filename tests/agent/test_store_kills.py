"""`kill -9` of a process that writes: every acknowledged event is stored, once and in order."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.storing import contents, text
from telex.agent.store import NewRun, Status, Store, ThreadBusy, UnknownRun, verify

if TYPE_CHECKING:
    from collections.abc import Callable

CHILD = Path(__file__).parent / "store_child.py"
STORE_TURNS = 40
"""How many kills one database gets before a new one is used: it must survive repeated kills."""


@dataclass
class Acknowledged:
    """The writes that a process reported as stored before it was killed."""

    events: dict[str, int] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def add(self, line: str) -> None:
        match line.split():
            case ["event", run, seq, number]:
                assert seq == number, "the event has another sequence number than expected"
                self.events[run] = int(seq)
            case ["asked", run, id]:
                self.asked[id] = run
            case ["answered", _, id]:
                self.answered.add(id)


def killed(path: Path, turn: int, lines: int) -> Acknowledged:
    """Run a writer, wait for so many lines of its output, kill it, and return its reports."""
    argv = [sys.executable, CHILD, "write", path, str(turn)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        output = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        output += child.stdout.readlines()
    acknowledged = Acknowledged()
    for line in output:
        if line.endswith(b"\n"):
            acknowledged.add(line.decode())
    return acknowledged


async def check(path: Path, turn: int, acknowledged: Acknowledged) -> int:
    async with await Store.open(path) as store:
        for run in (f"{turn}.{number}" for number in range(4)):
            try:
                found = await contents(store.events(run))
            except UnknownRun:
                assert run not in acknowledged.events
                continue
            assert found == [(n, n) for n in range(len(found))], "lost, doubled or out of order"
            assert len(found) > acknowledged.events.get(run, -1), "acknowledged, but not stored"
            await check_run(store, run, acknowledged)
    return sum(seq + 1 for seq in acknowledged.events.values())


async def check_run(store: Store, run: str, acknowledged: Acknowledged) -> None:
    """Check that the run has ended, or waits for the answer to a question that is still open."""
    waiting = await store.pending(run)
    status = (await store.run(run)).status
    assert status is (Status.AWAITING_UI if waiting else Status.ERROR)
    asked = {id for id, of in acknowledged.asked.items() if of == run}
    late = [question.id for question in waiting]
    assert not acknowledged.answered & set(late)
    for id in asked - acknowledged.answered - set(late):
        assert (await store.answer(id, b"{}", "late")).answer == b'{"ok":true}'


async def test_killing_a_process_frees_its_sessions(tmp_path: Path) -> None:
    path = tmp_path / "store/telex.db"
    async with await Store.open(path) as store:
        argv = [sys.executable, CHILD, "write", path, "0"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert any(line.startswith(b"event 0.0") for line in child.stdout)
            with pytest.raises(ThreadBusy):
                await store.start_run(NewRun("next", "session 0.0", b"{}", ""))
            child.kill()
            child.communicate()
        if waiting := await store.pending("0.0"):
            await store.adopt("0.0")
            assert (await store.withdraw(waiting[0].id, "us")).won
            await store.end_run("0.0", Status.CANCELLED)
        await store.start_run(NewRun("next", "session 0.0", b"{}", ""))
        assert await store.append("next", text(0)) == 0


@pytest.mark.counted
def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    chance, turns, events = random.Random(15), counted(6, 1000), 0
    path = tmp_path / "0/telex.db"
    for turn in range(turns):
        if turn % STORE_TURNS == 0:
            path = tmp_path / str(turn) / "telex.db"
        lines = chance.choice((1, 2, chance.randrange(300)))
        acknowledged = killed(path, turn, lines)
        events += asyncio.run(check(path, turn, acknowledged))
        if turn % STORE_TURNS == STORE_TURNS - 1 or turn == turns - 1:
            assert verify(path).problems == ()
            assert list(path.parent.glob("*-owner-*")) == []
    assert events > turns * 10
    print(f"{turns} kills, {events} acknowledged events, all there")
