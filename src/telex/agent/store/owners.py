"""Detect which runtimes are alive: each open store holds a lock on a file of its own.

Several processes may use one database (an editor and a terminal, each with its runtime). The status
`running` alone does not distinguish a run that continues from one whose process died. The kernel
releases a file lock when its holder exits, however it exits. A process id would not do: it may have
been reused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from pathlib import Path

from telex.agent.store.errors import DiskFailed, DiskFull


class StoreOwner:
    """The identity of one open store among all that use the same database.

    The lock is taken in the constructor and held until `close`, or until the process exits.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self.name = secrets.token_hex(8)
        try:
            self._file = self._create_locked()
        except OSError as error:
            problem = DiskFull if error.errno == errno.ENOSPC else DiskFailed
            raise problem(f"{self._path(self.name)} cannot be created: {error.strerror}") from error
        self._remove_abandoned()

    def close(self) -> None:
        self._path(self.name).unlink(missing_ok=True)
        os.close(self._file)

    def lives(self, name: str) -> bool:
        """Return whether the runtime with this name still runs. Call it only with names from the
        database: a name is written there after its lock was taken."""
        if name == self.name:
            return True
        if (file := _try_lock(self._path(name), fcntl.LOCK_SH)) is None:
            return self._path(name).exists()
        os.close(file)
        return False

    def _create_locked(self) -> int:
        path = self._path(self.name)
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file).st_nlink:
                return file
            os.close(file)  # another process removed the file before it was locked

    def _remove_abandoned(self) -> None:
        """Remove the lock files of processes that were killed."""
        for path in self._database.parent.glob(f"{self._database.name}-owner-*"):
            if (file := _try_lock(path, fcntl.LOCK_EX)) is not None:
                path.unlink(missing_ok=True)  # under the lock, so that its creator cannot lock it
                os.close(file)

    def _path(self, name: str) -> Path:
        return self._database.with_name(f"{self._database.name}-owner-{name}")


def _try_lock(path: Path, kind: int) -> int | None:
    """Open and lock the file without waiting; None where it does not exist or is locked."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file
