"""Cancel: nothing of a run happens after its response, at whatever point it is cancelled."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from agent.ui_side import ALL, Refused, an_agent
from agent.working import gone
from telex.agent.agent_run import AgentRun
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.permissions.confirmation import Confirmer
from telex.agent.protocol.events import FinalEvent, TextEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator
    from pathlib import Path

    from agent.ui_side import Agent, Ui
    from telex.agent.cores import CoreContext, CoreOutput, RunInput

pytestmark = pytest.mark.usefixtures("every_transport")

EVERYTHING = ScriptedCore(
    "everything",
    [
        ScriptStep(reasoning="First think.", deltas=2),
        ScriptStep(text="Then say."),
        ScriptStep(tool="write", arguments={"file_path": "one", "content": "1"}),
        ScriptStep(tool="shell", arguments={"command": "echo 2 > two"}),
        ScriptStep(prompt="A name"),
        ScriptStep(pick=["a", "b"]),
        ScriptStep(confirm="Sure?"),
        ScriptStep(
            tool="edit", arguments={"file_path": "one", "old_string": "1", "new_string": "3"}
        ),
        ScriptStep(tool="todo", arguments={"action": "append", "entries": [{"content": "x"}]}),
        ScriptStep(compact=True),
        ScriptStep(final="done"),
    ],
)
ANSWERS: dict[str, Any] = {
    "ui.confirm.request": {"ok": True},
    "ui.prompt.request": {"value": "me"},
    "ui.pick.request": {"ids": ["b"]},
}


class Stepping:
    """A coroutine that calls a function at its nth suspension, at any depth."""

    def __init__(self, work: Any, at: int, then: Callable[[], None]) -> None:
        self._work, self._at, self._then = work, at, then

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, count = self._work.__await__(), 0
        send, value = steps.send, None
        while True:
            try:
                waiting = send(value)
            except StopIteration as end:
                return end.value
            if count == self._at:
                self._then()
            count += 1
            try:
                send, value = steps.send, (yield waiting)
            except BaseException as thrown:  # noqa: BLE001  as `yield from` does
                send, value = steps.throw, thrown


def cancelling_at(monkeypatch: pytest.MonkeyPatch, at: int, cancelled: asyncio.Event) -> None:
    think = AgentRun._run_core

    async def stepping(self: AgentRun, *given: Any) -> None:
        await Stepping(think(self, *given), at, cancelled.set)

    monkeypatch.setattr(AgentRun, "_run_core", stepping)


def seen(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir()}


async def play_until(ui: Ui, cancelled: asyncio.Event, run: str) -> list[Any]:
    """Answer questions until it is time to cancel or the run has ended; return the questions."""
    asked: list[Any] = []
    time = asyncio.create_task(cancelled.wait())
    try:
        while not cancelled.is_set():
            hearing = asyncio.ensure_future(ui.hear())
            await asyncio.wait({hearing, time}, return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done():
                hearing.cancel()
                break
            message = hearing.result()
            if (answer := ANSWERS.get(message.get("method", ""))) is not None:
                asked.append(message)
                if not cancelled.is_set():
                    ui.answer(message, answer)
            if message.get("method") == "run.status" and ui.statuses(run)[-1] == "completed":
                break
    finally:
        time.cancel()
    return asked


async def cancelled_there(agent: Agent, ui: Ui, cancelled: asyncio.Event) -> bool:
    """Cancel at the given await point, and check all invariants. Return whether the run was still
    active."""
    run = await ui.start("go")
    await play_until(ui, cancelled, run)
    answer = await ui.call("run.cancel", {"run_id": run})
    if answer["status"] == "completed":
        assert answer["ok"] is False
        return False
    assert answer == {"ok": True, "status": "cancelled"}
    at_the_answer = len(ui.heard)
    files = seen(agent.root)
    about = [m for m in ui.heard if run in str(m.get("params", ""))]
    assert about[-1]["params"] == {"run_id": run, "status": "cancelled"}
    for question in [m for m in ui.heard if m.get("method") in ANSWERS]:
        ui.answer(question, {"ok": True})  # old answers, and answers given twice
    await ui.settle()
    assert ui.heard[at_the_answer:] == []
    assert seen(agent.root) == files
    assert await agent.runtime.store.pending() == []
    numbers = [params["seq"] for params in ui.events(run)]
    assert numbers == list(range(len(numbers)))
    stored = [event.seq async for event in agent.runtime.store.events(run)]
    assert stored == numbers
    assert await ui.call("run.cancel", {"run_id": run}) == {"ok": False, "status": "cancelled"}
    return True


@pytest.mark.counted
async def test_a_run_can_be_cancelled_at_every_await_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: Callable[[int, int], int]
) -> None:
    every = counted(9, 1)
    at, going = 0, True
    while going:
        cancelled = asyncio.Event()
        with monkeypatch.context() as patch:
            cancelling_at(patch, at, cancelled)
            directory = tmp_path / str(at)
            directory.mkdir()
            async with an_agent(directory, EVERYTHING) as agent:
                ui = await agent.connect(**ALL)
                going = await cancelled_there(agent, ui, cancelled)
        at += every
    assert at > 30, f"only {at} await points were tried"


async def test_a_cancelled_command_leaves_no_process(tmp_path: Path) -> None:
    async with an_agent(tmp_path, mode="full") as agent:
        ui = await agent.connect(**ALL)
        started = agent.root / "started"
        os.mkfifo(started)
        run = await ui.start("run setsid sleep 100 & echo $$ $! > started; wait")
        pids = [int(word) for word in (await asyncio.to_thread(started.read_text)).split()]
        assert len(pids) == 2
        answer = await ui.call("run.cancel", {"run_id": run, "reason": "enough"})
        assert answer == {"ok": True, "status": "cancelled"}
        assert all(gone(pid) for pid in pids)
        assert ui.heard[-2]["params"] == {"run_id": run, "status": "cancelled", "message": "enough"}


async def test_cancelling_twice_at_once_is_one_cancel(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("ask something")
        await ui.until("ui.prompt.request")
        ids = [ui.send("run.cancel", {"run_id": run}) for _ in range(3)]
        for id in ids:
            assert await ui.reply(id) == {"ok": True, "status": "cancelled"}
        assert ui.statuses(run).count("cancelled") == 1


async def test_a_cancel_withdraws_the_question_and_its_late_answer_does_nothing(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("run touch done")
        question = await ui.until("ui.confirm.request")
        answer = await ui.call("run.cancel", {"run_id": run})
        assert answer["ok"] is True
        told = [m for m in ui.heard if m.get("method") == "ui.request.cancel"]
        assert [m["params"] for m in told] == [
            {"id": question["id"], "reason": "withdrawn", "run_id": run}
        ]
        assert ui.heard.index(told[0]) < len(ui.heard) - 2  # before the status and the answer
        ui.answer(question, {"ok": True})
        await ui.settle()
        assert not (agent.root / "done").exists()
        assert ui.heard[-1]["result"] == answer


async def test_a_finished_run_and_an_unknown_run_cannot_be_cancelled(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect()
        run = await ui.start("help")
        await ui.until_ended(run)
        assert await ui.call("run.cancel", {"run_id": run}) == {"ok": False, "status": "completed"}
        assert (await ui.refusal("run.cancel", {"run_id": "run_no"})).code == -32002
        assert (await ui.refusal("run.cancel", {})).code == -32602


class Deaf:
    """A core that ignores its cancel."""

    name = "deaf"
    details = BuiltinCore.details

    def __init__(self) -> None:
        self.swallowed = asyncio.Event()
        self.go_on = asyncio.Event()
        self.tried: list[str] = []

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        yield TextEvent("I am here")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.swallowed.set()
        await self.go_on.wait()
        try:
            await context.call("write", {"file_path": "late", "content": "x"})
        except asyncio.CancelledError:
            self.tried.append("write")
        yield TextEvent("and still here")
        yield FinalEvent("never")


async def test_a_core_that_ignores_its_cancel_can_do_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.agent_run.AGENT_CANCEL_SECONDS", 0.05)
    core = Deaf()
    async with an_agent(tmp_path, core, mode="full") as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until("agent.event")
        assert await ui.call("run.cancel", {"run_id": run}) == {"ok": True, "status": "cancelled"}
        assert core.swallowed.is_set()
        heard = len(ui.heard)
        core.go_on.set()
        await ui.settle()
        assert core.tried == ["write"]
        assert not (agent.root / "late").exists()
        assert len(ui.heard) == heard


class Shielding:
    """A core that makes its call in a separate task, which a cancel of the run does not reach."""

    name = "shielding"
    details = BuiltinCore.details

    def __init__(self) -> None:
        self.call: asyncio.Future[Any] | None = None

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        write = {"file_path": "late", "content": "x"}
        self.call = asyncio.ensure_future(context.call("write", write))
        await asyncio.shield(self.call)
        yield FinalEvent("never")


async def test_a_call_that_no_cancel_reaches_loses_its_question(tmp_path: Path) -> None:
    core = Shielding()
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        question = await ui.until("ui.confirm.request")
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"] is True
        assert core.call is not None
        await asyncio.wait({core.call}, timeout=60)
        assert core.call.cancelled()
        ui.answer(question, {"ok": True})
        await ui.settle()
        assert not (agent.root / "late").exists()


async def test_a_call_that_was_allowed_just_before_the_cancel_has_no_effect_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, judged, go_on = Shielding(), asyncio.Event(), asyncio.Event()
    verdict = Confirmer.confirm

    async def held(self: Confirmer, *given: Any) -> Any:
        found = await verdict(self, *given)
        judged.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(Confirmer, "confirm", held)
    async with an_agent(tmp_path, core, mode="full") as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await judged.wait()
        assert (await ui.call("run.cancel", {"run_id": run}))["ok"] is True
        go_on.set()
        assert core.call is not None
        await asyncio.wait({core.call}, timeout=60)
        assert core.call.cancelled()
        assert not (agent.root / "late").exists()


async def test_closing_the_runtime_cancels_active_runs(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("ask something")
        await ui.until("ui.prompt.request")
        await agent.server.close()
        assert await ui.until_ended(run) == "cancelled"
    async with an_agent(tmp_path) as agent:
        assert (await agent.runtime.store.run(run)).status == "cancelled"
        ui = await agent.connect()
        with pytest.raises(Refused):
            await ui.call("run.cancel", {"run_id": "x"})
