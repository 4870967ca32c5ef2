"""The person's terminal, or the pipes and files in its place; and its termios modes.

`take` makes the terminal raw, so that every key reaches the child. `give_back` restores it, on
every way out, because a `PersonTerminal` is entered by a `with`. If telex is killed, the guardian
restores the terminal and undoes the modes that the program has set: `showing` finds these modes in
the output, or `undone_by` sets the bytes that the guardian writes.

Modes are lists as `termios.tcgetattr` returns them, and never changed in place: `raw_modes` are for
the person's terminal while it is taken, `child_modes` for the child's terminal.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
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
    """Our stdin and stdout. Enter it; `reading` and `writing` are then non-blocking."""

    def __init__(self) -> None:
        self.typed = os.isatty(STDIN)
        """Whether stdin is a terminal."""
        self.shown = is_shown()
        """Whether output is drawn on a terminal that is raw meanwhile."""
        self.found = self._modes()
        """The modes of the terminal at start; None if there is no terminal."""
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
        """Make the terminal raw. In the background this stops us until we are in the foreground."""
        if self.typed and self.found is not None:
            self._taken = True  # first: a signal between the two must not leave the terminal raw
            wanted = raw_modes(self.found, output=self.shown)
            self._hold()
            self._note()
            termios.tcsetattr(STDIN, termios.TCSANOW, wanted)

    def give_back(self) -> None:
        """Restore the modes. Unread input is kept, and nothing here can block."""
        if not self._taken:
            return
        self._taken = False
        guardian.note_terminal(None)
        # A terminal that hung up needs no restore. If we are in the background, the terminal
        # belongs to the shell again, which has set its own modes.
        with contextlib.suppress(OSError, termios.error):
            if self.found is not None and os.tcgetpgrp(STDIN) == os.getpgrp():
                termios.tcsetattr(STDIN, termios.TCSANOW, self.found)

    def showing(self, data: bytes) -> None:
        """Track the modes in output that is being written to the terminal."""
        if self.shown and self._tracker.feed(data):
            self.undone_by(self._tracker.undo())

    def undone_by(self, undo: bytes) -> None:
        """Set the bytes by which the guardian undoes the output so far."""
        if undo != self._undo:
            self._undo = undo
            if self._taken:
                self._note()

    def _hold(self) -> None:
        """Hand the terminal to the guardian. Without a guardian, a kill leaves the terminal raw."""
        if not self._held:
            with contextlib.suppress(guardian.GuardianFailed):
                guardian.hold_terminal(STDIN)
                self._held = True

    def _note(self) -> None:
        if self._held and self.found is not None:
            taken = raw_modes(self.found, output=self.shown)
            guardian.note_terminal(TerminalState.of(self.found, taken, self._undo))

    def child_modes(self) -> str:
        """Return the modes of the child's terminal, encoded for `session_leader`; empty if there is
        no terminal to take them from.
        """
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
    """Return the size of the terminal on stdout, stdin or stderr; else the default size."""
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
    """Return raw modes: every key is passed as a byte, and the child's terminal interprets it.

    With `output`, output is not processed either. Without it (our output goes elsewhere, and other
    processes on the terminal still write plain lines), a newline keeps its carriage return.
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
    """Return the modes of the child's terminal, from those of the person's before it was raw.

    Input from a file or pipe is not echoed, and output to a file or pipe gets no carriage returns,
    so that a pipeline receives exactly what the program wrote.
    """
    wanted = _copied(modes)
    if not typed:
        wanted[LFLAG] &= ~termios.ECHO
    if not shown:
        wanted[OFLAG] &= ~termios.ONLCR
    return wanted


def _copied(modes: TermiosModes) -> TermiosModes:
    return [*modes[:CC], list(modes[CC])]


def person_shell() -> str:
    """Return the person's shell: SHELL, else that of the account, else /bin/sh. A path that cannot
    be run is skipped.
    """
    try:
        account = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:  # a user id without an account, as in containers
        account = ""
    for shell in (os.environ.get("SHELL", ""), account):
        if os.path.isabs(shell) and os.path.isfile(shell) and os.access(shell, os.X_OK):
            return shell
    return "/bin/sh"
