"""Steering an active run: the core reads the text, or at least the history has it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import ALL, Refused, an_agent
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.store import DiskFailed, Store

if TYPE_CHECKING:
    from pathlib import Path

    from agent.ui_side import Ui

pytestmark = pytest.mark.usefixtures("every_transport")

SAID = "hidden_user_message"


def said(ui: Ui, run: str) -> list[str]:
    told = [params["event"] for params in ui.events(run)]
    return [event["content"] for event in told if event["type"] == SAID]


async def history(ui: Ui, session: str) -> list[dict[str, Any]]:
    ui.heard.clear()
    await ui.call("session.history", {"session_id": session})
    return [m["params"]["event"] for m in ui.heard if m.get("method") == "agent.event"]


async def test_a_script_reads_the_steering_of_its_run(tmp_path: Path) -> None:
    core = ScriptedCore(
        "s", [ScriptStep(prompt="?"), ScriptStep(text="{steered}"), ScriptStep(final="[{steered}]")]
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        question = await ui.until("ui.prompt.request")
        for text in ("one", "two"):
            assert (await ui.call("run.steer", {"run_id": run, "text": text}))["ok"] is True
        ui.answer(question, {"value": ""})
        await ui.until_ended(run)
        assert ui.kinds(run) == [SAID, SAID, "text", "final"]
        assert ui.events(run)[2]["event"]["content"] == "one\ntwo"
        assert ui.final(run) == "[]"


@pytest.mark.parametrize(
    ("steps", "answer", "end"),
    [
        ([ScriptStep(prompt="?"), ScriptStep(final="x")], {"value": ""}, "completed"),
        ([ScriptStep(tool="shell", arguments={"command": "touch x"})], {"ok": False}, "completed"),
        ([ScriptStep(prompt="?"), ScriptStep(fail="broken")], {"value": ""}, "error"),
        ([ScriptStep(prompt="?")], None, "cancelled"),
    ],
)
async def test_unread_steering_is_in_the_history_before_the_end(
    tmp_path: Path, steps: list[ScriptStep], answer: Any, end: str
) -> None:
    async with an_agent(tmp_path, ScriptedCore("s", steps)) as agent:
        ui = await agent.connect(**ALL)
        started = await ui.call("run.start", {"input": {"type": "text", "text": "go"}})
        run = started["run_id"]
        while "method" not in (question := await ui.hear()) or "id" not in question:
            pass
        assert (await ui.call("run.steer", {"run_id": run, "text": "wait!"}))["ok"] is True
        if answer is None:
            await ui.call("run.cancel", {"run_id": run})
        else:
            ui.answer(question, answer)
        assert await ui.until_ended(run) == end
        assert said(ui, run) == ["wait!"]
        last = ui.kinds(run)[-2:] if end == "completed" else ui.kinds(run)[-1:]
        assert last == [SAID, "final"][: len(last)]
        assert [m.get("method") for m in ui.heard if m.get("method")][-1] == "run.status"
        kept = await history(ui, started["session_id"])
        assert {"type": SAID, "content": "wait!"} in kept
        assert (await ui.call("run.steer", {"run_id": run, "text": "?"}))["ok"] is False


async def test_steering_too_long_to_be_stored_is_refused_and_the_run_continues(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("ask something")
        question = await ui.until("ui.prompt.request")
        refused = await ui.refusal("run.steer", {"run_id": run, "text": "x" * 9_000_000})
        assert refused.code == -32602
        assert (await ui.call("run.steer", {"run_id": run, "text": "help"}))["ok"] is True
        ui.answer(question, {"value": "y"})
        assert await ui.until_ended(run) == "completed"
        assert said(ui, run) == ["help"]


async def test_concurrent_steering_is_all_read_in_order(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("ask something")
        question = await ui.until("ui.prompt.request")
        texts = [f"todo {number}" for number in range(64)]
        asked = [ui.send("run.steer", {"run_id": run, "text": text}) for text in texts]
        for id in asked:
            assert (await ui.reply(id))["ok"] is True
        assert (await ui.call("run.steer", {"run_id": run, "text": "more"}))["ok"] is False
        ui.answer(question, {"value": "y"})
        assert await ui.until_ended(run) == "completed"
        assert said(ui, run) == texts
        kept = json.loads((await agent.runtime.store.run(run)).meta or b"")
        assert kept["telex"]["steered"] == texts


async def test_refused_steering_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused because the disk failed, or because of the limit."""
    monkeypatch.setattr("telex.agent.agent_run.AGENT_STEERED", 3)
    set_run_meta, failures = Store.set_run_meta, iter([True, False, True])

    async def failing(self: Store, run_id: str, meta: bytes) -> None:
        await set_run_meta(self, run_id, meta)
        if next(failures, False):
            raise DiskFailed("its `fsync` failed, and it is there after all")

    monkeypatch.setattr(Store, "set_run_meta", failing)
    returning = {**ALL, "supports_run_attach": True}
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**returning)
        run = await ui.start("ask x\nask y")
        question = await ui.until("ui.prompt.request")
        ids = [ui.send("run.steer", {"run_id": run, "text": f"todo {n}"}) for n in range(8)]
        heard = [await answered(ui, id) for id in ids]
        assert heard == [None, True, None, True, True, False, False, False]
        ui.answer(question, {"value": ""})
        await ui.until("ui.prompt.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**returning)
        await ui.call("run.attach", {"run_id": run})
        ui.answer(await ui.until("ui.prompt.request"), {"value": ""})
        assert await ui.until_ended(run) == "completed"
        assert said(ui, run) == ["todo 1", "todo 3", "todo 4"]


async def answered(ui: Ui, id: str) -> bool | None:
    """Return the result; None for an error."""
    try:
        return bool((await ui.reply(id))["ok"])
    except Refused:
        return None
