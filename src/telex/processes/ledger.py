"""The ledger: which children we have, written where the guardian can still read it after us.

A little anonymous memory, one record of fixed size per child, each written with one call. It
survives us because the guardian holds it too, and a write is never half done when we are killed.
Before the records there is a page for a note about the person's terminal (`terminal_restore`).
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Final

from telex.processes.tree import Root

if TYPE_CHECKING:
    from telex.processes.tree import Identity

_RECORD: Final = struct.Struct("=qqq")
"""A pid, when it started, and when it was reaped (0: not yet). All zero is a free place."""


NOTE_BYTES: Final = 4096
"""Of a note. Longer ones are not written."""


class Ledger:
    """Our side, which writes."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._places: dict[Identity, int] = {}
        self._free: list[int] = []

    def write(self, root: Root) -> None:
        """Add the child, or say anew what is known of it."""
        place = self._places.get(root.identity)
        if place is None:
            place = self._free.pop() if self._free else len(self._places)
            self._places[root.identity] = place
        self._put(place, _RECORD.pack(root.pid, root.started, root.ended or 0))

    def erase(self, identity: Identity) -> None:
        place = self._places.pop(identity, None)
        if place is not None:
            self._free.append(place)
            self._put(place, bytes(_RECORD.size))

    def note(self, note: bytes) -> None:
        """In the place of the note before; an empty one is none."""
        if len(note) <= NOTE_BYTES:
            os.pwrite(self.fd, note.ljust(NOTE_BYTES, b"\0"), 0)

    def _put(self, place: int, record: bytes) -> None:
        os.pwrite(self.fd, record, NOTE_BYTES + place * _RECORD.size)


def memory() -> int:
    """A descriptor of nameless memory, or of a nameless file where that is all there is."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("telex-ledger")
    import tempfile  # not where it is not needed: the guardian imports this module

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def read(fd: int, *, now: int) -> tuple[Root, ...]:
    """The guardian's side, when the writer is gone: who was not reaped yet, was so until now."""
    written = os.pread(fd, os.fstat(fd).st_size, NOTE_BYTES)
    return tuple(
        Root(pid, started, ended or now)
        for pid, started, ended in _RECORD.iter_unpack(written)
        if pid
    )


def read_note(fd: int) -> bytes:
    """The note, with what fills its place."""
    return os.pread(fd, NOTE_BYTES, 0)
