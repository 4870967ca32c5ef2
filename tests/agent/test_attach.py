"""Attaching to a run: no event is lost or repeated, and questions stay open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent.holding import held
from agent.ui_side import ALL, HALF_CLOSED, an_agent
from telex.agent.cores.builtin import BuiltinCore
from telex.agent.cores.scripted import ScriptedCore, ScriptStep
from telex.agent.feeds import Notice, RunFeed
from telex.agent.protocol.events import FinalEvent, TextEvent
from telex.agent.protocol.extensions import UiRequestCancel
from telex.agent.protocol.runs import RunStatusNotify, UiCapabilities
from telex.agent.questions import Questions
from telex.agent.store import DiskFailed, NewRun, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from telex.agent.cores import CoreContext, CoreOutput, RunInput
    from telex.agent.store import StoredEvent, StoredQuestion

pytestmark = pytest.mark.usefixtures("every_transport")

RETURNING = {**ALL, "supports_run_attach": True}


class Talking:
    """A core that emits a number of texts, each when the test allows it."""

    name = "talking"
    details = BuiltinCore.details

    def __init__(self, count: int, *, held_after: int = -1) -> None:
        self.count = count
        self.held_after = held_after
        self.go_on = asyncio.Event()

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        for number in range(self.count):
            if number == self.held_after:
                await self.go_on.wait()
            yield TextEvent(str(number))
        yield FinalEvent("done")


async def test_a_ui_that_attaches_in_the_middle_gets_the_rest_once_and_in_order(
    tmp_path: Path,
) -> None:
    core = Talking(40, held_after=20)
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("go")
        await ui.until("agent.event", seq=19)
        late, later = await agent.connect(**ALL), await agent.connect(**ALL)
        answer = await late.call("run.attach", {"run_id": run})
        assert answer["status"] == "running"
        await later.call("run.attach", {"run_id": run, "after_seq": 14})
        core.go_on.set()
        for one in (ui, late, later):
            assert await one.until_ended(run) == "completed"
        everything = [params["event"] for params in ui.events(run)]
        assert [params["seq"] for params in late.events(run)] == list(range(41))
        assert [params["event"] for params in late.events(run)] == everything
        assert [params["seq"] for params in later.events(run)] == list(range(15, 41))
        replayed = [params["seq"] for params in late.events(run) if "meta" in params]
        assert replayed == list(range(20))


async def test_an_event_read_from_the_store_and_then_published_is_sent_once(tmp_path: Path) -> None:
    """An event is in the store just before it is published: a feed that catches up then could send it
    twice."""
    core = Talking(4, held_after=2)
    async with an_agent(tmp_path, core) as agent:
        ui, late = await agent.connect(), await agent.connect()
        run = await ui.start("go")
        await ui.until("agent.event", seq=1)
        await late.call("run.attach", {"run_id": run})
        await late.until("agent.event", seq=1)
        await late.settle()
        [*_, last] = [event async for event in agent.runtime.store.events(run)]
        for feed in agent.runtime.runs[run].feeds:
            feed.add_event(last)
        core.go_on.set()
        for one in (ui, late):
            await one.until_ended(run)
            assert [params["seq"] for params in one.events(run)] == [0, 1, 2, 3, 4]


async def test_attaching_to_an_ended_run_replays_it_with_its_end(tmp_path: Path) -> None:
    async with an_agent(tmp_path, Talking(5)) as agent:
        ui = await agent.connect()
        run = await ui.start("go")
        await ui.until_ended(run)
        other = await agent.connect()
        assert (await other.call("run.attach", {"run_id": run}))["status"] == "completed"
        assert await other.until_ended(run) == "completed"
        assert [params["seq"] for params in other.events(run)] == list(range(6))
        assert (await other.refusal("run.attach", {"run_id": "no"})).code == -32002
        assert (await other.refusal("run.attach", {"run_id": run, "after_seq": -2})).code == -32602


async def test_attaching_twice_on_one_connection_replaces_the_feed(tmp_path: Path) -> None:
    core = Talking(4, held_after=2)
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect()
        run = await ui.start("go")
        await ui.until("agent.event", seq=1)
        await ui.call("run.attach", {"run_id": run, "after_seq": 1})
        core.go_on.set()
        assert await ui.until_ended(run) == "completed"
        assert [params["seq"] for params in ui.events(run)] == [0, 1, 2, 3, 4]


async def test_a_ui_that_does_not_read_blocks_no_other_and_misses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.feeds.AGENT_FEED_ITEMS", 8)
    core = Talking(60)
    async with an_agent(tmp_path, core) as agent:
        slow, quick = await agent.connect(**ALL), await agent.connect(**ALL)
        room = asyncio.Event()
        peer = next(p for p, c in agent.server._connections.items() if c.name and p)
        notify = peer.notify

        async def held(method: str, params: object) -> None:
            await room.wait()
            await notify(method, params)

        monkeypatch.setattr(peer, "notify", held)
        run = await slow.start("go")
        await quick.call("run.attach", {"run_id": run})
        assert await quick.until_ended(run) == "completed"
        room.set()
        assert await slow.until_ended(run) == "completed"
        for one in (slow, quick):
            assert [params["seq"] for params in one.events(run)] == list(range(61))


async def test_an_open_question_is_sent_after_a_reconnect_with_the_same_id(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("run touch done")
        question = await ui.until("ui.confirm.request")
        await ui.leave()
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        again = await back.until("ui.confirm.request")
        assert again == question
        assert back.kinds(run) == ["step_start", "tool_call", "permission.ready"]
        back.answer(again, {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert (agent.root / "done").exists()


class Listening:
    """A connection that answers at once and records its notifications."""

    input_ended = False
    capabilities = UiCapabilities(supports_request_cancel=True)

    def __init__(self, name: str = "") -> None:
        self.name = self.author = name
        self.peer = self
        self.feeds: dict[str, RunFeed] = {}
        self.told: list[tuple[str, object]] = []

    async def ask(self, question: StoredQuestion) -> bytes:
        return b'{"ok":true}'

    async def notify(self, method: str, params: object) -> None:
        self.told.append((method, params))


async def test_of_two_answers_at_once_the_later_ui_is_notified(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "agent.db")
    try:
        questions, uis = Questions(store), [Listening("a"), Listening("b")]
        one = await questions.open(None, "ui.confirm.request", b"{}")
        for ui in uis:
            one.send_to(ui)  # type: ignore[arg-type]  # all of a connection that is used here
        await asyncio.wait(one.asked.values())
        answer = await questions.wait(one)
        told = {ui.name: ui.told for ui in uis}
        assert told.pop(answer.by) == []
        assert list(told.values()) == [
            [("ui.request.cancel", UiRequestCancel(one.question.id, "answered"))]
        ]
    finally:
        await store.close()


async def test_a_feed_that_is_behind_sends_every_withdrawn_question(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "agent.db")
    try:
        await store.start_run(NewRun("run", "session", b"{}", "", new_thread=True))
        ui = Listening()
        feed = RunFeed("run", ui, store, after=-1)  # type: ignore[arg-type]  # as above
        taken_back = [UiRequestCancel(f"ui_{n}", "answered", "run") for n in range(3)]
        for status in ("running", "awaiting_ui"):
            feed.add_notice(Notice("run.status", RunStatusNotify("run", status)))
        for told in taken_back:
            feed.add_notice(Notice("ui.request.cancel", told))
        feed.add_notice(Notice("run.status", RunStatusNotify("run", "completed")))
        feed.finish()
        await feed.wait_sent()
        assert ui.told == [
            *(("ui.request.cancel", told) for told in taken_back),
            ("run.status", RunStatusNotify("run", "completed")),
        ]
    finally:
        await store.close()


async def test_the_first_answer_wins_and_the_other_uis_are_notified(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        one, other = await agent.connect(**ALL), await agent.connect(**ALL)
        run = await one.start("run touch done")
        question = await one.until("ui.confirm.request")
        await other.call("run.attach", {"run_id": run})
        same = await other.until("ui.confirm.request")
        assert same["id"] == question["id"]
        other.answer(same, {"ok": False})
        told = await one.until("ui.request.cancel")
        assert told["params"] == {"id": question["id"], "reason": "answered", "run_id": run}
        one.answer(question, {"ok": True})
        assert await one.until_ended(run) == "completed"
        assert not (agent.root / "done").exists()
        assert not [m for m in other.heard if m.get("method") == "ui.request.cancel"]


async def test_a_question_survives_a_restart_and_its_answer_resumes_the_run(
    tmp_path: Path,
) -> None:
    core = ScriptedCore(
        "two",
        [
            ScriptStep(text="first"),
            ScriptStep(tool="write", arguments={"file_path": "one", "content": "1"}),
            ScriptStep(tool="write", arguments={"file_path": "two", "content": "2"}),
            ScriptStep(final="{last}"),
        ],
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        question = await ui.until("ui.confirm.request")
        await ui.leave()
    (tmp_path / "work" / "one").write_text("changed by the person")
    async with an_agent(tmp_path, core) as agent:
        assert (await agent.runtime.store.run(run)).status == "awaiting_ui"
        mute = await agent.connect()
        assert (await mute.call("run.attach", {"run_id": run}))["status"] == "awaiting_ui"
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run, "after_seq": ui.events(run)[-1]["seq"]})
        again = await back.until("ui.confirm.request")
        assert again == question
        back.answer(again, {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert (agent.root / "one").read_text() == "changed by the person"
        assert (agent.root / "two").read_text() == "2"
        numbers = [params["seq"] for params in (*ui.events(run), *back.events(run))]
        assert numbers == list(range(len(numbers)))
        kinds = ui.kinds(run) + back.kinds(run)
        assert kinds.count("tool_result") == 2
        assert kinds[-1] == "final"


async def test_after_a_restart_a_question_about_a_changed_file_is_replaced(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        (agent.root / "a").write_text("old")
        ui = await agent.connect(**RETURNING)
        run = await ui.start("edit a: old => new")
        question = await ui.until("ui.confirm.request")
        await ui.leave()
    (tmp_path / "work" / "a").write_text("old and more")
    async with an_agent(tmp_path) as agent:
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run})
        again = await back.until("ui.confirm.request")
        assert again["id"] != question["id"]
        assert [one.id for one in await agent.runtime.store.pending(run)] == [again["id"]]
        back.answer(question, {"ok": True})
        await back.settle()
        assert (agent.root / "a").read_text() == "old and more"
        back.answer(again, {"ok": True})
        assert await back.until_ended(run) == "completed"
        assert (agent.root / "a").read_text() == "new and more"


async def test_a_run_that_awaits_an_answer_since_before_a_restart_can_be_cancelled(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        started = await ui.call("run.start", {"input": {"type": "text", "text": "run touch x"}})
        await ui.until("ui.confirm.request")
        await ui.leave()
    async with an_agent(tmp_path) as agent:
        back = await agent.connect(**RETURNING)
        busy = {
            "input": {"type": "text", "text": "help"},
            "session_id": started["session_id"],
        }
        assert (await back.refusal("run.start", busy)).code == -32001
        cancelled = await back.call("run.cancel", {"run_id": started["run_id"]})
        assert cancelled == {"ok": True, "status": "cancelled"}
        assert await agent.runtime.store.pending() == []
        run = await back.start("help", session_id=started["session_id"])
        assert await back.until_ended(run) == "completed"


async def test_a_question_asked_while_its_ui_is_disconnected_waits_for_it(tmp_path: Path) -> None:
    core = ScriptedCore(
        "s",
        [
            ScriptStep(text="a"),
            ScriptStep(wait=0.02),
            ScriptStep(prompt="Who?"),
            ScriptStep(final="{last}"),
        ],
    )
    async with an_agent(tmp_path, core) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("go")
        await ui.until("agent.event", seq=0)
        await ui.leave()
        await agent.runtime.runs[run].awaiting_answer.wait()
        back = await agent.connect(**RETURNING)
        await back.call("run.attach", {"run_id": run, "after_seq": 0})
        back.answer(await back.until("ui.prompt.request"), {"value": "me"})
        assert await back.until_ended(run) == "completed"
        assert back.final(run) == "me"


@pytest.mark.parametrize("every_transport", HALF_CLOSED, indirect=True)
async def test_the_end_of_input_leaves_a_question_open_for_a_ui_that_may_reconnect(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("run touch done")
        question = await ui.until("ui.confirm.request")
        ui.finish()
        await ui.until_closed()
        [waiting] = await agent.runtime.store.pending(run)
        assert waiting.id == question["id"]


async def test_a_runtime_that_ends_first_leaves_the_question_open_too(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        run = await ui.start("run touch done")
        question = await ui.until("ui.confirm.request")
        await agent.server.close()
        await ui.settle()
        assert ui.statuses(run)[-1] == "awaiting_ui"
        assert not [m for m in ui.heard if m.get("method") == "ui.request.cancel"]
        ui.answer(question, {"ok": True})
        await ui.settle()
        assert not (agent.root / "done").exists()
    async with an_agent(tmp_path) as agent:
        [waiting] = await agent.runtime.store.pending(run)
        assert waiting.id == question["id"]
        back = await agent.connect(**RETURNING)
        await back.call("run.cancel", {"run_id": run})
        assert not (agent.root / "done").exists()


async def test_a_ui_that_attaches_while_a_run_ends_gets_its_end_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = held(monkeypatch, Store, "end_run")
    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(**ALL), await agent.connect(**ALL)
        run = await ui.start("list")
        await ending.reached.wait()
        assert (await other.call("run.attach", {"run_id": run}))["status"] == "completed"
        await other.settle()
        ending.open()
        for one in (ui, other):
            assert await one.until_ended(run) == "completed"
            await one.settle()
        assert other.statuses(run) == ["completed"]
        assert other.kinds(run) == ui.kinds(run)
        assert other.heard[-1]["method"] == "run.status"


async def test_a_feed_that_is_behind_sends_all_once_the_disk_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.feeds.AGENT_FEED_RETRY_SECONDS", 0.01)
    events, failures = Store.events, iter(range(3))

    async def failing(self: Store, run_id: str, after: int = -1) -> AsyncIterator[StoredEvent]:
        if next(failures, None) is not None:
            raise DiskFailed("the disk does not answer")
        async for event in events(self, run_id, after):
            yield event

    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(**ALL), await agent.connect(**ALL)
        run = await ui.start("list\nask x")
        question = await ui.until("ui.prompt.request")
        monkeypatch.setattr(Store, "events", failing)
        await other.call("run.attach", {"run_id": run})
        await other.until("ui.prompt.request")
        ui.answer(question, {"value": "y"})
        for one in (ui, other):
            assert await one.until_ended(run) == "completed"
        assert other.kinds(run) == ui.kinds(run)


async def test_a_disk_that_cannot_be_read_does_not_block_the_last_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(self: Store, run_id: str, after: int = -1) -> AsyncIterator[StoredEvent]:
        raise DiskFailed("the disk does not answer")
        yield

    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(**ALL), await agent.connect(**ALL)
        run = await ui.start("list\nask x")
        await ui.until("ui.prompt.request")
        monkeypatch.setattr(Store, "events", failing)
        await other.call("run.attach", {"run_id": run})
        assert (await other.call("run.cancel", {"run_id": run}))["ok"] is True
        assert await other.until_ended(run) == "cancelled"
