"""A connection that is lost, or whose input ends, during a request: every run ends, every call is
answered, and the store agrees with what happened."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from agent.holding import held, lost_at, turns
from agent.ui_side import ALL, Refused, an_agent
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.store import Store

if TYPE_CHECKING:
    from pathlib import Path

RETURNING = {**ALL, "supports_run_attach": True}
WRITE = ScriptStep(tool="write", arguments={"file_path": "done", "content": "x"})


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("method", ["start_run", "thread"])
async def test_a_run_whose_ui_disconnects_while_it_starts_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, done: bool
) -> None:
    """The run is in an existing session, which is free again afterwards."""
    async with an_agent(tmp_path, ScriptedCore("s", [WRITE])) as agent:
        ui, other = await agent.connect(), await agent.connect()
        text = {"input": {"type": "text", "text": "go"}}
        first = await other.call("run.start", text)
        await other.until_ended(first["run_id"])
        session = {"session_id": first["session_id"]}
        with monkeypatch.context() as patch:
            starting = held(patch, Store, method, done=done)
            ui.send("run.start", {**text, **session})
            await lost_at(starting, ui)
        for run in list(agent.runtime.runs.values()):
            await run.ended()
        assert await agent.runtime.store.active_runs() == []
        again = await other.start("go", **session)
        assert await other.until_ended(again) == "completed"


@pytest.mark.parametrize("done", [False, True])
async def test_a_run_whose_ui_disconnects_while_its_session_is_created_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    starting = held(monkeypatch, Store, "start_run", done=done)
    async with an_agent(tmp_path, ScriptedCore("s", [WRITE])) as agent:
        ui = await agent.connect()
        ui.send("run.start", {"input": {"type": "text", "text": "go"}})
        await lost_at(starting, ui)
        for run in list(agent.runtime.runs.values()):
            await run.ended()
        assert await agent.runtime.store.active_runs() == []


@pytest.mark.parametrize("done", [False, True])
async def test_a_tool_call_whose_ui_ends_its_input_while_its_question_is_stored_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    keeping = held(monkeypatch, Store, "ask", done=done)
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        call = ui.send("tool.call", {"name": "shell", "arguments": {"command": "touch done"}})
        await keeping.reached.wait()
        ui.finish()
        await turns()
        keeping.open()
        with contextlib.suppress(Refused):
            assert (await ui.reply(call))["ok"] is False
        assert await agent.runtime.store.pending() == []
        assert not (agent.root / "done").exists()


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("method", ["pending", "adopt", "thread"])
async def test_a_cancel_while_a_run_is_resumed_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, done: bool
) -> None:
    async with an_agent(tmp_path, ScriptedCore("s", [WRITE])) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        await ui.until("ui.confirm.request")
        await ui.leave()
    taking_up = held(monkeypatch, Store, method, done=done)
    async with an_agent(tmp_path, ScriptedCore("s", [WRITE])) as agent:
        ui, other = await agent.connect(**RETURNING), await agent.connect(**RETURNING)
        attach = ui.send("run.attach", {"run_id": run})
        await taking_up.reached.wait()
        cancel = other.send("run.cancel", {"run_id": run})
        await turns()
        taking_up.open()
        assert await other.reply(cancel) == {"ok": True, "status": "cancelled"}
        await ui.reply(attach)
        assert await ui.until_ended(run) == "cancelled"
        assert (await agent.runtime.store.run(run)).status == "cancelled"
        assert await agent.runtime.store.pending() == []
        await ui.settle()
        assert ui.statuses(run)[-1] == "cancelled"
        assert run not in agent.runtime.runs
        assert not (agent.root / "done").exists()


@pytest.mark.parametrize("returning", [False, True])
async def test_an_answer_that_was_being_stored_when_its_ui_disconnected_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returning: bool
) -> None:
    """The answer is stored, so it has to count."""
    answering = held(monkeypatch, Store, "answer", done=True)
    async with an_agent(tmp_path, ScriptedCore("s", [WRITE])) as agent:
        ui = await agent.connect(**ALL, supports_run_attach=returning)
        run = await ui.start("go")
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        await lost_at(answering, ui)
        if (going_on := agent.runtime.runs.get(run)) is not None:
            await asyncio.wait_for(going_on.ended(), 5)
        assert (agent.root / "done").exists()
