"""The ledger: the list of our children, in memory that the guardian shares and can read after us.

It is a small anonymous memory file with one fixed-size record per child, each written with one
system call. It survives us because the guardian has it open too, and a record is never half written
when we are killed. A page before the records holds a note about the person's terminal, by which
the guardian restores it.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import termios
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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


def read(fd: int, *, now: int | None) -> tuple[Root, ...]:
    """Read all records, after the writer died.

    Children that were not reaped count as reaped at `now`, which the guardian knows: it reads at
    once. Later readers give None: their number may belong to others by now, so only a process with
    the recorded start time counts, and its relatives.
    """
    written = os.pread(fd, os.fstat(fd).st_size, NOTE_BYTES)
    whole = written[: len(written) - len(written) % _RECORD.size]  # a full disk may cut the last
    return tuple(
        Root(pid, started, ended or (started if now is None else now))
        for pid, started, ended in _RECORD.iter_unpack(whole)
        if pid
    )


def read_note(fd: int) -> bytes:
    """Return the note, with its padding."""
    return os.pread(fd, NOTE_BYTES, 0)


# Restores a person's terminal after the process that took it over was killed.
#
# A process that takes the terminal writes a note: the modes it found, the modes it set, and the
# bytes that undo its output. The note is a few lines of text in the ledger, and the guardian
# applies it. The next owner of the terminal may already have set its modes, as most shells do: the
# modes then differ from those in the note, and are not changed.


Modes = list[Any]
"""Terminal modes, as returned by `termios.tcgetattr`."""

_WRITE_SECONDS: Final = 1.0
"""If the terminal accepts no output for this long, the rest is dropped."""


@dataclass(frozen=True, slots=True)
class TerminalState:
    """The note: modes as `encode_modes` writes them, and the bytes that undo our output."""

    found: str
    taken: str
    undo: bytes = b""

    def encode(self) -> bytes:
        return b"%b\n%b\n%b\n" % (
            self.found.encode(),
            self.taken.encode(),
            self.undo.hex().encode(),
        )

    @classmethod
    def of(cls, found: Modes, taken: Modes, undo: bytes = b"") -> TerminalState:
        return cls(encode_modes(found), encode_modes(taken), undo)

    @classmethod
    def decode(cls, written: bytes) -> TerminalState | None:
        """Return the decoded note, or None if there is none."""
        lines = written.rstrip(b"\0").decode("ascii").splitlines()
        if len(lines) != 3:
            return None
        return cls(lines[0], lines[1], bytes.fromhex(lines[2]))


def restore(terminal: int, note: TerminalState) -> None:
    """Restore the terminal. A terminal that hung up needs no restore."""
    with contextlib.suppress(OSError, termios.error):
        if encode_modes(termios.tcgetattr(terminal)) == note.taken:
            termios.tcsetattr(terminal, termios.TCSANOW, _decoded(note.found))
    with contextlib.suppress(OSError):
        _write(terminal, note.undo)


def _write(terminal: int, data: bytes) -> None:
    os.set_blocking(terminal, False)
    poll = select.poll()
    poll.register(terminal, select.POLLOUT)
    while data and poll.poll(_WRITE_SECONDS * 1000):
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(terminal, data) :]


def encode_modes(modes: Modes) -> str:
    """Encode modes for a note, and as an argument of `passthrough.session_leader`."""
    numbers = [*modes[:6], *(one if isinstance(one, int) else ord(one) for one in modes[6])]
    return ",".join(map(str, numbers))


def _decoded(modes: str) -> Modes:
    numbers = [int(number) for number in modes.split(",")]
    return [*numbers[:6], numbers[6:]]
