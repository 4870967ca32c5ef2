"""What is read: lists, single rows, and logs a page at a time.

Plain functions of a connection; `Store` runs them in its reading thread, beside the writer. No
read stays open between two pages: events are only ever added, so a window that was measured once
reads the same however many pages it takes, and SQLite's log can be shortened meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.store.pending import PREFIX
from telex.agent.store.problems import UnknownRun, UnknownThread
from telex.agent.store.records import Closed, Decision, Event, Question, Run, Status, Thread
from telex.wire.limits import STORE_PAGE_BYTES

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

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
class Span:
    """A part of one run's log, from `first` to before `end`; -1 is the person's input."""

    number: int
    run_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Window:
    """What a history sends, measured before the first of it is read."""

    spans: tuple[Span, ...]
    truncated: bool

    @property
    def runs(self) -> int:
        return len(self.spans)

    @property
    def events(self) -> int:
        return sum(span.end - span.first for span in self.spans)


def threads(
    database: sqlite3.Connection, limit: int | None, workspace: str | None = None
) -> list[Thread]:
    """The latest first; with None, all, and those of every workspace."""
    here, given = ("", ()) if workspace is None else (" AND t.workspace = ?", (workspace,))
    rows = database.execute(
        f"{_THREAD}{here} ORDER BY t.updated_at DESC, t.number DESC LIMIT ?",
        (*given, -1 if limit is None else min(limit, MOST)),
    )
    return [Thread(*row) for row in rows]


def thread(database: sqlite3.Connection, session_id: str) -> Thread:
    row = database.execute(f"{_THREAD} AND t.id = ?", (session_id,)).fetchone()
    if row is None:
        raise UnknownThread(f"there is no session {session_id}")
    return Thread(*row)


def run(database: sqlite3.Connection, run_id: str) -> Run:
    row = database.execute(f"{_RUN} AND r.id = ?", (run_id,)).fetchone()
    if row is None:
        raise UnknownRun(f"there is no run {run_id}")
    return _run(row)


def active_runs(database: sqlite3.Connection) -> list[Run]:
    """All that have not ended, whoever has them."""
    return [_run(row) for row in database.execute(f"{_RUN} AND r.ended_at IS NULL")]


_Row = tuple[str, str, str, str | None, bytes, int, int | None, bytes | None, int]


def _run(row: _Row) -> Run:
    run_id, session_id, status, message, given, started_at, ended_at, meta, may_return = row
    ended = Status(status), message, given, started_at, ended_at, meta
    return Run(run_id, session_id, *ended, bool(may_return))


def questions(database: sqlite3.Connection, run_id: str | None) -> list[Question]:
    """Those of one run that are open; with None, of all."""
    rows = database.execute(
        "SELECT q.number, r.id, q.method, q.params, q.digest, q.asked_at FROM questions q"
        " LEFT JOIN runs r ON r.number = q.run"
        " WHERE q.closed_at IS NULL AND (?1 IS NULL OR r.id = ?1) ORDER BY q.number",
        (run_id,),
    )
    return [Question(f"{PREFIX}{number}", *rest) for number, *rest in rows]


def closed_questions(database: sqlite3.Connection, run_id: str) -> list[tuple[Question, Closed]]:
    """Of one run, in the order they were asked, each with how it ended."""
    rows = database.execute(
        "SELECT q.number, r.id, q.method, q.params, q.digest, q.asked_at,"
        " q.answer, q.closed_by, q.closed_at FROM questions q JOIN runs r ON r.number = q.run"
        " WHERE q.closed_at IS NOT NULL AND r.id = ? ORDER BY q.number",
        (run_id,),
    )
    return [
        (Question(f"{PREFIX}{number}", *rest), Closed(False, answer, by, at, rest[3]))
        for number, *rest, answer, by, at in rows
    ]


def decisions(database: sqlite3.Connection, revoked: bool) -> list[Decision]:
    """In the order they were made; those taken back only when asked for."""
    rows = database.execute(
        "SELECT number, rule, made_by, made_at, question, revoked_by, revoked_at FROM decisions"
        " WHERE ? OR revoked_at IS NULL ORDER BY number",
        (revoked,),
    )
    return [
        Decision(number, rule, by, at, question and f"{PREFIX}{question}", *taken_back)
        for number, rule, by, at, question, *taken_back in rows
    ]


def window(database: sqlite3.Connection, session_id: str, max_runs: int, max_events: int) -> Window:
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
            spans.append(Span(number, run_id, first, last + 1))
    whole = len(spans) == len(rows) and all(span.first == -1 for span in spans)
    return Window(tuple(reversed(spans)), truncated=not whole)


def log(database: sqlite3.Connection, run_id: str, after: int) -> Span:
    """What a run has after a sequence number, for `run.attach`. Without the person's input."""
    row = database.execute(
        "SELECT r.number, coalesce((SELECT max(seq) FROM events WHERE run = r.number), -1)"
        " FROM runs r JOIN threads t ON t.number = r.thread"
        " WHERE r.id = ? AND t.importing IS NULL",
        (run_id,),
    ).fetchone()
    if row is None:
        raise UnknownRun(f"there is no run {run_id}")
    return Span(row[0], run_id, max(0, after + 1), row[1] + 1)


def page(database: sqlite3.Connection, span: Span) -> tuple[list[Event], Span]:
    """The first events of a span, as many as fit a page, and what is left of it."""
    if span.first < 0:
        return [_input(database, span)], Span(span.number, span.run_id, 0, span.end)
    events, size = [], 0
    for event in _events(database, span):
        events.append(event)
        size += len(event.event) + len(event.meta or b"")
        if size >= STORE_PAGE_BYTES:
            break
    return events, Span(span.number, span.run_id, _after(events, span), span.end)


def _after(events: list[Event], span: Span) -> int:
    """Where the next page begins. A hole is `verify`'s to tell; what is there is played once."""
    return events[-1].seq + 1 if events else span.end


def _events(database: sqlite3.Connection, span: Span) -> Iterator[Event]:
    rows = database.execute(
        "SELECT seq, at, event, meta FROM events WHERE run = ? AND seq >= ? AND seq < ?"
        " ORDER BY seq",
        (span.number, span.first, span.end),
    )
    return (Event(span.run_id, *row) for row in rows)


def _input(database: sqlite3.Connection, span: Span) -> Event:
    at, said = database.execute(
        "SELECT started_at, said FROM runs WHERE number = ?", (span.number,)
    ).fetchone()
    shown = msgspec.json.encode({"type": "hidden_user_message", "content": said})
    return Event(span.run_id, -1, at, shown, None)
