"""What the store may answer instead of doing as asked, each named for the condition.

`StoreRefused` is about what was asked: it will be refused again. `StoreUnavailable` is about the
disk or the file: nothing of what was asked is stored, the store stays open, and the same may work
later.
"""

from __future__ import annotations

import sqlite3
from errno import EIO
from os import strerror


class StoreError(Exception):
    """The store did not do as asked; nothing of it was stored."""


class StoreRefused(StoreError):
    """What was asked does not fit what is stored."""


class NotStorable(StoreRefused):
    """These bytes are not something the store keeps: not a JSON object on one line, or too long."""


class UnknownThread(StoreRefused):
    """There is no such session."""


class UnknownRun(StoreRefused):
    """There is no such run."""


class UnknownRequest(StoreRefused):
    """No such question was ever put to a UI."""


class ThreadBusy(StoreRefused):
    """The session has a run that has not ended."""

    def __init__(self, session_id: str, run_id: str) -> None:
        super().__init__(
            f"session {session_id} has run {run_id}, which has not ended; "
            "wait for it, or cancel it first"
        )
        self.run_id = run_id


class RunEnded(StoreRefused):
    """The run is over, and nothing can be added to it."""

    def __init__(self, run_id: str, status: str) -> None:
        super().__init__(f"run {run_id} has ended ({status}); nothing can be added to it")
        self.status = status


class RunNotOurs(StoreRefused):
    """Another runtime has this run; or none has, and it must be adopted first."""


class NotNext(StoreRefused):
    """An event's number is not the next of its run: one before it was not stored."""


class IdTaken(StoreRefused):
    """An id is taken."""


class BadExport(StoreRefused):
    """A file is not a whole export of ours."""


class StoreUnusable(StoreError):
    """The file itself cannot be used: it is not ours, of a later version, or damaged."""


class NotAStore(StoreUnusable):
    """A database, but not one of ours."""


class StoreTooNew(StoreUnusable):
    """Written by a later version of telex."""


class StoreDamaged(StoreUnusable):
    """SQLite says that the file is not as it was written."""


class StoreUnavailable(StoreError):
    """The disk would not. Nothing was stored; the same may work later."""


class DiskFull(StoreUnavailable):
    """No room is left."""


class DiskFailed(StoreUnavailable):
    """The disk, or a bound on the size of files, refused to read or to write."""


class EndNotSaved(StoreUnavailable):
    """A run has ended, and the disk would not keep that. It is written before anything else is."""

    def __init__(self, run_id: str, problem: Exception) -> None:
        super().__init__(
            f"nothing of run {run_id} goes on, and its end is not stored: {problem}. "
            "Until it is, a restart may bring the run back; ask again to store it"
        )


class StoreBusy(StoreUnavailable):
    """Another process held the database for too long."""


class StoreClosed(StoreError):
    """It was closed."""


_NOT_READ = (DiskFailed, f"the file could not be read: {strerror(EIO)}. Look at the system's log")
_SENTENCES: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_IOERR_READ: _NOT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS: _NOT_READ,  # SQLite's name for EIO while reading
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
        StoreDamaged,
        # SQLite says so too where the disk would not give it a page.
        "the file is damaged, or was not read: `telex agent verify` says which",
    ),
    sqlite3.SQLITE_NOTADB: (
        NotAStore,
        "the file is not an SQLite database; move it away, or name another file",
    ),
}


def to_store_error(error: Exception, path: object) -> StoreError | None:
    """The condition behind an error of SQLite's; None for a mistake of ours."""
    code = getattr(error, "sqlite_errorcode", None)  # unset where Python itself objects
    if code is not None:
        return sqlite_store_error(code, path, getattr(error, "sqlite_errorname", str(code)))
    no_text = "decode" in str(error)  # bytes that are no text any more
    return sqlite_store_error(sqlite3.SQLITE_CORRUPT, path, "no UTF-8") if no_text else None


def sqlite_store_error(code: int, path: object, name: str) -> StoreError | None:
    """What a number of SQLite's means, the exact one or else its kind."""
    found = _SENTENCES.get(code) or _SENTENCES.get(code & 0xFF)
    return found and found[0](f"{path}: {found[1]} ({name})")
