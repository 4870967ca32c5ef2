"""`kill -9` while a process writes: what it was told is stored is there, once, in order."""

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
"""How often one database is killed before the next one is taken: it is to be hurt repeatedly."""


@dataclass
class Acknowledged:
    """What a process said, before it died, that it had been told."""

    events: dict[str, int] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def hear(self, line: str) -> None:
        match line.split():
            case ["event", run, seq, number]:
                assert seq == number, "what was said to be stored is not where it was put"
                self.events[run] = int(seq)
            case ["asked", run, id]:
                self.asked[id] = run
            case ["answered", _, id]:
                self.answered.add(id)


def killed(path: Path, turn: int, lines: int) -> Acknowledged:
    """What a writer said, of which so many lines were waited for before it was killed."""
    argv = [sys.executable, CHILD, "write", path, str(turn)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        said += child.stdout.readlines()
    heard = Acknowledged()
    for line in said:
        if line.endswith(b"\n"):
            heard.hear(line.decode())
    return heard


async def check(path: Path, turn: int, heard: Acknowledged) -> int:
    async with await Store.open(path) as store:
        for run in (f"{turn}.{number}" for number in range(4)):
            try:
                found = await contents(store.events(run))
            except UnknownRun:
                assert run not in heard.events
                continue
            assert found == [(n, n) for n in range(len(found))], "lost, doubled or out of order"
            assert len(found) > heard.events.get(run, -1), "told to be stored, and not there"
            await check_run(store, run, heard)
    return sum(seq + 1 for seq in heard.events.values())


async def check_run(store: Store, run: str, heard: Acknowledged) -> None:
    """It has ended, or waits for the answer to a question that is still there."""
    waiting = await store.pending(run)
    status = (await store.run(run)).status
    assert status is (Status.AWAITING_UI if waiting else Status.ERROR)
    asked = {id for id, of in heard.asked.items() if of == run}
    late = [question.id for question in waiting]
    assert not heard.answered & set(late)
    for id in asked - heard.answered - set(late):
        assert (await store.answer(id, b"{}", "late")).answer == b'{"ok":true}'


async def test_a_session_is_free_when_the_process_that_had_it_was_killed(tmp_path: Path) -> None:
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
        heard = killed(path, turn, lines)
        events += asyncio.run(check(path, turn, heard))
        if turn % STORE_TURNS == STORE_TURNS - 1 or turn == turns - 1:
            assert verify(path).problems == ()
            assert list(path.parent.glob("*-owner-*")) == []
    assert events > turns * 10
    print(f"{turns} kills, {events} acknowledged events, all there")
