"""The program's own terminal, taken while answers are read from it, and given back in every case.

Taken, the terminal does not echo (it would show the answers) and passes on each byte at once;
Ctrl-C and Ctrl-Z still work, and output is not touched. It is opened anew, so that only our
descriptor is non-blocking and not the shell's, and so that it works with stdin and stdout
redirected.

Given back by `close`, by the signals that end or stop a program, and at the interpreter's exit.
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
    """The terminal to talk to: the one of `fd`, or the one this program is controlled by."""
    try:
        if fd is not None:
            return os.ttyname(fd)
        # By its own name rather than /dev/tty where it has one: kqueue cannot watch /dev/tty.
        for standard in (0, 1, 2):
            with contextlib.suppress(OSError):
                os.tcgetpgrp(standard)  # fails for a terminal that is not our controlling one
                return os.ttyname(standard)
        os.close(os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY))
    except OSError as error:
        what = f"descriptor {fd} is no terminal" if fd is not None else "this program has none"
        raise NoTerminal(f"there is no terminal to talk to: {what} ({error.strerror})") from error
    return "/dev/tty"


class OwnTty:
    """Opened and taken when made. Close it."""

    def __init__(self, fd: int | None = None) -> None:
        path = terminal_path(fd)
        try:
            self.fd = os.open(path, _OPENED)
        except OSError as error:
            raise NoTerminal(f"cannot open the terminal {path}: {error.strerror}") from error
        self._found: list[Any] | None = None
        self._handled: list[int] = []
        self.continued: Callable[[], None] = lambda: None
        """Called after we were stopped and have taken it again; in the main thread."""
        self.stopping: Callable[[], bool] = lambda: True
        """Called before we stop, while it is still ours; in the main thread. False if we must not
        stop yet: then `stop` is called as soon as we may."""
        atexit.register(self.give_back)
        try:
            self.take()
            self.guard()
        except BaseException:
            self.close()
            raise

    def take(self) -> None:
        """In the background this stops us until we are in the foreground."""
        found = termios.tcgetattr(self.fd)
        self._found = found  # before it is taken: a signal between the two must not leave it so
        wanted = [*found[:_CC], list(found[_CC])]
        wanted[_IFLAG] &= ~_INPUT
        wanted[_LFLAG] &= ~_LOCAL
        # Else Ctrl-Z throws away what we have written and nobody has shown: half of a frame.
        wanted[_LFLAG] |= termios.NOFLSH
        wanted[_CC][termios.VMIN], wanted[_CC][termios.VTIME] = 1, 0
        self._taking(found, wanted)
        termios.tcsetattr(self.fd, termios.TCSANOW, wanted)

    def _taking(self, found: list[Any], wanted: list[Any]) -> None:
        """For those who have it for long, and want it given back even if they are killed."""

    def give_back(self) -> None:
        """Make it what it was, unless somebody else is in its foreground by now."""
        found, self._found = self._found, None
        if found is not None and self._in_foreground():
            with contextlib.suppress(termios.error):  # it hung up, and needs nothing
                termios.tcsetattr(self.fd, termios.TCSANOW, found)

    def discard_input(self) -> None:
        """What the terminal sent and nobody read: answers that came too late for us."""
        if self._in_foreground():
            with contextlib.suppress(termios.error):
                termios.tcflush(self.fd, termios.TCIFLUSH)

    def guard(self) -> None:
        """Give it back on a signal that ends or stops us. Python lets the main thread do this."""
        if threading.current_thread() is not threading.main_thread() or self._handled:
            return
        for number in (*_ENDING, signal.SIGTSTP):
            if signal.getsignal(number) is signal.SIG_DFL:  # else the program knows what it does
                handler = self._stopped if number == signal.SIGTSTP else self._ended
                signal.signal(number, handler)
                self._handled.append(number)

    def unguard(self) -> None:
        """In another thread nothing is undone; the handlers then do what the system would."""
        if threading.current_thread() is threading.main_thread():
            for number in self._handled:
                signal.signal(number, signal.SIG_DFL)
            self._handled.clear()

    def stop(self) -> None:
        """As Ctrl-Z does."""
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
            return True  # not our controlling terminal: nobody is in its foreground but who has it

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
        signal.raise_signal(number)  # of this thread, so that we stop here, and here go on
        signal.signal(number, self._stopped)
        if taken:
            self.take()
            self.continued()
