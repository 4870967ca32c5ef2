"""Queries of the store: lists, single rows, and logs in pages, run in the reader's thread.

The queries are plain functions of a connection. `StoreReader` runs them on a read-only connection,
in parallel to the writer. No read transaction stays open between two pages. Events are only ever
added, so a `HistoryWindow` that was measured once yields the same events however many pages it
takes, and SQLite can checkpoint its WAL in between.
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
    StoredMessage,
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

_MESSAGES = "SELECT m.position, r.id, m.message FROM messages m JOIN runs r ON r.number = m.run"


MOST: Final = 1 << 62
"""The largest LIMIT that is passed on: SQLite's integers have 64 bits, those of JSON any size."""


@dataclass(frozen=True, slots=True)
class LogSpan:
    """A range of one run's log, from `first` up to but excluding `end`. Sequence number -1 is the
    user's input."""

    number: int
    run_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class HistoryWindow:
    """The range of events that a history replays, computed before the first event is read."""

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
    """Return threads, the latest first. None for `limit` means no limit; None for `workspace` means
    every workspace."""
    where, given = ("", ()) if workspace is None else (" AND t.workspace = ?", (workspace,))
    rows = database.execute(
        f"{_THREAD}{where} ORDER BY t.updated_at DESC, t.number DESC LIMIT ?",
        (*given, -1 if limit is None else min(limit, MOST)),
    )
    return [StoredThread(*row) for row in rows]


def thread(database: sqlite3.Connection, session_id: str) -> StoredThread:
    row = database.execute(f"{_THREAD} AND t.id = ?", (session_id,)).fetchone()
    if row is None:
        raise UnknownThread(f"session {session_id} does not exist")
    return StoredThread(*row)


def run(database: sqlite3.Connection, run_id: str) -> StoredRun:
    row = database.execute(f"{_RUN} AND r.id = ?", (run_id,)).fetchone()
    if row is None:
        raise UnknownRun(f"run {run_id} does not exist")
    return _run(row)


def active_runs(database: sqlite3.Connection) -> list[StoredRun]:
    """Return all runs that have not ended, in whichever runtime."""
    return [_run(row) for row in database.execute(f"{_RUN} AND r.ended_at IS NULL")]


_Row = tuple[str, str, str, str | None, bytes, int, int | None, bytes | None, int]


def _run(row: _Row) -> StoredRun:
    run_id, session_id, status, message, given, started_at, ended_at, meta, may_return = row
    ended = Status(status), message, given, started_at, ended_at, meta
    return StoredRun(run_id, session_id, *ended, bool(may_return))


def questions(database: sqlite3.Connection, run_id: str | None) -> list[StoredQuestion]:
    """Return the open questions of one run; with None, of all runs."""
    rows = database.execute(
        "SELECT q.number, r.id, q.method, q.params, q.digest, q.asked_at, q.call FROM questions q"
        " LEFT JOIN runs r ON r.number = q.run"
        " WHERE q.closed_at IS NULL AND (?1 IS NULL OR r.id = ?1) ORDER BY q.number",
        (run_id,),
    )
    return [StoredQuestion(f"{QUESTION_PREFIX}{number}", *rest) for number, *rest in rows]


def messages(database: sqlite3.Connection, session_id: str) -> list[StoredMessage]:
    """Return the conversation of a thread: its last summary, and the messages that follow it or
    were kept before it."""
    number = database.execute("SELECT number FROM threads WHERE id = ?", (session_id,)).fetchone()
    if number is None:
        raise UnknownThread(f"session {session_id} does not exist")
    summary = database.execute(
        "SELECT position, kept_from FROM messages WHERE thread = ? AND kept_from IS NOT NULL"
        " ORDER BY position DESC LIMIT 1",
        number,
    ).fetchone()
    at, kept_from = summary or (-1, 0)
    rows = database.execute(
        f"{_MESSAGES} WHERE m.thread = ?1 AND (m.position = ?2 OR"
        " (m.position >= ?3 AND m.kept_from IS NULL)) ORDER BY m.position != ?2, m.position",
        (number[0], at, kept_from),
    )
    return [StoredMessage(*row) for row in rows]


def run_messages(database: sqlite3.Connection, run_id: str) -> list[StoredMessage]:
    """Return the messages of one run without summaries, in order."""
    rows = database.execute(
        f"{_MESSAGES} WHERE r.id = ? AND m.kept_from IS NULL ORDER BY m.position", (run_id,)
    )
    return [StoredMessage(*row) for row in rows]


def closed_questions(
    database: sqlite3.Connection, run_id: str
) -> list[tuple[StoredQuestion, ClosedQuestion]]:
    """Return the closed questions of one run in the order they were asked, each with its
    outcome."""
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
    """Return decisions in the order they were made; revoked ones only with `revoked`."""
    rows = database.execute(
        "SELECT number, rule, made_by, made_at, question, revoked_by, revoked_at FROM decisions"
        " WHERE ? OR revoked_at IS NULL ORDER BY number",
        (revoked,),
    )
    return [
        StoredDecision(
            number, rule, by, at, question and f"{QUESTION_PREFIX}{question}", *revocation
        )
        for number, rule, by, at, question, *revocation in rows
    ]


def window(
    database: sqlite3.Connection, session_id: str, max_runs: int, max_events: int
) -> HistoryWindow:
    """Return the last `max_events` events of the last `max_runs` runs. An input counts as one
    event, because it is replayed as one. The newest are kept, because a user who returns wants to
    see the current state."""
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
    """Return the range of a run's events after a sequence number, for `run.attach`. It does not
    include the user's input."""
    row = database.execute(
        "SELECT r.number, coalesce((SELECT max(seq) FROM events WHERE run = r.number), -1)"
        " FROM runs r JOIN threads t ON t.number = r.thread"
        " WHERE r.id = ? AND t.importing IS NULL",
        (run_id,),
    ).fetchone()
    if row is None:
        raise UnknownRun(f"run {run_id} does not exist")
    return LogSpan(row[0], run_id, max(0, after + 1), row[1] + 1)


def page(database: sqlite3.Connection, span: LogSpan) -> tuple[list[StoredEvent], LogSpan]:
    """Return the first events of a span, as many as fit in a page, and the rest of the span."""
    if span.first < 0:
        return [_input(database, span)], LogSpan(span.number, span.run_id, 0, span.end)
    events, size = [], 0
    for event in _events(database, span):
        events.append(event)
        size += len(event.event) + len(event.meta or b"")
        if size >= STORE_PAGE_BYTES:
            break
    return events, LogSpan(span.number, span.run_id, _next_seq(events, span), span.end)


def _next_seq(events: list[StoredEvent], span: LogSpan) -> int:
    """Return where the next page begins. A gap in the log is skipped here and reported by `verify`;
    each event is replayed once."""
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
    """Runs queries on a read-only connection in a thread of its own."""

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
    """The counts of a replay, and then its events: `async for event in history`."""

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
    """Yield the events of a span; one page is in memory at a time."""
    async for events in event_pages(reader, span):
        for event in events:
            yield event


async def event_pages(reader: StoreReader, span: LogSpan) -> AsyncIterator[list[StoredEvent]]:
    """Yield the events of a span in pages."""
    while span.first < span.end:
        events, span = await reader.read(page, span)
        yield events
