"""Runs of other runtimes on the same store, of live and of dead ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.storing import begun, text
from agent.ui_side import ALL, an_agent
from telex.agent.store import NewRun, RunNotOurs, Status, Store

if TYPE_CHECKING:
    from pathlib import Path

    from agent.ui_side import Agent

RETURNING = {**ALL, "supports_run_attach": True}


async def left_behind(agent: Agent, run_id: str, *, may_return: bool, asks: bool) -> str:
    """Store a run whose runtime closed the store without ending it, in a session of its own."""
    async with await Store.open(agent.runtime.store.path) as dead:
        await dead.start_run(NewRun(run_id, f"session {run_id}", b"{}", "", None, True, may_return))
        await dead.append(run_id, text(0))
        if asks:
            await dead.ask(run_id, "ui.confirm.request", b"{}")
    return run_id


async def test_attaching_to_a_run_whose_runtime_died_reports_its_end(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await left_behind(agent, "a", may_return=True, asks=False)
        assert (await ui.call("run.attach", {"run_id": run}))["status"] == "error"
        assert await ui.until_ended(run) == "error"
        assert [params["seq"] for params in ui.events(run)] == [0]


async def test_cancelling_a_run_whose_runtime_died_returns_its_status(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await left_behind(agent, "a", may_return=True, asks=False)
        result = await ui.call("run.cancel", {"run_id": run})
        assert result == {"ok": False, "status": "error"}


@pytest.mark.parametrize("may_return", [True, False])
async def test_a_question_outlives_its_runtime_only_if_its_ui_may_return(
    tmp_path: Path, may_return: bool
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await left_behind(agent, "a", may_return=may_return, asks=True)
        start = {"input": {"type": "text", "text": "help"}, "session_id": "session a"}
        if may_return:
            assert (await ui.refusal("run.start", start)).code == -32001
            assert (await agent.runtime.store.run(run)).status is Status.AWAITING_UI
        else:
            await ui.call("run.start", start)
            assert (await agent.runtime.store.run(run)).status is Status.ERROR
            assert await agent.runtime.store.pending(run) == []


async def test_a_run_may_return_once_a_ui_that_can_reattach_has_attached(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui, later = await agent.connect(**ALL), await agent.connect(**RETURNING)
        run, store = await ui.start("ask x"), agent.runtime.store
        await ui.until("ui.prompt.request")
        assert not (await store.run(run)).may_return
        await later.call("run.attach", {"run_id": run})
        assert (await store.run(run)).may_return
        assert (await store.run(await later.start("help"))).may_return


async def test_attaching_to_a_run_of_another_live_runtime_is_refused(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as one, an_agent(tmp_path) as two:
        ui, other = await one.connect(**RETURNING), await two.connect(**RETURNING)
        run = await ui.start("ask x")
        question = await ui.until("ui.prompt.request")
        refused = await other.refusal("run.attach", {"run_id": run})
        assert refused.code == -32001
        assert f"run {run} belongs to another runtime" in refused.message
        ui.answer(question, {"value": "y"})
        assert await ui.until_ended(run) == "completed"
        assert (await other.call("run.attach", {"run_id": run}))["status"] == "completed"
        assert await other.until_ended(run) == "completed"


async def test_end_if_abandoned_refuses_a_run_of_another_live_runtime(tmp_path: Path) -> None:
    path = tmp_path / "store/telex.db"
    async with await Store.open(path) as one, await Store.open(path) as two:
        await begun(one, "a")
        await one.end_if_abandoned("a")
        with pytest.raises(RunNotOurs, match="still running"):
            await two.end_if_abandoned("a")
        await one.end_run("a", Status.COMPLETED)
        await two.end_if_abandoned("a")
