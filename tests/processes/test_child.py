"""Waiting for a child: with several waiters, with none, and on systems without pidfds."""

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


def end_input(child: Child) -> None:
    """End the input of `cat` or `sh -c 'read x'`, so that the child exits."""
    assert child.stdin
    child.stdin.close()


async def test_any_number_of_tasks_may_wait() -> None:
    async with start(["sh", "-c", "read x; exit 3"], stdio=UNTIL_TOLD) as child:
        waiting = [asyncio.create_task(child.wait()) for _ in range(10)]
        await asyncio.sleep(0)
        assert child.exit is None
        end_input(child)
        assert {await task for task in waiting} == {Exit(3)}
        assert await child.wait() == child.exit == Exit(3)


async def test_a_cancelled_wait_does_not_affect_the_others() -> None:
    async with start(["sh", "-c", "read x; exit 3"], stdio=UNTIL_TOLD) as child:
        waiting = [asyncio.create_task(child.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.wait(), 0.001)
        end_input(child)
        assert [await waiting[0], await waiting[2]] == [Exit(3), Exit(3)]


async def test_a_reaped_child_no_longer_owns_its_pid() -> None:
    child = start(["true"], stdio=QUIET)
    later = proc.now() + 1000
    stranger = Process(child.pid, 1, child.pid, child.pid, later)
    moment = Table([stranger], observer=os.getpid(), cookie=lambda _: "")
    assert members(moment, child.tree) == [stranger]  # not reaped yet, so the pid must be ours
    await child.wait()
    assert members(moment, child.tree) == []


def children_now() -> set[int]:
    listed = subprocess.check_output(["ps", "--ppid", str(os.getpid()), "-o", "pid="], text=True)
    return {int(pid) for pid in listed.split()}


async def test_a_child_without_a_waiter_is_reaped() -> None:
    child = start(["true"], stdio=QUIET)
    while child.exit is None:
        await asyncio.sleep(0)
    assert child.pid not in children_now()


def test_a_child_of_a_closed_loop_is_reaped_by_the_next_start() -> None:
    async def begin() -> Child:
        return start(["cat"], stdio=UNTIL_TOLD)

    abandoned = asyncio.run(begin())
    end_input(abandoned)
    os.waitid(os.P_PID, abandoned.pid, os.WEXITED | os.WNOWAIT)

    async def begin_another() -> None:
        await start(["true"], stdio=QUIET).end()

    asyncio.run(begin_another())
    assert abandoned.exit == Exit(0)
    assert abandoned.pid not in children_now()


async def test_a_status_that_other_code_collected_is_unknown() -> None:
    child = start(["cat"], stdio=UNTIL_TOLD)
    end_input(child)
    assert os.waitpid(child.pid, 0)[1] == 0
    assert await child.wait() == Exit()
    assert str(child.exit) == "ended"


async def test_children_that_the_kernel_reaps_can_be_waited_for() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert await start(["true"], stdio=QUIET).end() == Exit()
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_without_pidfds_a_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    child = start(["sh", "-c", "read x; exit 3"], stdio=UNTIL_TOLD)
    end_input(child)
    assert await child.wait() == Exit(3)
    child = start(["sh", "-c", "setsid sleep 1000 &"], stdio=QUIET)
    await child.wait()
    assert (await child.end()).code == 0


def test_without_pidfds_a_closed_loop_causes_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")

    async def begin() -> Child:
        return start(["cat"], stdio=UNTIL_TOLD)

    before = set(threading.enumerate())
    abandoned = asyncio.run(begin())
    (waiting,) = set(threading.enumerate()) - before
    end_input(abandoned)
    waiting.join()
    assert abandoned.pid not in children_now()


def test_the_same_holds_in_uvloop() -> None:
    """In a separate process, because uvloop never closes one of its pipes."""
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
async def test_many_children_leave_no_resources_behind(
    counted: Callable[[int, int], int],
) -> None:
    """More children than may stay recorded as exited, so that the cleanup runs too."""
    count = counted(150, 5000)
    codes = [(await start(["true"], stdio=QUIET).wait()).code for _ in range(count)]
    assert codes == [0] * count
    assert child_module._unreaped[asyncio.get_running_loop()] == set()
    watch = guardian._watch
    assert watch
    assert len(watch.ledger._slots) < 100


def test_the_repr_of_a_child_shows_its_exit() -> None:
    async def live() -> tuple[str, str]:
        async with start([sys.executable, "-c", "input()"], stdio=UNTIL_TOLD) as child:
            running = repr(child)
        return running, repr(child)

    running, ended = asyncio.run(live())
    assert "running" in running
    assert "ended by SIGHUP" in ended
