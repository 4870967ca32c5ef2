"""A child on a real terminal: bytes out, bytes in, its end.

`open_pty` starts one. It calls back with what the child prints, and once when nothing more will
come; nothing is called back after `close`. What the bytes mean is not known here. What is typed
and not yet taken by the kernel waits in an `InputQueue`. `session` uses it, and `host`.

Ending the child is the affair of `processes` (`Pty.end`), letting go of the terminal is ours
(`Pty.close`). Whoever opens a terminal does both, in that order, or uses `async with`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import sys
import termios
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.processes.child_environment import child_environment
from telex.processes.spawn import ControllingTerminal, StartFailed, start
from telex.processes.termination import POLITE
from telex.terminal import limits, line_discipline
from telex.terminal.cells import STANDARD, Size
from telex.terminal.line_discipline import LineSettings
from telex.terminal.scheduler import TokenBucket, output_scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from telex.processes.child import Child, Exit
    from telex.processes.termination import Ladder
    from telex.terminal.cells import Size


@dataclass(frozen=True, slots=True)
class Program:
    """What to start, where, and on what size of terminal."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    """Overrides on top of what every child inherits; None removes."""
    size: Size = STANDARD


# What is typed.


class InputQueueFull(Exception):
    """The program does not read, and no more is kept for it."""

    def __init__(self, refused: int, queued: int) -> None:
        super().__init__(
            f"{refused} bytes of input were refused, none of them was written: {queued} are queued "
            "and the program does not read; send smaller pieces and wait until each is drained"
        )


class InputQueue:
    """Bytes that were typed and the kernel has not taken yet: bounded, in the order they will be
    written. Pure: `Pty` asks what is next and says how much of it was taken.

    Urgent bytes go before all others, and after earlier urgent ones. What they overtake stays and
    follows them.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._urgent = 0
        """How many of the first bytes are urgent."""

    def __len__(self) -> int:
        return len(self._bytes)

    def put(self, data: bytes, *, urgent: bool = False) -> None:
        """All of it or, with `InputQueueFull`, nothing. Urgent bytes have room of their own, so
        that an interrupt gets in when nothing else does."""
        taken = self._urgent if urgent else len(self) - self._urgent
        room = limits.URGENT_BYTES_QUEUED if urgent else limits.INPUT_BYTES_QUEUED
        if taken + len(data) > room:
            raise InputQueueFull(len(data), len(self))
        if urgent:
            self._bytes[self._urgent : self._urgent] = data
            self._urgent += len(data)
        else:
            self._bytes += data

    def next(self) -> bytes:
        """What to offer the kernel now; empty when nothing is left."""
        return bytes(memoryview(self._bytes)[: limits.WRITE_BYTES])

    def taken(self, count: int) -> None:
        """So many of them are the kernel's now."""
        del self._bytes[:count]
        self._urgent = max(0, self._urgent - count)

    def clear(self) -> None:
        """Nobody will read them."""
        self.taken(len(self))


class ReadNotifier:
    """Calls back whenever the program has read nearly all that was typed. Close it.

    Linux wakes the writers of a terminal whenever its program has read nearly all there was
    (`n_tty_check_unthrottle`), also if they could have written before, and edge-triggered epoll
    hands on each wake-up. Made by `Pty.notify_read`, for pages, which write the next piece when the
    last was read.
    """

    def __init__(self, master: int, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._epoll.register(master, select.EPOLLOUT | select.EPOLLET)
        self._loop.add_reader(self._epoll.fileno(), self._woken)

    def _woken(self) -> None:
        self._epoll.poll(0)  # takes the event, so that it comes once
        self._callback()

    def close(self) -> None:
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()


QUIET_SECONDS: Final = 0.1
"""When the child is gone and something it left behind has the terminal open, a silence this long is
taken for the end: the kernel will not tell."""

LINGER_SECONDS: Final = 2.0
"""How long what it left behind may go on printing."""

_READ_BYTES: Final = 4096
"""The most that Linux gives at once."""

_KERNEL_BYTES: Final = 64 * 1024
"""More than a terminal's buffers hold."""

_HOLDS_SLAVE: Final = sys.platform == "darwin"
"""Where the kernel drops what was printed last if nobody has the slave open, we have."""


class OutOfTerminals(StartFailed):
    """The system has no terminal left for us."""


class PtyClosed(Exception):
    """The terminal was closed here, and is used again."""

    def __init__(self) -> None:
        super().__init__("the terminal was closed; nothing can be typed into it, nor its size set")


def open_pty(
    argv: Sequence[str],
    *,
    size: Size,
    output: Callable[[bytes], None],
    ended: Callable[[], None],
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
) -> Pty:
    """A child of the running event loop, on a terminal of its own. Raises `StartFailed`.

    `output` gets what is printed, as it comes. `ended` is called once: the child has exited, its
    `exit` is known, and all that it printed was handed over. `env` is what differs from our own
    environment (see `child_environment`).
    """
    master, slave = _terminal()
    try:
        os.set_blocking(master, False)
        line_discipline.prepare(slave, size)
        path = os.ttyname(slave)
        environment = child_environment(os.environ, env, terminal=True)
        child = start(argv, stdio=ControllingTerminal(path), env=environment, cwd=cwd)
        pty = Pty(child, tuple(argv), master, slave, path, output, ended)
    except BaseException:
        os.close(master)
        os.close(slave)
        raise
    if not _HOLDS_SLAVE:
        pty._release_slave()
    return pty


def _terminal() -> tuple[int, int]:
    try:
        return os.openpty()
    except OSError as error:
        raise OutOfTerminals(
            f"the system gave us no terminal: {error.strerror}; close sessions, or raise its limit "
            "on terminals (kernel.pty.max) or on open files"
        ) from error


class Pty:
    """A terminal and the child that runs on it. Made by `open_pty`."""

    def __init__(
        self,
        child: Child,
        argv: tuple[str, ...],
        master: int,
        slave: int,
        path: str,
        output: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> None:
        self.child = child
        self.argv = argv
        """What was started."""
        self._master, self._slave = master, slave
        self._path = path
        self._output, self._ended = output, ended
        self._queue = InputQueue()
        self._drained = asyncio.Event()
        self._drained.set()
        self._over = asyncio.Event()
        self._paused = False
        self._pausable = True
        self._bytes_read = self._bytes_before = 0
        self._all_read = False
        self._linger_until = float("inf")
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._scheduler = output_scheduler()
        self._bucket = TokenBucket(self._loop.time())
        self._loop.add_reader(master, self._read)
        self._exit = self._loop.create_task(self._watch_exit())

    def __repr__(self) -> str:
        state = "closed" if self._closed else "over" if self._over.is_set() else "open"
        return f"<Pty {self._path} {state} {self.child!r}>"

    async def __aenter__(self) -> Pty:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.end()
        finally:
            self.close()

    @property
    def _closed(self) -> bool:
        return self._master < 0

    # What the child prints.

    @property
    def paused(self) -> bool:
        """Whether nothing is read."""
        return self._paused

    def pause(self) -> None:
        """Read no more. When the kernel's buffer is full, the child waits."""
        if self._pausable and not self._paused and not self._over.is_set():
            self._paused = True
            self._scheduler.withdraw(self._take_turn)
            self._loop.remove_reader(self._master)

    def resume(self) -> None:
        if self._paused and not self._over.is_set():
            self._paused = False
            self._resume_reading()

    def _resume_reading(self) -> None:
        if self._take_turn not in self._scheduler:
            self._loop.add_reader(self._master, self._read)
        if self.child.exit is not None and self._timer is None:
            self._set_timer()

    def _read(self) -> None:
        """There is something to read: at once, or when it is our turn."""
        if self._bucket.is_spent(self._loop.time()):
            self._loop.remove_reader(self._master)
            self._scheduler.queue(self._take_turn)
        else:
            self._read_available()

    def _take_turn(self) -> None:
        """What there is; and if that was not all, the same again behind all others."""
        more = self._read_available()
        if self._paused or self._over.is_set():
            return
        if more and self._bucket.is_spent(self._loop.time()):
            self._scheduler.queue(self._take_turn)
        else:
            self._resume_reading()

    def _read_available(self) -> bool:
        """What there is, within a budget of bytes and of time. Whether there may be more.

        When it ends early the descriptor is still readable, and so the loop comes back to it once
        everybody else has had a turn.
        """
        left = limits.TURN_BYTES
        until = self._loop.time() + limits.TURN_MILLISECONDS / 1000
        while left > 0 and (data := self._take()):
            left -= len(data)
            self._bytes_read += len(data)
            self._output(data)
            now = self._loop.time()
            self._bucket.spend(len(data), now)
            if self._paused or self._closed or now >= until:
                return True
        return left <= 0

    def _take(self) -> bytes:
        """What there is, up to a piece; empty if there is nothing, or nothing any more."""
        pieces: list[bytes] = []
        left = limits.OUTPUT_BYTES
        try:
            while left >= _READ_BYTES and (piece := os.read(self._master, left)):
                pieces.append(piece)
                left -= len(piece)
        except BlockingIOError:
            self._all_read = self.child.exit is not None
            return b"".join(pieces)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        if not pieces:  # else the kernel says it again next time
            self._hung_up()
        return b"".join(pieces)

    def _hung_up(self) -> None:
        """Nobody has the terminal open, and all that was printed has been read."""
        if self.child.exit is not None:
            self._finish()
            return
        # Mostly it is about to exit. But it may also have closed its terminal, and open it again by
        # the name /dev/tty; until it exits, the line is held for it.
        self._release_slave()
        try:
            self._slave = os.open(self._path, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            self._loop.remove_reader(self._master)  # which would report the same for ever

    async def _watch_exit(self) -> None:
        await self.child.wait()
        if not _HOLDS_SLAVE:
            self._release_slave()
        self._linger_until = self._loop.time() + LINGER_SECONDS
        self._bytes_read = 0
        if not self._paused and not self._over.is_set():
            self._resume_reading()

    def _set_timer(self) -> None:
        self._bytes_before = self._bytes_read
        self._timer = self._loop.call_later(QUIET_SECONDS, self._check_quiet)

    def _check_quiet(self) -> None:
        """The child has been gone for a moment, and the line is not dead.

        Something it left behind may hold it for ever, silent or not. What is there by now is heard
        first: this timer can be called before the reader, when both are due.
        """
        self._timer = None
        if not self._paused:
            self._read_available()
        if self._over.is_set():
            return
        # What the child itself printed is never cut off, however slow its listener is: since it
        # exited, the kernel has once had nothing more to give, or has given more than it can hold.
        all_bytes_read = self._all_read or self._bytes_read > _KERNEL_BYTES
        late = self._loop.time() >= self._linger_until
        quiet = self._bytes_read == self._bytes_before and not self._paused
        if quiet or (late and all_bytes_read):
            self._finish()
        elif not self._paused:  # else who resumes sets it
            self._set_timer()

    def _finish(self) -> None:
        self._let_go()
        self._ended()

    # What is typed.

    @property
    def unsent(self) -> int:
        """Bytes written that the kernel has not taken."""
        return len(self._queue)

    def unread(self) -> int:
        """Bytes that the kernel has taken and the program has not read."""
        try:
            return line_discipline.unread(self._path)
        except OSError:  # the terminal is going away
            return 0

    def notify_read(self, callback: Callable[[], None]) -> ReadNotifier | None:
        """Call back whenever the program has read nearly all. None where the kernel cannot say."""
        if self._closed or sys.platform != "linux":
            return None
        return ReadNotifier(self._master, callback)

    def write(self, data: bytes, *, urgent: bool = False) -> None:
        """Type. Never blocks: what the kernel does not take now is queued, or `InputQueueFull`.

        Urgent bytes overtake all that is queued, which then follows. After the end bytes are
        dropped, as a child may end at any moment; after `close` it is `PtyClosed`.
        """
        if self._closed:
            raise PtyClosed
        if self._over.is_set() or not data:
            return
        waiting = bool(self._queue)
        self._queue.put(data, urgent=urgent)
        if not waiting:
            self._write()
            if self._queue:
                self._drained.clear()
                self._loop.add_writer(self._master, self._write)

    def interrupt(self) -> None:
        """Type the interrupt character so that it is heard.

        Where it is a signal, the kernel discards what was typed before it, but only looks at it
        when it has room: behind a paste of 4 KiB that the program does not read, nobody could be
        interrupted. So we discard first, the queue as well as what the kernel holds; the rest of a
        paste without its middle is of no use to anybody. Where it is input like any other, it
        overtakes the queue, and nothing is lost.
        """
        now = self.line_settings()
        if now.signals and now.flushes:
            self.discard()
        self.write(now.interrupt, urgent=True)

    def discard(self) -> None:
        """Throw away what was written and not read: the queue, and what the kernel holds."""
        if self._over.is_set():
            return
        self._queue.clear()
        with contextlib.suppress(OSError, termios.error):  # the terminal is going away
            line_discipline.discard_input(self._master, self._path)
        self._settle()

    async def drained(self) -> None:
        """The kernel has taken all that was written, or nobody will."""
        await self._drained.wait()

    def _write(self) -> None:
        try:
            self._queue.taken(os.write(self._master, self._queue.next()))
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._queue.clear()  # nobody has the terminal open
        self._settle()

    def _settle(self) -> None:
        if not self._queue and not self._drained.is_set():
            self._loop.remove_writer(self._master)
            self._drained.set()

    # The terminal itself.

    def resize(self, size: Size) -> None:
        """The foreground program is told, by SIGWINCH."""
        if self._closed:
            raise PtyClosed
        line_discipline.set_size(self._master, size)

    def line_settings(self) -> LineSettings:
        """What the line discipline does now; its defaults when there is none any more."""
        if self._closed:
            return LineSettings()
        try:
            return line_discipline.line_settings(self._master)
        except termios.error:
            return LineSettings()

    def foreground(self) -> int | None:
        """The process group that is typed to, if there is one."""
        if self._closed:
            return None
        try:
            return os.tcgetpgrp(self._master) or None
        except OSError:
            return None

    # The end.

    async def end(self, ladder: Ladder = POLITE) -> Exit:
        """End the child's whole tree (see `Child.end`) and hear the last of it.

        What was printed last is handed over even if reading is paused.
        """
        ended = await self.child.end(ladder)
        self._pausable = False
        self.resume()
        await self._over.wait()
        return ended

    def close(self) -> None:
        """Let go of the terminal, at any time and any number of times. The child is not ended by
        this, only hung up on."""
        if self._closed:
            return
        self._let_go()
        self._exit.cancel()
        os.close(self._master)
        self._release_slave()
        self._master = -1

    def _let_go(self) -> None:
        """Neither read nor write any more."""
        self._over.set()
        if self._timer is not None:
            self._timer.cancel()
        self._scheduler.withdraw(self._take_turn)
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)
        self._queue.clear()
        self._drained.set()

    def _release_slave(self) -> None:
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1
