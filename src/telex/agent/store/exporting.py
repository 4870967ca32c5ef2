"""Sessions as NDJSON: what is read for it, and the lines made of that.

Read like everything else, in pages, so a session of any length needs little memory. A run that
goes on meanwhile is exported as far as it had come.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from telex.agent.store import reading
from telex.agent.store.exported import (
    EndLine,
    EventLine,
    Head,
    Line,
    QuestionLine,
    RunLine,
    ThreadLine,
    raw,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from telex.agent.store.records import Event, Thread


@dataclass(frozen=True, slots=True)
class RunToExport:
    line: RunLine
    span: reading.Span
    """Its events; what the person said is in the line."""


def threads(database: sqlite3.Connection, session_id: str | None) -> list[Thread]:
    if session_id is not None:
        return [reading.thread(database, session_id)]
    return list(reversed(reading.threads(database, None)))


def runs(database: sqlite3.Connection, session_id: str) -> list[str]:
    """Their ids, in order. What they hold is read one at a time."""
    rows = database.execute(
        "SELECT r.id FROM runs r JOIN threads t ON t.number = r.thread WHERE t.id = ?"
        " ORDER BY r.number",
        (session_id,),
    )
    return [run_id for (run_id,) in rows]


def run(database: sqlite3.Connection, run_id: str) -> RunToExport:
    found = reading.run(database, run_id)
    said = database.execute("SELECT said FROM runs WHERE id = ?", (run_id,)).fetchone()[0]
    line = RunLine(
        found.run_id,
        found.status,
        found.message,
        msgspec.Raw(found.input),
        said,
        found.started_at,
        found.ended_at,
        raw(found.meta),
    )
    return RunToExport(line, reading.log(database, run_id, -1))


def questions(database: sqlite3.Connection, run: int) -> list[QuestionLine]:
    rows = database.execute(
        "SELECT method, params, digest, asked_at, answer, closed_by, closed_at FROM questions"
        " WHERE run = ? ORDER BY number",
        (run,),
    )
    return [
        QuestionLine(method, msgspec.Raw(params), digest, asked_at, raw(answer), by, at)
        for method, params, digest, asked_at, answer, by, at in rows
    ]


class Lines:
    """Counts and hashes what it makes, for the last line."""

    def __init__(self) -> None:
        self._count = 0
        self._hash = hashlib.sha256()

    def head(self) -> bytes:
        return self._made([Head(version=1)])

    def thread(self, thread: Thread) -> bytes:
        line = ThreadLine(
            thread.session_id,
            thread.created_at,
            thread.updated_at,
            raw(thread.meta),
            thread.workspace,
        )
        return self._made([line])

    def run(self, exported: RunToExport, questions: list[QuestionLine]) -> bytes:
        return self._made([exported.line, *questions])

    def events(self, events: Iterable[Event]) -> bytes:
        return self._made(
            [EventLine(e.seq, e.at, msgspec.Raw(e.event), raw(e.meta)) for e in events]
        )

    def end(self) -> bytes:
        return self._made([EndLine(self._count, self._hash.hexdigest())])

    def _made(self, lines: list[Line]) -> bytes:
        made = msgspec.json.Encoder().encode_lines(lines)
        self._count += len(lines)
        self._hash.update(made)
        return made
