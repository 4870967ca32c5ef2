"""Nothing runs without a yes, for any order of answers, cancels, errors, disconnects and reconnects."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from agent.ui_side import ALL, an_agent
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent.ui_side import Agent, Message, Ui

RETURNING = {**ALL, "supports_run_attach": True}
YES, NO = {"ok": True}, {"ok": False}
STEPS = ("yes", "yes", "no", "nonsense", "error", "cancel", "leave", "stranger", "stale", "silence")
AT_ONCE = 50
"""Schedules per runtime, before the next runtime is started on the same store."""


@dataclass
class Schedule:
    """One question and a random sequence of actions on it. `allowed` is the first answer, if any."""

    agent: Agent
    ui: Ui
    stranger: Ui
    run: str
    question: Message
    file: Path
    stale: Message | None
    may_return: bool
    there: bool = True
    allowed: bool | None = None
    first: str | None = None
    on_its_way: bool = False
    """Whether a yes was sent by a connection that has disconnected since."""
    did: list[str] = field(default_factory=list)

    def step(self, name: str) -> None:
        self.did.append(name)
        match name:
            case "stranger":  # a connection that was not asked
                self.stranger.answer(self.question, YES)
            case "stale" if self.stale is not None and self.there:  # the id of an earlier question
                self.ui.answer(self.stale, YES)
            case "cancel" if self.there:
                self.ui.send("run.cancel", {"run_id": self.run})
            case "yes" | "no" | "nonsense" | "error" if self.there:
                self._answer(name)

    def _answer(self, name: str) -> None:
        """Record the first answer. An error counts as a no, because no other UI is connected."""
        if self.allowed is None:
            self.allowed, self.first = name == "yes", name
        match name:
            case "yes" | "no":
                self.ui.answer(self.question, YES if name == "yes" else NO)
            case "nonsense":
                self.ui.answer(self.question, {"ok": "yes"})
            case _:
                error = {"code": -32000, "message": "no"}
                self.ui.say({"jsonrpc": "2.0", "id": self.question["id"], "error": error})

    async def leave(self) -> None:
        """Disconnect: a no without `supports_run_attach`, a pause with it."""
        self.did.append("leave")
        if not self.there:
            return
        await self.ui.leave()
        self.there = self.may_return
        if self.may_return:
            self.ui = await self.agent.connect(**RETURNING)
            await self.ui.call("run.attach", {"run_id": self.run})
            await self._read_its_state()
        elif self.allowed is None:
            self.allowed = False

    async def _read_its_state(self) -> None:
        """A question that is asked again has no answer yet: an answer sent while disconnecting is
        still being delivered, or lost."""
        while True:
            message = await self.ui.hear()
            if message["method"] == "ui.confirm.request":
                self.on_its_way = self.on_its_way or bool(self.allowed)
                self.allowed = self.first = None
                return
            if message["method"] == "run.status" and message["params"]["status"] != "awaiting_ui":
                return

    @property
    def ends(self) -> bool:
        """Whether the run ends by itself, because it was answered."""
        return self.first in ("yes", "no")


async def play(schedule: Schedule, chance: random.Random) -> bool:
    """Play a schedule; return whether the command ran."""
    for _ in range(chance.randrange(1, 6)):
        name = chance.choice(STEPS)
        if name == "leave":
            await schedule.leave()
        else:
            schedule.step(name)
        for _ in range(chance.choice((0, 0, 1, 3, 10, 40))):
            await asyncio.sleep(0)
    running = schedule.agent.runtime.runs.get(schedule.run)
    if running is not None and schedule.ends and chance.random() < 0.7:
        await running.ended()
    await schedule.stranger.call("run.cancel", {"run_id": schedule.run})
    ran = schedule.file.exists()
    schedule.step("yes")
    await run_in_thread(lambda _: None)
    await schedule.stranger.settle()
    assert schedule.file.exists() == ran, f"the command ran after its end: {schedule.did}"
    if ran:
        assert schedule.allowed or schedule.on_its_way, (
            f"the command ran without a yes: {schedule.did}"
        )
    return ran


async def begun(
    agent: Agent, stranger: Ui, stale: Message | None, chance: random.Random
) -> Schedule:
    may_return = chance.random() < 0.5
    ui = await agent.connect(**(RETURNING if may_return else ALL))
    file = agent.root / f"done-{chance.getrandbits(64):x}"
    run = await ui.start(f"run touch {file.name}")
    question = await ui.until("ui.confirm.request")
    return Schedule(agent, ui, stranger, run, question, file, stale, may_return)


@pytest.mark.counted
async def test_nothing_runs_without_a_yes_whatever_the_schedule(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    chance, schedules, ran = random.Random(17), counted(80, 2000), 0
    stale: Message | None = None
    for first in range(0, schedules, AT_ONCE):
        async with an_agent(tmp_path) as agent:
            stranger = await agent.connect(**ALL)
            for _ in range(first, min(schedules, first + AT_ONCE)):
                schedule = await begun(agent, stranger, stale, chance)
                ran += await play(schedule, chance)
                stale = schedule.question
                await schedule.ui.leave()
    assert schedules / 20 < ran < schedules / 2
    print(f"{schedules} schedules, {ran} of them ran, each after a yes")
