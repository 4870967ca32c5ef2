"""The agent's store: runs and their events, histories, sessions, and ownership of runs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agent.storing import begun, contents, opened, text
from telex.agent.limits import AGENT_EVENT_BYTES
from telex.agent.store import (
    IdTaken,
    NewRun,
    NotStorable,
    RunEnded,
    RunNotOurs,
    Status,
    StoreClosed,
    ThreadBusy,
    UnknownRun,
    UnknownThread,
    reader,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def test_events_of_a_run_are_numbered_from_zero_without_gaps(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a", "one")
        await begun(store, "b", "two")
        numbers = await asyncio.gather(
            *(store.append(run, text(n)) for n in range(50) for run in ("a", "b"))
        )
        assert numbers == [n for n in range(50) for _ in "ab"]
        for run in "ab":
            assert await contents(store.events(run)) == [(n, n) for n in range(50)]
        assert await contents(store.events("a", after=47)) == [(48, 48), (49, 49)]


async def test_an_event_is_on_the_disk_when_append_returns(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        for n in range(5):
            await store.append("a", text(n))
            with sqlite3.connect(store.path) as other:
                assert other.execute("SELECT max(seq) FROM events").fetchone() == (n,)
            other.close()
        settings = await store._writer.do(
            lambda state: [
                state.database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ]
        )
        assert settings == ["wal", 2, 1]


async def test_waiting_writes_share_one_commit(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        commits = 0

        def watched(statement: str) -> None:
            nonlocal commits
            commits += statement == "COMMIT"

        await store._writer.do(lambda state: state.database.set_trace_callback(watched))
        await asyncio.gather(*(store.append("a", text(n)) for n in range(1000)))
        assert commits < 50, "each of a thousand events had a commit of its own"


async def test_unknown_members_are_kept_byte_for_byte(tmp_path: Path) -> None:
    event = b'{ "x.new" : [1.0, 1e5,\t{"z":null}], "type":"text","content":"\\u00e9 \xc3\xa9" }'
    meta = b'{"type":7, "trace" :"abc"}'
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await store.append("a", event, meta)
        (found,) = [found async for found in store.events("a")]
        assert (found.event, found.meta) == (event, meta)


NOT_EVENTS = [
    *(b"", b"[]", b'{"type":"text",', b'{"type":1}', b"{}", b'{"type":"text"}{}'),
    *(b'{"type":"text",\n"a":1}', b'{"type":"text","a":"\xff"}', b'{"type":"a","b":01}'),
]


async def test_bytes_that_are_not_one_event_on_one_line_are_refused(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        for event in NOT_EVENTS:
            with pytest.raises(NotStorable):
                await store.append("a", event)
        assert await store.append("a", text("next")) == 0


async def test_an_event_beyond_the_limit_is_refused_with_its_meta(tmp_path: Path) -> None:
    largest = text("x" * (AGENT_EVENT_BYTES - len(text(""))))
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        assert await store.append("a", largest) == 0
        with pytest.raises(NotStorable, match=str(AGENT_EVENT_BYTES)):
            await store.append("a", largest, b"{}")
        with pytest.raises(NotStorable):
            await store.append("a", largest + b" ")


# Runs.


async def test_a_run_that_has_ended_takes_no_event_and_ends_once(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await store.end_run("a", Status.CANCELLED, "by the person")
        for late in (store.append("a", text(1)), store.end_run("a", Status.COMPLETED)):
            with pytest.raises(RunEnded) as refused:
                await late
            assert refused.value.status == "cancelled"
        run = await store.run("a")
        assert (run.status, run.message) == (Status.CANCELLED, "by the person")
        assert run.ended_at is not None
        assert await contents(store.events("a")) == []


async def test_an_event_asked_for_after_the_end_is_not_in_the_same_commit(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        before, end, after = await asyncio.gather(
            store.append("a", text(0)),
            store.end_run("a", Status.CANCELLED),
            store.append("a", text(1)),
            return_exceptions=True,
        )
        assert (before, end) == (0, None)
        assert isinstance(after, RunEnded)


async def test_a_session_has_one_run_at_a_time(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        with pytest.raises(ThreadBusy) as busy:
            await begun(store, "b")
        assert busy.value.run_id == "a"
        await store.end_run("a", Status.COMPLETED)
        await begun(store, "b")
        assert [run.run_id for run in await store.active_runs()] == ["b"]


async def test_the_error_names_the_missing_run_or_session(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        for unknown in (store.append("x", text(1)), store.run("x"), store.adopt("x")):
            with pytest.raises(UnknownRun, match="run x does not exist"):
                await unknown
        for missing in (store.history("x"), store.thread("x"), store.set_thread_meta("x", b"{}")):
            with pytest.raises(UnknownThread, match="session x does not exist"):
                await missing
        with pytest.raises(UnknownThread):
            await store.start_run(NewRun("b", "x", b"{}", ""))
        for taken in (
            NewRun("a", "t", b"{}", "", new_thread=True),
            NewRun("b", "s", b"{}", "", new_thread=True),
        ):
            with pytest.raises(IdTaken):
                await store.start_run(taken)
        assert [thread.session_id for thread in await store.threads()] == ["s"]


async def test_a_refused_write_does_not_fail_others_in_its_commit(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        answers = await asyncio.gather(
            *(store.append("a" if n % 2 else "x", text(n)) for n in range(10)),
            return_exceptions=True,
        )
        assert [answer for answer in answers if isinstance(answer, int)] == [0, 1, 2, 3, 4]


async def test_cancelled_appends_leave_the_others_in_order(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        waiting = [asyncio.create_task(store.append("a", text(n))) for n in range(100)]
        await asyncio.sleep(0)
        for task in waiting[::3]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await contents(store.events("a")) == [(n, n) for n in range(100)]


async def test_close_finishes_queued_writes_and_refuses_later_ones(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await begun(store, "a")
    last = asyncio.create_task(store.append("a", text(1)))
    await asyncio.sleep(0)
    await store.close()
    assert await last == 0
    await store.close()
    for late in (store.append("a", text(2)), store.threads()):
        with pytest.raises(StoreClosed):
            await late


# After a runtime died.


async def test_runs_whose_runtime_died_have_ended_with_an_error(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await store.append("a", text(1))
    async with await opened(tmp_path) as store:
        run = await store.run("a")
        assert (run.status, run.message) == (Status.ERROR, "the runtime ended")
        with pytest.raises(RunEnded):
            await store.append("a", text(2))


async def test_a_run_of_a_live_runtime_cannot_be_written_by_another(tmp_path: Path) -> None:
    async with await opened(tmp_path) as theirs, await opened(tmp_path) as ours:
        await begun(theirs, "a")
        await theirs.append("a", text(1))
        assert (await ours.run("a")).status is Status.RUNNING
        for refused in (ours.append("a", text(2)), ours.adopt("a")):
            with pytest.raises(RunNotOurs):
                await refused
        with pytest.raises(ThreadBusy):
            await begun(ours, "b")
        await begun(ours, "c", "other")
        both = [
            store.append(run, text(n))
            for n in range(50)
            for store, run in ((theirs, "a"), (ours, "c"))
        ]
        assert sorted(await asyncio.gather(*both)) == sorted([*range(1, 51), *range(50)])
        await theirs.close()
        await begun(ours, "b")  # the other runtime has ended, so the session is free
        assert (await ours.run("a")).status is Status.ERROR


# Histories and lists.


async def test_a_history_has_the_users_input_before_the_events_of_each_run(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        for run in ("a", "b"):
            await begun(store, run, said=f"do {run}")
            await store.append(run, text(f"{run} done"))
            await store.end_run(run, Status.COMPLETED)
        history = await store.history("s")
        events = [event async for event in history]
        assert (history.runs, history.events, history.truncated) == (2, 4, False)
        assert [(event.run_id, event.seq) for event in events] == [
            ("a", -1), ("a", 0), ("b", -1), ("b", 0),
        ]  # fmt: skip
        said = [json.loads(event.event) for event in events]
        assert said[2] == {"type": "hidden_user_message", "content": "do b"}


WINDOWS = [
    *((20, 1500, ("a", -1), False), (3, 9, ("a", -1), False), (2, 9, ("b", -1), True)),
    *((20, 8, ("a", 0), True), (20, 4, ("b", 1), True), (20, 3, ("c", -1), True)),
    *((20, 1, ("c", 1), True), (0, 9, None, True), (9, 0, None, True), (-1, -1, None, True)),
]


async def test_a_history_keeps_the_latest(tmp_path: Path) -> None:
    every = [(run, seq) for run in "abc" for seq in (-1, 0, 1)]
    async with await opened(tmp_path) as store:
        for run in "abc":
            await begun(store, run)
            await asyncio.gather(*(store.append(run, text(n)) for n in range(2)))
            await store.end_run(run, Status.COMPLETED)
        for runs, events, first, truncated in WINDOWS:
            history = await store.history("s", runs, events)
            played = [(event.run_id, event.seq) async for event in history]
            assert played == (every[every.index(first) :] if first else [])
            assert (history.events, history.truncated) == (len(played), truncated)
            assert history.runs == len({run for run, _ in played})


async def test_a_history_has_no_events_that_were_stored_after_the_request(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await store.append("a", text(0))
        history = await store.history("s")
        await store.append("a", text(1))
        assert [event.seq async for event in history] == [-1, 0]


@pytest.mark.counted
async def test_a_long_history_is_read_in_little_memory(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    count = counted(5_000, 100_000)
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        filling = text("x" * 1000)
        await asyncio.gather(*(store.append("a", filling) for _ in range(count)))
        history = await store.history("s", max_events=count)
        tracemalloc.start()
        played = 0
        async for _ in history:
            played += 1
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert played == count
        assert peak < 3_500_000


async def test_the_page_of_a_log_is_bounded_in_bytes(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        for _ in range(5):
            await store.append("a", text("x" * 700_000))
        span = await store._reader.read(reader.log, "a", -1)
        events, rest = await store._reader.read(reader.page, span)
        assert (len(events), rest.first, rest.end) == (2, 2, 5)


async def test_a_log_with_a_gap_replays_each_stored_event_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.store.reader.STORE_PAGE_BYTES", 1)
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        for number in range(7):
            await store.append("a", text(number))
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("DELETE FROM events WHERE seq BETWEEN 1 AND 4")
        assert await contents(store.events("a")) == [(n, n) for n in (0, 5, 6)]
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("DELETE FROM events WHERE seq = 0")
        assert await contents(store.events("a")) == [(5, 5), (6, 6)]


async def test_sessions_are_listed_by_their_last_change(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        for session in ("one", "two", "three"):
            await begun(store, f"run {session}", session, f"hello {session}")
        await store.append("run one", b'{"type":"final","content":"bye"}')
        await store.set_thread_meta("two", b'{"todo":[]}')
        listed = await store.threads()
        assert [thread.session_id for thread in listed] == ["one", "three", "two"]
        assert [thread.message_count for thread in listed] == [2, 1, 1]
        assert (listed[0].last_run_id, listed[0].last_user_message) == ("run one", "hello one")
        assert listed[2].meta == b'{"todo":[]}'
        assert [thread.session_id for thread in await store.threads(1)] == ["one"]
