"""Import an export file into the store: completely or not at all, without blocking other writers.

The import writes batches of lines, each in a commit of its own, so other writers wait only for one
batch. Its sessions are marked as importing and hidden from queries until a last commit publishes
them all. If a line is refused, or the importing process dies, the sessions are removed again, also
in small commits. A run that had not ended in the file is stored as ended, and its open questions as
closed, because the runtime that could answer them is not this one.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from telex.agent.limits import STORE_IMPORT_LINES
from telex.agent.store import stored_records
from telex.agent.store.errors import BadExport, IdTaken, NotStorable
from telex.agent.store.session_export import (
    EventLine,
    ExportLine,
    MessageLine,
    QuestionLine,
    RunLine,
    ThreadLine,
    from_raw,
)
from telex.agent.store.stored_records import Status, new_run_id, new_session_id
from telex.agent.store.transactions import first_link, insert_message, next_link

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from telex.agent.store.session_export import NumberedLine
    from telex.agent.store.transactions import WriteState

_NOT_ENDED = "the run had not ended when it was exported"


@dataclass(slots=True)
class ImportSummary:
    """The result of an import: how much was stored, and which ids were replaced."""

    threads: int = 0
    runs: int = 0
    events: int = 0
    renamed: dict[str, str] = field(default_factory=dict)
    """Ids that existed already, each with its new id."""
    sessions: dict[str, str] = field(default_factory=dict)
    """The entries of `renamed` that are sessions."""


class SessionImport:
    """One import. Call `add` for each batch, then `publish`; after an error, call `undo` until it
    returns False."""

    def __init__(self, path: Path, new_ids: bool) -> None:
        self.imported = ImportSummary()
        self._path = path
        self._new_ids = new_ids
        self._token = uuid.uuid4().hex
        self._cursor: _ImportCursor | None = None

    def mark(self, state: WriteState) -> str:
        """Return the value of `importing` in this import's threads. It begins with the owner's
        name, so that imports of a dead process can be found."""
        return f"{state.owner.name}/{self._token}"

    def add(self, state: WriteState, batch: list[NumberedLine]) -> None:
        """Store all lines of a batch or none. A savepoint is used, because the commit also has
        writes of other callers."""
        cursor = self._cursor or _ImportCursor(self.mark(state), self._new_ids, self.imported)
        self._cursor = cursor
        database = cursor.database = state.database
        database.execute("SAVEPOINT batch")
        try:
            for number, line in batch:
                self._add_line(cursor, line, number)
        except BaseException:
            if database.in_transaction:  # SQLite has rolled back by itself if the disk is full
                database.execute("ROLLBACK TO batch")
                database.execute("RELEASE batch")
            raise
        database.execute("RELEASE batch")

    def _add_line(self, cursor: _ImportCursor, line: ExportLine, number: int) -> None:
        try:
            cursor.add(line)
        except (NotStorable, _Misplaced) as problem:
            raise BadExport(f"{self._path}:{number}: {problem}") from problem

    def publish(self, state: WriteState) -> None:
        """Make the imported sessions visible to queries."""
        if self._cursor is not None:
            self._cursor.database = state.database
            self._cursor.finish_run()
        state.database.execute(
            "UPDATE threads SET importing = NULL WHERE importing = ?", (self.mark(state),)
        )

    def undo(self, state: WriteState) -> bool:
        """Remove a part of this import; see `undo_import`."""
        return undo_import(state, self.mark(state))


def abandoned_imports(state: WriteState) -> list[str]:
    """Return the marks of imports whose processes died."""
    rows = state.database.execute(
        "SELECT DISTINCT importing FROM threads WHERE importing IS NOT NULL"
    ).fetchall()
    return [mark for (mark,) in rows if not state.owner.lives(mark.partition("/")[0])]


def undo_import(state: WriteState, mark: str) -> bool:
    """Remove a bounded part of an import. Return whether more of it is left."""
    database = state.database
    found = database.execute(
        "SELECT r.number FROM runs r JOIN threads t ON t.number = r.thread"
        " WHERE t.importing = ? LIMIT 1",
        (mark,),
    ).fetchone()
    if found is None:
        database.execute("DELETE FROM threads WHERE importing = ?", (mark,))
        return False
    deleted = database.execute(
        "DELETE FROM events WHERE run = ?1"
        " AND seq > (SELECT max(seq) FROM events WHERE run = ?1) - ?2",
        (found[0], STORE_IMPORT_LINES),
    )
    if not deleted.rowcount:
        database.execute("DELETE FROM questions WHERE run = ?", found)
        database.execute("DELETE FROM messages WHERE run = ?", found)
        database.execute("DELETE FROM runs WHERE number = ?", found)
    return True


class _FinalEvent(msgspec.Struct):
    content: str | None = None


def _content(event: bytes) -> str | None:
    """Return the answer in a `final` event of any program."""
    try:
        return msgspec.json.decode(event, type=_FinalEvent).content
    except msgspec.ValidationError:
        return None


def _text_message(role: str, text: str) -> bytes:
    model = {} if role == "user" else {"model": ""}
    return msgspec.json.encode({"role": role, "parts": [{"type": "text", "text": text}], **model})


class _Misplaced(Exception):
    """The line is valid by itself, but cannot follow the lines before it."""


@dataclass(slots=True)
class _OpenRun:
    """The run that the next lines belong to, with the end of its log."""

    number: int
    said: str
    chain: bytes
    seq: int = 0
    answer: str | None = None
    """The content of its `final` event."""
    has_messages: bool = False


class _ImportCursor:
    """The position of an import: the thread and the run that the next lines belong to."""

    database: sqlite3.Connection

    def __init__(self, mark: str, new_ids: bool, imported: ImportSummary) -> None:
        self.imported = imported
        self._mark = mark
        self._new_ids = new_ids
        self._thread: int | None = None
        self._messages = 0
        """The number of messages in the thread."""
        self._run: _OpenRun | None = None

    def add(self, line: ExportLine) -> None:
        match line:
            case ThreadLine():
                self.finish_run()
                self._add_thread(line)
            case RunLine() if self._thread is not None:
                self.finish_run()
                self._add_run(line, self._thread)
            case QuestionLine() if self._run is not None:
                self._add_question(line, self._run)
            case MessageLine() if self._run is not None:
                self._add_message(line, self._run)
            case EventLine() if self._run is not None:
                self._add_event(line, self._run)
            case _:
                raise _Misplaced("the line belongs to no run or session")

    def finish_run(self) -> None:
        """Store the length and the hash of the current run's log, if there is a current run. A run
        of an export without messages gets those of its input and its answer."""
        if (run := self._run) is not None:
            if not run.has_messages:
                self._insert_message(_text_message("user", run.said), run)
                if run.answer is not None:
                    self._insert_message(_text_message("assistant", run.answer), run)
            self.database.execute(
                "UPDATE runs SET events = ?, head = ? WHERE number = ?",
                (run.seq, run.chain, run.number),
            )
            self._run = None

    def _add_thread(self, line: ThreadLine) -> None:
        stored_records.check_json(from_raw(line.meta), "a session's meta")
        made = self.database.execute(
            "INSERT INTO threads (id, created_at, updated_at, meta, workspace, importing)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
            (
                *(self._id("threads", line.id), line.created_at, line.updated_at),
                *(from_raw(line.meta), line.workspace, self._mark),
            ),
        ).fetchone()
        self._thread, self._messages = made[0], 0
        self.imported.threads += 1

    def _add_run(self, line: RunLine, thread: int) -> None:
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
        self._run = _OpenRun(made[0], line.said, first_link(run_id))
        self._count_message()
        self.imported.runs += 1

    def _add_question(self, line: QuestionLine, run: _OpenRun) -> None:
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

    def _add_message(self, line: MessageLine, run: _OpenRun) -> None:
        message = bytes(line.message)
        stored_records.check_json(message, "a message")
        if line.kept_from is not None and line.kept_from > self._messages:
            raise _Misplaced(f"a summary keeps message {line.kept_from}, which comes after it")
        self._insert_message(message, run, line.kept_from)
        run.has_messages = True

    def _insert_message(self, message: bytes, run: _OpenRun, kept_from: int | None = None) -> None:
        assert self._thread is not None
        insert_message(self.database, self._thread, run.number, message, kept_from)
        self._messages += 1

    def _add_event(self, line: EventLine, run: _OpenRun) -> None:
        event, meta = bytes(line.event), from_raw(line.meta)
        if line.seq != run.seq:
            raise _Misplaced(f"event {line.seq} is not the next event of the run, {run.seq}")
        stored_records.check_json(meta, "an event's meta", other_bytes=len(event))
        if stored_records.event_type(event) == "final":
            self._count_message()
            run.answer = _content(event)
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
            raise _Misplaced(f"{id[:200]!r} is not a valid id")
        existing = f"SELECT 1 FROM {table} WHERE id = ?"
        if self.database.execute(existing, (id,)).fetchone() is None:
            return id
        if not self._new_ids:
            raise IdTaken(
                f"{id} exists already; to import it under a new id, run: "
                "telex agent import --new-ids"
            )
        new = new_session_id() if table == "threads" else new_run_id()
        self.imported.renamed[id] = new
        if table == "threads":
            self.imported.sessions[id] = new
        return new
