"""The database's file: made private, opened with the settings that durability needs.

Effects only. WAL with `synchronous` FULL: a commit that returned survives the power going.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from telex.agent.limits import STORE_BUSY_SECONDS, STORE_LOG_BYTES
from telex.agent.store.errors import DiskFailed, to_store_error
from telex.agent.store.migrations import migrate
from telex.config.errors import NotPrivate
from telex.config.places import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def maps_sqlite_errors(path: Path) -> Iterator[None]:
    """What SQLite says of the disk and the file, as conditions; our own mistakes stay mistakes."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if (problem := to_store_error(error, path)) is None:
            raise
        raise problem from error


def open_database(path: Path) -> sqlite3.Connection:
    """For the writer: made where it is missing, of the present version, ours alone."""
    make_private(path.parent)
    if not path.is_symlink() and not path.exists():
        _make(path)
    _sweep(path)
    # Looked at, never opened: to close any descriptor of the file would let go of all the locks
    # that SQLite holds on it in this process.
    check_file(path)
    return _prepared(path, path)


def _make(path: Path) -> None:
    """Elsewhere first, then put in its place: two that turn the same new file into a database at
    once get in each other's way, and SQLite does not wait there."""
    try:
        descriptor, name = tempfile.mkstemp(".new", f".{path.name}-", path.parent)
    except OSError as error:
        raise DiskFailed(f"{path} cannot be made: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # until we end, however we end
        _prepared(Path(name), path).close()
        with contextlib.suppress(FileExistsError):  # somebody was quicker; theirs is as good
            os.link(name, path)
    finally:
        os.unlink(name)
        os.close(descriptor)
    _sync(path.parent)


def _sweep(path: Path) -> None:
    """Take away what was left by who was killed while making the file."""
    for new in path.parent.glob(f".{path.name}-*.new"):
        if _abandoned(new):
            for name in (f"{new}-wal", f"{new}-shm", f"{new}-journal", new):
                Path(name).unlink(missing_ok=True)


def _abandoned(new: Path) -> bool:
    try:
        if new.lstat().st_nlink > 1:
            return True  # it is in its place already: that one must not be opened (see below)
        descriptor = os.open(new, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # gone meanwhile, or not one of ours
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # One that was just made has no lock for a moment; it is empty then.
        return os.fstat(descriptor).st_size > 0 or _old(descriptor)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def _old(descriptor: int) -> bool:
    return time.time() - os.fstat(descriptor).st_mtime > STORE_BUSY_SECONDS


def _sync(directory: Path) -> None:
    """So that the name is as durable as what will be acknowledged under it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_file(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise NotPrivate(f"{path} is not a file of ours; move it away")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise NotPrivate(f"{path} is open to others; close it: chmod 600 {path}")


def _prepared(path: Path, name: Path) -> sqlite3.Connection:
    """Statements begin no transaction by themselves. SQLite gives the log the mode of the file."""
    database = _connect(path)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA foreign_keys = ON")
        database.execute(f"PRAGMA journal_size_limit = {STORE_LOG_BYTES}")
        migrate(database, name)
    except BaseException:
        database.close()
        raise
    return database


def connect_reader(path: Path) -> sqlite3.Connection:
    """Never writes a row. It may still write the log's index, without which WAL cannot be read."""
    database = _connect(path)
    database.execute("PRAGMA query_only = ON")
    return database


def _connect(path: Path) -> sqlite3.Connection:
    # Made in one thread and closed in another, never used by two at once.
    # `rw`: SQLite makes no file, it would be open to others.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=STORE_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
