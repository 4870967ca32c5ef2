"""A language model as a core: its loop, its bounds, its context window, and restarts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent.model_agents import (
    TOO_LONG,
    Answer,
    Conversation,
    a_model,
    fix_a_bug,
    no_key,
    scripted_model,
)
from agent.model_conversation import sse
from agent.model_servers import DIALECTS, HANG, STREAM, Scripted, calling
from agent.ui_side import ALL, an_agent
from telex.agent.cores.model import ModelCore, RunBounds
from telex.agent.messages import AssistantMessage, UserMessage, decode_message
from telex.agent.model_catalogue import ModelChoice
from telex.agent.models.model_client import HttpModel
from telex.agent.models.model_dialect import Spelling
from telex.agent.protocol.runs import Usage
from telex.agent.protocol.sessions import ModelDetails

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent.ui_side import Agent, Message, Ui

RETURNING = {**ALL, "supports_run_attach": True}
FIRST_PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"Let me"}}]}\n\n'
CHANGING = ("timestamp", "duration_ms", "tool_call_id")


async def answered(ui: Ui, run: str) -> str:
    """Answer every question with yes until the run has ended, and return how it ended."""
    while True:
        message = await ui.hear()
        if message.get("method") == "ui.confirm.request":
            ui.answer(message, {"ok": True})
        params = message.get("params", {})
        ended = params.get("status") in ("completed", "error", "cancelled")
        if message.get("method") == "run.status" and params["run_id"] == run and ended:
            return str(params["status"])


def stable(events: list[Message]) -> list[Message]:
    """Return the events without ids and times."""
    return [{k: v for k, v in one["event"].items() if k not in CHANGING} for one in events]


def in_any_order(events: list[Message]) -> list[str]:
    """Return the events as sorted text: two readers may end in any order, and commands print how
    long they took."""
    return sorted(
        json.dumps(
            {k: v for k, v in event.items() if (event.get("tool"), k) != ("shell", "result")}
        )
        for event in events
    )


async def conversation(agent: Agent, session: str) -> list[Any]:
    return [decode_message(one.message) for one in await agent.runtime.store.messages(session)]


def is_fixed(root: Path) -> bool:
    ran = subprocess.run([sys.executable, "-B", "test_statistic.py"], cwd=root, capture_output=True)
    return ran.returncode == 0


async def test_a_model_fixes_a_bug_with_the_same_events_in_every_dialect(tmp_path: Path) -> None:
    told: dict[str, list[Message]] = {}
    for dialect in DIALECTS:
        place = tmp_path / dialect
        place.mkdir()
        async with (
            a_model(fix_a_bug.decide, dialect=dialect) as (choice, server),
            an_agent(place, choice) as agent,
        ):
            fix_a_bug.make_repository(agent.root)
            assert not is_fixed(agent.root)
            ui = await agent.connect(**ALL)
            run = await ui.start(fix_a_bug.TASK)
            assert await answered(ui, run) == "completed"
            assert is_fixed(agent.root)
            assert server.calls == 5
            asked = [m for m in ui.heard if m.get("method") == "ui.confirm.request"]
            assert len(asked) == 3, "two commands and a change are asked about, reading is not"
            told[dialect] = stable(ui.events(run))
    chat, *others = told.values()
    for other in others:
        assert in_any_order(other) == in_any_order(chat)
    assert [one["type"] for one in chat][:4] == ["reasoning", "text", "step_start", "tool_call"]
    assert chat[-1]["content"].startswith("Fixed")


def test_the_example_fixes_its_bug() -> None:
    ran = subprocess.run(
        [sys.executable, fix_a_bug.__file__, "--yes"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("Fixed: `median`")
    assert "+    return (ordered[middle - 1] + ordered[middle]) / 2" in ran.stdout


def endless(conversation: Conversation) -> Answer:
    return Answer("", [("list", {"pattern": f"*{len(conversation.results)}"})])


@pytest.mark.parametrize(
    ("bounds", "calls", "said"),
    [
        (RunBounds(steps=3), 3, "3 calls of the model (--max-steps)"),
        (RunBounds(tokens=300), 3, "300 tokens (--max-tokens)"),
        (RunBounds(cost_usd=0.02), 2, "0.02 US dollars (--max-cost)"),
    ],
    ids=["steps", "tokens", "cost"],
)
async def test_a_run_that_reaches_a_bound_ends_and_says_so(
    tmp_path: Path, bounds: RunBounds, calls: int, said: str
) -> None:
    async with (
        a_model(endless, bounds=bounds, cost=lambda usage: 0.01) as (choice, server),
        an_agent(tmp_path, choice) as agent,
    ):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "completed"
        assert server.calls == calls
        assert said in ui.final(run)
        again = await ui.start("go on")
        assert await ui.until_ended(again) == "completed"
        assert server.calls == 2 * calls, "the next run has a bound of its own"


@pytest.mark.parametrize(
    "bounds", [RunBounds(steps=9, tokens=10), RunBounds(steps=9, cost_usd=0.01)], ids=str
)
async def test_a_bound_holds_for_a_server_that_counts_no_tokens(
    tmp_path: Path, bounds: RunBounds
) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "list", "arguments": "{}"}}
    choice = {"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    answer = STREAM + sse({"choices": [choice]}) + sse("[DONE]")
    async with Scripted(answer).serving() as server, calling("chat", server.url) as model:
        core = ModelCore(model, "here", lambda usage: usage.total_tokens / 100, bounds=bounds)
        async with an_agent(tmp_path, ModelChoice("here", core)) as agent:
            ui = await agent.connect(**ALL)
            run = await ui.start("go")
            assert await ui.until_ended(run) == "completed"
            assert "Stopped: the run reached its bound" in ui.final(run)
            assert len(server.requests) == 1


async def test_a_cost_bound_needs_known_costs(tmp_path: Path) -> None:
    async with (
        a_model(endless, bounds=RunBounds(cost_usd=1)) as (choice, server),
        an_agent(tmp_path, choice) as agent,
    ):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "error"
        assert "--max-cost cannot be kept" in ui.heard[-1]["params"]["message"]
        assert server.calls == 0


async def test_the_context_that_is_left_and_the_costs_are_sent_after_each_call(
    tmp_path: Path,
) -> None:
    def decide(conversation: Conversation) -> Answer:
        if not conversation.results:
            return Answer("", [("list", {})], input_tokens=4_000, output_tokens=1_000)
        return Answer("done", input_tokens=9_000, output_tokens=1_000)

    def cost(usage: Usage) -> float:
        return usage.input_tokens / 1000

    async with (
        a_model(decide, window=20_000, cost=cost) as (choice, _),
        an_agent(tmp_path, choice, diagnostics=True) as agent,
    ):
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "completed"
        left = [m["params"] for m in ui.heard if m.get("method") == "run.context"]
        assert [one["context_left_percent"] for one in left] == [75, 50]
        told = [m["params"] for m in ui.heard if m.get("method") == "run.diagnostics"]
        first, second = (one["call"] for one in told if one["kind"] == "llm_call")
        assert (first["cost_usd"], second["cost_usd"]) == (4.0, 9.0)
        assert (first["stop_reason"], second["stop_reason"]) == ("tool_calls", "stop")
        assert first["provider"] == "here"
        assert told[-1]["summary"]["total_cost_usd"] == 13.0
        assert told[-1]["summary"]["total_tokens"] == 15_000


async def test_calls_with_ids_that_were_used_before_get_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        scripted_model.WRITERS,
        "completions",
        lambda answer, _: scripted_model.write_chat(answer, 0),
    )

    def decide(conversation: Conversation) -> Answer:
        if len(conversation.results) < 4:
            return Answer("", [("list", {}), ("search", {"pattern": "x"})])
        return Answer("done")

    async with a_model(decide) as (choice, server), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "completed"
        ids = [e["event"]["tool_call_id"] for e in ui.events(run) if "args" in e["event"]]
        assert len(ids) == len(set(ids)) == 4
        for body in server.requests:
            check_pairs(body)


async def test_steering_is_read_between_two_calls_and_before_the_end(tmp_path: Path) -> None:
    heard: list[list[str]] = []

    def decide(conversation: Conversation) -> Answer:
        heard.append(conversation.said)
        if len(conversation.said) == 1 and not conversation.results:
            return Answer("", [("shell", {"command": "touch x"})])
        return Answer(f"heard {conversation.said[-1]}")

    async with a_model(decide) as (choice, _), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("one")
        question = await ui.until("ui.confirm.request")
        assert (await ui.call("run.steer", {"run_id": run, "text": "two"}))["ok"]
        ui.answer(question, {"ok": True})
        assert await ui.until_ended(run) == "completed"
        assert heard == [["one"], ["one", "two"]]
        assert ui.final(run) == "heard two"


def long_talk(summary: str) -> Callable[[Conversation], Answer]:
    """Read a long file again and again; write the summary when asked for one."""

    def decide(conversation: Conversation) -> Answer:
        if not conversation.tools:
            return Answer(summary, input_tokens=5_000)
        if len(conversation.results) < 40 and "Summary" not in conversation.said[0]:
            return Answer("", [("read", {"file_path": "long"})] * 2, input_tokens=30_000)
        return Answer("done", input_tokens=3_000)

    return decide


def check_pairs(body: dict[str, Any]) -> None:
    """Each call of a request has its result directly after it, and each result its call."""
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert not waiting


async def test_a_conversation_that_fills_the_window_is_compacted(tmp_path: Path) -> None:
    async with (
        a_model(long_talk("We read a long file."), window=20_000) as (choice, server),
        an_agent(tmp_path, choice) as agent,
    ):
        (agent.root / "long").write_text("a line of text\n" * 100)
        ui = await agent.connect(**ALL)
        started = await ui.call(
            "run.start", {"input": {"type": "text", "text": "Read the long file."}}
        )
        assert await ui.until_ended(started["run_id"]) == "completed"
        kinds = ui.kinds(started["run_id"])
        assert kinds.count("compaction_start") == kinds.count("compaction_complete") >= 1
        done = [e["event"] for e in ui.events(started["run_id"])]
        assert all(e["compacted"] for e in done if e["type"] == "compaction_complete")
        for body in server.requests:
            check_pairs(body)
        first, second, *_ = await conversation(agent, started["session_id"])
        assert isinstance(first, UserMessage)
        assert isinstance(second, AssistantMessage), "the newest calls are kept"
        assert len(second.tool_calls) == 2
        text = first.parts[0].text  # type: ignore[union-attr]  # a summary is a text
        assert "We read a long file." in text
        assert "Read the long file." in text, "the last request is repeated"
        assert "Files that were used:\nlong" in text
        assert await ui.until_ended(await ui.start("and now?")) == "completed"
        assert "Summary" in json.dumps(server.requests[-1]["messages"][1])


async def test_a_conversation_that_the_provider_refuses_is_compacted_and_sent_again(
    tmp_path: Path,
) -> None:
    """The window is not configured, and smaller than what is kept by default."""

    def decide(conversation: Conversation) -> Answer:
        if not conversation.tools:
            return Answer("in short")
        if "Summary" not in conversation.said[0] and len(conversation.results) == 4:
            return TOO_LONG
        if len(conversation.results) < 4 and "Summary" not in conversation.said[0]:
            return Answer("", [("read", {"file_path": "long"})])
        return Answer("done")

    async with (
        a_model(decide, window=None) as (choice, server),
        an_agent(tmp_path, choice) as agent,
    ):
        (agent.root / "long").write_text("a line of text\n" * 100)
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "completed"
        assert ui.kinds(run).count("compaction_complete") == 1
        assert ui.final(run) == "done"
        assert server.calls == 7
        for body in server.requests:
            check_pairs(body)


async def test_a_cancel_closes_the_connection_to_the_model(tmp_path: Path) -> None:
    async with Scripted((STREAM, FIRST_PIECE, HANG)).serving() as server:
        model = HttpModel(
            "m", DIALECTS["chat"], server.url, Spelling("m", "x"), ModelDetails(), no_key
        )
        choice = ModelChoice("here", ModelCore(model, "here"))
        async with an_agent(tmp_path, choice) as agent:
            ui = await agent.connect(**ALL)
            run = await ui.start("go")
            await ui.until("text.delta")
            assert (await ui.call("run.cancel", {"run_id": run}))["ok"]
            async with asyncio.timeout(60):
                await server.closed.wait()
        await model.aclose()


@pytest.mark.parametrize("text", ["", "go on"])
async def test_a_compaction_can_be_forced(tmp_path: Path, text: str) -> None:
    def decide(conversation: Conversation) -> Answer:
        return Answer("in short" if not conversation.tools else "hello")

    async with a_model(decide) as (choice, server), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**ALL)
        assert await ui.until_ended(await ui.start("one")) == "completed"
        await ui.call("tool.call", {"name": "todo", "arguments": {"action": "read"}})
        run = await ui.start(text, force_compaction=True)
        assert await ui.until_ended(run) == "completed"
        assert ui.kinds(run)[:2] == ["compaction_start", "compaction_complete"]
        assert ui.events(run)[1]["event"]["compacted"] is True
        assert server.calls == (3 if text else 2)
        assert ui.final(run) == ("hello" if text else "")


async def test_nothing_to_compact_and_a_failed_summary_leave_the_conversation(
    tmp_path: Path,
) -> None:
    def decide(conversation: Conversation) -> Answer:
        return Answer("hello" if conversation.tools else "")

    async with a_model(decide) as (choice, _), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**ALL)
        for text in ("one", "two"):
            run = await ui.start(text, force_compaction=True)
            assert await ui.until_ended(run) == "completed"
            [done] = [
                one["event"]["compacted"]
                for one in ui.events(run)
                if one["event"]["type"] == "compaction_complete"
            ]
            assert done is False


async def test_a_failed_call_ends_the_run_with_what_happened(tmp_path: Path) -> None:
    def decide(conversation: Conversation) -> Answer:
        raise ConnectionError  # the server closes the connection without an answer

    async with a_model(decide) as (choice, server), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        assert await ui.until_ended(run) == "error"
        assert server.calls == 4, "it was tried again"
        assert ui.kinds(run) == ["llm.retry"] * 3
        assert ui.heard[-1]["params"]["message"]


async def test_another_model_continues_a_run_that_waits(tmp_path: Path) -> None:
    def first(conversation: Conversation) -> Answer:
        return Answer("I make it.", [("shell", {"command": "touch made"})], "Let me think.")

    def second(conversation: Conversation) -> Answer:
        assert len(conversation.results) == 1
        return Answer(f"It said: {conversation.results[0]}")

    async with (
        a_model(first, name="first", dialect="messages", provider="one") as (one, _),
        an_agent(tmp_path, one) as agent,
    ):
        ui = await agent.connect(**RETURNING)
        run = await ui.start("make it")
        await ui.until("ui.confirm.request")
        await ui.leave()
    async with (
        a_model(second, name="second", dialect="responses", provider="two") as (two, server),
        an_agent(tmp_path, two) as agent,
    ):
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        back.answer(await back.until("ui.confirm.request"), {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert back.final(run).startswith("It said:")
        assert server.calls == 1
        assert (agent.root / "made").exists()
        stored = [
            decode_message(one.message) for one in await agent.runtime.store.run_messages(run)
        ]
        models = [one.model for one in stored if isinstance(one, AssistantMessage)]
        assert models == ["first", "second"]


async def test_a_run_whose_model_is_gone_waits_and_says_so(tmp_path: Path) -> None:
    def decide(conversation: Conversation) -> Answer:
        return Answer("", [("shell", {"command": "touch made"})])

    async with a_model(decide) as (choice, _), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        back = await agent.connect(**RETURNING)
        assert (await back.call("run.attach", {"run_id": run}))["status"] == "awaiting_ui"
        told = await back.until("run.status")
        assert "its model scripted is missing" in told["params"]["message"]


async def test_a_call_that_a_crash_interrupted_is_told_to_the_next_run(tmp_path: Path) -> None:
    def decide(conversation: Conversation) -> Answer:
        if not conversation.results:
            return Answer("", [("shell", {"command": "sleep 60"})])
        return Answer(conversation.results[-1])

    async with a_model(decide) as (choice, _), an_agent(tmp_path, choice, mode="full") as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until("agent.event")
        while "tool_call" not in ui.kinds(run):
            await ui.hear()
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"]
        again = await ui.start("what happened?")
        assert await ui.until_ended(again) == "completed"
        assert "It may have had its effect" in ui.final(again)


# Restarts.

COMMAND = ("shell", {"command": "echo x >> ran; python3 -B test_statistic.py"})


def counted_fix(conversation: Conversation) -> Answer:
    """Fix the bug as the example does, with a command that counts how often it ran."""
    answer: Answer = fix_a_bug.decide(conversation)
    calls = [COMMAND if call == fix_a_bug.RUN_TESTS else call for call in answer.calls]
    return Answer(answer.text, calls, answer.reasoning)


class Watched:
    """A UI that says yes to everything, up to a point: its nth event or question."""

    def __init__(self, ui: Ui, run: str) -> None:
        self.ui = ui
        self.run = run
        self.points: list[str] = []
        """`event` or `question` for each point that it came to."""
        self.allowed = 0

    async def until(self, point: int | None = None) -> str | None:
        """Return the status at the end of the run; None if the point comes first."""
        while True:
            message = await self.ui.hear()
            params = message.get("params", {})
            match message.get("method"):
                case "ui.confirm.request":
                    self.points.append("question")
                    if len(self.points) - 1 != point:
                        self.allowed += "echo x" in params["message"]
                        self.ui.answer(message, {"ok": True})
                case "agent.event" if params["run_id"] == self.run:
                    self.points.append("event")
                case "run.status" if params["status"] in ("completed", "error", "cancelled"):
                    return str(params["status"])
            if len(self.points) - 1 == point:
                return None


@pytest.mark.counted
async def test_a_run_that_is_stopped_anywhere_goes_on_or_says_why_not(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    """The runtime is closed at the events and questions of a run, one after the other."""
    points = await stopped_at(tmp_path / "whole", None)
    questions = [number for number, kind in enumerate(points) if kind == "question"]
    step = counted(100, 1)
    ends: dict[str, int] = {}
    for point in sorted({*questions, *range(0, len(points), step)}):
        end = (await stopped_at(tmp_path / str(point), point))[-1]
        ends[end] = ends.get(end, 0) + 1
        assert end in (
            "completed",
            "cancelled",
        )  # at an event the next question may be open already
        assert end == "completed" or point not in questions
    print(f"{sum(ends.values())} of {len(points)} points; ends: {ends}")


async def stopped_at(place: Path, point: int | None) -> list[str]:
    """Return the points of a run, and how it ended in the next runtime."""
    place.mkdir()
    async with a_model(counted_fix) as (choice, _):
        async with an_agent(place, choice) as agent:
            fix_a_bug.make_repository(agent.root)
            ui = await agent.connect(**RETURNING)
            run = await ui.start(fix_a_bug.TASK)
            first = Watched(ui, run)
            if await first.until(point) == "completed":
                return first.points
        async with an_agent(place, choice) as agent:
            back = await agent.connect(**RETURNING)
            await back.call("run.attach", {"run_id": run})
            second = Watched(back, run)
            end = await second.until()
            assert end is not None
            told = back.events(run)
            assert [one["seq"] for one in told] == list(range(len(told)))
            log = agent.root / "ran"
            ran = len(log.read_text().split()) if log.exists() else 0
            assert ran <= first.allowed + second.allowed, "a command ran without a yes, or twice"
            if end == "completed":
                assert is_fixed(agent.root)
                assert ran == 2
            else:
                assert back.heard[-1]["params"]["message"] == "the runtime ended"
                session = (await agent.runtime.store.run(run)).session_id
                again = await back.start("Go on.", session_id=session)
                assert await Watched(back, again).until() == "completed"
            return [*first.points, end]
