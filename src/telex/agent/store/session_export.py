"""Exported sessions, NDJSON: the lines, writing them from the database, and reading a file of them.

A first line says what the file is, a last one how many lines came before it and their hash. Between
them each thread is followed by its runs, each run by its questions and events. JSON that others
wrote stays the bytes it was. Decisions are never exported: a file must not bring permissions along.

A session is read in pages, so one of any length needs little memory. A run that goes on meanwhile
is exported as far as it had come. A file's last line alone tells whether all before it were right,
so `session_import` reads it twice: `check_export` to know that, `read_export` for what it holds.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import msgspec

from telex.agent.limits import STORE_IMPORT_BYTES, STORE_IMPORT_LINES, STORE_LINE_BYTES
from telex.agent.store import reader
from telex.agent.store.errors import BadExport
from telex.agent.store.stored_records import Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from telex.agent.store.stored_records import StoredEvent, StoredThread


FORMAT: Final = "telex.agent.export"
NULL: Final = msgspec.Raw(b"null")

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A count: SQLite keeps no integer of any size, as JSON does."""

Time = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""In milliseconds, until the year 10000: a calendar has no later ones."""


class ExportHead(msgspec.Struct, frozen=True, tag_field="type", tag=FORMAT):
    version: int


class ThreadLine(msgspec.Struct, frozen=True, tag_field="type", tag="thread"):
    id: str
    created_at: Time
    updated_at: Time
    meta: msgspec.Raw = NULL
    workspace: str | None = None


class RunLine(msgspec.Struct, frozen=True, tag_field="type", tag="run"):
    id: str
    status: Status
    message: str | None
    input: msgspec.Raw
    said: str
    started_at: Time
    ended_at: Time | None
    meta: msgspec.Raw = NULL


class QuestionLine(msgspec.Struct, frozen=True, tag_field="type", tag="question"):
    method: str
    params: msgspec.Raw
    digest: bytes
    asked_at: Time
    answer: msgspec.Raw
    closed_by: str | None
    closed_at: Time | None


class EventLine(msgspec.Struct, frozen=True, tag_field="type", tag="event"):
    seq: Number
    at: Time
    event: msgspec.Raw
    meta: msgspec.Raw = NULL


class EndLine(msgspec.Struct, frozen=True, tag_field="type", tag="end"):
    lines: int
    sha256: str


ExportLine = ExportHead | ThreadLine | RunLine | QuestionLine | EventLine | EndLine


def to_raw(kept: bytes | None) -> msgspec.Raw:
    return NULL if kept is None else msgspec.Raw(kept)


def from_raw(value: msgspec.Raw) -> bytes | None:
    """The bytes as they stood in the file; None for null, which the store never keeps."""
    found = bytes(value)
    return None if found == b"null" else found


@dataclass(frozen=True, slots=True)
class RunToExport:
    line: RunLine
    span: reader.LogSpan
    """Its events; what the person said is in the line."""


def threads(database: sqlite3.Connection, session_id: str | None) -> list[StoredThread]:
    if session_id is not None:
        return [reader.thread(database, session_id)]
    return list(reversed(reader.threads(database, None)))


def runs(database: sqlite3.Connection, session_id: str) -> list[str]:
    """Their ids, in order. What they hold is read one at a time."""
    rows = database.execute(
        "SELECT r.id FROM runs r JOIN threads t ON t.number = r.thread WHERE t.id = ?"
        " ORDER BY r.number",
        (session_id,),
    )
    return [run_id for (run_id,) in rows]


def run(database: sqlite3.Connection, run_id: str) -> RunToExport:
    found = reader.run(database, run_id)
    said = database.execute("SELECT said FROM runs WHERE id = ?", (run_id,)).fetchone()[0]
    line = RunLine(
        found.run_id,
        found.status,
        found.message,
        msgspec.Raw(found.input),
        said,
        found.started_at,
        found.ended_at,
        to_raw(found.meta),
    )
    return RunToExport(line, reader.log(database, run_id, -1))


def questions(database: sqlite3.Connection, run: int) -> list[QuestionLine]:
    rows = database.execute(
        "SELECT method, params, digest, asked_at, answer, closed_by, closed_at FROM questions"
        " WHERE run = ? ORDER BY number",
        (run,),
    )
    return [
        QuestionLine(method, msgspec.Raw(params), digest, asked_at, to_raw(answer), by, at)
        for method, params, digest, asked_at, answer, by, at in rows
    ]


class ExportWriter:
    """Counts and hashes what it makes, for the last line."""

    def __init__(self) -> None:
        self._count = 0
        self._hash = hashlib.sha256()

    def head(self) -> bytes:
        return self._made([ExportHead(version=1)])

    def thread(self, thread: StoredThread) -> bytes:
        line = ThreadLine(
            thread.session_id,
            thread.created_at,
            thread.updated_at,
            to_raw(thread.meta),
            thread.workspace,
        )
        return self._made([line])

    def run(self, exported: RunToExport, questions: list[QuestionLine]) -> bytes:
        return self._made([exported.line, *questions])

    def events(self, events: Iterable[StoredEvent]) -> bytes:
        return self._made(
            [EventLine(e.seq, e.at, msgspec.Raw(e.event), to_raw(e.meta)) for e in events]
        )

    def end(self) -> bytes:
        return self._made([EndLine(self._count, self._hash.hexdigest())])

    def _made(self, lines: list[ExportLine]) -> bytes:
        made = msgspec.json.Encoder().encode_lines(lines)
        self._count += len(lines)
        self._hash.update(made)
        return made


_LINE: msgspec.json.Decoder[ExportLine] = msgspec.json.Decoder(ExportLine)

NumberedLine = tuple[int, ExportLine]


def check_export(path: Path) -> None:
    """Raises `BadExport`."""
    deque(read_export(path), maxlen=0)


def read_export(path: Path) -> Generator[list[NumberedLine]]:
    """What lies between the first line and the last, with numbers, a little at a time."""
    with _opened(path) as file:
        lines = _lines(file, path)
        while piece := list(islice(_until_enough(lines), STORE_IMPORT_LINES)):
            yield piece


def _until_enough(lines: Iterator[tuple[int, ExportLine, int]]) -> Iterator[NumberedLine]:
    size = 0
    for number, line, length in lines:
        yield number, line
        if (size := size + length) >= STORE_IMPORT_BYTES:
            return


def _opened(path: Path) -> BinaryIO:
    if path.exists() and not path.is_file():  # a named pipe cannot be read twice
        raise BadExport(f"{path} cannot be read: it is not a regular file")
    try:
        return path.open("rb")
    except OSError as error:
        raise BadExport(f"{path} cannot be read: {error.strerror}") from error


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, ExportLine, int]]:
    count, digest, line = 0, hashlib.sha256(), None
    while text := file.readline(STORE_LINE_BYTES):
        if isinstance(line, EndLine):
            raise BadExport(f"{path} goes on after its end")
        line = _decoded(text, count + 1, path)
        match line:
            case EndLine():
                if (line.lines, line.sha256) != (count, digest.hexdigest()):
                    raise BadExport(f"{path} is not as it was written: its hash differs")
            case ExportHead() if count or line.version != 1:
                raise BadExport(f"{path}:{count + 1}: an export of version {line.version}")
            case ExportHead():
                pass
            case _:
                yield count + 1, line, len(text)
        count += 1
        digest.update(text)
        if count == 1 and not isinstance(line, ExportHead):
            raise BadExport(f"{path} is not an export of telex agent")
    if not isinstance(line, EndLine):
        raise BadExport(f"{path} ends too early: its last line is missing")


def _decoded(text: bytes, number: int, path: Path) -> ExportLine:
    try:
        str(text, "utf-8")
        return _LINE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadExport(f"{path}:{number}: {error}") from error
    except RecursionError as error:
        raise BadExport(f"{path}:{number}: it is nested too deeply") from error
