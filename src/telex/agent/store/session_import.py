"""An exported file into the store: whole or not at all, and nobody who writes waits long for it.

It is written a piece at a time, each in a commit of its own, in sessions that nobody sees while
they are being imported; a last commit shows them all. What is refused on the way, or was left by an
import that died, is taken away again in the same way. What did not end in the file has ended here,
and no question of it can be answered any more: whoever had it is not this runtime.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from telex.agent.limits import STORE_IMPORT_LINES
from telex.agent.store import stored_records
from telex.agent.store.errors import BadExport, IdTaken, NotStorable
from telex.agent.store.session_export import (
    EventLine,
    ExportLine,
    QuestionLine,
    RunLine,
    ThreadLine,
    from_raw,
)
from telex.agent.store.stored_records import Status, new_run_id, new_session_id
from telex.agent.store.transactions import first_link, next_link

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from telex.agent.store.session_export import NumberedLine
    from telex.agent.store.transactions import WriteState

_NOT_ENDED = "it had not ended when it was exported"


@dataclass(slots=True)
class ImportSummary:
    threads: int = 0
    runs: int = 0
    events: int = 0
    renamed: dict[str, str] = field(default_factory=dict)
    """Ids that were taken, and what they are here."""
    sessions: dict[str, str] = field(default_factory=dict)
    """Those of them that are sessions'."""


class SessionImport:
    """One import: `take` it piece by piece, then `show` it, or `undo_import` it."""

    def __init__(self, path: Path, new_ids: bool) -> None:
        self.imported = ImportSummary()
        self._path = path
        self._new_ids = new_ids
        self._token = uuid.uuid4().hex
        self._place: _ImportCursor | None = None

    def mark(self, ledger: WriteState) -> str:
        """Of the sessions that it has made. With the owner, so that a dead one's are known."""
        return f"{ledger.owner.name}/{self._token}"

    def take(self, ledger: WriteState, piece: list[NumberedLine]) -> None:
        """Some lines, or none of them: others are in the same commit."""
        place = self._place or _ImportCursor(self.mark(ledger), self._new_ids, self.imported)
        self._place = place
        database = place.database = ledger.database
        database.execute("SAVEPOINT piece")
        try:
            for number, line in piece:
                self._take(place, line, number)
        except BaseException:
            if database.in_transaction:  # a full disk has rolled back by itself
                database.execute("ROLLBACK TO piece")
                database.execute("RELEASE piece")
            raise
        database.execute("RELEASE piece")

    def _take(self, place: _ImportCursor, line: ExportLine, number: int) -> None:
        try:
            place.take(line)
        except (NotStorable, _Misplaced) as problem:
            raise BadExport(f"{self._path}:{number}: {problem}") from problem

    def show(self, ledger: WriteState) -> None:
        if self._place is not None:
            self._place.database = ledger.database
            self._place.finish()
        ledger.database.execute(
            "UPDATE threads SET importing = NULL WHERE importing = ?", (self.mark(ledger),)
        )

    def undo(self, ledger: WriteState) -> bool:
        return undo_import(ledger, self.mark(ledger))


def abandoned_imports(ledger: WriteState) -> list[str]:
    """The marks of imports whose processes died."""
    rows = ledger.database.execute(
        "SELECT DISTINCT importing FROM threads WHERE importing IS NOT NULL"
    ).fetchall()
    return [mark for (mark,) in rows if not ledger.owner.lives(mark.partition("/")[0])]


def undo_import(ledger: WriteState, mark: str) -> bool:
    """Take away a little of an import; whether there is more of it."""
    database = ledger.database
    found = database.execute(
        "SELECT r.number FROM runs r JOIN threads t ON t.number = r.thread"
        " WHERE t.importing = ? LIMIT 1",
        (mark,),
    ).fetchone()
    if found is None:
        database.execute("DELETE FROM threads WHERE importing = ?", (mark,))
        return False
    taken = database.execute(
        "DELETE FROM events WHERE run = ?1"
        " AND seq > (SELECT max(seq) FROM events WHERE run = ?1) - ?2",
        (found[0], STORE_IMPORT_LINES),
    )
    if not taken.rowcount:
        database.execute("DELETE FROM questions WHERE run = ?", found)
        database.execute("DELETE FROM runs WHERE number = ?", found)
    return True


class _Misplaced(Exception):
    """A line that is right by itself does not fit those before it."""


@dataclass(slots=True)
class _OpenRun:
    """The run that lines are being added to."""

    number: int
    seq: int
    chain: bytes


class _ImportCursor:
    """Where an import stands: the thread and the run that the next lines belong to."""

    database: sqlite3.Connection

    def __init__(self, mark: str, new_ids: bool, imported: ImportSummary) -> None:
        self.imported = imported
        self._mark = mark
        self._new_ids = new_ids
        self._thread: int | None = None
        self._run: _OpenRun | None = None

    def take(self, line: ExportLine) -> None:
        match line:
            case ThreadLine():
                self.finish()
                self._take_thread(line)
            case RunLine() if self._thread is not None:
                self.finish()
                self._take_run(line, self._thread)
            case QuestionLine() if self._run is not None:
                self._take_question(line, self._run)
            case EventLine() if self._run is not None:
                self._take_event(line, self._run)
            case _:
                raise _Misplaced("this line does not belong to a run or a session")

    def finish(self) -> None:
        """The run that was being added to is complete."""
        if (run := self._run) is not None:
            self.database.execute(
                "UPDATE runs SET events = ?, head = ? WHERE number = ?",
                (run.seq, run.chain, run.number),
            )
            self._run = None

    def _take_thread(self, line: ThreadLine) -> None:
        stored_records.check_json(from_raw(line.meta), "a session's meta")
        made = self.database.execute(
            "INSERT INTO threads (id, created_at, updated_at, meta, workspace, importing)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
            (
                *(self._id("threads", line.id), line.created_at, line.updated_at),
                *(from_raw(line.meta), line.workspace, self._mark),
            ),
        ).fetchone()
        self._thread = made[0]
        self.imported.threads += 1

    def _take_run(self, line: RunLine, thread: int) -> None:
        stored_records.check_json(bytes(line.input), "a run's input")
        stored_records.check_json(from_raw(line.meta), "a run's meta")
        status, message, ended_at = line.status, line.message, line.ended_at
        if not status.ended or ended_at is None:
            status, message, ended_at = Status.ERROR, _NOT_ENDED, line.started_at
        run_id = self._id("runs", line.id)
        made = self.database.execute(
            "INSERT INTO runs (id, thread, status, message, started_at, ended_at, input, said,"
            " meta, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'import') RETURNING number",
            (
                *(run_id, thread, status.value, message, line.started_at, ended_at),
                *(bytes(line.input), line.said, from_raw(line.meta)),
            ),
        ).fetchone()
        self._run = _OpenRun(made[0], 0, first_link(run_id))
        self._count_message()
        self.imported.runs += 1

    def _take_question(self, line: QuestionLine, run: _OpenRun) -> None:
        stored_records.check_json(bytes(line.params), "a question's params")
        stored_records.check_json(from_raw(line.answer), "an answer")
        by, at = line.closed_by, line.closed_at
        if by is None or at is None:
            by, at = _NOT_ENDED, line.asked_at
        self.database.execute(
            "INSERT INTO questions (run, method, params, digest, asked_at, answer, closed_by,"
            " closed_at, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'import')",
            (
                *(run.number, line.method, bytes(line.params), line.digest, line.asked_at),
                *(from_raw(line.answer), by, at),
            ),
        )

    def _take_event(self, line: EventLine, run: _OpenRun) -> None:
        event, meta = bytes(line.event), from_raw(line.meta)
        if line.seq != run.seq:
            raise _Misplaced(f"event {line.seq} stands where {run.seq} belongs")
        stored_records.check_json(meta, "an event's meta", beside=len(event))
        if stored_records.event_type(event) == "final":
            self._count_message()
        run.chain = next_link(run.chain, line.at, event, meta)
        self.database.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
            (run.number, line.seq, line.at, event, meta, run.chain),
        )
        run.seq += 1
        self.imported.events += 1

    def _count_message(self) -> None:
        self.database.execute(
            "UPDATE threads SET messages = messages + 1 WHERE number = ?", (self._thread,)
        )

    def _id(self, table: str, id: str) -> str:
        if not id or len(id) > 200 or not id.isprintable():
            raise _Misplaced(f"{id[:200]!r} cannot be an id")
        taken = f"SELECT 1 FROM {table} WHERE id = ?"
        if self.database.execute(taken, (id,)).fetchone() is None:
            return id
        if not self._new_ids:
            raise IdTaken(
                f"{id} is here already; `telex agent import --new-ids` gives it another id"
            )
        new = new_session_id() if table == "threads" else new_run_id()
        self.imported.renamed[id] = new
        if table == "threads":
            self.imported.sessions[id] = new
        return new
