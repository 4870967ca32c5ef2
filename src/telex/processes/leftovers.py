"""Ends the processes of a server that was killed together with its guardian.

A server keeps its ledger in a file of its runtime directory, locked as long as the server or its
guardian lives. A ledger without a lock belongs to two killed processes: the next telex command ends
the processes in it, which are known by their pids and start times, and removes the file.

Importing this module imports almost nothing, because every command looks for such a file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIX = ".ledger"


def ledger_path(directory: str, boot: str, token: str, since: int) -> str:
    """Return the path of a server's ledger; the name has what the guardian gets as arguments."""
    return os.path.join(directory, f"{boot}.{token}.{since}{SUFFIX}")


def end_leftovers(directory: str) -> int:
    """End the processes of killed servers, and return how many ledgers were found."""
    found = 0
    for path, fd in _abandoned(directory):
        found += 1
        _end(os.path.basename(path), fd)
        os.unlink(path)
    return found


def _abandoned(directory: str) -> Iterator[tuple[str, int]]:
    """Yield each ledger that nobody holds, with its descriptor, locked."""
    try:
        status = os.lstat(directory)
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            return  # what others can write there says nothing about our processes
        names = os.listdir(directory)
    except OSError:  # nothing was ever started there
        return
    for name in names:
        if not _is_ledger(name):
            continue
        path = os.path.join(directory, name)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # another command removed it, or it is no file of ours
            continue
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.exists(path):
                    yield path, fd
        finally:
            os.close(fd)


def _is_ledger(name: str) -> bool:
    """Whether it is a name of `ledger_path`. Other files are left alone."""
    parts = name.removesuffix(SUFFIX).split(".")
    return name.endswith(SUFFIX) and len(parts) == 3 and parts[2].isdecimal()


def _end(name: str, fd: int) -> None:
    from telex.processes import ledger, proc
    from telex.processes.guardian import advance
    from telex.processes.termination import BRISK, TreeTermination
    from telex.processes.tree import Tree

    boot, token, since = name.removesuffix(SUFFIX).split(".")
    if boot != proc.boot():
        return  # after a restart of the machine, the pids are those of others
    tree = Tree(ledger.read(fd, now=None), f":{token}.", int(since))
    with TreeTermination(BRISK, {}) as ending:
        while advance(ending, lambda moment: tree):
            pass
