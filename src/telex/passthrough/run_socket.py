"""The socket of one `telex run`: in a directory of its own, for this user alone, removed at exit.

A run that is killed cannot remove its directory, so each run removes the directories of killed
runs. The owner of a directory holds a lock on it, which the kernel releases when the process exits
in any way: a directory without a lock is not used any more. Used by `escape_filter`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.config import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from telex.rpc.channel import Channel

_PREFIX: Final = "telex-run-"
_NAME: Final = "escapes"


@contextlib.asynccontextmanager
async def listen_for_run(accepted: Callable[[Channel], None]) -> AsyncIterator[Path | None]:
    """Listen on a new socket. Yields its path; None if no directory can be made."""
    from telex.transports import unix

    place = _place()
    with _held(place) as directory:
        if directory is None:
            yield None
            return
        async with unix.listen(directory / _NAME, accepted):
            yield directory / _NAME


def _place() -> Path:
    """Return the directory for temporary files; /tmp if the socket's path would be too long."""
    usual = Path(tempfile.gettempdir())
    longest = os.fsencode(usual / f"{_PREFIX}12345678" / _NAME)
    return usual if len(longest) <= limits.SOCKET_PATH_BYTES else Path("/tmp")  # noqa: S108


@contextlib.contextmanager
def _held(place: Path) -> Iterator[Path | None]:
    """Make a new directory there, locked until we exit."""
    try:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    except OSError:
        yield None
        return
    with _opened(directory) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        _sweep(place)
        try:
            yield directory
        finally:
            shutil.rmtree(directory)


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[int]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _sweep(place: Path) -> None:
    """Remove the directories that killed runs have left."""
    for directory in place.glob(f"{_PREFIX}*"):
        # Other users' directories cannot be opened; another run may remove one at the same time.
        with contextlib.suppress(OSError), _opened(directory) as fd:
            if os.fstat(fd).st_uid == os.geteuid() and _abandoned(directory, fd):
                shutil.rmtree(directory)


def _abandoned(directory: Path, fd: int) -> bool:
    """Whether the owner of a directory has exited. Without a socket in it, the owner may be about
    to lock it: the socket is made after the lock.
    """
    if not (directory / _NAME).exists():
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
