"""The ledger: the list of our children, in memory that the guardian shares and can read after us.

It is a small anonymous memory file with one fixed-size record per child, each written with one
system call. It survives us because the guardian has it open too, and a record is never half written
when we are killed. A page before the records holds a note about the person's terminal
(`terminal_restore`).
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Final

from telex.processes.tree import Root

if TYPE_CHECKING:
    from telex.processes.tree import Identity

_RECORD: Final = struct.Struct("=qqq")
"""A pid, its start time, and when it was reaped (0: not yet). All zero is a free slot."""


NOTE_BYTES: Final = 4096
"""Maximum size of a note. A longer note is not written."""


class Ledger:
    """The writing side, in this process."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._slots: dict[Identity, int] = {}
        self._free: list[int] = []

    def write(self, root: Root) -> None:
        """Add the child, or update its record."""
        slot = self._slots.get(root.identity)
        if slot is None:
            slot = self._free.pop() if self._free else len(self._slots)
            self._slots[root.identity] = slot
        self._put(slot, _RECORD.pack(root.pid, root.started, root.ended or 0))

    def erase(self, identity: Identity) -> None:
        slot = self._slots.pop(identity, None)
        if slot is not None:
            self._free.append(slot)
            self._put(slot, bytes(_RECORD.size))

    def note(self, note: bytes) -> None:
        """Replace the note. An empty note means none."""
        if len(note) <= NOTE_BYTES:
            os.pwrite(self.fd, note.ljust(NOTE_BYTES, b"\0"), 0)

    def _put(self, slot: int, record: bytes) -> None:
        os.pwrite(self.fd, record, NOTE_BYTES + slot * _RECORD.size)


def memory() -> int:
    """Return a descriptor of anonymous memory, or of an unnamed file where there is no memfd."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("telex-ledger")
    import tempfile  # here, because the guardian imports this module and must stay small

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def read(fd: int, *, now: int) -> tuple[Root, ...]:
    """Read all records, in the guardian after the writer died.

    Children that were not reaped by then count as reaped at `now`.
    """
    written = os.pread(fd, os.fstat(fd).st_size, NOTE_BYTES)
    return tuple(
        Root(pid, started, ended or now)
        for pid, started, ended in _RECORD.iter_unpack(written)
        if pid
    )


def read_note(fd: int) -> bytes:
    """Return the note, with its padding."""
    return os.pread(fd, NOTE_BYTES, 0)
