"""Workers and their zygote: killed, replaced, and ended with the pool."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from leftovers import children
from lua_plugins import plugin
from telex.adapters.errors import PluginProblem
from telex.adapters.lua.instance import Instance
from telex.adapters.lua.worker_pool import WorkerPool
from telex.processes.spawn import PipeEnd, Pipes, start

SOURCE = """
local n = 0
return {
  count = function() n = n + 1 return n end,
  long = function() for i = 1, 100 do (("a"):rep(300)):find(".-.-.-b") end end,
}
"""


async def kind_of(instance: Instance, function: str) -> str:
    with pytest.raises(PluginProblem) as caught:
        await instance.call(function)
    return caught.value.kind


def parent_of(pid: int | None) -> int:
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def alive(pid: int | None) -> bool:
    """Return whether a process runs. A zombie has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def gone(*pids: int | None) -> None:
    async with asyncio.timeout(60):
        while any(map(alive, pids)):
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.005)  # and until the EOF of its socket was read


@pytest.mark.each_loop
async def test_a_killed_worker_is_replaced_with_the_next_call() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(SOURCE))
        assert await instance.call("count") == 1
        pid = instance.pid or 0
        os.kill(pid, signal.SIGKILL)
        await gone(pid)
        assert await instance.call("count") == 1
        assert instance.pid != pid


async def test_a_call_fails_if_its_worker_is_killed() -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(SOURCE))
        await instance.exports()
        call = asyncio.ensure_future(kind_of(instance, "long"))
        await asyncio.sleep(0.02)
        os.kill(instance.pid or 0, signal.SIGKILL)
        assert await call == "died"
        assert await instance.call("count") == 1


@pytest.mark.counted
async def test_every_call_is_answered_when_workers_are_killed_at_any_moment(
    counted: Callable[[int, int], int],
) -> None:
    async with WorkerPool() as workers:
        instance = workers.instance(plugin(SOURCE))
        kinds = set()
        for n in range(counted(20, 300)):
            call = asyncio.ensure_future(instance.call("count"))
            await asyncio.sleep(n % 10 / 2000)
            if instance.pid is not None:
                with contextlib.suppress(
                    ProcessLookupError
                ):  # the worker has exited, and the server has not noticed yet
                    os.kill(instance.pid, signal.SIGKILL)
            (answer,) = await asyncio.gather(call, return_exceptions=True)
            kinds.add(answer.kind if isinstance(answer, PluginProblem) else "answered")
        assert kinds <= {"answered", "died", "resting"}


@pytest.mark.each_loop
async def test_a_killed_zygote_ends_its_workers_and_is_replaced() -> None:
    async with WorkerPool() as workers:
        busy, idle = workers.instance(plugin(SOURCE)), workers.instance(plugin(SOURCE))
        await asyncio.gather(busy.exports(), idle.exports())
        call = asyncio.ensure_future(kind_of(busy, "long"))
        await asyncio.sleep(0.02)
        pids = [busy.pid, idle.pid, parent_of(idle.pid)]
        os.kill(pids[-1] or 0, signal.SIGKILL)
        assert await call == "died"
        await gone(*pids)
        assert await busy.call("count") == await idle.call("count") == 1
        assert parent_of(busy.pid) == parent_of(idle.pid) not in pids


@pytest.mark.deadline(60)
async def test_a_hundred_instances_at_once() -> None:
    async with WorkerPool() as workers:
        instances = [workers.instance(plugin(SOURCE, name=f"p{n}")) for n in range(100)]
        began = time.perf_counter()
        assert await asyncio.gather(*(one.call("count") for one in instances)) == [1] * 100
        print(f"100 instances in {time.perf_counter() - began:.2f} s")
        assert len({one.pid for one in instances}) == 100
        assert await asyncio.gather(*(one.call("count") for one in instances)) == [2] * 100
        pids = [one.pid for one in instances]
        helper = parent_of(pids[0])
    assert not any(os.path.exists(f"/proc/{pid}") for pid in [*pids, helper])


async def test_closing_fails_pending_calls_and_leaves_no_process() -> None:
    workers = WorkerPool()
    instance, unstarted = workers.instance(plugin(SOURCE)), workers.instance(plugin(SOURCE))
    await instance.exports()
    pids = [instance.pid, parent_of(instance.pid)]
    call = asyncio.ensure_future(kind_of(instance, "long"))
    starting = asyncio.ensure_future(kind_of(unstarted, "count"))
    await asyncio.sleep(0)
    await workers.close()
    assert await call == await starting == "closed"
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert await kind_of(workers.instance(plugin(SOURCE)), "count") == "closed"
    await workers.close()


SERVER = """
import asyncio, sys
sys.path.append(sys.argv[1])
from leftovers import children
from lua_plugins import plugin
from telex.adapters.lua.worker_pool import WorkerPool

async def main():
    instance = WorkerPool().instance(plugin("return {}"))
    await instance.exports()
    print(instance.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_nothing_outlives_a_server_that_is_killed() -> None:
    tests = str(Path(__file__).parents[2])
    async with start(
        [sys.executable, "-c", SERVER, tests], stdio=Pipes(PipeEnd.NULL, PipeEnd.PIPE, PipeEnd.NULL)
    ) as server:
        assert server.stdout is not None
        os.set_blocking(server.stdout.fileno(), True)
        worker = int(await asyncio.to_thread(server.stdout.readline))
        helper = parent_of(worker)
        assert alive(worker)
        assert alive(helper)
        os.kill(server.pid, signal.SIGKILL)
        await gone(worker, helper)


async def test_an_unused_pool_starts_no_process() -> None:
    workers = WorkerPool()
    workers.instance(plugin(SOURCE))
    assert not children()
    await workers.close()
