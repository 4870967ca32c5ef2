"""The person's terminal, or the pipes and files that stand in its place; and its termios modes.

Taken (`take`) it is raw: every key is the child's. Given back (`give_back`) it is as it was found,
and that happens on every way out, because a `PersonTerminal` is opened in a `with`. If telex is
killed, the guardian restores it, and undoes the modes that the program set: `showing` tells it of
these, or `undone_by` gives it the bytes to write.

A mode is what `termios.tcgetattr` returns, and never changed in place: `raw_modes` are the
person's while it is taken, `child_modes` the child's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from typing import TYPE_CHECKING, Any, Final

from telex.passthrough.mode_tracker import ModeTracker
from telex.passthrough.terminal_io import reopened_nonblocking
from telex.processes import guardian
from telex.processes.terminal_restore import TerminalState, encode_modes
from telex.terminal.cells import Size

if TYPE_CHECKING:
    from types import TracebackType


STDIN, STDOUT, STDERR = 0, 1, 2


class PersonTerminal:
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

    def __enter__(self) -> PersonTerminal:
        with self._open as opening:
            self.reading = opening.enter_context(reopened_nonblocking(STDIN, os.O_RDONLY))
            self.writing = opening.enter_context(reopened_nonblocking(STDOUT, os.O_WRONLY))
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
            wanted = raw_modes(self.found, output=self.shown)
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
            taken = raw_modes(self.found, output=self.shown)
            guardian.note_terminal(TerminalState.of(self.found, taken, self._undo))

    def child_modes(self) -> str:
        """What the child's terminal shall do, for `leader`; empty where nothing is known."""
        if self.found is None:
            return ""
        return encode_modes(child_modes(self.found, typed=self.typed, shown=self.shown))

    def _modes(self) -> TermiosModes | None:
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
            packed = fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
            rows, cols, width, height = struct.unpack("4H", packed)
            if rows and cols:
                return Size(rows, cols, width, height)
    return Size()


TermiosModes = list[Any]
"""iflag, oflag, cflag, lflag, two speeds, and the list of control characters."""

IFLAG, OFLAG, CFLAG, LFLAG, CC = 0, 1, 2, 3, 6

_INPUT: Final = (
    termios.IGNBRK
    | termios.BRKINT
    | termios.PARMRK
    | termios.ISTRIP
    | termios.INLCR
    | termios.IGNCR
    | termios.ICRNL
    | termios.IXON
)
_LOCAL: Final = termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN


def raw_modes(modes: TermiosModes, *, output: bool) -> TermiosModes:
    """Every key as it is typed, none of them special: that is for the child's terminal to say.

    With `output`, what is written is not touched either. Without it (our output goes elsewhere, and
    whoever shares the terminal still writes plain lines) a newline keeps its carriage return.
    """
    wanted = _copied(modes)
    wanted[IFLAG] &= ~_INPUT
    wanted[LFLAG] &= ~_LOCAL
    if output:
        wanted[OFLAG] &= ~termios.OPOST
    wanted[CFLAG] = wanted[CFLAG] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    wanted[CC][termios.VMIN], wanted[CC][termios.VTIME] = 1, 0
    return wanted


def child_modes(modes: TermiosModes, *, typed: bool, shown: bool) -> TermiosModes:
    """What the child's terminal does, given what the person's did before it was raw.

    Input that nobody typed is not echoed, and output that no raw terminal shows gets no carriage
    returns: a filter gives out what the program wrote.
    """
    wanted = _copied(modes)
    if not typed:
        wanted[LFLAG] &= ~termios.ECHO
    if not shown:
        wanted[OFLAG] &= ~termios.ONLCR
    return wanted


def _copied(modes: TermiosModes) -> TermiosModes:
    return [*modes[:CC], list(modes[CC])]
