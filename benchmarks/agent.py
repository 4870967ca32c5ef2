"""The agent's store: events made durable in a second, a long history, and opening a large file; and
the same as a UI sees it, through the whole runtime (`agent_runs`).

Peers: SQLite itself, with the same settings, committing each event by itself (what one event costs
at this disk) and all of them in one transaction (what the disk would give if nobody waited).
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path

from benchmarks import agent_runs
from benchmarks.figures import Row, against, in_turns, memory
from telex.agent.store import NewRun, Status, Store, verify
from telex.config import places

ROUNDS, EVENTS, RUNS, LONG = 5, 2_000, 20, 100_000
EVENT = b'{"type":"text","content":"%s","timestamp":1}' % (b"word " * 30)
AT_ONCE = "20 runs at once"
NOT_WAITING = "one run, not waiting"
ALONE, TOGETHER = "SQLite, a commit each", "SQLite, one commit"


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        return [*_rates(place), *_long(place)]


def _rates(place: Path) -> list[Row]:
    numbers = count()

    def ours(work: Callable[[Store], Coroutine[None, None, None]]) -> Callable[[], float]:
        return lambda: asyncio.run(_timed(place / f"{next(numbers)}" / "telex.db", work))

    measured = in_turns(
        {
            "one after another": ours(_one_after_another),
            AT_ONCE: ours(_runs_at_once),
            NOT_WAITING: ours(_not_waiting),
            ALONE: lambda: _bare(place / f"{next(numbers)}", commits=True),
            TOGETHER: lambda: _bare(place / f"{next(numbers)}", commits=False),
        },
        ROUNDS,
    )
    rows = agent_runs.live(place / "live", measured[NOT_WAITING], measured[AT_ONCE])
    for name in ("one after another", AT_ONCE, NOT_WAITING):
        peers = {peer: measured[peer] for peer in (ALONE, TOGETHER)}
        figure = f"events stored durably, {name}"
        rows += against(figure, "/s", {name: measured[name], **peers}, {})
    return rows


async def _timed(path: Path, work: Callable[[Store], Coroutine[None, None, None]]) -> float:
    async with await Store.open(path) as store:
        for number in range(RUNS):
            await store.start_run(NewRun(f"{number}", f"{number}", b"{}", "", new_thread=True))
        start = time.perf_counter()
        await work(store)
        return EVENTS / (time.perf_counter() - start)


async def _one_after_another(store: Store) -> None:
    for _ in range(EVENTS):
        await store.append("0", EVENT)


async def _runs_at_once(store: Store) -> None:
    async def one(run_id: str) -> None:
        for _ in range(EVENTS // RUNS):
            await store.append(run_id, EVENT)

    await asyncio.gather(*(one(f"{number}") for number in range(RUNS)))


async def _not_waiting(store: Store) -> None:
    await asyncio.gather(*(store.append("0", EVENT) for _ in range(EVENTS)))


def _bare(path: Path, *, commits: bool) -> float:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE events (run INTEGER, seq INTEGER, event BLOB)")
    start = time.perf_counter()
    if not commits:
        database.execute("BEGIN")
    for number in range(EVENTS):
        database.execute("INSERT INTO events VALUES (1, ?, ?)", (number, EVENT))
    if not commits:
        database.execute("COMMIT")
    seconds = time.perf_counter() - start
    database.close()
    return EVENTS / seconds


def _long(place: Path) -> list[Row]:
    path = places.find({"TELEX_HOME": str(place / "long")}).database
    asyncio.run(_fill(path))
    opening = min(asyncio.run(_opening(path)) for _ in range(ROUNDS))
    first, whole, grown = asyncio.run(_played(path))
    start = time.perf_counter()
    assert not verify(path).problems
    verified = time.perf_counter() - start
    size = f"{LONG:,} events"
    return [
        Row(f"open a store of {size}", opening * 1e3, "ms"),
        Row(f"history of {size}, the first", first * 1e3, "ms"),
        Row(f"history of {size}, all", whole * 1e3, "ms"),
        Row(f"history of {size}, memory", grown, "MB more"),
        Row(f"verify {size}", verified * 1e3, "ms"),
        *agent_runs.replayed(place / "long", "s", LONG),
    ]


async def _fill(path: Path) -> None:
    async with await Store.open(path) as store:
        for number in range(10):
            await store.start_run(NewRun(f"{number}", "s", b"{}", "", new_thread=number == 0))
            await asyncio.gather(*(store.append(f"{number}", EVENT) for _ in range(LONG // 10)))
            await store.end_run(f"{number}", Status.COMPLETED)


async def _opening(path: Path) -> float:
    start = time.perf_counter()
    store = await Store.open(path)
    await store.threads()
    seconds = time.perf_counter() - start
    await store.close()
    return seconds


async def _played(path: Path) -> tuple[float, float, float]:
    async with await Store.open(path) as store:
        start, first = time.perf_counter(), 0.0
        async for _ in await store.history("s", max_events=2 * LONG):
            first = first or time.perf_counter() - start
        seconds, before = time.perf_counter() - start, memory()
        history = await store.history("s", max_events=2 * LONG)
        seen = [memory() async for event in history if event.seq % 2_500 == 0]
        return first, seconds, max(seen) - before
