"""Verify a store: SQLite's own checks, then the checks of this module.

SQLite finds corrupt pages and rows whose parent is missing. This module finds gaps in a log,
changed or lost events (by the hash chain), and runs whose status contradicts their questions. All
reads are in one read transaction, so the check can run while other processes write.
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
    """The result of `verify`: the problems found, and how much was checked."""

    problems: tuple[str, ...]
    """The first problems found, up to a limit; empty when there are none."""
    threads: int
    runs: int
    events: int


def verify(path: Path) -> IntegrityReport:
    """Read the whole file and check it; blocks until the end.

    Raises:
        StoreDamaged: the file cannot be read as a database at all.
        StoreUnusable: the file does not exist, or is not a telex store.
    """
    if not path.exists() and not path.is_symlink():
        raise StoreUnusable(f"{path} does not exist")
    check_file(path)
    try:
        return _verify(path)
    except StoreDamaged as damaged:
        raise StoreDamaged(
            f"{path} cannot be read as a database. Replace it with a backup"
        ) from damaged


def _verify(path: Path) -> IntegrityReport:
    with maps_sqlite_errors(path), closing(connect_reader(path)) as database:
        database.text_factory = lambda text: text.decode(errors="replace")
        if not version_of(database, path):
            raise NotAStore(
                f"{path} is empty: not a store, or its creation was interrupted. Remove it"
            )
        database.execute("BEGIN")
        problems = tuple(islice(_problems(database, path), STORE_PROBLEMS))
        return IntegrityReport(problems, *(_count(database, sql) for sql in _COUNTS))


_THREADS = "FROM threads WHERE importing IS NULL"
_RUNS = f"FROM runs WHERE thread IN (SELECT number {_THREADS})"
_EVENTS = f"FROM events WHERE run IN (SELECT number {_RUNS})"
_COUNTS = tuple(f"SELECT count(*) {what}" for what in (_THREADS, _RUNS, _EVENTS))
"""Sessions of an interrupted import are not counted: no query returns them, and the next process
that opens the store removes them."""


def _count(database: sqlite3.Connection, sql: str) -> int:
    return int(database.execute(sql).fetchone()[0])


def _problems(database: sqlite3.Connection, path: Path) -> Iterator[str]:
    damaged = [
        message
        for (message,) in database.execute(f"PRAGMA integrity_check({STORE_PROBLEMS})")
        if message != "ok"
    ]
    for message in damaged:
        _raise_if_disk_failed(message, path)
    yield from damaged
    if damaged:
        return  # further checks of a corrupt file would report guesses
    for table, row, parent, _ in database.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} refers to a row of {parent} that does not exist"
    yield from _log_problems(database)
    yield from _message_problems(database)
    yield from _status_problems(database)


def _raise_if_disk_failed(message: str, path: Path) -> None:
    """Raise `DiskFailed` where the message reports a page that the disk did not return: such a page
    is not known to be corrupt."""
    if (failed := re.search(r"error code=(\d+)", message)) is not None:
        problem = sqlite_store_error(int(failed[1]), path, message)
        if isinstance(problem, DiskFailed):
            raise problem


def _log_problems(database: sqlite3.Connection) -> Iterator[str]:
    rows = database.execute(
        "SELECT r.id, r.events, r.head, e.seq, e.at, e.event, e.meta, e.chain"
        " FROM runs r LEFT JOIN events e ON e.run = r.number ORDER BY r.number, e.seq"
    )
    for (run_id, count, head), events in groupby(rows, itemgetter(0, 1, 2)):
        stored = (row[3:] for row in events if row[3] is not None)
        yield from _run_log_problems(run_id, count, head, stored)


_Row = tuple[int, int, bytes, bytes | None, bytes]


def _run_log_problems(
    run_id: str, count: int | None, head: bytes, rows: Iterator[_Row]
) -> Iterator[str]:
    """Check the log of one run: no gaps, no changed event, no event missing at the end."""
    expected, chain = 0, first_link(run_id)
    for seq, at, event, meta, stored in rows:
        if seq != expected:
            yield f"run {run_id}: event {expected} is missing before {seq}"
        elif next_link(chain, at, event, meta) != stored:
            yield f"run {run_id}: event {seq} was changed after it was written"
        try:
            stored_records.event_type(event)
        except NotStorable as problem:
            yield f"run {run_id}: event {seq}: {problem}"
        expected, chain = seq + 1, stored
    if count is not None and (count, head) != (expected, chain):
        yield f"run {run_id} ended with {count} events, but has {expected} or different ones"


def _message_problems(database: sqlite3.Connection) -> Iterator[str]:
    """Yield gaps in the conversation of a thread, and messages that are no JSON."""
    rows = database.execute(
        "SELECT t.id, m.position, m.message FROM messages m JOIN threads t ON t.number = m.thread"
        " ORDER BY m.thread, m.position"
    )
    for session_id, messages in groupby(rows, itemgetter(0)):
        for expected, (_, position, message) in enumerate(messages):
            if position != expected:
                yield f"session {session_id}: message {expected} is missing before {position}"
                break
            try:
                stored_records.check_json(message, "a message")
            except NotStorable as problem:
                yield f"session {session_id}: message {position}: {problem}"


def _status_problems(database: sqlite3.Connection) -> Iterator[str]:
    """Yield the runs that wait for a UI without an open question, or the reverse."""
    rows = database.execute(
        "SELECT r.id, r.status, count(q.number) FROM runs r LEFT JOIN questions q"
        " ON q.run = r.number AND q.closed_at IS NULL GROUP BY r.number"
        " HAVING (r.status = 'awaiting_ui') != (count(q.number) > 0)"
    )
    for run_id, status, questions in rows:
        yield f"run {run_id} is {status}, but has {questions} open questions"
