"""Cores that continue after a cancel: nothing they try is sent, stored, asked or done."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from agent.holding import held
from agent.ui_side import ALL, an_agent
from telex.agent.cores import ContextLeft, TextDelta
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.protocol.events import FinalEvent, TextEvent
from telex.agent.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent.ui_side import Agent, Ui
    from telex.agent.cores import CoreContext, CoreOutput, RunInput

CANCELLED = {"ok": True, "status": "cancelled"}


class Stubborn:
    """A core that acts in a task that no cancel reaches, and stops only when the test releases it."""

    name = "stubborn"
    details = BuiltinCore.details

    def __init__(self, does: Callable[[CoreContext], Awaitable[object]]) -> None:
        self._does = does
        self.task: asyncio.Future[object] | None = None
        self.told = asyncio.Event()
        self.let_go = asyncio.Event()

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        self.task = asyncio.ensure_future(self._does(context))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.told.set()
            await self.let_go.wait()
        yield FinalEvent("never")

    async def was_stopped(self) -> bool:
        """Return whether its separate task was cancelled."""
        assert self.task is not None
        await asyncio.wait({self.task}, timeout=60)
        return self.task.cancelled()


async def cancelling(ui: Ui, run: str, core: Stubborn) -> str:
    """Send a cancel, wait until the core receives it, and return the id of the pending request."""
    id = ui.send("run.cancel", {"run_id": run})
    await core.told.wait()
    return id


async def stored(agent: Agent, run: str) -> list[bytes]:
    return [event.event async for event in agent.runtime.store.events(run)]


async def test_a_question_that_was_being_stored_at_the_cancel_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = held(monkeypatch, Store, "ask", done=True)
    core = Stubborn(lambda context: context.prompt("Who?", ""))
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await keeping.reached.wait()
        cancel = await cancelling(ui, run, core)
        keeping.open()
        assert await core.was_stopped()
        assert await agent.runtime.store.pending() == []
        core.let_go.set()
        assert await ui.reply(cancel) == CANCELLED
        assert ui.statuses(run) == ["running", "cancelled"]
        assert not [m for m in ui.heard if m.get("method") == "ui.prompt.request"]


async def test_an_answer_that_arrives_with_the_cancel_has_no_effect_and_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering = held(monkeypatch, Store, "answer", done=True)
    core = Stubborn(lambda context: context.call("shell", {"command": "touch done"}))
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        question = await ui.until("ui.confirm.request")
        assert question["params"]["allow_remember"] is True
        ui.answer(question, {"ok": True, "remember": True})
        await answering.reached.wait()
        cancel = await cancelling(ui, run, core)
        answering.open()
        assert await core.was_stopped()
        core.let_go.set()
        assert await ui.reply(cancel) == CANCELLED
        assert ui.statuses(run) == ["running", "awaiting_ui", "cancelled"]
        assert await agent.runtime.store.decisions() == []
        assert not (agent.root / "done").exists()


async def test_a_tool_result_after_the_cancel_is_neither_stored_nor_sent(
    tmp_path: Path,
) -> None:
    core = Stubborn(lambda context: context.call("shell", {"command": "cat pipe"}))
    async with an_agent(tmp_path, core, mode="full") as agent:
        os.mkfifo(agent.root / "pipe")
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        pipe = await asyncio.to_thread(os.open, agent.root / "pipe", os.O_WRONLY)
        cancel = await cancelling(ui, run, core)
        os.close(pipe)
        assert await core.was_stopped()
        core.let_go.set()
        assert await ui.reply(cancel) == CANCELLED
        assert ui.kinds(run) == ["step_start", "tool_call"]
        assert len(await stored(agent, run)) == 2


class Talkative:
    """A core that keeps emitting after its cancel."""

    name = "talkative"
    details = BuiltinCore.details

    def __init__(self, *late: CoreOutput) -> None:
        self._late = late

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        yield TextEvent("in time")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            for one in self._late:
                yield one


@pytest.mark.parametrize(
    "late",
    [TextDelta("text", "late"), ContextLeft(50), TextEvent("late"), FinalEvent("late")],
    ids=repr,
)
async def test_core_output_after_the_cancel_is_neither_stored_nor_sent(
    tmp_path: Path, late: CoreOutput
) -> None:
    async with an_agent(tmp_path, Talkative(late, FinalEvent("later"))) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until("agent.event")
        heard = len(ui.heard)
        assert await ui.call("run.cancel", {"run_id": run}) == CANCELLED
        assert [message.get("method") for message in ui.heard[heard:]] == ["run.status", None]
        assert len(await stored(agent, run)) == 1


class Inquisitive:
    """A core that asks a question after its cancel."""

    name = "inquisitive"
    details = BuiltinCore.details

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.brought: list[Any] = []

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        yield TextEvent("here")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await self.go_on.wait()
        try:
            self.brought.append(await context.prompt("Who?", ""))
        except asyncio.CancelledError:
            self.brought.append("a cancel")
            raise


@pytest.mark.parametrize("left_behind", [False, True])
async def test_a_core_that_asks_after_its_cancel_is_stopped_and_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_behind: bool
) -> None:
    if left_behind:
        monkeypatch.setattr("telex.agent.agent_run.AGENT_CANCEL_SECONDS", 0.01)
    core = Inquisitive()
    async with an_agent(tmp_path, core) as agent:
        ui, store = await agent.connect(**ALL), agent.runtime.store
        run = await ui.start("go")
        await ui.until("agent.event")
        before = await store.ask(None, "ui.confirm.request", b"{}", b"")
        cancel = ui.send("run.cancel", {"run_id": run})
        if not left_behind:
            core.go_on.set()
        assert await ui.reply(cancel) == CANCELLED
        core.go_on.set()
        await ui.settle()
        after = await store.ask(None, "ui.confirm.request", b"{}", b"")
        assert core.brought == ["a cancel"]
        assert int(after.id.removeprefix("ui_")) == int(before.id.removeprefix("ui_")) + 1
        assert not [m for m in ui.heard if m.get("method") == "ui.prompt.request"]
