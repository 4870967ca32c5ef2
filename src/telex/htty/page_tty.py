"""A program's terminal while it serves a page, or pipes in its place, and atomic writes to it.

`PageTty` takes the terminal as `escapes` does (no echo, no line editing, Ctrl-C still a signal) and
restores it on every exit path. It adds two things. Before the program stops or exits, the chunk
that is being written is completed: half a chunk would swallow the shell's prompt. And because a
page is served for long, it handles every signal that would end the program; after a kill, the
guardian restores the terminal.

`AtomicWriter` writes pieces so that no other output lands inside one. The kernel keeps other
writers out for the length of one `write()`: on a terminal of any size, on a pipe up to `PIPE_BUF`.
That is true only for a blocking write; a non-blocking one writes as much as fits, and the next
`print()` of the program lands in the middle of a chunk. So each piece is one blocking `write()`, in
a thread, on a descriptor of its own: blocking mode belongs to the open file, and the program may
have changed it on its stdout. That thread handles no signals, because a signal would cut a write
short. A stop or the exit of the process would too; `hold` waits for the end of the piece before
either.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import stat
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from telex.escapes.own_tty import OwnTty, terminal_path
from telex.htty import limits
from telex.htty.support import STDIN, STDOUT, NoPages
from telex.processes import guardian, proc
from telex.processes.ledger import TerminalState

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


HOLD_SECONDS: Final = 0.5
"""Deadline for a slow terminal to accept the rest of a chunk. Ctrl-Z must not seem ignored."""
ENVELOPE_BYTES: Final = len(b"\x1bPHTTY;1;\x1b\\")

_OPENED: Final = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # open without waiting for a reader
_ALSO_ENDING: Final = (
    signal.SIGINT,  # Python handles it, unless the program restored the default action
    signal.SIGALRM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGXCPU,
)


_END: Final = b"\x1b\\"


class PageTty(OwnTty):
    """The terminal of a page, with the writer that must finish its chunk before a stop."""

    writes: AtomicWriter | None = None
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
        """Have the guardian restore the terminal; its note also ends a half-written chunk."""
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
class TtyEnds:
    """The descriptors that chunks are read from and written to."""

    reading: int
    writing: int
    """Writes block here, whatever mode the program gave its stdout."""
    chunk_bytes: int
    piece_bytes: int
    """How many bytes one write may carry without another write landing inside it."""
    tty: PageTty | None
    """None for pipes."""


def open_tty_ends(fd: int | None) -> TtyEnds:
    """Take the terminal of `fd`; without one, use stdin and stdout."""
    if fd is None:
        return _open_pipes()
    tty = PageTty(fd)
    try:
        writing = _blocking(os.open(terminal_path(fd), os.O_WRONLY | _OPENED))
    except BaseException:
        tty.close()
        raise
    size = limits.HTTY_CHUNK_BYTES
    return TtyEnds(tty.fd, writing, size, 4 * size, tty)


def _open_pipes() -> TtyEnds:
    kind = os.fstat(STDIN).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        raise NoPages("standard input is neither a terminal nor a pipe, so no request can arrive")
    size = (select.PIPE_BUF - ENVELOPE_BYTES) // 4 * 3
    try:
        writing = _blocking(proc.reopen(STDOUT, os.O_WRONLY | _OPENED))
    except OSError:  # a socket, or a system without /proc
        writing = os.dup(STDOUT)
    return TtyEnds(os.dup(STDIN), writing, size, size, None)


def _blocking(fd: int) -> int:
    os.set_blocking(fd, True)
    return fd


class AtomicWriter:
    """Writes pieces in a thread. It owns the descriptor, and closes it when the thread ends."""

    def __init__(
        self, fd: int, loop: asyncio.AbstractEventLoop, settled: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._settled = settled
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._put = 0
        self._done = 0  # written by the thread alone, as `_put` is by all others: no lock needed
        self._writing = threading.Lock()
        self._held = False
        self._dropping = False
        self.awaited = False
        """Whether `settled` should be called, in the loop, when there is room."""
        self.failure: OSError | None = None
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._main, name="telex page", daemon=True)
        self._thread.start()

    @property
    def unsent(self) -> int:
        return self._put - self._done

    def put(self, piece: bytes) -> None:
        """Queue one piece, which is one write."""
        self._put += len(piece)
        self._queue.put(piece)

    def hold(self, seconds: float) -> None:
        """Wait for the end of the current piece, and pause until `resume`.

        It may be called in a signal handler: it needs no lock that the interrupted code could hold.
        If the terminal accepts nothing for so long, a piece is cut; the other side detects that.
        """
        if not self._held:
            self._held = self._writing.acquire(timeout=seconds)

    def resume(self) -> None:
        if self._held:
            self._held = False
            self._writing.release()

    def close(self) -> None:
        """End when all pieces are written."""
        self._queue.put(None)

    def drop(self) -> None:
        """Write no further piece, and end."""
        self._dropping = True
        self.close()

    def _main(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            while (piece := self._queue.get()) is not None:
                if not self._dropping:
                    self._write(piece)
                self._done += len(piece)
                if self.awaited and self.unsent < limits.HTTY_UNSENT_BYTES:
                    self._notify()
        finally:
            os.close(self._fd)
            self.ended.set()
            self._notify()

    def _write(self, piece: bytes) -> None:
        left = memoryview(piece)
        try:
            with self._writing:
                while left:
                    left = left[self._taken(left) :]
        except OSError as error:  # the terminal hung up, or the pipe has no reader
            self.failure = error
            self._dropping = True
            self._notify()

    def _taken(self, data: memoryview) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:  # a non-blocking socket, which cannot be opened again
            select.select([], [self._fd], [])
            return 0

    def _notify(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so there is nothing to notify
            self._loop.call_soon_threadsafe(self._settled)
