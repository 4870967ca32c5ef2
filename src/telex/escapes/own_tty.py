"""Takes the program's own terminal while responses are read from it, and restores it in every case.

While it is taken, the terminal does not echo (an echo would show the responses) and passes on each
byte at once; Ctrl-C and Ctrl-Z still work, and output is not processed differently. The terminal is
opened again, so that only our descriptor is non-blocking and not the shell's, and so that it works
with stdin and stdout redirected.

It is restored by `close`, by the signals that end or stop a program, and at the interpreter's exit.
`passthrough.person_terminal` does the same for a program that it runs, in raw mode.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import termios
import threading
from typing import TYPE_CHECKING, Any, Final

from telex.escapes.errors import NoTerminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_IFLAG, _LFLAG, _CC = 0, 3, 6
_INPUT: Final = (
    termios.ISTRIP | termios.INLCR | termios.IGNCR | termios.ICRNL | termios.IXON | termios.PARMRK
)
_LOCAL: Final = termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_OPENED: Final = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def terminal_path(fd: int | None = None) -> str:
    """Return the path of the terminal of `fd`, or of the controlling terminal.

    Raises:
        NoTerminal: There is none.
    """
    try:
        if fd is not None:
            return os.ttyname(fd)
        # Its own name is preferred to /dev/tty, because kqueue cannot watch /dev/tty.
        for standard in (0, 1, 2):
            with contextlib.suppress(OSError):
                os.tcgetpgrp(standard)  # fails unless it is our controlling terminal
                return os.ttyname(standard)
        os.close(os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY))
    except OSError as error:
        reason = f"descriptor {fd} is not a terminal" if fd is not None else "this program has none"
        raise NoTerminal(f"no terminal to connect to: {reason} ({error.strerror})") from error
    return "/dev/tty"


class OwnTty:
    """The program's terminal, opened and taken by the constructor. Call `close` to restore it.

    Raises:
        NoTerminal: There is no terminal, or it cannot be opened.
    """

    def __init__(self, fd: int | None = None) -> None:
        path = terminal_path(fd)
        try:
            self.fd = os.open(path, _OPENED)
        except OSError as error:
            raise NoTerminal(f"cannot open the terminal {path}: {error.strerror}") from error
        self._found: list[Any] | None = None
        self._handled: list[int] = []
        self.continued: Callable[[], None] = lambda: None
        """Called after a stop, when the terminal is taken again; in the main thread."""
        self.stopping: Callable[[], bool] = lambda: True
        """Called before a stop, while the terminal is still taken; in the main thread. It returns
        False to delay the stop, and must then call `stop` later.
        """
        atexit.register(self.give_back)
        try:
            self.take()
            self.guard()
        except BaseException:
            self.close()
            raise

    def take(self) -> None:
        """Switch echo and line mode off. In the background this stops us until we are in the
        foreground.
        """
        found = termios.tcgetattr(self.fd)
        self._found = found  # first: a signal between the two must not leave the terminal changed
        wanted = [*found[:_CC], list(found[_CC])]
        wanted[_IFLAG] &= ~_INPUT
        wanted[_LFLAG] &= ~_LOCAL
        # Without this, Ctrl-Z discards output that is not shown yet, such as half a frame.
        wanted[_LFLAG] |= termios.NOFLSH
        wanted[_CC][termios.VMIN], wanted[_CC][termios.VTIME] = 1, 0
        self._taking(found, wanted)
        termios.tcsetattr(self.fd, termios.TCSANOW, wanted)

    def _taking(self, found: list[Any], wanted: list[Any]) -> None:
        """Overridden by a subclass that has the terminal restored even after a kill."""

    def give_back(self) -> None:
        """Restore the modes, unless another process group is in the foreground."""
        found, self._found = self._found, None
        if found is not None and self._in_foreground():
            with contextlib.suppress(termios.error):  # a terminal that hung up needs no restore
                termios.tcsetattr(self.fd, termios.TCSANOW, found)

    def discard_input(self) -> None:
        """Discard unread input, such as responses that are late."""
        if self._in_foreground():
            with contextlib.suppress(termios.error):
                termios.tcflush(self.fd, termios.TCIFLUSH)

    def guard(self) -> None:
        """Restore the terminal on signals that end or stop us. Works in the main thread only."""
        if threading.current_thread() is not threading.main_thread() or self._handled:
            return
        for number in (*_ENDING, signal.SIGTSTP):
            if signal.getsignal(number) is signal.SIG_DFL:  # else the program handles the signal
                handler = self._stopped if number == signal.SIGTSTP else self._ended
                signal.signal(number, handler)
                self._handled.append(number)

    def unguard(self) -> None:
        """Remove the signal handlers. In another thread they stay, and then act as the default."""
        if threading.current_thread() is threading.main_thread():
            for number in self._handled:
                signal.signal(number, signal.SIG_DFL)
            self._handled.clear()

    def stop(self) -> None:
        """Stop this process, as Ctrl-Z does."""
        signal.raise_signal(signal.SIGTSTP)

    def close(self) -> None:
        self.give_back()
        self.unguard()
        atexit.unregister(self.give_back)
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal: it has no foreground group to respect

    def _ended(self, number: int, _: FrameType | None) -> None:
        if self._found is not None:
            self.discard_input()
            self.give_back()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    def _stopped(self, number: int, _: FrameType | None) -> None:
        taken = self._found is not None
        if taken and not self.stopping():
            return
        self.give_back()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # in this thread, so that we stop and continue exactly here
        signal.signal(number, self._stopped)
        if taken:
            self.take()
            self.continued()
