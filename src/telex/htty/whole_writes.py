"""Pieces written to a terminal or a pipe so that nothing of anybody else stands inside one.

The kernel keeps others out for the length of one `write()`: on a terminal of any size, on a pipe up
to `PIPE_BUF`. That holds only for a write that waits until all of it is taken. One that does not
wait takes what fits, and the next `print()` of the program lands in the middle of a chunk. So each
piece is one blocking `write()`, in a thread, on a descriptor that is not the program's stdout:
whether a write waits belongs to the open file, and the program may have changed it there.

No signal is handled in that thread, because it would cut a write short. A stop or the end of the
process would do so too; `hold` waits for the end of the piece before either.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import threading
from typing import TYPE_CHECKING

from telex.wire import limits

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class WholeWrites:
    """Takes the descriptor over: the thread closes it when it ends."""

    def __init__(
        self, fd: int, loop: asyncio.AbstractEventLoop, settled: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._settled = settled
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._put = 0
        self._done = 0  # written by the thread alone, as _put is by everybody else: no lock
        self._writing = threading.Lock()
        self._held = False
        self._dropping = False
        self.awaited = False
        """Whether somebody wants to be told (`settled`, in the loop) that there is room."""
        self.failure: OSError | None = None
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._main, name="telex page", daemon=True)
        self._thread.start()

    @property
    def unsent(self) -> int:
        return self._put - self._done

    def put(self, piece: bytes) -> None:
        """One write."""
        self._put += len(piece)
        self._queue.put(piece)

    def hold(self, seconds: float) -> None:
        """Come to the end of a piece and stay there until `resume`.

        For a signal handler too: it waits for nothing that the interrupted code could have. If the
        terminal takes nothing for so long, a piece is cut; the other side finds that out.
        """
        if not self._held:
            self._held = self._writing.acquire(timeout=seconds)

    def resume(self) -> None:
        if self._held:
            self._held = False
            self._writing.release()

    def close(self) -> None:
        """End when all is written."""
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
                    self._tell()
        finally:
            os.close(self._fd)
            self.ended.set()
            self._tell()

    def _write(self, piece: bytes) -> None:
        left = memoryview(piece)
        try:
            with self._writing:
                while left:
                    left = left[self._taken(left) :]
        except OSError as error:  # the terminal hung up, or nobody reads the pipe
            self.failure = error
            self._dropping = True
            self._tell()

    def _taken(self, data: memoryview) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:  # a socket, which cannot be opened again, and somebody made it so
            select.select([], [self._fd], [])
            return 0

    def _tell(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody is left to tell
            self._loop.call_soon_threadsafe(self._settled)
