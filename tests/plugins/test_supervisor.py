"""Supervisors: start on demand, restart with backoff, suspension, idle stop, independence."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plugins.animals import RecordingHost, animal, written
from telex.plugins import errors
from telex.plugins.supervisor import PluginSupervisor, PluginSupervisors, RestartPolicy

if TYPE_CHECKING:
    from pathlib import Path

BRISK = RestartPolicy(backoff=0.01)

PID = """
import os
def die(m):
    os._exit(1)
speaking.serve(work=lambda m: speaking.write(id=m["id"], result=os.getpid()), die=die)
"""


async def test_the_first_calls_start_a_plugin_once(tmp_path: Path) -> None:
    supervisor = PluginSupervisor(written(tmp_path, PID), RecordingHost().settings())
    assert supervisor.running is None
    pids = await asyncio.gather(*(supervisor.call("work") for _ in range(20)))
    assert len(set(pids)) == 1
    await supervisor.close()
    assert supervisor.running is None


async def test_after_a_failure_the_next_call_starts_it_again(tmp_path: Path) -> None:
    supervisor = PluginSupervisor(written(tmp_path, PID), RecordingHost().settings(), BRISK)
    first = await supervisor.call("work")
    with pytest.raises(errors.PluginEnded, match="the plugin own exited with code 1"):
        await supervisor.call("die")
    assert await supervisor.call("work") != first
    await supervisor.close()


def test_each_recent_failure_doubles_the_wait_up_to_a_limit() -> None:
    pace = RestartPolicy(backoff=0.5, longest=3)
    assert [pace.wait(count) for count in range(6)] == [0, 0.5, 1, 2, 3, 3]


async def test_a_plugin_that_failed_is_not_started_again_at_once() -> None:
    supervisor = PluginSupervisor(
        animal("exits_at_once"), RecordingHost().settings(), RestartPolicy(backoff=0.2)
    )
    loop = asyncio.get_running_loop()
    moments = [loop.time()]
    for _ in range(2):
        with pytest.raises(errors.PluginHandshakeFailed):
            await supervisor.call("work")
        moments.append(loop.time())
    assert moments[2] - moments[1] >= 0.2
    await supervisor.close()


@pytest.mark.deadline(200)
async def test_a_suspension_is_reported_and_ends_when_its_failures_are_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = RestartPolicy(failures=2, window=100.0, backoff=0.01)
    supervisor = PluginSupervisor(written(tmp_path, PID), RecordingHost().settings(), pace)
    loop = asyncio.get_running_loop()
    for _ in range(2):
        with pytest.raises(errors.PluginEnded):
            await supervisor.call("die")
    with pytest.raises(
        errors.PluginSuspended, match="own failed 2 times within 100 s and is suspended"
    ):
        await supervisor.call("work")
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 100)  # after the window
    await supervisor.call("work")
    await supervisor.close()


async def test_an_idle_plugin_is_stopped_and_the_next_call_starts_another(tmp_path: Path) -> None:
    supervisor = PluginSupervisor(
        written(tmp_path, PID), RecordingHost().settings(), RestartPolicy(idle=0.05)
    )
    first = await supervisor.call("work")
    plugin = supervisor.running
    assert plugin is not None
    await plugin.wait_ended()
    assert not plugin.failed
    assert await supervisor.call("work") != first
    await supervisor.close()


async def test_a_plugin_in_use_is_not_idle(tmp_path: Path) -> None:
    supervisor = PluginSupervisor(
        written(tmp_path, PID), RecordingHost().settings(), RestartPolicy(idle=0.05)
    )
    async with supervisor.acquire() as plugin:
        await asyncio.sleep(0.15)  # longer than the idle limit
        assert plugin.end_reason is None
    await supervisor.close()


async def test_the_timeout_of_a_call_includes_the_start() -> None:
    supervisor = PluginSupervisor(animal("never_answers_the_handshake"), RecordingHost().settings())
    with pytest.raises(errors.PluginTimedOut, match=r"could not be started within 0\.1 s"):
        await supervisor.call("work", timeout=0.1)
    await supervisor.close()


async def test_closing_cancels_a_start_and_fails_the_waiting_calls() -> None:
    supervisor = PluginSupervisor(animal("never_answers_the_handshake"), RecordingHost().settings())
    calls = [asyncio.create_task(supervisor.call("work")) for _ in range(3)]
    await asyncio.sleep(0.05)
    await supervisor.close()
    for call in calls:
        with pytest.raises(errors.PluginEnded, match="was closed by its host"):
            await call
    with pytest.raises(errors.PluginEnded):
        await supervisor.call("work")


async def test_cancelling_one_caller_does_not_cancel_the_start_for_others(tmp_path: Path) -> None:
    supervisor = PluginSupervisor(written(tmp_path, PID), RecordingHost().settings())
    one, two = (asyncio.create_task(supervisor.call("work")) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    assert isinstance(await two, int)
    with pytest.raises(asyncio.CancelledError):
        await one
    await supervisor.close()


async def test_plugins_end_concurrently_and_a_hanging_one_delays_no_other(tmp_path: Path) -> None:
    hanging = [animal(name) for name in ("hangs_at_shutdown", "ignores_sigterm")]
    loop = asyncio.get_running_loop()
    async with PluginSupervisors(
        [*hanging, written(tmp_path, PID)], RecordingHost().settings()
    ) as supervisors:
        assert len(supervisors) == 3
        for supervisor in supervisors:
            await supervisor.call("work")
        well = supervisors["own"].running
        assert well is not None
        ended: list[float] = []
        waiting = asyncio.create_task(well.wait_ended())
        waiting.add_done_callback(lambda _: ended.append(loop.time()))
        began = loop.time()
    assert ended[0] - began < loop.time() - began


async def test_an_unknown_plugin_is_reported_with_the_known_names(tmp_path: Path) -> None:
    async with PluginSupervisors([written(tmp_path, PID)]) as supervisors:
        with pytest.raises(
            errors.PluginNotStarted, match="the plugin missing does not exist; there are: own"
        ):
            supervisors["missing"]
