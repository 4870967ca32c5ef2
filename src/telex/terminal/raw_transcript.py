"""The file of raw output: every byte that a program wrote, in order and unredacted.

The file is readable only by its owner. A new file has mode 0600 and never replaces an existing one;
an existing file is only appended to, must be a regular file of the user, and keeps its mode. A
symbolic link at the path is not followed, because the user who created the link could choose the
file that is written.

Each read is written at once and without a buffer: 2 µs for a small read, 20 µs for 64 KiB. So the
bytes are in the file even if this process is killed. A failed write (disk full, file removed) ends
the file and not the session; `failure` has the reason, and `on_failure` is called once.

Opened by `automation`; `session` writes each read to it before processing the bytes. Recordings are
files of this kind too, made of whole lines.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable


class Refusal(Enum):
    """The reason why a path cannot be written to."""

    EXISTS = "exists"
    LINK = "link"
    NOT_A_FILE = "not_a_file"
    NOT_OURS = "not_ours"
    NO_DIRECTORY = "no_directory"
    NOT_ALLOWED = "not_allowed"
    NO_ROOM = "no_room"
    OTHER = "other"


class RawTranscriptRefused(Exception):
    """A path that was refused. The message names the obstacle and a remedy."""

    def __init__(self, kind: Refusal, path: str, problem: str) -> None:
        super().__init__(f"cannot write raw output to {path!r}: {problem}")
        self.kind = kind
        self.path = path


class FileFailed(Exception):
    """A recording or raw transcript that could not be written. Everything before the failure is in
    the file.
    """

    def __init__(self, kind: Literal["recording", "raw_transcript"], path: str, cause: OSError):
        self.kind = kind
        self.path = path
        self.errno = cause.errno
        self.reason = cause.strerror or str(cause)
        what = kind.replace("_", " ")
        super().__init__(
            f"the {what} in {path!r} is incomplete: {self.reason}; output before that was written"
        )


_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe would block until another process reads it.
_APPEND: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)

_PROBLEMS: Final = {
    errno.EEXIST: (
        Refusal.EXISTS,
        "the path exists already; choose another path, or ask to append",
    ),
    errno.ELOOP: (Refusal.LINK, "it is a symbolic link, and links are not followed"),
    errno.EISDIR: (Refusal.NOT_A_FILE, "it is a directory"),
    errno.ENXIO: (Refusal.NOT_A_FILE, "it is a pipe or a device, not a regular file"),
    errno.ENOENT: (Refusal.NO_DIRECTORY, "its directory does not exist; create it first"),
    errno.ENOTDIR: (Refusal.NO_DIRECTORY, "a part of the path is not a directory"),
    errno.EACCES: (Refusal.NOT_ALLOWED, "permission denied"),
    errno.EPERM: (Refusal.NOT_ALLOWED, "permission denied"),
    errno.EROFS: (Refusal.NOT_ALLOWED, "its file system is read-only"),
    errno.ENOSPC: (Refusal.NO_ROOM, "the disk is full; free space, or choose another path"),
    errno.EDQUOT: (Refusal.NO_ROOM, "the quota is used up; free space, or choose another path"),
    errno.EFBIG: (Refusal.NO_ROOM, "the limit of file sizes is reached (see ulimit -f)"),
}


class RawTranscript:
    """An open file of raw bytes, or with `lines` of whole lines.

    With `lines`, each write ends a line, and the rest of a failed write is removed again.
    """

    def __init__(
        self, path: str, descriptor: int, *, new: bool = False, lines: bool = False
    ) -> None:
        self.path = path
        self._new = new
        self._lines = lines
        self.failure: OSError | None = None
        """Why writing stopped. Everything before the failure is in the file."""
        self.on_failure: Callable[[OSError], None] | None = None
        """Called with `failure` when a write or the close fails."""
        self._descriptor = descriptor
        self._end = os.fstat(descriptor).st_size
        """The least length of the file: other processes may append to it too."""

    def write(self, data: bytes) -> None:
        """Append data. An error of the file system sets `failure` and is not raised."""
        if self.failure is not None or not data:
            return
        written = 0
        try:
            self._check()
            while written < len(data):  # a short write means a nearly full disk: the next one fails
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            self._fail(error)
        else:
            self._end += written

    def _check(self) -> None:
        """Raise if the file was removed or truncated: writes to such a file would succeed."""
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            return
        if not status.st_nlink:
            raise FileNotFoundError(errno.ENOENT, "the file was removed or replaced", self.path)
        if status.st_size < self._end:
            raise OSError(errno.EIO, "another process truncated the file", self.path)

    def _fail(self, error: OSError) -> None:
        self.failure = error
        if self._lines:
            self._cut_half_a_line()
        if self.on_failure is not None:
            self.on_failure(error)

    def _cut_half_a_line(self) -> None:
        """Remove an unfinished last line. If that fails too, readers skip the line without end."""
        with contextlib.suppress(OSError):
            if os.fstat(self._descriptor).st_size > self._end:
                os.ftruncate(self._descriptor, self._end)

    def discard(self) -> None:
        """Close the file before anything was recorded, and remove it if this object created it."""
        self.on_failure = None
        self.close()
        if self._new:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        if self._descriptor >= 0:
            if self.failure is None:
                try:
                    self._check()
                except OSError as error:
                    self._fail(error)
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.close(descriptor)
            except OSError as error:  # a network file system may report only now that it is full
                if self.failure is None:
                    self._fail(error)


def open_raw(path: str, append: bool = False, lines: bool = False) -> RawTranscript:
    """Open a new file, or with `append` also an existing one. Raises RawTranscriptRefused."""
    try:
        descriptor = os.open(path, _APPEND if append else _NEW, 0o600)
    except OSError as error:
        raise _problem(path, error) from error
    except ValueError as error:  # a NUL, or a character that is not valid in a file name
        raise RawTranscriptRefused(Refusal.OTHER, path, f"it is no path ({error})") from error
    if refused := _refused(path, os.fstat(descriptor)):
        os.close(descriptor)
        raise refused
    raw = RawTranscript(path, descriptor, new=not append, lines=lines)
    if not append:
        _require_room(raw, descriptor)
    return raw


def _require_room(raw: RawTranscript, descriptor: int) -> None:
    """Write and remove one byte: a full disk creates a new file, and then stores no byte of it. The
    caller gets the error now, and not after the program has printed output that is lost.
    """
    try:
        os.write(descriptor, b"\n")
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError as error:
        raw.discard()
        raise _problem(raw.path, error) from error


def _problem(path: str, error: OSError) -> RawTranscriptRefused:
    kind, problem = _PROBLEMS.get(error.errno or 0, (Refusal.OTHER, error.strerror))
    return RawTranscriptRefused(kind, path, problem or str(error))


def _refused(path: str, status: os.stat_result) -> RawTranscriptRefused | None:
    if not stat.S_ISREG(status.st_mode):
        problem = "it is a pipe or a device, not a regular file"
        return RawTranscriptRefused(Refusal.NOT_A_FILE, path, problem)
    if status.st_uid != os.geteuid():
        return RawTranscriptRefused(Refusal.NOT_OURS, path, "it belongs to another user")
    return None
