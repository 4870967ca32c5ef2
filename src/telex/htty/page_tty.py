"""What a program's page goes through: its terminal, or the pipes that stand in its place.

The terminal is taken as `escapes.own_tty` takes it (no echo, no lines, keys as they are typed,
signals' keys still signals, which throw nothing away) and given back on every way out. Two things
are added here. Before others have the terminal, because we stop or end, what is being written comes
to the end of its chunk: half of one would swallow the shell's prompt. And every signal that would
end the program is looked after, not only the usual ones, and a kill by the guardian: the time that
a page is served is long.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from telex.escapes.own_tty import OwnTty, terminal_path
from telex.htty.support import STDIN, STDOUT, NoPages
from telex.processes import guardian
from telex.processes.terminal_restore import TerminalState
from telex.wire import limits

if TYPE_CHECKING:
    from telex.htty.whole_writes import WholeWrites

HOLD_SECONDS: Final = 0.5
"""For a terminal that is slow to take the rest of a chunk. Ctrl-Z must not seem to be ignored."""
ENVELOPE_BYTES: Final = len(b"\x1bPHTTY;1;\x1b\\")

_OPENED: Final = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # not to wait for who is not there
_ALSO_ENDING: Final = (
    signal.SIGINT,  # which is Python's own, unless the program wants it to end it at once
    signal.SIGALRM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGXCPU,
)


_END: Final = b"\x1b\\"


class PageTty(OwnTty):
    """The terminal, with what is written to it."""

    writes: WholeWrites | None = None
    _held = False

    def take(self) -> None:
        super().take()
        if self.writes is not None:
            self.writes.resume()

    def give_back(self) -> None:
        if self.writes is not None:
            self.writes.hold(HOLD_SECONDS)
        if self._held:
            guardian.note_terminal(None)
        super().give_back()

    def close(self) -> None:
        super().close()
        if self._held:
            self._held = False
            guardian.drop_terminal()

    def _taking(self, found: list[Any], wanted: list[Any]) -> None:
        """Killed in the middle of a chunk, its end is written too."""
        with contextlib.suppress(guardian.GuardianFailed):
            if not self._held:
                guardian.hold_terminal(self.fd)
                self._held = True
            guardian.note_terminal(TerminalState.of(found, wanted, _END))

    def guard(self) -> None:
        super().guard()
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _ALSO_ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._ended)
                self._handled.append(number)


@dataclass(frozen=True, slots=True)
class Ends:
    """Where chunks come from and go to."""

    reading: int
    writing: int
    """Writes wait here, whatever the program made of its stdout."""
    chunk_bytes: int
    piece_bytes: int
    """What one write may carry so that nobody else's stands inside it."""
    tty: PageTty | None
    """None for pipes."""


def open_ends(fd: int | None) -> Ends:
    """The terminal of `fd`, taken; without one, stdin and stdout."""
    if fd is None:
        return _pipes()
    tty = PageTty(fd)
    try:
        writing = _waiting(terminal_path(fd))
    except BaseException:
        tty.close()
        raise
    size = limits.HTTY_CHUNK_BYTES
    return Ends(tty.fd, writing, size, 4 * size, tty)


def _pipes() -> Ends:
    kind = os.fstat(STDIN).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        raise NoPages("standard input is neither a terminal nor a pipe, and no request comes by it")
    size = (select.PIPE_BUF - ENVELOPE_BYTES) // 4 * 3
    try:
        writing = _waiting(f"/proc/self/fd/{STDOUT}")
    except OSError:  # a socket, or a system without /proc
        writing = os.dup(STDOUT)
    return Ends(os.dup(STDIN), writing, size, size, None)


def _waiting(path: str) -> int:
    fd = os.open(path, os.O_WRONLY | _OPENED)
    os.set_blocking(fd, True)
    return fd
