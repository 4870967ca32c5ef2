"""What the store may answer instead of doing as asked, each named for the condition.

`Refused` is about what was asked: it will be refused again. `Unavailable` is about the disk or the
file: nothing of what was asked is stored, the store stays open, and the same may work later.
"""

from __future__ import annotations

import sqlite3


class StoreProblem(Exception):
    """The store did not do as asked; nothing of it was stored."""


class Refused(StoreProblem):
    """What was asked does not fit what is stored."""


class NotKept(Refused):
    """These bytes are not something the store keeps: not a JSON object on one line, or too long."""


class UnknownThread(Refused):
    """There is no such session."""


class UnknownRun(Refused):
    """There is no such run."""


class UnknownRequest(Refused):
    """No such question was ever put to a UI."""


class ThreadBusy(Refused):
    """The session has a run that has not ended."""

    def __init__(self, session_id: str, run_id: str) -> None:
        super().__init__(
            f"session {session_id} has run {run_id}, which has not ended; "
            "wait for it, or cancel it first"
        )
        self.run_id = run_id


class RunEnded(Refused):
    """The run is over, and nothing can be added to it."""

    def __init__(self, run_id: str, status: str) -> None:
        super().__init__(f"run {run_id} has ended ({status}); nothing can be added to it")
        self.status = status


class RunNotOurs(Refused):
    """Another runtime has this run; or none has, and it must be adopted first."""


class NotNext(Refused):
    """An event's number is not the next of its run: one before it was not stored."""


class AlreadyThere(Refused):
    """An id is taken."""


class BadExport(Refused):
    """A file is not a whole export of ours."""


class Unusable(StoreProblem):
    """The file itself cannot be used: it is not ours, of a later version, or damaged."""


class NotAStore(Unusable):
    """A database, but not one of ours."""


class TooNew(Unusable):
    """Written by a later version of telex."""


class Damaged(Unusable):
    """SQLite says that the file is not as it was written."""


class Unavailable(StoreProblem):
    """The disk would not. Nothing was stored; the same may work later."""


class DiskFull(Unavailable):
    """No room is left."""


class DiskFailed(Unavailable):
    """The disk, or a bound on the size of files, refused to read or to write."""


class EndOwed(Unavailable):
    """A run has ended, and the disk would not keep that. It is written before anything else is."""

    def __init__(self, run_id: str, problem: Exception) -> None:
        super().__init__(
            f"nothing of run {run_id} goes on, and its end is not stored: {problem}. "
            "Until it is, a restart may bring the run back; ask again to store it"
        )


class StoreBusy(Unavailable):
    """Another process held the database for too long."""


class StoreClosed(StoreProblem):
    """It was closed."""


_SENTENCES: dict[int, tuple[type[StoreProblem], str]] = {
    sqlite3.SQLITE_FULL: (DiskFull, "the disk is full; nothing was stored. Make room, and go on"),
    sqlite3.SQLITE_IOERR: (
        DiskFailed,
        "the disk did not read or write; nothing was stored. Look at the system's log",
    ),
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "another process is writing and did not let go; nothing was stored. Try again",
    ),
    sqlite3.SQLITE_READONLY: (
        DiskFailed,
        "the file cannot be written; nothing was stored. Look at how its disk is mounted",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        DiskFailed,
        "the file, or its log beside it, cannot be opened; nothing was stored",
    ),
    sqlite3.SQLITE_CORRUPT: (
        Damaged,
        "the file is damaged: `telex agent verify` says where. Put a copy in its place",
    ),
    sqlite3.SQLITE_NOTADB: (
        NotAStore,
        "the file is not an SQLite database; move it away, or name another file",
    ),
}


def told(error: sqlite3.Error, path: object) -> StoreProblem | None:
    """The condition behind an error of SQLite's; None for a mistake of ours."""
    code = getattr(error, "sqlite_errorcode", None)  # unset where Python itself objects
    if code is None or (found := _SENTENCES.get(code & 0xFF)) is None:
        return None
    problem, sentence = found
    return problem(f"{path}: {sentence} ({error.sqlite_errorname})")
