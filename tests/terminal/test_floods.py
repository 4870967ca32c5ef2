"""Programs that print without pause, and clients that never read, harm nobody: who waits for whom,
and how much is held for them. Times are printed, and not asserted."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import floods

from automating import Client, Serving
from telex.automation import limits as automation_limits
from telex.terminal import actions, limits
from telex.terminal.cells import Size
from telex.terminal.pty import Program
from telex.terminal.scheduler import OutputScheduler, TokenBucket, output_scheduler
from telex.terminal.screen import Screen
from telex.terminal.scrollback_pool import ScrollbackPool, common_length
from telex.terminal.session import PtySession
from telex.terminal.waits import matchers

MOST_MEGABYTES = 64


@pytest.mark.counted
def test_floods_and_clients_that_never_read_hold_little(
    counted: Callable[[int, int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    sessions, deaf, rounds = counted(6, 20), counted(16, 64), counted(20, 500)
    found = floods.measure(sessions, deaf, rounds)
    with capsys.disabled():
        print(f"\n{sessions} floods, {deaf} who never read: {found}")
    assert found.grown < MOST_MEGABYTES


# Whose turn it is.


async def test_each_turn_serves_the_work_that_fits_and_the_queue_rotates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("telex.terminal.limits.TURN_MILLISECONDS", 0)  # then one fits
    line = output_scheduler()
    served: list[str] = []
    works: dict[str, Callable[[], None]] = {}

    def work(name: str) -> Callable[[], None]:
        def run() -> None:
            served.append(name)
            line.queue(works[name])

        return run

    for name in "abc":
        works[name] = work(name)
        line.queue(works[name])
    for _ in range(9):
        before = len(served)
        await asyncio.sleep(0)
        assert len(served) == before + 1
    assert served == [*"abcabcabc"]
    line.withdraw(works["b"])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert served[9:] == ["a", "c"]
    line.withdraw(works["a"])
    line.withdraw(works["c"])
    await asyncio.sleep(0)
    assert len(served) == 11


async def test_no_work_runs_twice_in_a_turn_however_fast() -> None:
    line = OutputScheduler(asyncio.get_running_loop())
    count = 0

    def run() -> None:
        nonlocal count
        count += 1
        line.queue(run)

    line.queue(run)
    for number in range(1, 20):
        await asyncio.sleep(0)
        assert count == number
    line.withdraw(run)


def test_occasional_output_need_not_queue() -> None:
    allowance = TokenBucket(0.0)
    for second in range(1, 100):
        allowance.spend(limits.LIGHT_BYTES // 2, float(second))
        assert not allowance.is_spent(float(second))
    allowance.spend(2 * limits.LIGHT_BYTES, 100.0)
    assert allowance.is_spent(100.1)
    assert not allowance.is_spent(100.6)


async def test_floods_are_served_in_turn_and_typed_input_is_answered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With turns so short that one flood fits into each: of six none is left out, no two are
    served between two turns of anybody else, and the echo is there before all had theirs. Spent
    buckets are not refilled, so that a pause of the whole process changes nothing."""
    monkeypatch.setattr("telex.terminal.limits.TURN_MILLISECONDS", 0)
    spend = TokenBucket.spend
    monkeypatch.setattr(TokenBucket, "spend", lambda self, size, _: spend(self, size, self._at))
    served: list[Counter[int]] = [Counter()]
    loop = asyncio.get_running_loop()

    over = False

    def anybody_else() -> None:
        served.append(Counter())
        if not over:
            loop.call_soon(anybody_else)

    flooding = [PtySession(Program(("yes", floods.FLOOD))) for _ in range(6)]
    for number, session in enumerate(flooding):
        session.output_taps.add(lambda _, number=number: served[-1].update([number]))  # type: ignore[misc]
    try:
        while any(one.transcript.cursor < 4 * limits.LIGHT_BYTES for one in flooding):
            await asyncio.sleep(0)
        loop.call_soon(anybody_else)
        served[:] = [Counter()]
        async with PtySession(Program(("cat",))) as typed_at:
            for number in range(5):
                await typed_at.act(actions.Text(f"m{number}.\n"))
                await typed_at.wait(matchers.ContainsText(f"m{number}."))
        together = Counter(len(turn) for turn in served)
        assert set(together) <= {0, 1}, together
        assert sum(served, Counter()).keys() == {*range(6)}
    finally:
        over = True
        await asyncio.gather(*(session.close() for session in flooding))


# What is held for who does not read.


def _told_state(client: Client, session: str) -> str | None:
    """The input state of a session that a client was told last."""
    told = [params for method, params in client.told if method == "session.input_state"]
    states = [params["input_state"]["state"] for params in told if params["session"] == session]
    return states[-1] if states else None


async def test_a_client_that_does_not_read_costs_nothing_for_each_change(tmp_path: Path) -> None:
    async with Serving("unix, ndjson", tmp_path)() as client:
        session_id = await client.start("printf ready; cat")
        await client.shows(session_id, "ready")
        deaf = await client.another()
        await deaf.call("server.set_notifications", enabled=True)
        # What the quiet program waits for is a change too: it is told before the client goes deaf.
        await deaf.until(lambda: _told_state(deaf, session_id) == "line")
        deaf.peer._channel.pause()
        assert client._server is not None
        session = client._server.service.automation._sessions.find(session_id)
        watching = len(session.watchers)
        flood = await client.start("yes " + "x" * 60)
        clogged = client._server.service.automation._sessions.find(flood)
        async with asyncio.timeout(60):
            while clogged.watchers:  # told once, and not again before that was read
                await asyncio.sleep(0.01)
        assert len(session.watchers) == watching
        deaf.peer._channel.resume()
        await deaf.until(lambda: len(deaf.output(flood)) > 10_000)


async def test_a_slow_reader_gets_output_in_pieces_and_every_gap_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.automation.limits.OUTPUT_CHARS_TOLD", 1000)
    async with Serving("unix, ndjson", tmp_path)() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start("seq 3000")
        await client.until(lambda: client.exits(session))
        assert client.output(session) == "".join(f"{number}\r\n" for number in range(1, 3001))
        told = [p for method, p in client.told if method == "session.output"]
        assert max(len(params["output"]) for params in told) <= 1000


async def test_the_attachments_of_a_connection_share_its_buffer(tmp_path: Path) -> None:
    async with Serving("unix, ndjson", tmp_path)() as client:
        session = await client.start("read x; seq 200000; printf end; cat")
        for _ in range(16):
            await client.call("session.attach", session=session, credit=1)
        await client.act(session, "text", "\n")
        await client.shows(session, "end")
        assert client._server is not None
        (connection,) = client._server.service.automation._connections.values()
        kept = sum(len(one._backlog) for one in connection.attachments.values())
        assert kept <= automation_limits.ATTACHED_BYTES


# Scrollbacks.


@pytest.mark.parametrize(
    ("used", "length"),
    [
        ((), None),
        ((10, 20, 30), None),
        ((100, 0), None),
        ((101, 0), 100),
        ((60, 60), 50),
        ((10, 90, 90), 45),
        ((10, 20, 90), 70),
        ((1,) * 200, 5),
    ],
)
def test_the_longest_scrollbacks_are_cut_to_one_length_so_that_all_fit(
    used: tuple[int, ...], length: int | None
) -> None:
    assert common_length(used, 100, least=5) == length
    if length is not None and length > 5:
        assert sum(min(size, length) for size in used) <= 100


def filled(count: int) -> list[Screen]:
    screens = [Screen(Size()) for _ in range(count)]
    for screen in screens:
        for _ in range(40):
            screen.feed(b"some words of a log\r\n" * 500)
    return screens


def test_a_single_scrollback_keeps_all_its_rows_and_many_share_the_memory() -> None:
    (alone,) = filled(1)
    assert alone.scrollback_length == limits.SCROLLBACK_ROWS
    others = filled(9)
    rows = [screen.scrollback_length for screen in (alone, *others)]
    assert max(rows) < limits.SCROLLBACK_ROWS / 2
    assert min(rows) > 500
    assert sum(rows) * 84 * 9 < 1.3 * limits.SCROLLBACKS_BYTES
    for screen in others:
        screen.close()
    for _ in range(40):
        alone.feed(b"some words of a log\r\n" * 500)
    assert alone.scrollback_length == limits.SCROLLBACK_ROWS
    alone.close()


def test_scrollbacks_of_another_thread_get_their_limit_when_they_report() -> None:
    class Told:
        def __init__(self) -> None:
            self.limits: list[int | None] = []

        def limit(self, size: int | None) -> None:
            self.limits.append(size)

    shared, here, there = ScrollbackPool(), Told(), Told()
    shared.join(here)
    shared.join(there)
    shared._members[there].thread = -1
    for one in (here, there):
        shared.report(one, limits.SCROLLBACKS_BYTES)
    assert len(here.limits) == 1
    assert there.limits == []
    assert here.limits[0] == limits.SCROLLBACKS_BYTES // 2
    shared._members[there].thread = threading.get_ident()
    shared.report(there, limits.SCROLLBACKS_BYTES // 2)
    assert there.limits == here.limits
