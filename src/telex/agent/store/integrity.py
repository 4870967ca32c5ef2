"""Whether a store is as it was written: SQLite's own checks, and ours.

SQLite sees broken pages and rows that point nowhere. We see gaps, events changed or lost (the hash
chain), and runs that disagree with their questions. Reads only, in one read transaction, so it can
be run while others write.
"""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from telex.agent.limits import STORE_PROBLEMS
from telex.agent.store import stored_records
from telex.agent.store.database_file import check_file, connect_reader, maps_sqlite_errors
from telex.agent.store.errors import (
    DiskFailed,
    NotAStore,
    NotStorable,
    StoreDamaged,
    StoreUnusable,
    sqlite_store_error,
)
from telex.agent.store.migrations import version_of
from telex.agent.store.transactions import first_link, next_link

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    problems: tuple[str, ...]
    """The first of them; none when all is well."""
    threads: int
    runs: int
    events: int


def verify(path: Path) -> IntegrityReport:
    """Blocks for as long as reading the whole file takes. Raises `StoreDamaged` where not even its
    problems can be read, and `StoreUnusable` for what is no store of ours."""
    if not path.exists() and not path.is_symlink():
        raise StoreUnusable(f"there is no {path}")
    check_file(path)
    try:
        return _verified(path)
    except StoreDamaged as damaged:
        raise StoreDamaged(
            f"{path} cannot be read as a database. Put a copy in its place"
        ) from damaged


def _verified(path: Path) -> IntegrityReport:
    with maps_sqlite_errors(path), closing(connect_reader(path)) as database:
        database.text_factory = lambda text: text.decode(errors="replace")
        if not version_of(database, path):
            raise NotAStore(f"{path} is empty: it is no store, or was never finished. Remove it")
        database.execute("BEGIN")
        problems = tuple(islice(_problems(database, path), STORE_PROBLEMS))
        return IntegrityReport(problems, *(_count(database, sql) for sql in _COUNTS))


_THREADS = "FROM threads WHERE importing IS NULL"
_RUNS = f"FROM runs WHERE thread IN (SELECT number {_THREADS})"
_EVENTS = f"FROM events WHERE run IN (SELECT number {_RUNS})"
_COUNTS = tuple(f"SELECT count(*) {what}" for what in (_THREADS, _RUNS, _EVENTS))
"""What an import that was killed left is not counted: nobody sees it, and it is taken away."""


def _count(database: sqlite3.Connection, sql: str) -> int:
    return int(database.execute(sql).fetchone()[0])


def _problems(database: sqlite3.Connection, path: Path) -> Iterator[str]:
    damaged = [
        said
        for (said,) in database.execute(f"PRAGMA integrity_check({STORE_PROBLEMS})")
        if said != "ok"
    ]
    for said in damaged:
        _check_it_was_read(said, path)
    yield from damaged
    if damaged:
        return  # what else could be said about it would be a guess
    for table, row, parent, _ in database.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} belongs to a row of {parent} that is not there"
    yield from _logs(database)
    yield from _waiting(database)


def _check_it_was_read(said: str, path: Path) -> None:
    """A page that the disk would not give is not a page that is wrong."""
    if (failed := re.search(r"error code=(\d+)", said)) is not None:
        problem = sqlite_store_error(int(failed[1]), path, said)
        if isinstance(problem, DiskFailed):
            raise problem


def _logs(database: sqlite3.Connection) -> Iterator[str]:
    rows = database.execute(
        "SELECT r.id, r.events, r.head, e.seq, e.at, e.event, e.meta, e.chain"
        " FROM runs r LEFT JOIN events e ON e.run = r.number ORDER BY r.number, e.seq"
    )
    for (run_id, count, head), events in groupby(rows, itemgetter(0, 1, 2)):
        yield from _log(run_id, count, head, (row[3:] for row in events if row[3] is not None))


_Row = tuple[int, int, bytes, bytes | None, bytes]


def _log(run_id: str, count: int | None, head: bytes, rows: Iterator[_Row]) -> Iterator[str]:
    """Of one run: without gaps, each event as it was written, and none missing at the end."""
    expected, chain = 0, first_link(run_id)
    for seq, at, event, meta, stored in rows:
        if seq != expected:
            yield f"run {run_id}: event {expected} is missing before {seq}"
        elif next_link(chain, at, event, meta) != stored:
            yield f"run {run_id}: event {seq} is not as it was written"
        try:
            stored_records.event_type(event)
        except NotStorable as problem:
            yield f"run {run_id}: event {seq}: {problem}"
        expected, chain = seq + 1, stored
    if count is not None and (count, head) != (expected, chain):
        yield f"run {run_id} ended with {count} events, and has {expected} or other ones"


def _waiting(database: sqlite3.Connection) -> Iterator[str]:
    rows = database.execute(
        "SELECT r.id, r.status, count(q.number) FROM runs r LEFT JOIN questions q"
        " ON q.run = r.number AND q.closed_at IS NULL GROUP BY r.number"
        " HAVING (r.status = 'awaiting_ui') != (count(q.number) > 0)"
    )
    for run_id, status, questions in rows:
        yield f"run {run_id} is {status}, and has {questions} open questions"
