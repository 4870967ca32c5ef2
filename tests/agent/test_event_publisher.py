"""Publishing events while the core continues: each is stored before it is sent, in order, and nothing
follows an event that could not be stored."""

from __future__ import annotations

import json
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.cores import TextDelta
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.feeds import EventPublisher
from telex.agent.limits import AGENT_EVENTS_AHEAD
from telex.agent.protocol.events import FinalEvent, TextEvent
from telex.agent.store import transactions
from telex.agent.store.writer import StoreWriter
from telex.agent.tools.tool import ToolContext, ToolResult
from telex.agent.tools.tool_registry import PreparedCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from agent.ui_side import Agent
    from telex.agent.cores import CoreContext, CoreOutput, RunInput

MANY = 3 * AGENT_EVENTS_AHEAD


class Saying:
    """A core that emits all its events without a pause."""

    name = "saying"
    details = BuiltinCore.details

    def __init__(self, *said: CoreOutput) -> None:
        self._said = said

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        for one in self._said:
            yield one


class Calling:
    name = "calling"
    details = BuiltinCore.details

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        await context.call("list", {})
        yield FinalEvent("done")


def burst() -> Saying:
    return Saying(*(TextEvent(f"<{n}>") for n in range(MANY)), FinalEvent("end"))


async def stored(agent: Agent, run: str) -> list[bytes]:
    return [event.event async for event in agent.runtime.store.events(run)]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of writes of each commit."""
    counted: list[int] = []
    commit = StoreWriter._commit

    def counting(self: StoreWriter, writes: Any) -> None:
        counted.append(len(writes))
        commit(self, writes)

    monkeypatch.setattr(StoreWriter, "_commit", counting)
    return counted


async def test_a_burst_shares_commits_and_arrives_whole_and_in_order(
    tmp_path: Path, commits: list[int]
) -> None:
    async with an_agent(tmp_path, burst()) as agent:
        ui = await agent.connect()
        run = await ui.start("go")
        assert await ui.until_ended(run) == "completed"
        told = [message["params"] for message in ui.heard if message.get("method") == "agent.event"]
        assert [one["seq"] for one in told] == list(range(MANY + 1))
        assert [one["event"] for one in told] == [json.loads(e) for e in await stored(agent, run)]
        assert len(commits) < MANY / 2
        assert max(commits) <= AGENT_EVENTS_AHEAD


@pytest.mark.parametrize("failing", [0, 1, AGENT_EVENTS_AHEAD, MANY - 1])
async def test_after_an_event_that_could_not_be_stored_nothing_is_stored_or_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    append, failed = transactions.append_event, threading.Event()

    def full_once(state: Any, run_id: str, event: bytes, *rest: Any) -> int:
        if f"<{failing}>".encode() in event and not failed.is_set():
            failed.set()
            full = sqlite3.OperationalError("database or disk is full")
            full.sqlite_errorcode, full.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
            raise full
        return append(state, run_id, event, *rest)

    monkeypatch.setattr(transactions, "append_event", full_once)
    monkeypatch.setattr("telex.agent.store.writer.STORE_COMMIT_WRITES", 4)
    async with an_agent(tmp_path, burst()) as agent:
        ui = await agent.connect()
        run = await ui.start("go")
        assert await ui.until_ended(run) == "error"
        assert "full" in ui.heard[-1]["params"]["message"]
        told = [
            message["params"]["event"]["content"]
            for message in ui.heard
            if message.get("method") == "agent.event"
        ]
        assert told == [f"<{n}>" for n in range(len(told))]
        assert len(told) <= failing
        assert len(await stored(agent, run)) == len(told)
        again = await ui.start("go")
        assert await ui.until_ended(again) == "completed", "the runtime continues"


async def test_notices_keep_their_place_between_the_events(tmp_path: Path) -> None:
    said = [piece for n in range(20) for piece in (TextDelta("text", f"{n}"), TextEvent(f"{n}"))]
    async with an_agent(tmp_path, Saying(*said, FinalEvent("end"))) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until_ended(run)
        told = [
            (message["method"], message["params"].get("content"))
            for message in ui.heard
            if message.get("method") in ("agent.event", "text.delta")
        ]
        assert told[:40:2] == [("text.delta", f"{n}") for n in range(20)]
        assert {method for method, _ in told[1:40:2]} == {"agent.event"}


async def test_the_deltas_that_wait_for_an_event_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventPublisher, "MAX_DELTAS", 8)
    said = [
        TextEvent("first"),
        *(TextDelta("text", f"{n}") for n in range(100)),
        TextEvent("all"),
        FinalEvent("end"),
    ]
    async with an_agent(tmp_path, Saying(*said)) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until_ended(run)
        assert ui.kinds(run) == ["text", "text", "final"]
        assert len([one for one in ui.heard if one.get("method") == "text.delta"]) == 8


async def test_a_tool_starts_only_after_its_call_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append: Callable[..., int] = transactions.append_event
    order: list[str] = []
    began = threading.Event()

    def slow(state: Any, run_id: str, event: bytes, *rest: Any) -> int:
        if b'"tool_call"' in event:
            began.wait(0.3)  # time in which the tool could start too early
            order.append("stored")
        return append(state, run_id, event, *rest)

    async def run(self: PreparedCall, context: ToolContext) -> ToolResult:
        order.append("began")
        began.set()
        return ToolResult("done")

    monkeypatch.setattr(transactions, "append_event", slow)
    monkeypatch.setattr(PreparedCall, "run", run)
    async with an_agent(tmp_path, Calling()) as agent:
        ui = await agent.connect()
        assert await ui.until_ended(await ui.start("go")) == "completed"
    assert order == ["stored", "began"]
