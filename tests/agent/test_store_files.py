"""The store's file: privacy, schema versions, failing disks, and damage."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.storing import begun, contents, opened, text
from telex.agent.store import (
    DiskFailed,
    DiskFull,
    NotAStore,
    Status,
    Store,
    StoreBusy,
    StoreDamaged,
    StoreTooNew,
    StoreUnusable,
    UnknownRun,
    errors,
    integrity,
    migrations,
    verify,
)
from telex.config.errors import NotPrivate

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
CHILD = [sys.executable, str(HERE / "store_child.py")]
MAY_BE = {
    "fdatasync": ("told RunEnded",),  # the end was reported as not stored, and is stored
    "pwrite64": (),
    # SQLite may report damage instead; and it need not read pages that are in memory.
    "pread64": ("told StoreDamaged", "pread64: taken for stored", "told RunEnded"),
}
FIXTURES = sorted((HERE / "data").glob("store_v*.sql"))


async def test_file_log_and_directory_are_private_to_the_user(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        made = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in store.path.parent.iterdir()
        }
        assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
        assert {"telex.db", "telex.db-wal"} < made.keys()
        assert set(made.values()) == {0o600}
    assert [path.name for path in store.path.parent.iterdir()] == ["telex.db"]


@pytest.mark.parametrize("flaw", ["open directory", "open file", "link", "directory"])
async def test_a_store_that_other_users_can_access_is_refused(tmp_path: Path, flaw: str) -> None:
    path = tmp_path / "store/telex.db"
    async with await opened(tmp_path):
        pass
    match flaw:
        case "open directory":
            path.parent.chmod(0o755)
        case "open file":
            path.chmod(0o644)
        case "link":
            path.rename(tmp_path / "elsewhere")
            path.symlink_to(tmp_path / "elsewhere")
        case "directory":
            path.unlink()
            path.mkdir()
    with pytest.raises((NotPrivate, DiskFailed), match="store"):
        await opened(tmp_path)


async def test_temporary_files_of_a_killed_creator_are_removed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store/telex.db"
    path.parent.mkdir(mode=0o700)
    left, made, busy, theirs = (
        path.parent / name
        for name in (".telex.db-a.new", ".telex.db-b.new", ".telex.db-c.new", ".other.new")
    )
    for one in (left, left.with_name(".telex.db-a.new-wal"), busy, theirs):
        one.write_bytes(b"half of it")
    with busy.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        async with await opened(tmp_path):
            os.link(path, made)
            async with await opened(tmp_path) as store:
                await begun(store, "a")
                found = {one.name for one in path.parent.iterdir() if one.name.startswith(".")}
                assert found == {busy.name, theirs.name}
    assert verify(path).runs == 1


# Versions.


def schema_of(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


def test_every_schema_version_has_a_fixture() -> None:
    assert [path.name for path in FIXTURES] == [
        f"store_v{number + 1}.sql" for number in range(len(migrations.STEPS))
    ]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
async def test_a_store_of_an_older_version_is_migrated(tmp_path: Path, fixture: Path) -> None:
    path = tmp_path / "store/telex.db"
    path.parent.mkdir(mode=0o700)
    path.touch(0o600)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(fixture.read_text())
    async with await opened(tmp_path) as store, await opened(tmp_path, "new/telex.db") as new:
        assert schema_of(store.path) == schema_of(new.path)
        assert [thread.session_id for thread in await store.threads()] == ["s"]
        assert await contents(store.events("done")) == [(0, "one"), (1, "two")]
        assert (await store.run("waiting")).status is Status.AWAITING_UI
        (question,) = await store.pending("waiting")
        await store.adopt("waiting")
        assert (await store.answer(question.id, b"{}", "me")).won
        assert [decision.rule for decision in await store.decisions()] == [b'{"tool":"read"}']
    assert verify(path).problems == ()


def test_a_migration_is_atomic(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as database:
        migrations.migrate(database, "db")
        database.execute("INSERT INTO threads (id, created_at, updated_at) VALUES ('s', 1, 1)")
        add = "ALTER TABLE threads ADD COLUMN title TEXT"
        with pytest.raises(sqlite3.OperationalError):
            migrations.migrate(database, "db", (*migrations.STEPS, (add, "NO SQL")))
        assert migrations.version_of(database, "db") == len(migrations.STEPS)
        migrations.migrate(database, "db", (*migrations.STEPS, (add,)))
        assert database.execute("SELECT id, title FROM threads").fetchall() == [("s", None)]
        with pytest.raises(StoreTooNew):
            migrations.migrate(database, "db")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("PRAGMA user_version = 99", StoreTooNew),
        ("PRAGMA application_id = 7", NotAStore),
    ],
)
async def test_a_file_of_a_later_version_or_another_program_is_not_changed(
    tmp_path: Path, statement: str, problem: type[Exception]
) -> None:
    async with await opened(tmp_path) as store:
        path = store.path
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
    before = path.read_bytes()
    with pytest.raises(problem, match=r"telex\.db"):
        await opened(tmp_path)
    with pytest.raises(problem, match=r"telex\.db"):
        verify(path)
    assert path.read_bytes() == before


async def test_a_file_that_is_not_a_database_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "store/telex.db"
    path.parent.mkdir(mode=0o700)
    path.touch(0o600)
    path.write_bytes(b"something else entirely " * 100)
    with pytest.raises(NotAStore):
        await opened(tmp_path)
    assert path.read_bytes() == b"something else entirely " * 100


# Several processes.


async def test_concurrent_opens_of_a_new_store_all_succeed(tmp_path: Path) -> None:
    stores = await asyncio.gather(*(opened(tmp_path) for _ in range(8)))
    for number, store in enumerate(stores):
        await begun(store, f"run {number}", f"session {number}")
    await asyncio.gather(
        *(store.append(f"run {n}", text(k)) for k in range(20) for n, store in enumerate(stores))
    )
    assert len(await stores[0].threads()) == 8
    for store in stores:
        await store.close()
    assert verify(stores[0].path).events == 160


async def test_a_write_fails_while_another_process_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telex.agent.store.database_file.STORE_BUSY_SECONDS", 0.05)
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy, match="another process"):
                await store.append("a", text(0))
            other.execute("ROLLBACK")
        assert await store.append("a", text(0)) == 0


# Disks.


async def test_a_full_database_raises_disk_full_and_the_store_stays_usable(tmp_path: Path) -> None:
    """`max_page_count` makes SQLite answer as a full disk does; it ends with the connection."""
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        assert await store.append("a", text(0)) == 0
        await store._writer.do(
            lambda state: state.database.execute("PRAGMA max_page_count = 1").fetchone()
        )
        together = await asyncio.gather(
            *(store.append("a", text("x" * 10_000)) for _ in range(10)), return_exceptions=True
        )
        assert {type(answer) for answer in together} == {DiskFull}
        assert "Free some space" in str(together[0])
        assert await contents(store.events("a")) == [(0, 0)]
        assert await store.append("a", text(1)) == 1
    assert verify(store.path).problems == ()


@pytest.mark.counted
def test_a_write_cut_short_anywhere_fails_and_stores_nothing(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    path, steps = tmp_path / "store/telex.db", counted(20, 500)
    done = subprocess.run([*CHILD, "full", path, str(steps)], capture_output=True, timeout=120)
    assert done.stdout.decode() == f"failed {steps} stored {steps}\n", done.stderr.decode()
    found = verify(path)
    assert (found.problems, found.events) == ((), steps)
    print(f"{steps} writes cut short, each answered")


def test_a_full_disk_is_reported_and_freed_space_is_used(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    script = 'mount -t tmpfs -o size=1m,mode=700 none "$1" && shift && exec "$@"'
    argv = [program("unshare"), "-rm", "sh", "-c", script, "sh", tmp_path, *CHILD, "fill"]
    done = subprocess.run([*argv, tmp_path / "telex.db"], capture_output=True, timeout=60)
    if b"unshare:" in done.stderr or b"mount:" in done.stderr:
        pytest.skip(f"no file system may be mounted here: {done.stderr.decode().strip()}")
    first, told, last = done.stdout.decode().splitlines()
    assert first.startswith("full after"), done.stderr.decode()
    assert told.startswith("told DiskFull: ")
    assert int(last.split()[-1]) == int(first.split()[-1]) + 5


@pytest.mark.counted
@pytest.mark.parametrize("call", ["fdatasync", "pwrite64", "pread64"])
async def test_a_failing_disk_is_reported_each_time_and_loses_nothing(
    tmp_path: Path, counted: Callable[[int, int], int], call: str
) -> None:
    """A refused write may be stored or not: its `fsync` failed after the data was written."""
    rounds = counted(2, 70)
    for turn in range(rounds):
        path, events = tmp_path / str(turn) / "telex.db", turn * 7 % 100
        argv = [*CHILD, "eio", path, call, str(events)]
        done = subprocess.run(argv, capture_output=True, timeout=60)
        *told, last = done.stdout.decode().splitlines() or [done.stderr.decode()]
        if last == "not allowed here":
            pytest.skip("seccomp is not allowed here")
        assert last == "lives", (done.stdout, done.stderr)
        assert set(told) <= {"told DiskFailed", *MAY_BE[call]}, told
        async with await Store.open(path) as store:
            found = await contents(store.events("a"))
            assert found[:events] == [(n, n) for n in range(events)]
        assert verify(path).problems == ()
    print(f"{rounds} times {call} failed for good: told, and nothing lost")


# A write-ahead log that lost its end.


@pytest.mark.counted
async def test_a_log_cut_or_torn_anywhere_opens_with_a_prefix(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    async with await opened(tmp_path) as store:
        pass  # creates the tables, so that the WAL of the next open has only events
    async with await opened(tmp_path) as store:
        await begun(store, "a", "one")
        await begun(store, "b", "two")
        for n in range(40):
            await store.append("ab"[n % 2], text([n, "x" * (n * 97 % 2000)]))
        kept = tmp_path / "kept"
        shutil.copytree(store.path.parent, kept)
    log = (kept / "telex.db-wal").read_bytes()
    frames = list(range(32, len(log), 24 + 4096))
    blocks = list(range(0, len(log), 512))
    cuts, chance = counted(24, 5000), random.Random(8)
    places = chance.sample([*frames, *blocks], min(cuts, len(frames) + len(blocks)))
    inside = [chance.randrange(len(log)) for _ in range(cuts - len(places))]
    longest = 0
    for cut in [*places, *inside, len(log)]:
        torn = bytes(random.Random(cut).randbytes(700)) if cut % 3 == 0 else b""
        longest = max(longest, await _prefix_after(kept, tmp_path / "cut", log, cut, torn))
    assert longest == 40
    print(f"{cuts} cuts, {len(frames)} frames and {len(blocks)} blocks of 512 bytes among them")


async def _prefix_after(kept: Path, place: Path, log: bytes, cut: int, torn: bytes) -> int:
    """Return how many events are left after the WAL was cut, or overwritten from there on."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(kept, place)
    place.chmod(0o700)
    (place / "telex.db-wal").write_bytes(log[:cut] + torn + log[cut + len(torn) :] * bool(torn))
    (place / "telex.db-shm").unlink()
    found = []
    async with await Store.open(place / "telex.db") as store:
        for run in "ab":
            try:
                found += [content[0] for _, content in await contents(store.events(run))]
            except UnknownRun:
                assert run == "b" or cut < 40_000
    assert sorted(found) == list(range(len(found)))
    assert verify(place / "telex.db").problems == ()
    return len(found)


# Verifying.


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            "UPDATE events SET event = CAST(event || ' ' AS BLOB) WHERE seq = 1",
            "1 was changed",
        ),
        ("DELETE FROM events WHERE seq = 1", "event 1 is missing before 2"),
        ("DELETE FROM events WHERE seq = 2", "ended with 3 events, but has 2"),
        ("DELETE FROM events", "ended with 3 events, but has 0"),
        ("UPDATE events SET at = at + 1 WHERE seq = 2", "2 was changed"),
        ("DELETE FROM runs", "refers to a row of runs"),
        ("UPDATE runs SET status = 'awaiting_ui', ended_at = NULL", "has 0 open questions"),
    ],
)
async def test_verify_finds_changes_made_outside_the_store(
    tmp_path: Path, damage: str, said: str
) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await asyncio.gather(*(store.append("a", text(n)) for n in range(3)))
        await store.end_run("a", Status.COMPLETED)
    assert verify(store.path).problems == ()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        other.execute(damage)
    assert any(said in problem for problem in verify(store.path).problems)


async def test_a_damaged_page_is_found_and_named(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await asyncio.gather(*(store.append("a", text("x" * 500)) for _ in range(200)))
    with store.path.open("r+b") as file:
        for page in range(8, 20):
            file.seek(page * 4096)
            file.write(os.urandom(64))
    with contextlib.suppress(StoreDamaged):  # where not even the rows can be counted
        assert verify(store.path).problems


async def test_text_that_is_not_utf8_is_reported_as_damage(tmp_path: Path) -> None:
    async with await opened(tmp_path) as store:
        await begun(store, "a")
        await store.append("a", text(0))
        await store.end_run("a", Status.COMPLETED)
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("UPDATE runs SET id = CAST(x'ff61' AS TEXT)")
        with pytest.raises(StoreDamaged, match="verify"):
            await store.threads()
    assert any("event 0" in problem for problem in verify(store.path).problems)


@pytest.mark.parametrize("name", ["SQLITE_IOERR_READ", "SQLITE_IOERR_CORRUPTFS"])
def test_a_read_error_is_not_reported_as_damage(name: str) -> None:
    code = getattr(sqlite3, name)
    for kind in (code, sqlite3.SQLITE_IOERR):
        assert isinstance(errors.sqlite_store_error(kind, "x", ""), DiskFailed)
    assert "cannot be read: Input/output error" in str(errors.sqlite_store_error(code, "x", ""))
    page = f"Tree 4 page 9: unable to get the page. error code={code}"
    with pytest.raises(DiskFailed, match="cannot be read"):
        integrity._raise_if_disk_failed(page, Path("x"))
    integrity._raise_if_disk_failed("Tree 4 page 9: free space corruption", Path("x"))


def test_verify_of_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="does not exist"):
        verify(tmp_path / "telex.db")
    assert not (tmp_path / "telex.db").exists()
