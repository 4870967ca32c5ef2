"""Which UIs may still answer: disconnected, watching, reconnected and misbehaving ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.protocol.runs import UiCapabilities
from telex.agent.protocol.ui_requests import CONFIRM, PICK
from telex.agent.ui_connection import Departures

if TYPE_CHECKING:
    from pathlib import Path

RETURNING = {**ALL, "supports_run_attach": True}
MUTE = {"supports_run_attach": True}
FAILURE = '{"jsonrpc":"2.0","id":"%s","error":{"code":-32000,"message":"no window"}}'


def can(*what: str) -> UiCapabilities:
    return UiCapabilities(**dict.fromkeys((f"supports_{one}" for one in what), True))


def test_only_a_ui_that_can_answer_as_much_counts_as_a_reconnect() -> None:
    departures = Departures()
    departures.add(can("confirm"))
    assert not departures.can_answer(CONFIRM)
    departures.add(can("confirm", "run_attach"))
    for other in (can(), can("run_attach"), can("confirm"), can("pick", "run_attach")):
        departures.reconnected(other)
        assert departures.can_answer(CONFIRM)
        assert not departures.can_answer(PICK)
    departures.add(can("confirm", "run_attach"))
    departures.reconnected(can("confirm", "run_attach"))
    assert departures.can_answer(CONFIRM)
    departures.reconnected(can("confirm", "pick", "run_attach"))
    assert not departures.can_answer(CONFIRM)


@pytest.mark.parametrize("watching", [{}, MUTE, ALL])
async def test_a_watcher_does_not_answer_for_a_disconnected_ui(
    tmp_path: Path, watching: dict[str, bool]
) -> None:
    steps = [
        ScriptStep(text="a"),
        ScriptStep(wait=0.02),
        ScriptStep(confirm="Go on?"),
        ScriptStep(final="{last}"),
    ]
    async with an_agent(tmp_path, ScriptedCore("s", steps)) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        await ui.until("agent.event", seq=0)
        await ui.leave()
        watcher = await agent.connect(**watching)
        await watcher.call("run.attach", {"run_id": run})
        await agent.runtime.runs[run].awaiting_answer.wait()
        if watching is ALL:
            await watcher.until(CONFIRM)
        await watcher.leave()
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run, "after_seq": 0})
        back.answer(await back.until(CONFIRM), {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert back.final(run) == "yes"


async def test_a_ui_that_may_reconnect_but_cannot_answer_is_not_waited_for(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui, watcher = await agent.connect(supports_confirm=True), await agent.connect(**MUTE)
        run = await ui.start("run touch done")
        question = await ui.until(CONFIRM)
        await watcher.call("run.attach", {"run_id": run})
        await watcher.leave()
        ui.say(FAILURE % question["id"])
        assert await ui.until_ended(run) == "completed"
        assert not (agent.root / "done").exists()


async def test_a_ui_that_reconnected_and_fails_is_not_waited_for_again(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("run touch done")
        await ui.until(CONFIRM)
        await ui.leave()
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        back.say(FAILURE % (await back.until(CONFIRM))["id"])
        assert await back.until_ended(run) == "completed"
        assert not (agent.root / "done").exists()


@pytest.mark.parametrize(
    "answer",
    [
        '{"jsonrpc":"2.0","id":"%s"}',
        '{"jsonrpc":"2.0","id":"%s","error":null}',
        '{"jsonrpc":"2.0","id":"%s","method":"ui.confirm.request","result":{"ok":true}}',
        '{"jsonrpc":"2.0","id":"%s","method":"x","error":{"code":1,"message":"y"}}',
    ],
)
async def test_an_invalid_answer_counts_as_a_no(tmp_path: Path, answer: str) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("run touch done")
        ui.say(answer % (await ui.until(CONFIRM))["id"])
        assert await ui.until_ended(run) == "completed"
        assert not (agent.root / "done").exists()


async def test_a_ui_that_attaches_again_is_asked_again_and_answers_once(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("run echo x >> log")
        question = await ui.until(CONFIRM)
        for _ in range(2):
            await ui.call("run.attach", {"run_id": run, "after_seq": 2})
            assert await ui.until(CONFIRM) == question
        ui.answer(question, {"ok": True})
        ui.answer(question, {"ok": True})
        assert await ui.until_ended(run) == "completed"
        assert (agent.root / "log").read_text() == "x\n"
        assert [one["seq"] for one in ui.events(run)] == list(range(len(ui.events(run))))


async def test_attaching_again_does_not_count_as_a_reconnect(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(**RETURNING), await agent.connect(**RETURNING)
        run = await ui.start("run touch done")
        await ui.until(CONFIRM)
        for _ in range(2):
            await other.call("run.attach", {"run_id": run})
            question = await other.until(CONFIRM)
            await ui.leave()
        other.say(FAILURE % question["id"])
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        back.answer(await back.until(CONFIRM), {"ok": True})
        assert await other.until_ended(run) == "completed"
        assert (agent.root / "done").exists()


async def test_an_answer_while_attaching_again_counts_once(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("run touch done")
        question = await ui.until(CONFIRM)
        ui.answer(question, {"ok": True})
        ui.send("run.attach", {"run_id": run})
        assert await ui.until_ended(run) == "completed"
        assert (agent.root / "done").exists()
