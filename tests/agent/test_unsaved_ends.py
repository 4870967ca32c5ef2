"""A run that was reported as ended stays ended, also where the store could not save its end."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from agent.storing import begun, opened, text
from agent.ui_side import ALL, an_agent
from telex.agent.store import EndNotSaved, RunEnded, Status, StoreBusy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent.ui_side import Agent, Message, Ui
    from telex.agent.store import Store

RETURNING = {**ALL, "supports_run_attach": True}


@contextmanager
def every_write_fails(store: Store) -> Iterator[None]:
    """Lock the database from another connection, so that every write fails meanwhile."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telex.agent.store.database_file.STORE_BUSY_SECONDS", 0.02)


async def asked(ui: Ui) -> tuple[Message, Message]:
    started = await ui.call("run.start", {"input": {"type": "text", "text": "run touch done"}})
    return started, await ui.until("ui.confirm.request")


async def check_it_is_over(agent: Agent, started: Message, status: str) -> None:
    """Check that the run sends no question, does nothing, and that its session is free."""
    run_id, session_id = started["run_id"], started["session_id"]
    ui = await agent.connect(**RETURNING)
    assert (await ui.call("run.attach", {"run_id": run_id}))["status"] == status
    assert await ui.until_ended(run_id) == status
    assert await ui.until_ended(await ui.start("help", session_id=session_id)) == "completed"
    assert not [m for m in ui.heard if m.get("method") == "ui.confirm.request"]
    assert not (agent.root / "done").exists()
    assert (await agent.runtime.store.run(run_id)).status == status


@pytest.mark.usefixtures("impatient")
async def test_a_cancelled_run_does_not_resume_after_a_disk_error(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        started, _ = await asked(ui)
        cancel = {"run_id": started["run_id"]}
        with every_write_fails(agent.runtime.store):
            for _ in range(2):
                refused = await ui.refusal("run.cancel", cancel)
                assert refused.code == -32000
                assert "its end is not stored" in refused.message
            assert ui.statuses(started["run_id"])[-1] == "cancelled"
            assert (await ui.call("run.attach", cancel))["status"] == "cancelled"
        assert await ui.call("run.cancel", cancel) == {"ok": True, "status": "cancelled"}
        assert await ui.call("run.cancel", cancel) == {"ok": False, "status": "cancelled"}
        await check_it_is_over(agent, started, "cancelled")
    async with an_agent(tmp_path) as agent:
        await check_it_is_over(agent, started, "cancelled")


@pytest.mark.usefixtures("impatient")
async def test_a_refusal_that_could_not_be_stored_still_ends_the_run(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        started, question = await asked(ui)
        with every_write_fails(agent.runtime.store):
            ui.answer(question, {"ok": False})
            assert await ui.until_ended(started["run_id"]) == "error"
        await check_it_is_over(agent, started, "error")


@pytest.mark.usefixtures("impatient")
async def test_an_unsaved_end_is_stored_when_the_runtime_closes(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        started, _ = await asked(ui)
        with every_write_fails(agent.runtime.store):
            await ui.refusal("run.cancel", {"run_id": started["run_id"]})
    async with an_agent(tmp_path) as agent:
        assert (await agent.runtime.store.run(started["run_id"])).status == "cancelled"


@pytest.mark.usefixtures("impatient")
async def test_a_session_is_free_after_a_disk_error_ended_its_run(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        started = await ui.call("run.start", {"input": {"type": "text", "text": "ask x"}})
        question = await ui.until("ui.prompt.request")
        with every_write_fails(agent.runtime.store):
            ui.answer(question, {"value": "y"})
            assert await ui.until_ended(started["run_id"]) == "error"
        run = await ui.start("help", session_id=started["session_id"])
        assert await ui.until_ended(run) == "completed"


async def test_a_ui_that_leaves_while_its_run_is_stored_leaves_its_session_free(
    tmp_path: Path,
) -> None:
    async with an_agent(tmp_path) as agent:
        ui, other = await agent.connect(**ALL), await agent.connect(**ALL)
        started = await ui.call("run.start", {"input": {"type": "text", "text": "help"}})
        await ui.until_ended(started["run_id"])
        again = {
            "input": {"type": "text", "text": "ask x"},
            "session_id": started["session_id"],
        }
        with every_write_fails(agent.runtime.store):
            ui.send("run.start", again)
            await other.call("session.list")  # its response proves that run.start is being served
            leaving = asyncio.create_task(ui.leave())
            await other.call("session.list")
        await leaving
        run = await other.start("help", session_id=started["session_id"])
        assert await other.until_ended(run) == "completed"
        assert await agent.runtime.store.active_runs() == []


@pytest.mark.usefixtures("impatient")
async def test_an_unsaved_end_is_stored_with_the_next_event_of_any_run(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a", "one")
        await begun(store, "b", "two")
        with every_write_fails(store):
            with pytest.raises(StoreBusy):
                await store.end_run("a", Status.CANCELLED, "no more")
            assert store.has_unsaved_end("a")
            with pytest.raises(EndNotSaved, match="run a has stopped"):
                await store.flush_end("a")
            assert (await store.run("a")).status is Status.CANCELLED
        assert await store.append("b", text(0)) == 0
        assert not store.has_unsaved_end("a")
        found = await store.run("a")
        assert (found.status, found.message) == (Status.CANCELLED, "no more")
        assert found.ended_at is not None
        with pytest.raises(RunEnded):
            await store.append("a", text(0))


@pytest.mark.usefixtures("impatient")
async def test_an_unsaved_end_is_stored_without_another_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end is stored by itself, because another runtime may wait for the session."""
    monkeypatch.setattr("telex.agent.store.store.STORE_OWED_SECONDS", 0.02)
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**RETURNING)
        started, _ = await asked(ui)
        store = agent.runtime.store
        with every_write_fails(store):
            await ui.refusal("run.cancel", {"run_id": started["run_id"]})
        assert store._flushing is not None
        await asyncio.wait_for(store._flushing, 60)
        assert (await store.run(started["run_id"])).status == "cancelled"
