"""Reads of the store: lists, single rows, and logs a page at a time, in a thread of their own.

The queries are plain functions of a connection; `StoreReader` runs them on a connection that only
reads, beside the writer. No read stays open between two pages: events are only ever added, so a
window that was measured once reads the same however many pages it takes, and SQLite's log can be
shortened meanwhile.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

import msgspec

from telex.agent.limits import STORE_PAGE_BYTES
from telex.agent.store.database_file import connect_reader, maps_sqlite_errors
from telex.agent.store.errors import StoreClosed, UnknownRun, UnknownThread
from telex.agent.store.stored_records import (
    ClosedQuestion,
    Status,
    StoredDecision,
    StoredEvent,
    StoredQuestion,
    StoredRun,
    StoredThread,
)
from telex.agent.store.transactions import QUESTION_PREFIX

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from telex.agent.store.stored_records import StoredEvent


_THREAD = (
    "SELECT t.id, t.created_at, t.updated_at, t.messages, r.id, r.said, t.meta,"
    " t.workspace FROM threads t"
    " LEFT JOIN runs r ON r.number = (SELECT max(number) FROM runs WHERE thread = t.number)"
    " WHERE t.importing IS NULL"
)
_RUN = (
    "SELECT r.id, t.id, r.status, r.message, r.input, r.started_at, r.ended_at, r.meta,"
    " r.may_return"
    " FROM runs r JOIN threads t ON t.number = r.thread WHERE t.importing IS NULL"
)


MOST: Final = 1 << 62
"""As good as all, where more is asked for than SQLite can count."""


@dataclass(frozen=True, slots=True)
class LogSpan:
    """A part of one run's log, from `first` to before `end`; -1 is the person's input."""

    number: int
    run_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class HistoryWindow:
    """What a history sends, measured before the first of it is read."""

    spans: tuple[LogSpan, ...]
    truncated: bool

    @property
    def runs(self) -> int:
        return len(self.spans)

    @property
    def events(self) -> int:
        return sum(span.end - span.first for span in self.spans)


def threads(
    database: sqlite3.Connection, limit: int | None, workspace: str | None = None
) -> list[StoredThread]:
    """The latest first; with None, all, and those of every workspace."""
    here, given = ("", ()) if workspace is None else (" AND t.workspace = ?", (workspace,))
    rows = database.execute(
        f"{_THREAD}{here} ORDER BY t.updated_at DESC, t.number DESC LIMIT ?",
        (*given, -1 if limit is None else min(limit, MOST)),
    )
    return [StoredThread(*row) for row in rows]


def thread(database: sqlite3.Connection, session_id: str) -> StoredThread:
    row = database.execute(f"{_THREAD} AND t.id = ?", (session_id,)).fetchone()
    if row is None:
        raise UnknownThread(f"there is no session {session_id}")
    return StoredThread(*row)


def run(database: sqlite3.Connection, run_id: str) -> StoredRun:
    row = database.execute(f"{_RUN} AND r.id = ?", (run_id,)).fetchone()
    if row is None:
        raise UnknownRun(f"there is no run {run_id}")
    return _run(row)


def active_runs(database: sqlite3.Connection) -> list[StoredRun]:
    """All that have not ended, whoever has them."""
    return [_run(row) for row in database.execute(f"{_RUN} AND r.ended_at IS NULL")]


_Row = tuple[str, str, str, str | None, bytes, int, int | None, bytes | None, int]


def _run(row: _Row) -> StoredRun:
    run_id, session_id, status, message, given, started_at, ended_at, meta, may_return = row
    ended = Status(status), message, given, started_at, ended_at, meta
    return StoredRun(run_id, session_id, *ended, bool(may_return))


def questions(database: sqlite3.Connection, run_id: str | None) -> list[StoredQuestion]:
    """Those of one run that are open; with None, of all."""
    rows = database.execute(
        "SELECT q.number, r.id, q.method, q.params, q.digest, q.asked_at FROM questions q"
        " LEFT JOIN runs r ON r.number = q.run"
        " WHERE q.closed_at IS NULL AND (?1 IS NULL OR r.id = ?1) ORDER BY q.number",
        (run_id,),
    )
    return [StoredQuestion(f"{QUESTION_PREFIX}{number}", *rest) for number, *rest in rows]


def closed_questions(
    database: sqlite3.Connection, run_id: str
) -> list[tuple[StoredQuestion, ClosedQuestion]]:
    """Of one run, in the order they were asked, each with how it ended."""
    rows = database.execute(
        "SELECT q.number, r.id, q.method, q.params, q.digest, q.asked_at,"
        " q.answer, q.closed_by, q.closed_at FROM questions q JOIN runs r ON r.number = q.run"
        " WHERE q.closed_at IS NOT NULL AND r.id = ? ORDER BY q.number",
        (run_id,),
    )
    return [
        (
            StoredQuestion(f"{QUESTION_PREFIX}{number}", *rest),
            ClosedQuestion(False, answer, by, at, rest[3]),
        )
        for number, *rest, answer, by, at in rows
    ]


def decisions(database: sqlite3.Connection, revoked: bool) -> list[StoredDecision]:
    """In the order they were made; those taken back only when asked for."""
    rows = database.execute(
        "SELECT number, rule, made_by, made_at, question, revoked_by, revoked_at FROM decisions"
        " WHERE ? OR revoked_at IS NULL ORDER BY number",
        (revoked,),
    )
    return [
        StoredDecision(
            number, rule, by, at, question and f"{QUESTION_PREFIX}{question}", *taken_back
        )
        for number, rule, by, at, question, *taken_back in rows
    ]


def window(
    database: sqlite3.Connection, session_id: str, max_runs: int, max_events: int
) -> HistoryWindow:
    """The last `max_events` of the last `max_runs` runs, inputs counted as the events they become.
    The newest are kept: a person who comes back wants to see where things stand."""
    thread(database, session_id)
    most_runs = max(0, min(max_runs, MOST))
    rows = database.execute(
        "SELECT r.number, r.id, coalesce((SELECT max(seq) FROM events WHERE run = r.number), -1)"
        " FROM runs r JOIN threads t ON t.number = r.thread WHERE t.id = ?"
        " ORDER BY r.number DESC LIMIT ?",
        (session_id, most_runs + 1),
    ).fetchall()
    room, spans = max(0, max_events), []
    for number, run_id, last in rows[:most_runs]:
        if room:
            first = max(-1, last + 1 - room)
            room -= last + 1 - first
            spans.append(LogSpan(number, run_id, first, last + 1))
    whole = len(spans) == len(rows) and all(span.first == -1 for span in spans)
    return HistoryWindow(tuple(reversed(spans)), truncated=not whole)


def log(database: sqlite3.Connection, run_id: str, after: int) -> LogSpan:
    """What a run has after a sequence number, for `run.attach`. Without the person's input."""
    row = database.execute(
        "SELECT r.number, coalesce((SELECT max(seq) FROM events WHERE run = r.number), -1)"
        " FROM runs r JOIN threads t ON t.number = r.thread"
        " WHERE r.id = ? AND t.importing IS NULL",
        (run_id,),
    ).fetchone()
    if row is None:
        raise UnknownRun(f"there is no run {run_id}")
    return LogSpan(row[0], run_id, max(0, after + 1), row[1] + 1)


def page(database: sqlite3.Connection, span: LogSpan) -> tuple[list[StoredEvent], LogSpan]:
    """The first events of a span, as many as fit a page, and what is left of it."""
    if span.first < 0:
        return [_input(database, span)], LogSpan(span.number, span.run_id, 0, span.end)
    events, size = [], 0
    for event in _events(database, span):
        events.append(event)
        size += len(event.event) + len(event.meta or b"")
        if size >= STORE_PAGE_BYTES:
            break
    return events, LogSpan(span.number, span.run_id, _after(events, span), span.end)


def _after(events: list[StoredEvent], span: LogSpan) -> int:
    """Where the next page begins. A hole is `verify`'s to tell; what is there is played once."""
    return events[-1].seq + 1 if events else span.end


def _events(database: sqlite3.Connection, span: LogSpan) -> Iterator[StoredEvent]:
    rows = database.execute(
        "SELECT seq, at, event, meta FROM events WHERE run = ? AND seq >= ? AND seq < ?"
        " ORDER BY seq",
        (span.number, span.first, span.end),
    )
    return (StoredEvent(span.run_id, *row) for row in rows)


def _input(database: sqlite3.Connection, span: LogSpan) -> StoredEvent:
    at, said = database.execute(
        "SELECT started_at, said FROM runs WHERE number = ?", (span.number,)
    ).fetchone()
    shown = msgspec.json.encode({"type": "hidden_user_message", "content": said})
    return StoredEvent(span.run_id, -1, at, shown, None)


T = TypeVar("T")
P = ParamSpec("P")


class StoreReader:
    """A thread with a connection that only reads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "telex-store-reader")
        self._database: sqlite3.Connection | None = None
        self._closed = False

    async def read(
        self,
        work: Callable[Concatenate[sqlite3.Connection, P], T],
        *given: P.args,
        **named: P.kwargs,
    ) -> T:
        if self._closed:
            raise StoreClosed(f"{self._path} was closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(self._read, work, *given, **named))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            loop = asyncio.get_running_loop()
            await asyncio.shield(loop.run_in_executor(self._thread, self._disconnect))
            self._thread.shutdown()

    def _read(
        self,
        work: Callable[Concatenate[sqlite3.Connection, P], T],
        *given: P.args,
        **named: P.kwargs,
    ) -> T:
        with maps_sqlite_errors(self._path):
            if self._database is None:
                self._database = connect_reader(self._path)
            return work(self._database, *given, **named)

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()


class History:
    """How much will be played again, and then that: `async for event in history`."""

    def __init__(self, window: HistoryWindow, reader: StoreReader) -> None:
        self.runs = window.runs
        self.events = window.events
        self.truncated = window.truncated
        self._spans = window.spans
        self._reader = reader

    async def __aiter__(self) -> AsyncIterator[StoredEvent]:
        for span in self._spans:
            async for event in play_events(self._reader, span):
                yield event


async def play_events(reader: StoreReader, span: LogSpan) -> AsyncIterator[StoredEvent]:
    async for events in event_pages(reader, span):
        for event in events:
            yield event


async def event_pages(reader: StoreReader, span: LogSpan) -> AsyncIterator[list[StoredEvent]]:
    while span.first < span.end:
        events, span = await reader.read(page, span)
        yield events
