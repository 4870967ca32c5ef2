"""Which runtimes live: each open store holds a lock on a file of its own, until its process ends.

Several processes may use one database (an editor and a terminal, each with its runtime), so "it
says running" alone does not tell a run that goes on from one whose process died. The kernel lets
go of a lock when its holder ends, however it ends; a process id may be another's by then.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from pathlib import Path

from telex.agent.store.errors import DiskFailed, DiskFull


class StoreOwner:
    """This open store among all that use the same database. Closing it is ending it."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.name = secrets.token_hex(8)
        try:
            self._file = self._hold()
        except OSError as error:
            problem = DiskFull if error.errno == errno.ENOSPC else DiskFailed
            raise problem(f"{self._path(self.name)} cannot be made: {error.strerror}") from error
        self._sweep()

    def close(self) -> None:
        self._path(self.name).unlink(missing_ok=True)
        os.close(self._file)

    def lives(self, name: str) -> bool:
        """Whether the runtime with this name still runs. Only asked of names found in the database,
        which are written there after their lock was taken."""
        if name == self.name:
            return True
        if (file := _locked(self._path(name), fcntl.LOCK_SH)) is None:
            return self._path(name).exists()
        os.close(file)
        return False

    def _hold(self) -> int:
        path = self._path(self.name)
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file).st_nlink:
                return file
            os.close(file)  # swept away between the making and the locking

    def _sweep(self) -> None:
        """Take away the files of those that were killed."""
        for path in self._database.parent.glob(f"{self._database.name}-owner-*"):
            if (file := _locked(path, fcntl.LOCK_EX)) is not None:
                path.unlink(missing_ok=True)  # while locked: nobody takes it for theirs now
                os.close(file)

    def _path(self, name: str) -> Path:
        return self._database.with_name(f"{self._database.name}-owner-{name}")


def _locked(path: Path, kind: int) -> int | None:
    """The file, with a lock; None where it is not there or somebody else has it."""
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
