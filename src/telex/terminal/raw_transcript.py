"""The file of raw bytes: everything a program wrote, in order and unredacted, as its caller asked.

Always a file of ours that nobody else reads: a new one is 0600 and never takes the place of
another; an old one is only appended to, if it is a regular file and ours, and keeps its mode. A
link at the path is not followed, because whoever may put one there could choose what we write to.

Each read is written at once, without a buffer of ours: 1 µs for a small one, 20 µs for 64 KiB, and
what was read is in the file even if we are killed. A write that fails (the disk is full) ends the
file, not the session; `failure` says why.

Opened by `service`, fed by `session` before anything else has looked at the bytes.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum
from typing import Final


class Refusal(Enum):
    """Why a path cannot be written to."""

    EXISTS = "exists"
    LINK = "link"
    NOT_A_FILE = "not_a_file"
    NOT_OURS = "not_ours"
    NO_DIRECTORY = "no_directory"
    NOT_ALLOWED = "not_allowed"
    OTHER = "other"


class RawTranscriptRefused(Exception):
    """A path that was refused. The text says what stands there and what to do."""

    def __init__(self, kind: Refusal, path: str, problem: str) -> None:
        super().__init__(f"cannot write raw output to {path!r}: {problem}")
        self.kind = kind
        self.path = path


_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that nobody reads would wait for a reader.
_APPEND: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)

_PROBLEMS: Final = {
    errno.EEXIST: (
        Refusal.EXISTS,
        "something of that name exists; choose another path, or ask to append",
    ),
    errno.ELOOP: (Refusal.LINK, "it is a symbolic link, and those are not followed"),
    errno.EISDIR: (Refusal.NOT_A_FILE, "it is a directory"),
    errno.ENXIO: (Refusal.NOT_A_FILE, "it is a pipe or a device; only a regular file will do"),
    errno.ENOENT: (Refusal.NO_DIRECTORY, "its directory does not exist; make it first"),
    errno.ENOTDIR: (Refusal.NO_DIRECTORY, "what should be its directory is not one"),
    errno.EACCES: (Refusal.NOT_ALLOWED, "we are not allowed to write there"),
    errno.EPERM: (Refusal.NOT_ALLOWED, "we are not allowed to write there"),
    errno.EROFS: (Refusal.NOT_ALLOWED, "its file system is read-only"),
}


class RawTranscript:
    """An open file of raw bytes."""

    def __init__(self, path: str, descriptor: int, new: bool = False) -> None:
        self.path = path
        self._new = new
        self.failure: OSError | None = None
        """Why nothing more is written. What came before it is whole."""
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """Append; never raises for what the disk does."""
        if self.failure is not None:
            return
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # the rest of a nearly full disk: the next write says so
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            self.failure = error

    def discard(self) -> None:
        """There was nothing to write after all: a file that we made goes again."""
        self.close()
        if self._new:
            os.unlink(self.path)

    def close(self) -> None:
        """Done. Closing again does nothing."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.close(descriptor)
            except OSError as error:  # a network file system may say only now that it is full
                self.failure = self.failure or error


def open_raw(path: str, append: bool = False) -> RawTranscript:
    """A new file, or with `append` also an old one of ours. Raises RawTranscriptRefused."""
    try:
        descriptor = os.open(path, _APPEND if append else _NEW, 0o600)
    except OSError as error:
        kind, problem = _PROBLEMS.get(error.errno or 0, (Refusal.OTHER, error.strerror))
        raise RawTranscriptRefused(kind, path, problem or str(error)) from error
    except ValueError as error:  # a NUL, or a character that no file name can have
        raise RawTranscriptRefused(Refusal.OTHER, path, f"it is no path ({error})") from error
    if refused := _refused(path, os.fstat(descriptor)):
        os.close(descriptor)
        raise refused
    return RawTranscript(path, descriptor, new=not append)


def _refused(path: str, status: os.stat_result) -> RawTranscriptRefused | None:
    if not stat.S_ISREG(status.st_mode):
        problem = "it is a pipe or a device; only a regular file will do"
        return RawTranscriptRefused(Refusal.NOT_A_FILE, path, problem)
    if status.st_uid != os.geteuid():
        return RawTranscriptRefused(Refusal.NOT_OURS, path, "it belongs to another user")
    return None
