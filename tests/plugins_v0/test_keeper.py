"""A plugin over time: on demand, again after a failure, not for ever, and none at another's cost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plugins_v0.animals import Heard, animal, written
from telex.plugins import problems
from telex.plugins.keeper import Keeper, Pace
from telex.plugins.keepers import Keepers

if TYPE_CHECKING:
    from pathlib import Path

BRISK = Pace(backoff=0.01)

PID = """
import os
def die(m):
    os._exit(1)
speaking.serve(work=lambda m: speaking.write(id=m["id"], result=os.getpid()), die=die)
"""


async def test_a_plugin_starts_with_the_first_call_and_once_for_all_who_ask(tmp_path: Path) -> None:
    keeper = Keeper(written(tmp_path, PID), Heard().settings())
    assert keeper.running is None
    pids = await asyncio.gather(*(keeper.call("work") for _ in range(20)))
    assert len(set(pids)) == 1
    await keeper.close()
    assert keeper.running is None


async def test_after_a_failure_the_next_call_starts_it_again(tmp_path: Path) -> None:
    keeper = Keeper(written(tmp_path, PID), Heard().settings(), BRISK)
    first = await keeper.call("work")
    with pytest.raises(problems.PluginOver, match="the plugin own exited with code 1"):
        await keeper.call("die")
    assert await keeper.call("work") != first
    await keeper.close()


def test_each_failure_of_late_doubles_the_wait_up_to_a_limit() -> None:
    pace = Pace(backoff=0.5, longest=3)
    assert [pace.wait(count) for count in range(6)] == [0, 0.5, 1, 2, 3, 3]


async def test_a_plugin_that_failed_is_not_started_again_at_once() -> None:
    keeper = Keeper(animal("exits_at_once"), Heard().settings(), Pace(backoff=0.2))
    loop = asyncio.get_running_loop()
    moments = [loop.time()]
    for _ in range(2):
        with pytest.raises(problems.NotIntroduced):
            await keeper.call("work")
        moments.append(loop.time())
    assert moments[2] - moments[1] >= 0.2
    await keeper.close()


@pytest.mark.deadline(200)
async def test_left_alone_is_said_and_ends_as_its_failures_grow_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(failures=2, window=100.0, backoff=0.01)
    keeper = Keeper(written(tmp_path, PID), Heard().settings(), pace)
    loop = asyncio.get_running_loop()
    for _ in range(2):
        with pytest.raises(problems.PluginOver):
            await keeper.call("die")
    with pytest.raises(problems.LeftAlone, match="own failed 2 times within 100 s and is left"):
        await keeper.call("work")
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 100)  # the window is over
    await keeper.call("work")
    await keeper.close()


async def test_an_idle_plugin_is_stopped_and_the_next_call_starts_another(tmp_path: Path) -> None:
    keeper = Keeper(written(tmp_path, PID), Heard().settings(), Pace(idle=0.05))
    first = await keeper.call("work")
    plugin = keeper.running
    assert plugin is not None
    await plugin.gone()
    assert not plugin.failed
    assert await keeper.call("work") != first
    await keeper.close()


async def test_a_plugin_in_use_is_not_idle(tmp_path: Path) -> None:
    keeper = Keeper(written(tmp_path, PID), Heard().settings(), Pace(idle=0.05))
    async with keeper.using() as plugin:
        await asyncio.sleep(0.15)  # longer than idleness is allowed to last
        assert plugin.over is None
    await keeper.close()


async def test_the_time_of_a_call_is_for_its_start_too() -> None:
    keeper = Keeper(animal("never_answers_the_handshake"), Heard().settings())
    with pytest.raises(problems.TimedOut, match=r"could not be started within 0\.1 s"):
        await keeper.call("work", timeout=0.1)
    await keeper.close()


async def test_closing_ends_a_start_and_tells_who_waits_for_it() -> None:
    keeper = Keeper(animal("never_answers_the_handshake"), Heard().settings())
    calls = [asyncio.create_task(keeper.call("work")) for _ in range(3)]
    await asyncio.sleep(0.05)
    await keeper.close()
    for call in calls:
        with pytest.raises(problems.PluginOver, match="was closed by its host"):
            await call
    with pytest.raises(problems.PluginOver):
        await keeper.call("work")


async def test_a_caller_that_is_cancelled_takes_the_start_from_nobody(tmp_path: Path) -> None:
    keeper = Keeper(written(tmp_path, PID), Heard().settings())
    one, two = (asyncio.create_task(keeper.call("work")) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    assert isinstance(await two, int)
    with pytest.raises(asyncio.CancelledError):
        await one
    await keeper.close()


async def test_plugins_end_at_once_and_one_that_hangs_holds_up_only_itself(tmp_path: Path) -> None:
    hanging = [animal(name) for name in ("hangs_at_shutdown", "ignores_sigterm")]
    loop = asyncio.get_running_loop()
    async with Keepers([*hanging, written(tmp_path, PID)], Heard().settings()) as keepers:
        assert len(keepers) == 3
        for keeper in keepers:
            await keeper.call("work")
        well = keepers["own"].running
        assert well is not None
        ended: list[float] = []
        waiting = asyncio.create_task(well.gone())
        waiting.add_done_callback(lambda _: ended.append(loop.time()))
        began = loop.time()
    assert ended[0] - began < loop.time() - began


async def test_a_plugin_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    async with Keepers([written(tmp_path, PID)]) as keepers:
        with pytest.raises(
            problems.NotStarted, match="the plugin missing is not there; there are: own"
        ):
            keepers["missing"]
