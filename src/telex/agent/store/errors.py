"""The errors of the store, each named for its condition.

`StoreRefused`: the request itself is wrong and will be refused again. `StoreUnavailable`: the disk
or the file failed. Nothing of the request is stored, the store stays open, and the same request may
succeed later.
"""

from __future__ import annotations

import sqlite3
from errno import EIO
from os import strerror


class StoreError(Exception):
    """The store did not carry out a request, and stored nothing of it."""


class StoreRefused(StoreError):
    """The request conflicts with the stored data, or is not valid."""


class NotStorable(StoreRefused):
    """The bytes are not a JSON object on one line, or are too long."""


class UnknownThread(StoreRefused):
    """The session does not exist."""


class UnknownRun(StoreRefused):
    """The run does not exist."""


class UnknownRequest(StoreRefused):
    """No question with this id was ever sent to a UI."""


class ThreadBusy(StoreRefused):
    """The session has a run that has not ended."""

    def __init__(self, session_id: str, run_id: str) -> None:
        super().__init__(
            f"session {session_id} has an active run {run_id}; wait for it, or cancel it first"
        )
        self.run_id = run_id


class RunEnded(StoreRefused):
    """The run has ended, so nothing can be added to it."""

    def __init__(self, run_id: str, status: str) -> None:
        super().__init__(f"run {run_id} has ended ({status}); nothing can be added to it")
        self.status = status


class RunNotOurs(StoreRefused):
    """The run belongs to another runtime, or to none; in the second case it must be adopted
    first."""


class NotNext(StoreRefused):
    """An event's sequence number is not the next of its run: an earlier event was not stored."""


class IdTaken(StoreRefused):
    """The id of a new session or run exists already."""


class BadExport(StoreRefused):
    """The file is not a complete export of telex."""


class StoreUnusable(StoreError):
    """The database file cannot be used: it is another program's, too new, or damaged."""


class NotAStore(StoreUnusable):
    """The file is not a telex database."""


class StoreTooNew(StoreUnusable):
    """A later version of telex wrote the file."""


class StoreDamaged(StoreUnusable):
    """SQLite reports that the file is corrupt."""


class StoreUnavailable(StoreError):
    """The disk failed. Nothing was stored; the same request may succeed later."""


class DiskFull(StoreUnavailable):
    """The disk has no free space."""


class DiskFailed(StoreUnavailable):
    """A read or write failed, because of the disk or of a limit on the size of files."""


class EndNotSaved(StoreUnavailable):
    """A run has ended, but its end could not be stored. It is written with the next write."""

    def __init__(self, run_id: str, problem: Exception) -> None:
        super().__init__(
            f"run {run_id} has stopped, but its end is not stored: {problem}. "
            "Until it is stored, a restart may resume the run; repeat the request to store it"
        )


class StoreBusy(StoreUnavailable):
    """Another process kept the database locked for too long."""


class StoreClosed(StoreError):
    """The store was closed before the request."""


_NOT_READ = (DiskFailed, f"the file cannot be read: {strerror(EIO)}. Check the system log")
_CONDITIONS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_IOERR_READ: _NOT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS: _NOT_READ,  # SQLite's name for EIO while reading
    sqlite3.SQLITE_FULL: (DiskFull, "the disk is full; nothing was stored. Free some space"),
    sqlite3.SQLITE_IOERR: (
        DiskFailed,
        "reading or writing failed; nothing was stored. Check the system log",
    ),
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "another process keeps the database locked; nothing was stored. Try again",
    ),
    sqlite3.SQLITE_READONLY: (
        DiskFailed,
        "the file is read-only; nothing was stored. Check how its file system is mounted",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        DiskFailed,
        "the file, or its log (-wal), cannot be opened; nothing was stored",
    ),
    sqlite3.SQLITE_CORRUPT: (
        StoreDamaged,
        # SQLite reports the same where the disk did not return a page.
        "the file is damaged, or could not be read; run `telex agent verify` to find out which",
    ),
    sqlite3.SQLITE_NOTADB: (
        NotAStore,
        "the file is not an SQLite database; move it away, or use another file",
    ),
}


def to_store_error(error: Exception, path: object) -> StoreError | None:
    """Return the `StoreError` for an error of SQLite; None where the error is a bug in this
    package."""
    code = getattr(error, "sqlite_errorcode", None)  # unset where Python raised the error
    if code is not None:
        return sqlite_store_error(code, path, getattr(error, "sqlite_errorname", str(code)))
    not_text = "decode" in str(error)  # a TEXT value that is no longer valid UTF-8
    return sqlite_store_error(sqlite3.SQLITE_CORRUPT, path, "not UTF-8") if not_text else None


def sqlite_store_error(code: int, path: object, name: str) -> StoreError | None:
    """Return the `StoreError` for an extended result code of SQLite, or else for its primary code;
    None where neither is known."""
    found = _CONDITIONS.get(code) or _CONDITIONS.get(code & 0xFF)
    return found and found[0](f"{path}: {found[1]} ({name})")
