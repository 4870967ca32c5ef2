"""Runs that awaited an answer when their runtime ended, and are resumed in the next one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec import Raw

from agent.holding import held
from agent.ui_side import ALL, an_agent
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.tools.todo import TodoList
from telex.agent.tools.tool_registry import PreparedCall

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent.ui_side import Agent

RETURNING = {**ALL, "supports_run_attach": True}
WRITE = ScriptStep(tool="write", arguments={"file_path": "one", "content": "1"})


async def allow(agent: Agent, tool: str, arguments: Mapping[str, object]) -> None:
    """Remember a yes to a call, as if it had been answered in another run."""
    workspace = await agent.workspace()
    call = workspace.tools.prepare(tool, arguments)
    judged = workspace.confirmer.judge(call, workspace.context.tool_context(TodoList()))
    [question] = await agent.runtime.store.pending()
    await workspace.confirmer.permissions.answers.remember(
        workspace.place.root, judged.remember[0], allowed=True, by="me", request_id=question.id
    )


async def test_a_steered_run_survives_a_restart(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("run mkdir b1")
        question = await ui.until("ui.confirm.request")
        said = {"run_id": run, "text": "run mkdir b2"}
        assert (await ui.call("run.steer", said))["ok"] is True
        ui.answer(question, {"ok": True})
        question = await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        again = await back.until("ui.confirm.request")
        assert again == question
        back.answer(again, {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert (agent.root / "b2").is_dir()
        assert back.kinds(run).count("hidden_user_message") == 1


async def test_unread_steering_survives_a_restart(tmp_path: Path) -> None:
    async with an_agent(tmp_path, mode="trusted") as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("ask first\nask second")
        question = await ui.until("ui.prompt.request")
        for text in ("list", "write a: b"):
            assert (await ui.call("run.steer", {"run_id": run, "text": text}))["ok"] is True
        ui.answer(question, {"value": "1"})
        await ui.until("ui.prompt.request")
        await ui.leave()
    async with an_agent(tmp_path, mode="trusted") as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        back.answer(await back.until("ui.prompt.request"), {"value": "2"})
        assert await back.until_ended(run) == "completed"
        said = [
            one["event"]["content"]
            for one in back.events(run)
            if one["event"]["type"] == "hidden_user_message"
        ]
        assert said == ["list", "write a: b"]
        assert (agent.root / "a").read_text() == "b"


async def test_stored_answers_are_not_asked_for_again(tmp_path: Path) -> None:
    core = ScriptedCore(
        "s",
        [
            WRITE,
            ScriptStep(confirm="Go on?"),
            ScriptStep(text="{last}"),
            ScriptStep(prompt="Who?"),
            ScriptStep(text="{last}"),
            ScriptStep(confirm="Go on?"),
            ScriptStep(text="{last}"),
            ScriptStep(pick=["a", "b"]),
            ScriptStep(final="{last}"),
        ],
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        for _ in range(2):
            ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        ui.answer(await ui.until("ui.prompt.request"), {"value": "Ada"})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": False})
        question = await ui.until("ui.pick.request")
        await ui.leave()
    async with an_agent(tmp_path, core) as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        again = await back.until("ui.pick.request")
        assert again == question
        back.answer(again, {"ids": ["b"]})
        assert await back.until_ended(run) == "completed"
        said = [one["event"]["content"] for one in back.events(run) if "content" in one["event"]]
        assert said == ["yes", "Ada", "no", "b"]
        assert len([m for m in back.heard if m.get("id") and "method" in m]) == 1


async def test_a_question_that_no_ui_could_answer_is_not_asked_later(tmp_path: Path) -> None:
    steps = [
        ScriptStep(pick=["a"]),
        ScriptStep(text="{last}"),
        ScriptStep(prompt="?"),
        ScriptStep(final="{last}"),
    ]
    core = ScriptedCore("s", steps)
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(supports_prompt=True, supports_run_attach=True)
        run = await ui.start("go")
        await ui.until("ui.prompt.request")
        await ui.leave()
    async with an_agent(tmp_path, core) as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        back.answer(await back.until("ui.prompt.request"), {"value": "x"})
        assert await back.until_ended(run) == "completed"
        assert [one["event"]["content"] for one in back.events(run)] == ["", "x"]


async def test_a_yes_to_a_call_does_not_count_for_an_equal_call_later(
    tmp_path: Path,
) -> None:
    core = ScriptedCore("s", [ScriptStep(tool="shell", arguments={"command": "echo x >> log"})] * 2)
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        question = await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path, core) as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        assert await back.until("ui.confirm.request") == question
        assert (agent.root / "log").read_text() == "x\n"
        back.answer(question, {"ok": True})
        await back.until_ended(run)
        assert (agent.root / "log").read_text() == "x\nx\n"


async def test_deltas_of_a_stored_event_are_not_sent_again(tmp_path: Path) -> None:
    core = ScriptedCore(
        "s",
        [
            ScriptStep(text="before", deltas=2),
            ScriptStep(prompt="?"),
            ScriptStep(text="after", deltas=2),
        ],
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        await ui.until("ui.prompt.request")
        assert len([m for m in ui.heard if m.get("method") == "text.delta"]) == 2
        await ui.leave()
    async with an_agent(tmp_path, core) as agent:
        watcher = await agent.connect(supports_deltas=True)
        await watcher.call("run.attach", {"run_id": run})
        await watcher.until("run.status")
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        back.answer(await back.until("ui.prompt.request"), {"value": ""})
        await watcher.until_ended(run)
        pieces = [m["params"]["content"] for m in watcher.heard if m.get("method") == "text.delta"]
        assert "".join(pieces) == "after"


@pytest.mark.parametrize("number", [b"1e999", b"9" * 5000])
async def test_numbers_that_no_type_holds_do_not_prevent_a_resume(
    tmp_path: Path, number: bytes
) -> None:
    odd = Raw(b'{"type":"text","content":"x","odd":' + number + b"}")
    core = ScriptedCore(
        "s", [ScriptStep(event=odd), ScriptStep(prompt="?"), ScriptStep(final="{last}")]
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        await agent.runtime.runs[run].awaiting_answer.wait()
    async with an_agent(tmp_path, core) as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run, "after_seq": 0})
        back.answer(await back.until("ui.prompt.request"), {"value": "here"})
        assert await back.until_ended(run) == "completed"
        assert back.final(run) == "here"


@pytest.mark.parametrize(
    "changed",
    [
        [ScriptStep(text="b"), WRITE],
        [
            ScriptStep(text="a"),
            ScriptStep(tool="write", arguments={"file_path": "two", "content": "1"}),
        ],
        [ScriptStep(text="a"), ScriptStep(tool="read", arguments={"file_path": "one"})],
    ],
)
async def test_a_changed_script_finishes_the_stored_call_and_does_nothing_else(
    tmp_path: Path, changed: list[ScriptStep]
) -> None:
    async with an_agent(tmp_path, ScriptedCore("s", [ScriptStep(text="a"), WRITE])) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        question = await ui.until("ui.confirm.request")
        await ui.leave()
    more = ScriptStep(tool="write", arguments={"file_path": "three", "content": "3"})
    async with an_agent(tmp_path, ScriptedCore("s", [*changed, more]), mode="full") as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        assert await back.until("ui.confirm.request") == question
        back.answer(question, {"ok": True})
        assert await back.until_ended(run) == "error"
        assert "has changed" in back.heard[-1]["params"]["message"]
        assert [path.name for path in agent.root.iterdir()] == ["one"]


async def test_a_call_that_needs_no_question_any_more_is_made(tmp_path: Path) -> None:
    core = ScriptedCore("s", [WRITE, ScriptStep(final="{last}")])
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path, core) as agent:
        back = await agent.connect(**RETURNING)
        await allow(agent, "write", WRITE.arguments)
        await back.call("run.attach", {"run_id": run})
        assert await back.until_ended(run) == "completed"
        assert (agent.root / "one").read_text() == "1"
        assert [one["seq"] for one in back.events(run)] == list(range(len(back.events(run))))
        assert await agent.runtime.store.pending() == []


async def test_a_watcher_of_a_suspended_run_receives_its_continuation(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        runs = [await ui.start("run touch done", new_session=True) for _ in range(2)]
        for _ in runs:
            await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        watcher = await agent.connect()
        for run in runs:
            assert (await watcher.call("run.attach", {"run_id": run}))["status"] == "awaiting_ui"
        told = await watcher.until("run.status", run_id=runs[1])
        assert told["params"]["message"] == "not resumed: this UI cannot answer its question"
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": runs[0]})
        back.answer(await back.until("ui.confirm.request"), {"ok": True})
        await back.call("run.cancel", {"run_id": runs[1]})
        assert await watcher.until_ended(runs[0]) == "completed"
        assert await watcher.until_ended(runs[1]) == "cancelled"
        told = watcher.events(runs[0])
        assert [one["seq"] for one in told] == list(range(len(told)))
        assert [one["seq"] for one in told if "replay" in one.get("meta", {})] == [0, 1, 2]
        assert told[-1]["event"]["type"] == "final"


async def test_a_watcher_of_a_suspended_run_that_ends_its_input_is_disconnected(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("run touch done")
        await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        quick, slow = await agent.connect(), await agent.connect()
        quick.send("run.attach", {"run_id": run})
        quick.finish()
        await slow.call("run.attach", {"run_id": run})
        for watcher in (quick, slow):
            await watcher.until("run.status", run_id=run)
            assert watcher.kinds(run) == ["step_start", "tool_call", "permission.ready"]
        slow.finish()
        for watcher in (quick, slow):
            await asyncio.wait_for(watcher._serving, 60)


async def test_a_call_that_needs_no_question_any_more_leaves_none_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the run would look suspended, and the call would be made again after a crash."""
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("run touch done")
        await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        began = held(monkeypatch, PreparedCall, "run")
        back = await agent.connect(**RETURNING)
        await allow(agent, "shell", {"command": "touch done"})
        await back.call("run.attach", {"run_id": run})
        await began.reached.wait()
        assert await agent.runtime.store.pending() == []
        assert (await agent.runtime.store.run(run)).status == "running"
        began.open()
        assert await back.until_ended(run) == "completed"


async def test_steering_of_a_run_cancelled_without_a_resume_is_in_its_history(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("ask x")
        await ui.until("ui.prompt.request")
        assert (await ui.call("run.steer", {"run_id": run, "text": "WORD"}))["ok"] is True
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"] is True
        await ui.call("run.attach", {"run_id": run})
        assert await ui.until_ended(run) == "cancelled"
        assert [one["event"] for one in ui.events(run)] == [
            {"type": "hidden_user_message", "content": "WORD"}
        ]


async def test_after_a_restart_a_question_still_waits_for_a_reconnect(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("run touch done")
        question = await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        passing_by = await agent.connect(**ALL)
        await passing_by.call("run.attach", {"run_id": run})
        await passing_by.until("ui.confirm.request")
        await passing_by.leave()
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        assert (await back.until("ui.confirm.request"))["id"] == question["id"]
        back.answer(question, {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert (agent.root / "done").exists()
