"""How a person's terminal is to be left: written by who has taken it, read by the guardian if that
one is killed.

A note says how the terminal was set when we came, how we have set it, and which bytes undo what was
shown on it. It is a few lines of text in the memory that both share (`ledger`). Whoever has the
terminal next may have set it already, as most shells do: then its modes are no longer those of the
note, and are left alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import termios
from dataclasses import dataclass
from typing import Any, Final

Modes = list[Any]
"""As `termios.tcgetattr` returns them."""

_WRITE_SECONDS: Final = 1.0
"""A terminal that takes nothing for so long gets nothing more."""


@dataclass(frozen=True, slots=True)
class TerminalState:
    """Modes as `encode_modes` writes them."""

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
        """None if there is none."""
        lines = written.rstrip(b"\0").decode("ascii").splitlines()
        if len(lines) != 3:
            return None
        return cls(lines[0], lines[1], bytes.fromhex(lines[2]))


def restore(terminal: int, note: TerminalState) -> None:
    """Make it what it was. One that hung up needs nothing."""
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
    """For a note, and for one argument of `host.leader`, which decodes it."""
    numbers = [*modes[:6], *(one if isinstance(one, int) else ord(one) for one in modes[6])]
    return ",".join(map(str, numbers))


def _decoded(modes: str) -> Modes:
    numbers = [int(number) for number in modes.split(",")]
    return [*numbers[:6], numbers[6:]]
