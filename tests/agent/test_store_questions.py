"""Questions that are stored with their run and answered once, and remembered decisions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent.storing import begun, opened, text
from telex.agent.store import RunEnded, RunNotOurs, Status, UnknownRequest, verify

if TYPE_CHECKING:
    from pathlib import Path

YES, NO = b'{"ok":true}', b'{"ok":false}'
CONFIRM = "ui.confirm.request"


async def test_the_first_answer_wins_and_later_ones_get_the_winner(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        asked = await store.ask("a", CONFIRM, b'{"title":"Run?"}', b"digest")
        assert await store.pending("a") == [asked]
        answers = await asyncio.gather(
            *(store.answer(asked.id, NO if n else YES, f"ui {n}") for n in range(5))
        )
        assert [answer.won for answer in answers] == [True, False, False, False, False]
        assert {(answer.answer, answer.by) for answer in answers} == {(YES, "ui 0")}
        assert {answer.digest for answer in answers} == {b"digest"}
        assert await store.pending() == []


async def test_a_run_waits_exactly_while_it_has_an_open_question(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        one, two = [await store.ask("a", CONFIRM, b"{}") for _ in "ab"]
        assert (await store.run("a")).status is Status.AWAITING_UI
        await store.answer(one.id, YES, "ui")
        assert (await store.run("a")).status is Status.AWAITING_UI
        await store.withdraw(two.id, "timeout")
        assert (await store.run("a")).status is Status.RUNNING
        assert await store.append("a", text(1)) == 0


async def test_no_answer_counts_after_a_cancel(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        asked = await store.ask("a", CONFIRM, b"{}")
        await store.end_run("a", Status.CANCELLED)
        late = await store.answer(asked.id, YES, "ui")
        assert (late.won, late.answer, late.by) == (False, None, "the run's end (cancelled)")
        assert (await store.run("a")).status is Status.CANCELLED
        with pytest.raises(RunEnded):
            await store.ask("a", CONFIRM, b"{}")


async def test_an_answer_to_an_unknown_request_is_refused(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await store.ask(None, CONFIRM, b"{}")
        for id in ("ui_2", "ui_0", "ui_01", "ui_", "1", "", "ui_-1", "ui_" + "9" * 40):
            with pytest.raises(UnknownRequest):
                await store.answer(id, YES, "ui")


async def test_a_question_survives_a_restart_with_its_run_and_its_id(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await store.append("a", text(0))
        asked = await store.ask("a", CONFIRM, b'{"x":1}', b"digest")
    async with await opened(tmp_path) as store:
        assert await store.pending("a") == [asked]
        assert (await store.run("a")).status is Status.AWAITING_UI
        with pytest.raises(RunNotOurs):
            await store.answer(asked.id, YES, "ui")
        await store.adopt("a")
        await store.adopt("a")
        assert (await store.answer(asked.id, YES, "ui")).won
        assert await store.append("a", text(1)) == 1
        assert (await store.ask("a", CONFIRM, b"{}")).id != asked.id
    assert verify(tmp_path / "store/telex.db").problems == ()


async def test_only_one_of_two_runtimes_adopts_a_run(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await store.ask("a", CONFIRM, b"{}")
    async with await opened(tmp_path) as one, await opened(tmp_path) as two:
        answers = await asyncio.gather(one.adopt("a"), two.adopt("a"), return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "RunNotOurs"]


async def test_a_question_without_a_run_ends_with_its_runtime(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        asked = await store.ask(None, CONFIRM, b"{}")
        async with await opened(tmp_path) as other:
            assert await other.pending() == [asked]
    async with await opened(tmp_path) as store:
        assert await store.pending() == []
        assert (await store.answer(asked.id, YES, "ui")).by == "the runtime ended"


async def test_a_decision_records_its_author_and_its_revoker(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        asked = await store.ask("a", CONFIRM, b"{}")
        rule = b'{"tool":"shell","command":"ls","x.future":1}'
        made = await store.remember(rule, "ui 1", asked.id)
        other = await store.remember(b'{"tool":"read"}', "ui 2")
        assert await store.revoke(made, "ui 3")
        assert not await store.revoke(made, "ui 4")
        assert [decision.id for decision in await store.decisions()] == [other]
        first, _ = await store.decisions(revoked=True)
        assert (first.rule, first.by, first.request_id) == (rule, "ui 1", asked.id)
        assert first.revoked_by == "ui 3"
        with pytest.raises(UnknownRequest):
            await store.remember(rule, "ui", "ui_99")
