"""Ending trees: no process is left, whatever it did to survive."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from dataclasses import replace
from signal import SIGCONT, SIGHUP, SIGKILL, SIGTERM
from typing import TYPE_CHECKING

import pytest

from processes.trees import SHAPES, Lifeline, shape
from telex.processes.child import Exit
from telex.processes.spawn import PipeEnd, Pipes, start
from telex.processes.termination import (
    AT_ONCE,
    POLITE,
    UNSETTLED_SCANS,
    Rung,
    TreeSurvived,
    TreeTermination,
)
from telex.processes.tree import Process, Root, Table, Tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from telex.processes.child import Child

HURRIED = (Rung(SIGHUP, 0.02), Rung(SIGTERM, 0.02), Rung(SIGKILL, 20.0))
HEEDED_BY_NOBODY = (Rung(SIGHUP, 0.01), Rung(SIGTERM, 0.01))


def grow(name: str, lifeline: Lifeline) -> Child:
    return start(shape(name)[0], stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, lifeline.writing))


@pytest.mark.parametrize("name", SHAPES)
async def test_no_process_of_the_tree_is_left(name: str, lifeline: Lifeline) -> None:
    child = grow(name, lifeline)
    await lifeline.ready(shape(name)[1])
    await child.end(HURRIED)
    await lifeline.gone()


@pytest.mark.parametrize(
    "name", sorted({*SHAPES} - {"with an empty environment, its parent there"})
)
async def test_no_process_is_left_when_the_child_itself_exits_before_the_first_scan(
    name: str, lifeline: Lifeline
) -> None:
    child = grow(name, lifeline)
    await lifeline.ready(shape(name)[1])
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, SIGKILL)
    ended = await child.wait()
    assert await child.end(HURRIED) == ended
    await lifeline.gone()


SLEEPS = "sh -c 'echo up >&2; exec sleep 60'"


@pytest.mark.counted
@pytest.mark.parametrize(
    ("script", "count"),
    [
        (f"{SLEEPS}; touch after", 1),
        (f"({SLEEPS} & wait); touch after", 1),
        (f"{SLEEPS} | (echo up >&2; cat; touch after)", 2),
    ],
)
async def test_no_process_continues_because_another_exited_first(
    script: str, count: int, tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    for _ in range(counted(10, 200)):
        lifeline = Lifeline()
        try:
            stdio = Pipes(PipeEnd.NULL, PipeEnd.NULL, lifeline.writing)
            child = start(["sh", "-c", script], stdio=stdio, cwd=str(tmp_path))
            await lifeline.ready(count)
            await child.end((Rung(SIGTERM, 5.0), Rung(SIGKILL, 5.0)))
            await lifeline.gone()
        finally:
            lifeline.close()
        assert os.listdir(tmp_path) == []


@pytest.mark.counted
async def test_no_process_is_left_of_many_trees_ended_at_once(
    counted: Callable[[int, int], int],
) -> None:
    count, together = counted(24, 1000), 20
    names = [list(SHAPES)[n % len(SHAPES)] for n in range(count)]
    slowest = 0.0

    async def one(name: str) -> None:
        nonlocal slowest
        lifeline = Lifeline()
        try:
            child = grow(name, lifeline)
            await lifeline.ready(shape(name)[1])
            began = time.monotonic()
            await child.end(HURRIED)
            slowest = max(slowest, time.monotonic() - began)
            await lifeline.gone()
        finally:
            lifeline.close()

    for at in range(0, count, together):
        await asyncio.gather(*map(one, names[at : at + together]))
    print(f"{count} trees, {together} at a time: 0 left, slowest end {slowest:.3f} s")


async def read_line(child: Child) -> bytes:
    assert child.stdout
    loop, line = asyncio.get_running_loop(), b""
    while not line.endswith(b"\n"):
        readable = loop.create_future()
        loop.add_reader(child.stdout.fileno(), readable.set_result, None)
        await readable
        loop.remove_reader(child.stdout.fileno())
        line += child.stdout.read(1) or b""
    return line


NOTES_SIGNALS = """
import os, signal
def note(number, _): os.write(1, signal.Signals(number).name.encode() + b"\\n")
for number in (signal.SIGHUP, signal.SIGTERM): signal.signal(number, note)
os.write(1, b"up\\n")
while True: signal.pause()
"""


async def test_the_signals_of_the_ladder_are_sent_in_order() -> None:
    argv = [sys.executable, "-S", "-c", NOTES_SIGNALS]
    async with start(argv, stdio=Pipes(PipeEnd.NULL, PipeEnd.PIPE, PipeEnd.NULL)) as child:
        assert await read_line(child) == b"up\n"
        ended = await child.end((Rung(SIGHUP, 0.3), Rung(SIGTERM, 0.3), Rung(SIGKILL, 20.0)))
        assert ended == Exit(signal=SIGKILL)
        assert child.stdout
        assert child.stdout.read() == b"SIGHUP\nSIGTERM\n"


def test_the_polite_ladder_kills_within_three_seconds_after_two_other_signals() -> None:
    assert [rung.signal for rung in POLITE] == [SIGHUP, SIGTERM, SIGKILL]
    assert sum(rung.seconds for rung in POLITE[:-1]) < 3


@pytest.mark.parametrize("heeded", [SIGHUP, SIGTERM])
async def test_a_process_that_exits_gets_no_further_signal(heeded: signal.Signals) -> None:
    ignored = "TERM" if heeded is SIGHUP else "HUP"
    script = f'trap "" {ignored}; echo up; exec sleep 1000'
    async with start(
        ["sh", "-c", script], stdio=Pipes(PipeEnd.NULL, PipeEnd.PIPE, PipeEnd.NULL)
    ) as child:
        await read_line(child)
        ended = await child.end((Rung(SIGHUP, 0.1), Rung(SIGTERM, 20.0), Rung(SIGKILL, 20.0)))
    assert ended == Exit(signal=heeded)


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells what a process ignores")
async def test_a_shell_that_ignores_sigterm_is_hung_up_on_and_not_waited_for() -> None:
    script = 'trap "" TERM; echo up; exec sleep 1000'
    async with start(
        ["sh", "-c", script], stdio=Pipes(PipeEnd.NULL, PipeEnd.PIPE, PipeEnd.NULL)
    ) as child:
        await read_line(child)
        ended = await child.end((Rung(SIGTERM, 20.0, hangup=True), Rung(SIGKILL, 20.0)))
    assert ended == Exit(signal=SIGHUP)


async def test_a_stopped_process_gets_its_signal() -> None:
    script = 'trap "exit 5" TERM; echo up; kill -STOP $$; while :; do sleep 1; done'
    async with start(
        ["sh", "-c", script], stdio=Pipes(PipeEnd.NULL, PipeEnd.PIPE, PipeEnd.NULL)
    ) as child:
        await read_line(child)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        assert await child.end((Rung(SIGTERM, 20.0),)) == Exit(5)


async def test_ending_again_is_harmless() -> None:
    child = start(["sleep", "1000"], stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, PipeEnd.NULL))
    first = await child.end()
    assert await child.end() == first == Exit(signal=SIGHUP)


async def test_concurrent_ends_of_one_child_send_no_signal_twice() -> None:
    argv = [sys.executable, "-S", "-c", NOTES_SIGNALS]
    async with start(argv, stdio=Pipes(PipeEnd.NULL, PipeEnd.PIPE, PipeEnd.NULL)) as child:
        await read_line(child)
        ladder = (Rung(SIGHUP, 0.3), Rung(SIGTERM, 0.3), Rung(SIGKILL, 20.0))
        ends = await asyncio.gather(*(child.end(ladder) for _ in range(50)))
        assert set(ends) == {Exit(signal=SIGKILL)}
        assert child.stdout
        assert child.stdout.read() == b"SIGHUP\nSIGTERM\n"


async def test_an_impatient_end_overtakes_a_patient_one(lifeline: Lifeline) -> None:
    child = grow("left behind", lifeline)
    await lifeline.ready(2)
    patient = asyncio.create_task(child.end((Rung(SIGHUP, 1000.0), Rung(SIGKILL, 1000.0))))
    await asyncio.sleep(0)
    await child.end(AT_ONCE)
    await lifeline.gone()
    await patient


async def test_an_end_cancelled_during_a_scan_does_not_break_the_scan_of_others() -> None:
    child = start(["sleep", "1000"], stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, PipeEnd.NULL))
    one, other = asyncio.create_task(child.end()), asyncio.create_task(child.end())
    await asyncio.sleep(0)
    one.cancel()
    assert await other == Exit(signal=SIGHUP)


async def test_a_cancelled_end_can_be_repeated(lifeline: Lifeline) -> None:
    child = grow("left behind", lifeline)
    await lifeline.ready(2)
    watched = asyncio.get_running_loop()._selector.get_map()  # type: ignore[attr-defined]
    before = set(watched)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(child.end((Rung(SIGHUP, 1000.0),)), 0.05)
    assert set(watched) <= before
    await child.end(HURRIED)
    await lifeline.gone()


async def test_survivors_are_named_and_can_be_ended_later(lifeline: Lifeline) -> None:
    child = grow("alone", lifeline)
    await lifeline.ready(1)
    with pytest.raises(TreeSurvived, match=str(child.pid)) as caught:
        await child.end(HEEDED_BY_NOBODY)
    assert caught.value.pids == [child.pid]
    await child.end(HURRIED)
    await lifeline.gone()


async def test_ending_one_child_leaves_the_others_alone(lifeline: Lifeline) -> None:
    other = grow("a daemon left behind", lifeline)
    await lifeline.ready(1)
    another = Lifeline()
    child = grow("a daemon left behind", another)
    await another.ready(1)
    await child.end(HURRIED)
    await another.gone()
    another.close()
    with pytest.raises(TreeSurvived):
        await other.end(HEEDED_BY_NOBODY)
    await other.end(HURRIED)
    await lifeline.gone()


@pytest.mark.parametrize("command", ["sh", "setsid sh"])
async def test_a_chain_that_forks_and_exits_as_fast_as_we_scan_is_ended(
    command: str, lifeline: Lifeline
) -> None:
    """Each process starts the next and exits. The chain is finite, in case ending it fails."""
    links = 5000
    script = f'echo up >&2; [ $1 -gt {links} ] || {command} -c "$0" "$0" $(($1 + 1)) &'
    argv = ["sh", "-c", script, script, "0"]
    child = start(argv, stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, lifeline.writing))
    await lifeline.ready(20)
    await child.end(AT_ONCE)
    assert await lifeline.gone() < links - 1000


def seen(*rows: Process, settled: bool = True) -> Table:
    """Return a table with just these processes and ourselves."""
    us = Process(os.getpid(), 1, 1, 1, 0)
    return Table([us, *rows], observer=os.getpid(), cookie=lambda _: "", settled=settled)


async def test_a_group_is_killed_with_members_that_no_scan_has_shown(lifeline: Lifeline) -> None:
    child = grow("in the background", lifeline)
    await lifeline.ready(2)
    shown = Process(child.pid, os.getpid(), child.pid, child.pid, child.started)
    with TreeTermination(AT_ONCE, {}) as ending:
        assert ending.proceed(seen(shown), child.tree, 0.0)
        await lifeline.gone()
    await child.end()


async def test_a_known_member_stays_one_when_it_has_no_other_sign() -> None:
    child = start(["sleep", "1000"], stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, PipeEnd.NULL))
    tree = Tree((Root(99999999, 1),), ":nobody.1:", 1)
    below = Process(child.pid, 99999999, 77777777, 77777777, child.started)
    with TreeTermination((Rung(SIGCONT, 0.0), Rung(SIGTERM, 9.0)), {}) as ending:
        root = Process(99999999, os.getpid(), 99999999, 99999999, 1, alive=False)
        assert ending.proceed(seen(root, below), tree, 0.0)
        assert ending.proceed(seen(replace(below, ppid=1)), tree, 1.0)
    assert await child.wait() == Exit(signal=SIGTERM)
    await child.end()


def test_an_unsettled_scan_without_members_is_repeated() -> None:
    tree = Tree((Root(99999999, 1),), ":nobody.1:", 1)
    with TreeTermination(POLITE, {}) as ending:
        scans = [ending.proceed(seen(settled=False), tree, 0.0) for _ in range(UNSETTLED_SCANS)]
        assert scans == [True] * (UNSETTLED_SCANS - 1) + [False]
    with TreeTermination(POLITE, {}) as ending:
        assert not ending.proceed(seen(), tree, 0.0)


async def test_leaving_its_block_ends_the_child(lifeline: Lifeline) -> None:
    with pytest.raises(ZeroDivisionError):
        async with start(["sleep", "1000"]) as child:
            raise ZeroDivisionError
    assert child.exit == Exit(signal=SIGHUP)
    for pipe in (child.stdin, child.stdout, child.stderr):
        assert pipe
        assert pipe.closed
