"""Races: runs that are resumed twice, and connections that are lost during a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.holding import held, lost_at
from agent.ui_side import ALL, an_agent
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from telex.agent.cores import CoreContext, CoreOutput, RunInput

RETURNING = {**ALL, "supports_run_attach": True}
TOUCH = {"name": "shell", "arguments": {"command": "touch done"}}


class Counted(ScriptedCore):
    """A script that counts how often it was started."""

    def __init__(self) -> None:
        write = ScriptStep(tool="write", arguments={"file_path": "one", "content": "1"})
        super().__init__("counted", [ScriptStep(text="first"), write, ScriptStep(final="{last}")])
        self.begun = 0

    def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        self.begun += 1
        return super().run(asked, context)


async def a_run_that_waits(directory: Path) -> str:
    """Return the id of a run that awaits an answer, and whose runtime has ended."""
    async with an_agent(directory, Counted()) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        await ui.until("ui.confirm.request")
        await ui.leave()
    return run


# A run that is resumed.


@pytest.mark.parametrize("count", [2, 3])
async def test_two_attaches_at_once_resume_a_run_once(tmp_path: Path, count: int) -> None:
    run, core = await a_run_that_waits(tmp_path), Counted()
    async with an_agent(tmp_path, core) as agent:
        uis = [await agent.connect(**RETURNING) for _ in range(count)]
        ids = [ui.send("run.attach", {"run_id": run}) for ui in uis]
        for ui, id in zip(uis, ids, strict=True):
            assert (await ui.reply(id))["run_id"] == run
        asked = [await ui.until("ui.confirm.request") for ui in uis]
        assert len({question["id"] for question in asked}) == 1
        uis[-1].answer(asked[-1], {"ok": True})
        for ui in uis:
            assert await ui.until_ended(run) == "completed"
            assert [params["seq"] for params in ui.events(run)] == list(range(len(ui.events(run))))
            assert ui.kinds(run).count("tool_result") == 1
        assert core.begun == 1


async def test_attaching_again_while_a_run_is_resumed_resumes_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, core = await a_run_that_waits(tmp_path), Counted()
    adopting = held(monkeypatch, Store, "adopt", done=True)
    async with an_agent(tmp_path, core) as agent:
        first, second = await agent.connect(**RETURNING), await agent.connect(**RETURNING)
        early = first.send("run.attach", {"run_id": run})
        await adopting.reached.wait()
        late = second.send("run.attach", {"run_id": run})
        await second.settle()
        adopting.open()
        for ui, id in ((first, early), (second, late)):
            assert (await ui.reply(id))["run_id"] == run
            await ui.until("ui.confirm.request")
        assert core.begun == 1
        assert (await second.call("run.cancel", {"run_id": run}))["ok"] is True
        assert await first.until_ended(run) == "cancelled"


async def test_a_run_is_not_resumed_at_the_limit_of_active_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.runtime.AGENT_RUNS", 1)
    run, core = await a_run_that_waits(tmp_path), Counted()
    async with an_agent(tmp_path, core) as agent:
        ui, other = await agent.connect(**RETURNING), await agent.connect(**RETURNING)
        going_on = await other.start("go")
        await other.until("ui.confirm.request")
        assert (await ui.call("run.attach", {"run_id": run}))["status"] == "awaiting_ui"
        await ui.settle()
        assert core.begun == 1
        assert (await agent.runtime.store.run(run)).status == "awaiting_ui"
        await other.call("run.cancel", {"run_id": going_on})
        await ui.call("run.attach", {"run_id": run})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        assert await ui.until_ended(run) == "completed"


# Connections that are lost.


async def test_a_tool_call_whose_ui_disconnects_withdraws_its_question(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(**RETURNING), await agent.connect(**RETURNING)
        ui.send("tool.call", TOUCH)
        question = await ui.until("ui.confirm.request")
        await ui.leave()
        assert await agent.runtime.store.pending() == []
        other.answer(question, {"ok": True})
        await other.call("session.list")
        assert not (agent.root / "done").exists()


@pytest.mark.parametrize("done", [False, True])
async def test_a_tool_call_whose_ui_disconnects_while_its_question_is_stored_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    keeping = held(monkeypatch, Store, "ask", done=done)
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        ui.send("tool.call", TOUCH)
        await lost_at(keeping, ui)
        assert await agent.runtime.store.pending() == []
        assert not (agent.root / "done").exists()


@pytest.mark.parametrize("method", ["run", "pending", "adopt", "thread"])
@pytest.mark.parametrize("done", [False, True])
async def test_a_run_whose_ui_disconnects_while_it_is_resumed_waits_for_the_next_ui(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, done: bool
) -> None:
    run, core = await a_run_that_waits(tmp_path), Counted()
    taking_up = held(monkeypatch, Store, method, done=done)
    async with an_agent(tmp_path, core) as agent:
        ui, back = await agent.connect(**RETURNING), await agent.connect(**RETURNING)
        ui.send("run.attach", {"run_id": run})
        await lost_at(taking_up, ui)
        await back.call("run.attach", {"run_id": run})
        back.answer(await back.until("ui.confirm.request"), {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert (agent.root / "one").read_text() == "1"
        assert core.begun == 1
