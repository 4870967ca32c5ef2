"""Several tool calls of one answer: readers side by side, all others one after another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import Raw

from agent.ui_side import ALL, an_agent
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.messages import AssistantMessage, ToolCallPart, ToolResultMessage, decode_message
from telex.agent.protocol.events import FinalEvent
from telex.agent.tools.tool_registry import PreparedCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent.ui_side import Agent, Ui
    from telex.agent.cores import CoreContext, CoreOutput, RunInput

RETURNING = {**ALL, "supports_run_attach": True}


class Stepping:
    """A core that says one answer with these calls, and then its final answer."""

    name = "stepping"
    details = BuiltinCore.details

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        parts = [
            ToolCallPart(f"c{number}", name, Raw(msgspec.json.encode(arguments)))
            for number, (name, arguments) in enumerate(calls)
        ]
        self._said = AssistantMessage(tuple(parts), self.name)

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        results = [one for one in context.run_messages if isinstance(one, ToolResultMessage)]
        for one in results or await context.step(self._said):
            assert isinstance(one, ToolResultMessage)
        yield FinalEvent("done")


def read(path: str) -> tuple[str, dict[str, Any]]:
    return "read", {"file_path": path}


def write(path: str) -> tuple[str, dict[str, Any]]:
    return "write", {"file_path": path, "content": path}


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record which tools run at the same time, whenever one begins. A reader waits until another
    one runs beside it."""
    found: list[list[str]] = []
    running: list[str] = []
    run = PreparedCall.run
    pair = asyncio.Barrier(2)

    async def recorded(self: PreparedCall, context: Any) -> Any:
        running.append(self.tool.name)
        found.append(sorted(running))
        try:
            if self.tool.only_reads:
                async with asyncio.timeout(60):
                    await pair.wait()
            return await run(self, context)
        finally:
            running.remove(self.tool.name)

    monkeypatch.setattr(PreparedCall, "run", recorded)
    return found


def per_step(ui: Ui, run: str) -> dict[str, list[str]]:
    """Return the kinds of event of each step, by the id of its call."""
    calls: dict[str, str] = {}
    kinds: dict[str, list[str]] = {}
    began = ""
    for params in ui.events(run):
        event = params["event"]
        match event["type"]:
            case "step_start":
                began = event["step_id"]
                kinds[began] = ["step_start"]
            case "tool_call":
                calls[event["tool_call_id"]] = began
                kinds[began].append("tool_call")
            case "step_complete":
                kinds[event["step_id"]].append("step_complete")
            case kind if "tool_call_id" in event:
                kinds[calls[event["tool_call_id"]]].append(kind)
    return {call: kinds[step] for call, step in calls.items()}


async def conversation(agent: Agent, run: str) -> list[object]:
    stored = await agent.runtime.store.run_messages(run)
    return [decode_message(one.message) for one in stored]


async def test_readers_run_side_by_side_and_writers_alone_in_the_order_of_the_calls(
    tmp_path: Path, together: list[list[str]]
) -> None:
    core = Stepping(read("a"), read("b"), write("c"), write("d"), read("c"), read("d"))
    async with an_agent(tmp_path, core, mode="trusted") as agent:
        for name in "ab":
            (agent.root / name).write_text(name)
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "completed"
        assert together == [
            *(["read"], ["read", "read"]),
            *(["write"], ["write"]),
            *(["read"], ["read", "read"]),
        ]
        whole = ["step_start", "tool_call", "tool_result", "step_complete"]
        assert per_step(ui, run) == {f"c{number}": whole for number in range(6)}
        _, _, *results, _ = await conversation(agent, run)
        ids = [one.call_id for one in results if isinstance(one, ToolResultMessage)]
        assert sorted(ids) == [f"c{number}" for number in range(6)]
        assert not any(one.is_error for one in results if isinstance(one, ToolResultMessage))


def secret(agent: Agent, name: str) -> None:
    """Make a file that the person is asked about."""
    (agent.root / name).mkdir()
    (agent.root / name / ".env").write_text("x")


async def test_each_call_has_its_own_question_and_they_are_open_at_once(tmp_path: Path) -> None:
    core = Stepping(*(read(f"d{n}/.env") for n in range(3)))
    async with an_agent(tmp_path, core) as agent:
        for number in range(3):
            secret(agent, f"d{number}")
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        asked = [await ui.until("ui.confirm.request") for _ in range(3)]
        assert len({question["id"] for question in asked}) == 3
        assert ui.statuses(run) == ["running", "awaiting_ui"]
        for question, ok in zip(asked, (True, False, True), strict=True):
            ui.answer(question, {"ok": ok, "reason": None if ok else "not that one"})
        assert await ui.until_ended(run) == "completed"
        assert ui.statuses(run) == ["running", "awaiting_ui", "running", "completed"]
        results = {
            one["event"]["tool_call_id"]: one["event"].get("is_error", False)
            for one in ui.events(run)
            if one["event"]["type"] == "tool_result"
        }
        assert sorted(results.values()) == [False, False, True]
        whole = ["step_start", "tool_call", "permission.ready", "tool_result", "step_complete"]
        assert list(per_step(ui, run).values()) == [whole] * 3


async def test_a_ui_that_takes_one_question_at_a_time_gets_the_next_after_its_answer(
    tmp_path: Path,
) -> None:
    """The original's UI keeps one question: a second one would replace the first for ever."""
    core = Stepping(*(read(f"d{n}/.env") for n in range(3)))
    plain = {**ALL, "supports_parallel_questions": False}
    async with an_agent(tmp_path, core) as agent:
        for number in range(3):
            secret(agent, f"d{number}")
        ui, other = await agent.connect(**plain), await agent.connect(**plain)
        run = await ui.start("go")
        await agent.runtime.runs[run].awaiting_answer.wait()
        await other.call("run.attach", {"run_id": run})
        asked: list[str] = []
        for _ in range(3):
            question = await ui.until("ui.confirm.request")
            asked.append(question["id"])
            assert (await other.until("ui.confirm.request"))["id"] == question["id"]
            await ui.settle()
            await other.settle()
            for each in (ui, other):
                shown = [m["id"] for m in each.heard if m.get("method") == "ui.confirm.request"]
                assert shown == asked
            other.answer(question, {"ok": True})
        assert await ui.until_ended(run) == "completed"
        assert len(set(asked)) == 3


async def test_a_no_without_a_reason_stops_the_calls_that_still_wait(tmp_path: Path) -> None:
    core = Stepping(*(read(f"d{n}/.env") for n in range(2)), write("late"))
    async with an_agent(tmp_path, core) as agent:
        for number in range(2):
            secret(agent, f"d{number}")
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        first, second = [await ui.until("ui.confirm.request") for _ in range(2)]
        ui.answer(second, {"ok": False})
        assert await ui.until_ended(run) == "completed"
        assert "denied" in ui.final(run)
        gone = [m["params"]["id"] for m in ui.heard if m.get("method") == "ui.request.cancel"]
        assert gone == [first["id"]]
        assert not (agent.root / "late").exists()
        whole = ["step_start", "tool_call", "permission.ready", "tool_result", "step_complete"]
        assert list(per_step(ui, run).values()) == [whole] * 2
        stored = await conversation(agent, run)
        assert len([one for one in stored if isinstance(one, ToolResultMessage)]) == 3


async def test_a_cancel_withdraws_every_open_question(tmp_path: Path) -> None:
    core = Stepping(*(read(f"d{n}/.env") for n in range(3)))
    async with an_agent(tmp_path, core) as agent:
        for number in range(3):
            secret(agent, f"d{number}")
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        for _ in range(3):
            await ui.until("ui.confirm.request")
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"] is True
        assert await agent.runtime.store.pending() == []
        assert "tool_result" not in ui.kinds(run)


async def test_questions_of_several_calls_survive_a_restart(tmp_path: Path) -> None:
    calls = [read(f"d{n}/.env") for n in range(2)]
    core = Stepping(read("a"), *calls, write("late"))
    async with an_agent(tmp_path, core) as agent:
        (agent.root / "a").write_text("a")
        for number in range(2):
            secret(agent, f"d{number}")
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        asked = [await ui.until("ui.confirm.request") for _ in range(2)]
        await ui.leave()
    async with an_agent(tmp_path, core) as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        again = [await back.until("ui.confirm.request") for _ in range(2)]
        assert sorted(q["id"] for q in again) == sorted(q["id"] for q in asked)
        for question in again:
            back.answer(question, {"ok": True})
        late = await back.until("ui.confirm.request")
        back.answer(late, {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert (agent.root / "late").exists()
        assert len(per_step(back, run)) == 4
        for kinds in per_step(back, run).values():
            assert [kind for kind in kinds if not kind.startswith("permission")] == [
                *("step_start", "tool_call", "tool_result", "step_complete")
            ]
        assert [p["seq"] for p in back.events(run)] == list(range(len(back.events(run))))
