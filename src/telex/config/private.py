"""Files and directories that are ours alone: 0600, 0700, no symbolic links, no other owner.

Used for everything telex writes, at the moment it is first needed. A directory that is already
there and too open is refused, never tightened: it may be somebody's home, and what others put into
it while it was open would stay.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING

from telex.config.errors import NotPrivate, Unreadable
from telex.wire.limits import CONFIG_FILE_BYTES

if TYPE_CHECKING:
    from pathlib import Path


def make_private(directory: Path) -> Path:
    """The same path, now a directory that only we can enter; `NotPrivate` where it cannot be."""
    lineage = (directory, *directory.parents)
    missing = list(takewhile(lambda path: not path.exists(), lineage))
    for path in reversed(missing):
        # Somebody may have been quicker; whether we can live with theirs is the next question.
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    if problem := privacy_problem(directory):
        raise NotPrivate(problem)
    return directory


def privacy_problem(directory: Path) -> str | None:
    """Why this existing directory is not ours alone, and what to do; None when all is well."""
    status = directory.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"{directory} is a symbolic link; remove it, or set TELEX_HOME to another directory"
    if not stat.S_ISDIR(status.st_mode):
        return f"{directory} is not a directory; remove it, or set TELEX_HOME to another directory"
    if status.st_uid != os.geteuid():
        return (
            f"{directory} belongs to user {status.st_uid} and we are user {os.geteuid()}; "
            "set TELEX_HOME to a directory of your own"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        return (
            f"{directory} is open to others ({mode}); close it: chmod 700 {quote(str(directory))}"
        )
    return None


def write_private(path: Path, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all, readable by us alone."""
    make_private(path.parent)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read_file(path: Path, *, ours: bool = False) -> bytes | None:
    """What a regular file holds; None where there is no such file. Never waits, never reads much.

    With `ours`, for a file whose word is taken: `NotPrivate` if others could have written it.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable(f"{path} cannot be read: it is not a regular file")
            if ours and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
                raise NotPrivate(f"{path} could have been written by others; remove it")
            content = file.read(CONFIG_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > CONFIG_FILE_BYTES:
        raise Unreadable(f"{path} cannot be read: it is larger than {CONFIG_FILE_BYTES} bytes")
    return content


def _at_once(path: str, flags: int) -> int:
    # Opening a named pipe must not hang whoever changes into a hostile directory.
    return os.open(path, flags | os.O_NONBLOCK)
