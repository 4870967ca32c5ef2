"""Exported sessions as NDJSON: the types of the lines, writing them, and reading an export file.

The first line names the format. The last line has the number of lines before it and their SHA-256.
In between, each thread is followed by its runs, and each run by its questions, messages and events.
JSON from other programs is copied byte for byte. Decisions are never exported, because importing a
file must not grant permissions.

A session is read in pages, so an export of any length needs little memory. A run that is active
meanwhile is exported up to its current event. Only the last line of a file proves that the lines
before it are complete, so an import reads the file twice: `check_export` verifies it, and
`read_export` returns its content.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import msgspec

from telex.agent.limits import (
    STORE_IMPORT_BYTES,
    STORE_IMPORT_LINES,
    STORE_LINE_BYTES,
    STORE_PAGE_BYTES,
)
from telex.agent.store import reader
from telex.agent.store.errors import BadExport
from telex.agent.store.stored_records import Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from telex.agent.store.stored_records import StoredEvent, StoredThread


FORMAT: Final = "telex.agent.export"
VERSION: Final = 2
"""Version 1 had no messages."""
NULL: Final = msgspec.Raw(b"null")

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A count. It is bounded, because JSON has integers of any size and SQLite has not."""

Time = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Milliseconds since the epoch, before the year 10000: `datetime` has no later years."""


class ExportHead(msgspec.Struct, frozen=True, tag_field="type", tag=FORMAT):
    """The first line of an export."""

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


class MessageLine(msgspec.Struct, frozen=True, tag_field="type", tag="message"):
    """A message of the conversation. The messages of a thread are numbered from 0."""

    message: msgspec.Raw
    kept_from: Number | None = None


class EndLine(msgspec.Struct, frozen=True, tag_field="type", tag="end"):
    """The last line of an export: the count and the SHA-256 of all lines before it."""

    lines: int
    sha256: str


ExportLine = ExportHead | ThreadLine | RunLine | QuestionLine | MessageLine | EventLine | EndLine


def to_raw(kept: bytes | None) -> msgspec.Raw:
    return NULL if kept is None else msgspec.Raw(kept)


def from_raw(value: msgspec.Raw) -> bytes | None:
    """Return the bytes as they are in the file; None for null, which the store never keeps."""
    found = bytes(value)
    return None if found == b"null" else found


@dataclass(frozen=True, slots=True)
class RunToExport:
    """The line of one run, and where its events are."""

    line: RunLine
    span: reader.LogSpan
    """The events without the user's input, which is in the line."""


def threads(database: sqlite3.Connection, session_id: str | None) -> list[StoredThread]:
    """Return one thread; with None, all, the oldest first."""
    if session_id is not None:
        return [reader.thread(database, session_id)]
    return list(reversed(reader.threads(database, None)))


def runs(database: sqlite3.Connection, session_id: str) -> list[str]:
    """Return the ids of a session's runs in order. Each run is then read by itself."""
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


def messages(
    database: sqlite3.Connection, run: int, after: int
) -> tuple[list[MessageLine], int | None]:
    """Return a page of a run's messages after a position, and where the next page continues."""
    rows = database.execute(
        "SELECT position, message, kept_from FROM messages WHERE run = ? AND position > ?"
        " ORDER BY position",
        (run, after),
    )
    found, size = [], 0
    for position, message, kept_from in rows:
        found.append(MessageLine(msgspec.Raw(message), kept_from))
        if (size := size + len(message)) >= STORE_PAGE_BYTES:
            return found, position
    return found, None


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
    """Encodes the lines of an export, and counts and hashes them for the last line."""

    def __init__(self) -> None:
        self._count = 0
        self._hash = hashlib.sha256()

    def head(self) -> bytes:
        return self._encode([ExportHead(version=VERSION)])

    def thread(self, thread: StoredThread) -> bytes:
        line = ThreadLine(
            thread.session_id,
            thread.created_at,
            thread.updated_at,
            to_raw(thread.meta),
            thread.workspace,
        )
        return self._encode([line])

    def run(self, exported: RunToExport, questions: list[QuestionLine]) -> bytes:
        return self._encode([exported.line, *questions])

    def messages(self, messages: list[MessageLine]) -> bytes:
        return self._encode(list(messages))

    def events(self, events: Iterable[StoredEvent]) -> bytes:
        return self._encode(
            [EventLine(e.seq, e.at, msgspec.Raw(e.event), to_raw(e.meta)) for e in events]
        )

    def end(self) -> bytes:
        return self._encode([EndLine(self._count, self._hash.hexdigest())])

    def _encode(self, lines: list[ExportLine]) -> bytes:
        encoded = msgspec.json.Encoder().encode_lines(lines)
        self._count += len(lines)
        self._hash.update(encoded)
        return encoded


_LINE: msgspec.json.Decoder[ExportLine] = msgspec.json.Decoder(ExportLine)

NumberedLine = tuple[int, ExportLine]


def check_export(path: Path) -> None:
    """Read the whole file, and raise `BadExport` unless it is complete and unchanged."""
    deque(read_export(path), maxlen=0)


def read_export(path: Path) -> Generator[list[NumberedLine]]:
    """Yield the lines between the first and the last, with their numbers, in bounded batches."""
    with _open(path) as file:
        lines = _lines(file, path)
        while batch := list(islice(_until_batch_bytes(lines), STORE_IMPORT_LINES)):
            yield batch


def _until_batch_bytes(lines: Iterator[tuple[int, ExportLine, int]]) -> Iterator[NumberedLine]:
    """Yield lines until they have `STORE_IMPORT_BYTES` bytes together."""
    size = 0
    for number, line, length in lines:
        yield number, line
        if (size := size + length) >= STORE_IMPORT_BYTES:
            return


def _open(path: Path) -> BinaryIO:
    if path.exists() and not path.is_file():  # a named pipe cannot be read twice
        raise BadExport(f"{path} cannot be read: not a regular file")
    try:
        return path.open("rb")
    except OSError as error:
        raise BadExport(f"{path} cannot be read: {error.strerror}") from error


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, ExportLine, int]]:
    count, digest, line = 0, hashlib.sha256(), None
    while text := file.readline(STORE_LINE_BYTES):
        if isinstance(line, EndLine):
            raise BadExport(f"{path} has lines after its last line")
        line = _decode(text, count + 1, path)
        match line:
            case EndLine():
                if (line.lines, line.sha256) != (count, digest.hexdigest()):
                    raise BadExport(f"{path} was changed after it was written: its hash differs")
            case ExportHead() if count or line.version not in (1, VERSION):
                raise BadExport(
                    f"{path}:{count + 1}: not the first line, or an unsupported version "
                    f"({line.version})"
                )
            case ExportHead():
                pass
            case _:
                yield count + 1, line, len(text)
        count += 1
        digest.update(text)
        if count == 1 and not isinstance(line, ExportHead):
            raise BadExport(f"{path} is not an export of telex agent")
    if not isinstance(line, EndLine):
        raise BadExport(f"{path} is truncated: its last line is missing")


def _decode(text: bytes, number: int, path: Path) -> ExportLine:
    try:
        str(text, "utf-8")
        return _LINE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadExport(f"{path}:{number}: {error}") from error
    except RecursionError as error:
        raise BadExport(f"{path}:{number}: the JSON is nested too deeply") from error
