"""The conversation of a session in the store: in order, from its last summary on, exported whole."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agent.storing import begun, opened
from telex.agent.store import NewRun, NotStorable, Status, UnknownThread, verify
from telex.agent.store.database_file import connect_reader

if TYPE_CHECKING:
    from pathlib import Path

    from telex.agent.store import Store


def user(text: str) -> bytes:
    return json.dumps({"role": "user", "parts": [{"type": "text", "text": text}]}).encode()


async def texts(store: Store, session_id: str = "s") -> list[str]:
    found = await store.messages(session_id)
    return [json.loads(one.message)["parts"][0]["text"] for one in found]


async def test_the_conversation_has_the_messages_of_all_runs_in_order(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        new = NewRun("a", "s", b"{}", "one", new_thread=True, message=user("one"))
        await store.start_run(new)
        final = b'{"type":"final","content":"x"}'
        await store.appending("a", final, message=user("two"))
        await store.end_run("a", Status.COMPLETED)
        await begun(store, "b")
        assert await store.append_message("b", user("three")) == 2
        assert await texts(store) == ["one", "two", "three"]
        assert [one.run_id for one in await store.messages("s")] == ["a", "a", "b"]
        assert [one.position for one in await store.run_messages("b")] == [2]
        with pytest.raises(UnknownThread):
            await store.messages("other")
        with pytest.raises(NotStorable):
            await store.append_message("b", b"[]")
    assert verify(store.path).problems == ()


async def test_a_summary_replaces_the_messages_before_those_it_keeps(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        for number in range(4):
            await store.append_message("a", user(str(number)))
        await store.append_message("a", user("summary"), kept_from=2)
        await store.append_message("a", user("5"))
        assert await texts(store) == ["summary", "2", "3", "5"]
        await store.append_message("a", user("second"), kept_from=5)
        assert await texts(store) == ["second", "5"]
        await store.append_message("a", user("third"), kept_from=7)
        assert await texts(store) == ["third"]
        assert len(await store.run_messages("a")) == 5


async def test_an_imported_conversation_equals_the_exported_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.store.session_export.STORE_PAGE_BYTES", 100)
    async with await opened(tmp_path, "a/db") as one, await opened(tmp_path, "b/db") as two:
        await begun(one, "a")
        for number in range(5):
            await one.append_message("a", user(str(number)))
        await one.append_message("a", user("summary"), kept_from=3)
        await one.end_run("a", Status.COMPLETED)
        await begun(one, "b")
        await one.append_message("b", user("last"))
        export = b"".join([piece async for piece in one.export()])
        (tmp_path / "x").write_bytes(export)
        await two.import_(tmp_path / "x")
        assert await two.messages("s") == await one.messages("s")
        assert await two.run_messages("a") == await one.run_messages("a")
    assert verify(tmp_path / "b/db").problems == ()


async def test_a_run_imported_without_messages_gets_its_input_and_answer(tmp_path: Path) -> None:
    async with await opened(tmp_path, "a/db") as one, await opened(tmp_path, "b/db") as two:
        await begun(one, "a", said="hello")
        await one.append("a", b'{"type":"final","content":"bye"}')
        await one.end_run("a", Status.COMPLETED)
        (tmp_path / "x").write_bytes(b"".join([piece async for piece in one.export()]))
        await two.import_(tmp_path / "x")
        assert await texts(two) == ["hello", "bye"]


async def test_a_missing_or_changed_message_is_reported(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        for number in range(3):
            await store.append_message("a", user(str(number)))
    with closing(connect_reader(store.path)) as database:
        database.execute("PRAGMA query_only = OFF")
        database.execute("UPDATE messages SET message = CAST('{' AS BLOB) WHERE position = 0")
        database.execute("DELETE FROM messages WHERE position = 1")
        database.commit()
    first, second = verify(store.path).problems
    assert "message 0" in first
    assert "message 1 is missing before 2" in second
