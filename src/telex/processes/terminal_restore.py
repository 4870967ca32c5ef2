"""Restores a person's terminal after the process that took it over was killed.

A process that takes the terminal writes a note: the modes it found, the modes it set, and the bytes
that undo its output. The note is a few lines of text in the memory shared with the guardian
(`ledger`), and the guardian applies it. The next owner of the terminal may already have set its
modes, as most shells do: the modes then differ from those in the note, and are not changed.
"""

from __future__ import annotations

import contextlib
import os
import select
import termios
from dataclasses import dataclass
from typing import Any, Final

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
