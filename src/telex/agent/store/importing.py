"""An exported file into the store: validated line by line, in one transaction, all or nothing.

The whole import is one write of the writer's thread: while it lasts other writes wait, which is
the price of "all or nothing" without a second copy. What did not end in the file has ended here,
and no question of it can be answered any more: whoever had it is not this runtime.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from telex.agent.store import keeping
from telex.agent.store.exported import (
    EndLine,
    EventLine,
    Head,
    Line,
    QuestionLine,
    RunLine,
    ThreadLine,
    kept,
)
from telex.agent.store.ledger import first_link, next_link
from telex.agent.store.problems import AlreadyThere, BadExport, NotKept
from telex.agent.store.records import Status
from telex.wire.limits import STORE_LINE_BYTES

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from telex.agent.store.ledger import Ledger

_LINE: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
_NOT_ENDED = "it had not ended when it was exported"


@dataclass(slots=True)
class Imported:
    threads: int = 0
    runs: int = 0
    events: int = 0
    renamed: dict[str, str] = field(default_factory=dict)
    """Ids that were taken, and what they are here."""


def load(ledger: Ledger, path: Path, new_ids: bool) -> Imported:
    database = ledger.database
    database.execute("SAVEPOINT import")
    try:
        loading = _Loading(database, new_ids)
        with _opened(path) as file:
            for number, line in enumerate(_lines(file, path), 2):
                _taken(loading, line, f"{path}:{number}")
        loading.finish()
    except BaseException:
        if database.in_transaction:  # a full disk has rolled back by itself
            database.execute("ROLLBACK TO import")
            database.execute("RELEASE import")
        raise
    database.execute("RELEASE import")
    return loading.imported


def _taken(loading: _Loading, line: Line, place: str) -> None:
    try:
        loading.take(line)
    except (NotKept, _Misplaced) as problem:
        raise BadExport(f"{place}: {problem}") from problem


def _opened(path: Path) -> BinaryIO:
    if path.exists() and not path.is_file():  # a named pipe would hold up all who write
        raise BadExport(f"{path} cannot be read: it is not a regular file")
    try:
        return path.open("rb")
    except OSError as error:
        raise BadExport(f"{path} cannot be read: {error.strerror}") from error


def _lines(file: BinaryIO, path: Path) -> Iterator[Line]:
    """Those between the first and the last. Only the last tells whether all were right, so what
    was taken until then counts when this has ended without complaint."""
    count, digest, line = 0, hashlib.sha256(), None
    while text := file.readline(STORE_LINE_BYTES):
        if isinstance(line, EndLine):
            raise BadExport(f"{path} goes on after its end")
        line = _decoded(text, count + 1, path)
        match line:
            case EndLine():
                if (line.lines, line.sha256) != (count, digest.hexdigest()):
                    raise BadExport(f"{path} is not as it was written: its hash differs")
            case Head() if count or line.version != 1:
                raise BadExport(f"{path}:{count + 1}: an export of version {line.version}")
            case Head():
                pass
            case _:
                yield line
        count += 1
        digest.update(text)
        if count == 1 and not isinstance(line, Head):
            raise BadExport(f"{path} is not an export of telex agent")
    if not isinstance(line, EndLine):
        raise BadExport(f"{path} ends too early: its last line is missing")


def _decoded(text: bytes, number: int, path: Path) -> Line:
    try:
        str(text, "utf-8")
        return _LINE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadExport(f"{path}:{number}: {error}") from error


class _Misplaced(Exception):
    """A line that is right by itself does not fit those before it."""


@dataclass(slots=True)
class _Here:
    """The run that lines are being added to."""

    number: int
    seq: int
    chain: bytes


class _Loading:
    """Where an import stands: the thread and the run that the next lines belong to."""

    def __init__(self, database: sqlite3.Connection, new_ids: bool) -> None:
        self.imported = Imported()
        self._database = database
        self._new_ids = new_ids
        self._thread: int | None = None
        self._run: _Here | None = None

    def take(self, line: Line) -> None:
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
            self._database.execute(
                "UPDATE runs SET events = ?, head = ? WHERE number = ?",
                (run.seq, run.chain, run.number),
            )
            self._run = None

    def _take_thread(self, line: ThreadLine) -> None:
        keeping.check(kept(line.meta), "a session's meta")
        made = self._database.execute(
            "INSERT INTO threads (id, created_at, updated_at, meta) VALUES (?, ?, ?, ?)"
            " RETURNING number",
            (self._id("threads", line.id), line.created_at, line.updated_at, kept(line.meta)),
        ).fetchone()
        self._thread = made[0]
        self.imported.threads += 1

    def _take_run(self, line: RunLine, thread: int) -> None:
        keeping.check(bytes(line.input), "a run's input")
        keeping.check(kept(line.meta), "a run's meta")
        status, message, ended_at = line.status, line.message, line.ended_at
        if not status.ended or ended_at is None:
            status, message, ended_at = Status.ERROR, _NOT_ENDED, line.started_at
        run_id = self._id("runs", line.id)
        made = self._database.execute(
            "INSERT INTO runs (id, thread, status, message, started_at, ended_at, input, said,"
            " meta, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'import') RETURNING number",
            (
                *(run_id, thread, status.value, message, line.started_at, ended_at),
                *(bytes(line.input), line.said, kept(line.meta)),
            ),
        ).fetchone()
        self._run = _Here(made[0], 0, first_link(run_id))
        self._count_message()
        self.imported.runs += 1

    def _take_question(self, line: QuestionLine, run: _Here) -> None:
        keeping.check(bytes(line.params), "a question's params")
        keeping.check(kept(line.answer), "an answer")
        by, at = line.closed_by, line.closed_at
        if by is None or at is None:
            by, at = _NOT_ENDED, line.asked_at
        self._database.execute(
            "INSERT INTO questions (run, method, params, digest, asked_at, answer, closed_by,"
            " closed_at, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'import')",
            (
                *(run.number, line.method, bytes(line.params), line.digest, line.asked_at),
                *(kept(line.answer), by, at),
            ),
        )

    def _take_event(self, line: EventLine, run: _Here) -> None:
        event, meta = bytes(line.event), kept(line.meta)
        if line.seq != run.seq:
            raise _Misplaced(f"event {line.seq} stands where {run.seq} belongs")
        keeping.check(meta, "an event's meta", beside=len(event))
        if keeping.event_type(event) == "final":
            self._count_message()
        run.chain = next_link(run.chain, line.at, event, meta)
        self._database.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
            (run.number, line.seq, line.at, event, meta, run.chain),
        )
        run.seq += 1
        self.imported.events += 1

    def _count_message(self) -> None:
        self._database.execute(
            "UPDATE threads SET messages = messages + 1 WHERE number = ?", (self._thread,)
        )

    def _id(self, table: str, id: str) -> str:
        if not id or len(id) > 200 or not id.isprintable():
            raise _Misplaced(f"{id[:200]!r} cannot be an id")
        taken = f"SELECT 1 FROM {table} WHERE id = ?"
        if self._database.execute(taken, (id,)).fetchone() is None:
            return id
        if not self._new_ids:
            raise AlreadyThere(f"{id} is here already; import it with new ids, or not at all")
        self.imported.renamed[id] = new = str(uuid.uuid4())
        return new
