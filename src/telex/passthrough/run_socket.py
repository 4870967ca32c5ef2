"""The socket of one `telex run`: in a directory of its own, for this user alone, then removed.

A run that is killed cannot tidy up, so each run removes what killed ones left. Whether a directory
is still used is asked of the kernel: its owner holds a lock on it, which ends with the process
however that ends. Used by `escape_filter`.
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
async def listen_for_run(came: Callable[[Channel], None]) -> AsyncIterator[Path | None]:
    """Where it is; None where no directory can be made."""
    from telex.transports import unix

    place = _place()
    with _held(place) as directory:
        if directory is None:
            yield None
            return
        async with unix.listen(directory / _NAME, came):
            yield directory / _NAME


def _place() -> Path:
    """Where temporary files go; not where the socket's path would get too long for the kernel."""
    usual = Path(tempfile.gettempdir())
    longest = os.fsencode(usual / f"{_PREFIX}12345678" / _NAME)
    return usual if len(longest) <= limits.SOCKET_PATH_BYTES else Path("/tmp")  # noqa: S108


@contextlib.contextmanager
def _held(place: Path) -> Iterator[Path | None]:
    """A new directory there, locked while we live."""
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
    """Remove what runs that were killed left in it."""
    for directory in place.glob(f"{_PREFIX}*"):
        # Others' directories cannot be opened; what another run sweeps meanwhile is gone.
        with contextlib.suppress(OSError), _opened(directory) as fd:
            if os.fstat(fd).st_uid == os.geteuid() and _abandoned(directory, fd):
                shutil.rmtree(directory)


def _abandoned(directory: Path, fd: int) -> bool:
    """No socket yet: its owner may be about to lock it. A socket comes after the lock."""
    if not (directory / _NAME).exists():
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
