"""The file of raw bytes: everything a program wrote, in order and unredacted, as its caller asked.

Always a file of ours that nobody else reads: a new one is 0600 and never takes the place of
another; an old one is only appended to, if it is a regular file and ours, and keeps its mode. A
link at the path is not followed, because whoever may put one there could choose what we write to.

Each read is written at once, without a buffer of ours: 2 µs for a small one, 20 µs for 64 KiB, and
what was read is in the file even if we are killed. A write that fails (the disk is full, the file
was removed) ends the file, not the session; `failure` says why, and `on_failure` is told once.

Opened by `automation`, fed by `session` before anything else has looked at the bytes. Recordings
are files of this kind too, made of whole lines.
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
    """Why a path cannot be written to."""

    EXISTS = "exists"
    LINK = "link"
    NOT_A_FILE = "not_a_file"
    NOT_OURS = "not_ours"
    NO_DIRECTORY = "no_directory"
    NOT_ALLOWED = "not_allowed"
    NO_ROOM = "no_room"
    OTHER = "other"


class RawTranscriptRefused(Exception):
    """A path that was refused. The text says what stands there and what to do."""

    def __init__(self, kind: Refusal, path: str, problem: str) -> None:
        super().__init__(f"cannot write raw output to {path!r}: {problem}")
        self.kind = kind
        self.path = path


class FileFailed(Exception):
    """A file of a session that can take nothing more: a recording, or a raw transcript. What was
    written before is whole."""

    def __init__(self, kind: Literal["recording", "raw_transcript"], path: str, cause: OSError):
        self.kind = kind
        self.path = path
        self.errno = cause.errno
        self.reason = cause.strerror or str(cause)
        what = kind.replace("_", " ")
        super().__init__(
            f"the {what} in {path!r} is not whole: {self.reason}; what came before is in it"
        )


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
    errno.ENOSPC: (Refusal.NO_ROOM, "its file system is full; make room, or choose another"),
    errno.EDQUOT: (Refusal.NO_ROOM, "your quota there is used up; make room, or choose another"),
    errno.EFBIG: (Refusal.NO_ROOM, "no file may grow there (see ulimit -f)"),
}


class RawTranscript:
    """An open file of raw bytes, or with `lines` of whole lines: then each write ends one, and what
    a failed write left of its line is cut off again."""

    def __init__(
        self, path: str, descriptor: int, *, new: bool = False, lines: bool = False
    ) -> None:
        self.path = path
        self._new = new
        self._lines = lines
        self.failure: OSError | None = None
        """Why nothing more is written. What came before it is whole."""
        self.on_failure: Callable[[OSError], None] | None = None
        """Called with `failure` when a write or the closing fails."""
        self._descriptor = descriptor
        self._end = os.fstat(descriptor).st_size
        """How long the file is, at least: others may append to it too."""

    def write(self, data: bytes) -> None:
        """Append; never raises for what the disk does."""
        if self.failure is not None or not data:
            return
        written = 0
        try:
            self._check()
            while written < len(data):  # less than all is a nearly full disk: the next says so
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            self._fail(error)
        else:
            self._end += written

    def _check(self) -> None:
        """Writing to a file without a name, or to one that was emptied, would succeed."""
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            return
        if not status.st_nlink:
            raise FileNotFoundError(errno.ENOENT, "the file was removed or replaced", self.path)
        if status.st_size < self._end:
            raise OSError(errno.EIO, "somebody else cut the file short", self.path)

    def _fail(self, error: OSError) -> None:
        self.failure = error
        if self._lines:
            self._cut_half_a_line()
        if self.on_failure is not None:
            self.on_failure(error)

    def _cut_half_a_line(self) -> None:
        """Where that fails too, the last line has no end, and readers pass over it."""
        with contextlib.suppress(OSError):
            if os.fstat(self._descriptor).st_size > self._end:
                os.ftruncate(self._descriptor, self._end)

    def discard(self) -> None:
        """There was nothing to write after all: a file that we made goes again."""
        self.on_failure = None
        self.close()
        if self._new:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)

    def close(self) -> None:
        """Done. Closing again does nothing."""
        if self._descriptor >= 0:
            if self.failure is None:
                try:
                    self._check()
                except OSError as error:
                    self._fail(error)
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.close(descriptor)
            except OSError as error:  # a network file system may say only now that it is full
                if self.failure is None:
                    self._fail(error)


def open_raw(path: str, append: bool = False, lines: bool = False) -> RawTranscript:
    """A new file, or with `append` also an old one of ours. Raises RawTranscriptRefused."""
    try:
        descriptor = os.open(path, _APPEND if append else _NEW, 0o600)
    except OSError as error:
        raise _problem(path, error) from error
    except ValueError as error:  # a NUL, or a character that no file name can have
        raise RawTranscriptRefused(Refusal.OTHER, path, f"it is no path ({error})") from error
    if refused := _refused(path, os.fstat(descriptor)):
        os.close(descriptor)
        raise refused
    raw = RawTranscript(path, descriptor, new=not append, lines=lines)
    if not append:
        _require_room(raw, descriptor)
    return raw


def _require_room(raw: RawTranscript, descriptor: int) -> None:
    """A full disk takes the name of a new file, and then not one byte of it. Whoever asked for the
    file hears that now, and not when the program has printed what is lost."""
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
        problem = "it is a pipe or a device; only a regular file will do"
        return RawTranscriptRefused(Refusal.NOT_A_FILE, path, problem)
    if status.st_uid != os.geteuid():
        return RawTranscriptRefused(Refusal.NOT_OURS, path, "it belongs to another user")
    return None
