"""The person's terminal, or the pipes and files that stand in its place.

Taken (`take`) it is raw: every key is the child's. Given back (`give_back`) it is as it was found,
and that happens on every way out, because whoever opens an `OwnTerminal` does so in a `with`. If we
are killed, the guardian does it, and undoes what was shown: it is told of that by `showing`, or
what to write by `undone_by`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from typing import TYPE_CHECKING

from telex.host import modes
from telex.host.apart import apart
from telex.host.mode_tracker import ModeTracker
from telex.processes import guardian
from telex.processes.terminal_restore import TerminalState, encode_modes
from telex.terminal.cells import Size

if TYPE_CHECKING:
    from types import TracebackType

STDIN, STDOUT, STDERR = 0, 1, 2


class OwnTerminal:
    """Our stdin and stdout. Opened by entering it; `reading` and `writing` are non-blocking."""

    def __init__(self) -> None:
        self.typed = os.isatty(STDIN)
        """Whether what comes in comes from a keyboard."""
        self.shown = is_shown()
        """Whether what goes out is drawn on a terminal that is raw meanwhile."""
        self.found = self._modes()
        """How the terminal was set when we came; None where there is none."""
        self.reading = self.writing = -1
        self._taken = False
        self._tracker = ModeTracker()
        self._undo = b""
        self._held = False
        """Whether the guardian can reach the terminal."""
        self._open = contextlib.ExitStack()

    def __enter__(self) -> OwnTerminal:
        with self._open as opening:
            self.reading = opening.enter_context(apart(STDIN, os.O_RDONLY))
            self.writing = opening.enter_context(apart(STDOUT, os.O_WRONLY))
            self._open = opening.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._open:
            self.give_back()
            if self._held:
                guardian.drop_terminal()

    def take(self) -> None:
        """Make it raw. In the background this stops us until we are in the foreground."""
        if self.typed and self.found is not None:
            self._taken = True  # before it is: a signal between the two must not leave it raw
            wanted = modes.raw(self.found, output=self.shown)
            self._hold()
            self._note()
            termios.tcsetattr(STDIN, termios.TCSANOW, wanted)

    def give_back(self) -> None:
        """Make it what it was. What was typed meanwhile stays typed; nothing here can wait."""
        if not self._taken:
            return
        self._taken = False
        guardian.note_terminal(None)
        # A terminal that hung up needs nothing. One in whose background we are is the shell's
        # again, with modes of the shell's own.
        with contextlib.suppress(OSError, termios.error):
            if self.found is not None and os.tcgetpgrp(STDIN) == os.getpgrp():
                termios.tcsetattr(STDIN, termios.TCSANOW, self.found)

    def showing(self, data: bytes) -> None:
        """What a program prints, on its way to the terminal."""
        if self.shown and self._tracker.feed(data):
            self.undone_by(self._tracker.undo())

    def undone_by(self, undo: bytes) -> None:
        """What takes back all that was shown until now."""
        if undo != self._undo:
            self._undo = undo
            if self._taken:
                self._note()

    def _hold(self) -> None:
        """Where there is no guardian, a kill leaves the terminal as it is, as it always did."""
        if not self._held:
            with contextlib.suppress(guardian.GuardianFailed):
                guardian.hold_terminal(STDIN)
                self._held = True

    def _note(self) -> None:
        if self._held and self.found is not None:
            taken = modes.raw(self.found, output=self.shown)
            guardian.note_terminal(TerminalState.of(self.found, taken, self._undo))

    def child_modes(self) -> str:
        """What the child's terminal shall do, for `leader`; empty where nothing is known."""
        if self.found is None:
            return ""
        return encode_modes(modes.inner(self.found, typed=self.typed, shown=self.shown))

    def _modes(self) -> modes.Modes | None:
        for fd in (STDIN, STDOUT, STDERR):
            with contextlib.suppress(termios.error):
                return termios.tcgetattr(fd)
        return None


def is_shown() -> bool:
    return os.isatty(STDIN) and os.isatty(STDOUT)


def terminal_size() -> Size:
    """The size of the terminal we are on, in whatever way we are on it; else the usual one."""
    for fd in (STDOUT, STDIN, STDERR):
        with contextlib.suppress(OSError):
            told = fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
            rows, cols, width, height = struct.unpack("4H", told)
            if rows and cols:
                return Size(rows, cols, width, height)
    return Size()
