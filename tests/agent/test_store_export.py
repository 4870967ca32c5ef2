"""Export sessions from one store and import them into another, completely or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agent.storing import begun, opened, text
from telex.agent.store import (
    BadExport,
    IdTaken,
    NewRun,
    Status,
    Store,
    UnknownRun,
    UnknownThread,
    session_export,
    session_import,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ODD = b'{ "type":"text", "content":"two", "x.new":[1.0, 1e5] }'


async def filled(store: Store) -> None:
    await begun(store, "a", "one")
    await store.append("a", text("one"), b'{"trace" : 1}')
    await store.append("a", ODD)
    await store.append("a", b'{"type":"final","content":"bye"}')
    asked = await store.ask("a", "ui.confirm.request", b'{"title":"?"}', b"\x00digest")
    await store.answer(asked.id, b'{"ok":true}', "me")
    await store.remember(b'{"tool":"shell"}', "me", asked.id)
    await store.end_run("a", Status.COMPLETED, "fine")
    await store.set_thread_meta("one", b'{"todo":[]}')
    await begun(store, "b", "two", "and this?")
    await store.ask("b", "ui.confirm.request", b"{}")


async def exported(store: Store, path: Path, session_id: str | None = None) -> Path:
    path.write_bytes(b"".join([piece async for piece in store.export(session_id)]))
    return path


async def played(store: Store, session_id: str) -> list[tuple[int, int, bytes, bytes | None]]:
    events = [event async for event in await store.history(session_id)]
    return [(event.seq, event.at, event.event, event.meta) for event in events]


async def test_an_imported_session_equals_the_exported_one(tmp_path: Path) -> None:
    async with await opened(tmp_path, "a/db") as one, await opened(tmp_path, "b/db") as two:
        await filled(one)
        imported = await two.import_(await exported(one, tmp_path / "x"))
        assert (imported.threads, imported.runs, imported.events) == (2, 2, 3)
        assert await two.threads() == await one.threads()
        assert await two.run("a") == await one.run("a")
        for session in ("one", "two"):
            assert await played(two, session) == await played(one, session)
    assert verify(tmp_path / "b/db").problems == ()


async def test_an_import_has_no_decisions_and_no_active_run(tmp_path: Path) -> None:
    async with await opened(tmp_path, "a/db") as one, await opened(tmp_path, "b/db") as two:
        await filled(one)
        await two.import_(await exported(one, tmp_path / "x"))
        assert await two.decisions() == []
        assert await two.pending() == []
        run = await two.run("b")
        assert run.status is Status.ERROR
        assert run.message == "the run had not ended when it was exported"


async def test_one_session_can_be_exported_alone(tmp_path: Path) -> None:
    async with await opened(tmp_path, "a/db") as one, await opened(tmp_path, "b/db") as two:
        await filled(one)
        await two.import_(await exported(one, tmp_path / "x", "two"))
        assert [thread.session_id for thread in await two.threads()] == ["two"]
        with pytest.raises(UnknownThread):
            await exported(one, tmp_path / "y", "three")


async def test_existing_ids_are_refused_or_replaced_by_new_ones(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await filled(store)
        file = await exported(store, tmp_path / "x")
        before = await store.threads()
        with pytest.raises(IdTaken, match="--new-ids"):
            await store.import_(file)
        assert await store.threads() == before
        renamed = (await store.import_(file, new_ids=True)).renamed
        assert renamed.keys() == {"one", "two", "a", "b"}
        assert await played(store, renamed["one"]) == await played(store, "one")
    assert verify(store.path).problems == ()


def _line(number: int, change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    def changed(export: bytes) -> bytes:
        lines = export.splitlines(keepends=True)
        value = json.loads(lines[number])
        change(value)
        lines[number] = json.dumps(value).encode() + b"\n"
        return _signed(lines)

    return changed


def _signed(lines: list[bytes]) -> bytes:
    """Return the lines with a matching hash, so that the flaw itself must be found."""
    *body, _ = lines
    digest = hashlib.sha256(b"".join(body)).hexdigest()
    end = {"type": "end", "lines": len(body), "sha256": digest}
    return b"".join([*body, json.dumps(end).encode() + b"\n"])


def stored_in(path: Path) -> list[object]:
    """Return every row of all sessions, including those hidden from queries."""
    with closing(sqlite3.connect(path)) as database:
        tables = ("threads", "runs", "events", "questions")
        return [row for table in tables for row in database.execute(f"SELECT * FROM {table}")]


FLAWS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda export: b"",
    "cut in a line": lambda export: export[:-20],
    "cut between lines": lambda export: export[: export[:-1].rfind(b"\n") + 1],
    "no first line": lambda export: export[export.index(b"\n") + 1 :],
    "more after the end": lambda export: export + export,
    "two first lines": lambda export: export.splitlines(keepends=True)[0] + export,
    "another version": lambda export: export.replace(b'"version":2', b'"version":3', 1),
    "a byte changed": lambda export: export.replace(b"fine", b"nice"),
    "not UTF-8": lambda export: export.replace(b"fine", b"\xff\xff"),
    "a line too many": lambda export: export.replace(b"\n", b"\n\n", 1),
    "a gap": _line(4, lambda event: event.update(seq=7)),
    "an unknown status": _line(2, lambda run: run.update(status="dancing")),
    "an id of control characters": _line(1, lambda thread: thread.update(id="\x1b[2J")),
    "an event without a type": _line(4, lambda event: event.update(event={})),
    "a number too large": _line(1, lambda thread: thread.update(created_at=2**80)),
    "a time in no calendar": _line(1, lambda thread: thread.update(updated_at=2**53)),
    "nested too deeply": lambda export: export.replace(ODD, b"[" * 100_000 + b"]" * 100_000),
    "a session twice": lambda export: _signed(
        [*(lines := export.splitlines(keepends=True))[:-1], lines[1], lines[-1]]
    ),
    "a run before its session": lambda export: _signed(
        [*(lines := export.splitlines(keepends=True))[:1], lines[2], lines[1], *lines[3:]]
    ),
}


@pytest.mark.parametrize("lines", [1, 1000])
async def test_nothing_of_an_invalid_file_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    monkeypatch.setattr("telex.agent.store.session_export.STORE_IMPORT_LINES", lines)
    async with await opened(tmp_path, "a/db") as one, await opened(tmp_path, "b/db") as two:
        await filled(one)
        export = (await exported(one, tmp_path / "x")).read_bytes()
        await begun(two, "mine", "my own")
        for number, (flaw, changed) in enumerate(FLAWS.items()):
            (tmp_path / "x").write_bytes(changed(export))
            with pytest.raises((BadExport, IdTaken), match=r"/x\b|one exists already"):
                await two.import_(tmp_path / "x")
            assert [thread.session_id for thread in await two.threads()] == ["my own"], flaw
            assert len(stored_in(two.path)) == 2 + number, flaw
            assert await two.append("mine", text(flaw)) == number
    assert verify(tmp_path / "b/db").problems == ()


async def test_an_import_is_hidden_until_complete_and_does_not_block_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.store.session_export.STORE_IMPORT_LINES", 3)
    async with await opened(tmp_path, "a/db") as one, await opened(tmp_path, "b/db") as two:
        for session in range(20):
            await filled_with(one, f"session {session}", 12)
        file = await exported(one, tmp_path / "x")
        async with await Store.open(two.path) as other:
            await begun(other, "mine", "my own")
            importing, appended = asyncio.create_task(two.import_(file)), 0
            while not importing.done():
                assert await other.append("mine", text(appended)) == appended
                appended += 1
                seen = len(await other.threads())
                assert seen == 1 or (seen == 21 and len(await two.threads()) == 21)
            assert (await importing).events == 240
            assert appended > 20, "it waited for the import"
    assert verify(tmp_path / "b/db").problems == ()


async def filled_with(store: Store, session: str, events: int) -> None:
    await begun(store, f"run of {session}", session)
    await asyncio.gather(*(store.append(f"run of {session}", text(n)) for n in range(events)))
    await store.end_run(f"run of {session}", Status.COMPLETED)


async def test_the_remains_of_a_dead_import_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.store.session_import.STORE_IMPORT_LINES", 5)
    async with await opened(tmp_path, "a/db") as one, await opened(tmp_path, "b/db") as two:
        await filled_with(one, "s", 12)
        file = await exported(one, tmp_path / "x")
        loading = session_import.SessionImport(file, False)
        [piece] = session_export.read_export(file)
        await two._write(loading.add, piece)
        async with await Store.open(two.path):
            assert len(stored_in(two.path)) == 14, "the importing process is alive"
        with pytest.raises(UnknownThread):
            await two.start_run(NewRun("x", "s", b"{}", ""))
        with pytest.raises(UnknownRun):
            await two.run("run of s")
    async with await Store.open(two.path) as three:
        assert stored_in(three.path) == []
        assert (await three.import_(file)).events == 12
        assert len(await played(three, "s")) == 13


async def test_importing_a_missing_or_special_file_is_refused(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        with pytest.raises(BadExport, match="No such file"):
            await store.import_(tmp_path / "nothing")
        os.mkfifo(tmp_path / "pipe")
        for other in (tmp_path / "pipe", tmp_path):
            with pytest.raises(BadExport, match="not a regular file"):
                await store.import_(other)


async def test_a_refused_import_does_not_fail_writes_in_the_same_commit(
    tmp_path: Path,
) -> None:
    async with await opened(tmp_path) as store:
        await filled(store)
        file = await exported(store, tmp_path / "x")
        await begun(store, "c", "three")
        before, refused, after = await asyncio.gather(
            store.append("c", text(0)),
            store.import_(file),
            store.append("c", text(1)),
            return_exceptions=True,
        )
        assert (before, after) == (0, 1)
        assert isinstance(refused, IdTaken)
