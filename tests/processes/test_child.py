"""Waiting for a child: any number of waiters, none at all, and systems that make it harder."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from telex.processes import child as child_module
from telex.processes import guardian, proc
from telex.processes.child import Child, Exit
from telex.processes.spawn import PipeEnd, Pipes, start
from telex.processes.tree import Process, Table, members

if TYPE_CHECKING:
    from collections.abc import Callable

QUIET = Pipes(PipeEnd.NULL, PipeEnd.NULL, PipeEnd.NULL)
UNTIL_TOLD = Pipes(stdout=PipeEnd.NULL, stderr=PipeEnd.NULL)


def tell(child: Child) -> None:
    """`cat` and `sh -c 'read x'` end when their input does."""
    assert child.stdin
    child.stdin.close()


async def test_any_number_may_wait() -> None:
    async with start(["sh", "-c", "read x; exit 3"], stdio=UNTIL_TOLD) as child:
        waiting = [asyncio.create_task(child.wait()) for _ in range(10)]
        await asyncio.sleep(0)
        assert child.exit is None
        tell(child)
        assert {await task for task in waiting} == {Exit(3)}
        assert await child.wait() == child.exit == Exit(3)


async def test_a_cancelled_wait_takes_nothing_from_the_others() -> None:
    async with start(["sh", "-c", "read x; exit 3"], stdio=UNTIL_TOLD) as child:
        waiting = [asyncio.create_task(child.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.wait(), 0.001)
        tell(child)
        assert [await waiting[0], await waiting[2]] == [Exit(3), Exit(3)]


async def test_a_child_that_was_reaped_claims_its_number_no_longer() -> None:
    child = start(["true"], stdio=QUIET)
    later = proc.now() + 1000
    stranger = Process(child.pid, 1, child.pid, child.pid, later)
    moment = Table([stranger], observer=os.getpid(), cookie=lambda _: "")
    assert members(moment, child.tree) == [stranger]  # not reaped yet: it can only be ours
    await child.wait()
    assert members(moment, child.tree) == []


def children_now() -> set[int]:
    listed = subprocess.check_output(["ps", "--ppid", str(os.getpid()), "-o", "pid="], text=True)
    return {int(pid) for pid in listed.split()}


async def test_a_child_nobody_waits_for_is_reaped() -> None:
    child = start(["true"], stdio=QUIET)
    while child.exit is None:
        await asyncio.sleep(0)
    assert child.pid not in children_now()


def test_a_child_of_a_loop_that_is_closed_is_reaped_by_the_next_start() -> None:
    async def begin() -> Child:
        return start(["cat"], stdio=UNTIL_TOLD)

    abandoned = asyncio.run(begin())
    tell(abandoned)
    os.waitid(os.P_PID, abandoned.pid, os.WEXITED | os.WNOWAIT)

    async def begin_another() -> None:
        await start(["true"], stdio=QUIET).end()

    asyncio.run(begin_another())
    assert abandoned.exit == Exit(0)
    assert abandoned.pid not in children_now()


async def test_a_status_that_somebody_else_took_is_not_made_up() -> None:
    child = start(["cat"], stdio=UNTIL_TOLD)
    tell(child)
    assert os.waitpid(child.pid, 0)[1] == 0
    assert await child.wait() == Exit()
    assert str(child.exit) == "ended"


async def test_children_that_nobody_needs_to_reap_can_be_waited_for() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert await start(["true"], stdio=QUIET).end() == Exit()
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_without_pidfds_a_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    child = start(["sh", "-c", "read x; exit 3"], stdio=UNTIL_TOLD)
    tell(child)
    assert await child.wait() == Exit(3)
    child = start(["sh", "-c", "setsid sleep 1000 &"], stdio=QUIET)
    await child.wait()
    assert (await child.end()).code == 0


def test_without_pidfds_a_closed_loop_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")

    async def begin() -> Child:
        return start(["cat"], stdio=UNTIL_TOLD)

    before = set(threading.enumerate())
    abandoned = asyncio.run(begin())
    (waiting,) = set(threading.enumerate()) - before
    tell(abandoned)
    waiting.join()
    assert abandoned.pid not in children_now()


def test_the_same_holds_in_uvloop() -> None:
    """In a process of its own: uvloop keeps a pipe for good."""
    code = (
        "import uvloop\n"
        "from telex.processes.spawn import *\n"
        "async def main():\n"
        "  async with start(['sh', '-c', 'setsid sleep 1000 & read x; exit 3']) as child:\n"
        "    child.stdin.close()\n"
        "    print((await child.wait()).code)\n"
        "    await child.end()\n"
        "uvloop.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"3\n", b"")


def test_loops_in_several_threads_start_children_at_once() -> None:
    async def live(seen: list[int]) -> None:
        for _ in range(10):
            async with start(["true"], stdio=QUIET) as child:
                seen.append((await child.wait()).code or 0)

    results: list[list[int]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda r=r: asyncio.run(live(r))) for r in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[0] * 10] * 4


@pytest.mark.counted
async def test_many_children_come_and_go_and_nothing_of_them_stays(
    counted: Callable[[int, int], int],
) -> None:
    """More than may stay written down unresolved, so that this is seen to as well."""
    count = counted(150, 5000)
    codes = [(await start(["true"], stdio=QUIET).wait()).code for _ in range(count)]
    assert codes == [0] * count
    assert child_module._unreaped[asyncio.get_running_loop()] == set()
    watch = guardian._watch
    assert watch
    assert len(watch.ledger._places) < 100


def test_a_child_says_what_became_of_it() -> None:
    async def live() -> tuple[str, str]:
        async with start([sys.executable, "-c", "input()"], stdio=UNTIL_TOLD) as child:
            running = repr(child)
        return running, repr(child)

    running, ended = asyncio.run(live())
    assert "running" in running
    assert "ended by SIGHUP" in ended
