"""Create and open the database file: private to its user, with durable settings.

The database uses WAL with `synchronous` FULL, so a commit that returned survives a power failure.
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
from typing import TYPE_CHECKING, Final

from telex.agent.limits import STORE_BUSY_SECONDS, STORE_LOG_BYTES
from telex.agent.store.errors import DiskFailed, to_store_error
from telex.agent.store.migrations import migrate
from telex.config.errors import NotPrivate
from telex.config.places import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator

_POLLED_MILLISECONDS: Final = 10


@contextlib.contextmanager
def maps_sqlite_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors about the disk and the file as `StoreError`. Errors that indicate a bug
    in this package are raised unchanged."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if (problem := to_store_error(error, path)) is None:
            raise
        raise problem from error


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database for the writer. A missing file is created, an older schema is migrated, and
    a file that other users can access is refused."""
    make_private(path.parent)
    if not path.is_symlink() and not path.exists():
        _create(path)
    _remove_abandoned(path)
    # `check_file` uses lstat and never opens the file: closing any descriptor of the file would
    # release all the locks that SQLite holds on it in this process.
    check_file(path)
    return _open_prepared(path, path)


def _create(path: Path) -> None:
    """Create the database under a temporary name, then link it to its path. Two processes that
    initialise the same new file at once would conflict, and SQLite does not wait in that case."""
    try:
        descriptor, name = tempfile.mkstemp(".new", f".{path.name}-", path.parent)
    except OSError as error:
        raise DiskFailed(f"{path} cannot be created: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # the kernel releases it however this process ends
        _open_prepared(Path(name), path).close()
        with contextlib.suppress(FileExistsError):  # another process was faster; use its file
            os.link(name, path)
    finally:
        os.unlink(name)
        os.close(descriptor)
    _sync(path.parent)


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files of processes that were killed while they created the database."""
    for new in path.parent.glob(f".{path.name}-*.new"):
        if _is_abandoned(new):
            for name in (f"{new}-wal", f"{new}-shm", f"{new}-journal", new):
                Path(name).unlink(missing_ok=True)


def _is_abandoned(new: Path) -> bool:
    try:
        if new.lstat().st_nlink > 1:
            return True  # already linked to its path; opening it would release SQLite's locks
        descriptor = os.open(new, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # removed meanwhile, or not one of our files
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A file that was just created has no lock for a moment, and is empty until then.
        return os.fstat(descriptor).st_size > 0 or _is_old(descriptor)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def _is_old(descriptor: int) -> bool:
    return time.time() - os.fstat(descriptor).st_mtime > STORE_BUSY_SECONDS


def _sync(directory: Path) -> None:
    """Sync the directory, so that the file's name is as durable as the data committed to it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_file(path: Path) -> None:
    """Raise `NotPrivate` unless the path is a regular file that only the current user can
    access."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise NotPrivate(f"{path} is not a regular file of your user; move it away")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise NotPrivate(f"{path} is accessible to other users; run: chmod 600 {path}")


def _open_prepared(path: Path, name: Path) -> sqlite3.Connection:
    """Connect, set the pragmas and migrate. Transactions are explicit: a statement begins none by
    itself. SQLite gives the WAL file the mode of the database file."""
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


def begin_write(database: sqlite3.Connection) -> None:
    """Begin a transaction that holds the write lock, waiting at most STORE_BUSY_SECONDS for it.

    SQLite polls for the lock at intervals that grow to 100 ms, so a process that takes the lock
    again and again starves the others. With a short timeout SQLite polls every few milliseconds,
    and this loop calls it until the time is up.
    """
    deadline = time.monotonic() + STORE_BUSY_SECONDS
    database.execute(f"PRAGMA busy_timeout = {_POLLED_MILLISECONDS}")
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write rows. It may still write the WAL index (`-shm`), without
    which a WAL database cannot be read."""
    database = _connect(path)
    database.execute("PRAGMA query_only = ON")
    return database


def _connect(path: Path) -> sqlite3.Connection:
    # check_same_thread: the connection may be created in one thread and closed in another, but two
    # threads never use it at once.
    # `mode=rw`: SQLite must not create the file, because other users could then read it.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=STORE_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
