"""A child process on a pseudo-terminal: its output, its input, its exit.

`open_pty` starts a child. It calls `output` with the bytes that the child prints, and `ended` once
when no more will come; there are no calls after `close`. This module does not interpret the bytes.
Typed bytes that the kernel has not taken yet wait in an `InputQueue`. Used by `session` and
`passthrough`.

`Pty.end` ends the child through `processes`; `Pty.close` releases the terminal. A caller does both,
in that order, or uses `async with`.
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
    """A program to start: its arguments, directory, environment and terminal size."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    """Changes to the environment that every child inherits; None removes a variable."""
    size: Size = STANDARD


# Input.


class InputQueueFull(Exception):
    """The program does not read its input, and the queue for it is full."""

    def __init__(self, refused: int, queued: int) -> None:
        super().__init__(
            f"{refused} bytes of input were refused, none of them was written: {queued} are queued "
            "and the program does not read; send smaller pieces and wait until each is drained"
        )


class InputQueue:
    """Typed bytes that the kernel has not taken yet, bounded and in order. Pure: `Pty` asks for the
    next bytes and reports how many were taken.

    Urgent bytes go before all others, after earlier urgent ones. The bytes they overtake stay in
    the queue.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._urgent = 0
        """The number of urgent bytes at the front."""

    def __len__(self) -> int:
        return len(self._bytes)

    def put(self, data: bytes, *, urgent: bool = False) -> None:
        """Queue all bytes, or none and raise `InputQueueFull`. Urgent bytes have room of their
        own, so that an interrupt fits when nothing else does."""
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
        """Return the bytes to offer to the kernel next; empty if none are left."""
        return bytes(memoryview(self._bytes)[: limits.WRITE_BYTES])

    def taken(self, count: int) -> None:
        """Remove bytes that the kernel has taken."""
        del self._bytes[:count]
        self._urgent = max(0, self._urgent - count)

    def clear(self) -> None:
        """Drop all bytes: the program will not read them."""
        self.taken(len(self))


class ReadNotifier:
    """Calls back whenever the program has read nearly all of its input. Must be closed.

    Linux wakes the writers of a terminal whenever its program has read nearly all input
    (`n_tty_check_unthrottle`), even if they could have written before, and edge-triggered epoll
    reports each wake-up. Made by `Pty.notify_read` for pages, which write the next piece when the
    one before was read.
    """

    def __init__(self, master: int, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._epoll.register(master, select.EPOLLOUT | select.EPOLLET)
        self._loop.add_reader(self._epoll.fileno(), self._woken)

    def _woken(self) -> None:
        self._epoll.poll(0)  # consumes the event, so that it is reported once
        self._callback()

    def close(self) -> None:
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()


QUIET_SECONDS: Final = 0.1
"""After the child has exited, a descendant may keep the terminal open. Silence of this length then
counts as the end of output, as the kernel reports none."""

LINGER_SECONDS: Final = 2.0
"""How long such a descendant may continue to print."""

_READ_BYTES: Final = 4096
"""The most that Linux returns from one read."""

_KERNEL_BYTES: Final = 64 * 1024
"""More than a terminal's buffers hold."""

_HOLDS_SLAVE: Final = sys.platform == "darwin"
"""Whether we keep the slave open: some kernels drop the last output when nobody has it open."""


class OutOfTerminals(StartFailed):
    """The system has no free pseudo-terminal."""


class PtyClosed(Exception):
    """The terminal was used after `close`."""

    def __init__(self) -> None:
        super().__init__("the terminal was closed; it takes no input and no size")


def open_pty(
    argv: Sequence[str],
    *,
    size: Size,
    output: Callable[[bytes], None],
    ended: Callable[[], None],
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
) -> Pty:
    """Start a child on a new terminal, in the running event loop. Raises `StartFailed`.

    `output` gets the printed bytes. `ended` is called once, when the child has exited, its `exit`
    is known, and `output` got everything. `env` has the changes to our own environment (see
    `child_environment`).
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
            f"there is no free terminal: {error.strerror}; close sessions, or raise the limit "
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
        """The program and its arguments."""
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

    # Output.

    @property
    def paused(self) -> bool:
        """Whether reading is paused."""
        return self._paused

    def pause(self) -> None:
        """Stop reading. The child blocks when the kernel's buffer is full."""
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
        """Read now, or queue for a turn if this terminal prints much."""
        if self._bucket.is_spent(self._loop.time()):
            self._loop.remove_reader(self._master)
            self._scheduler.queue(self._take_turn)
        else:
            self._read_available()

    def _take_turn(self) -> None:
        """Read what is available; if there is more, queue again behind the others."""
        more = self._read_available()
        if self._paused or self._over.is_set():
            return
        if more and self._bucket.is_spent(self._loop.time()):
            self._scheduler.queue(self._take_turn)
        else:
            self._resume_reading()

    def _read_available(self) -> bool:
        """Read within a budget of bytes and time. Returns whether there may be more.

        If the budget ends first, the descriptor stays readable, so the event loop calls again after
        the other descriptors.
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
        """Read one piece; empty if nothing is available, or at the end."""
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
        if not pieces:  # else the kernel reports it again at the next read
            self._hung_up()
        return b"".join(pieces)

    def _hung_up(self) -> None:
        """Handle a hang-up: no process has the terminal open, and all output was read."""
        if self.child.exit is not None:
            self._finish()
            return
        # Usually the child is about to exit. But it may also have closed its terminal and open it
        # again as /dev/tty, so the terminal is kept until the child exits.
        self._release_slave()
        try:
            self._slave = os.open(self._path, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            self._loop.remove_reader(self._master)  # it would report the hang-up for ever

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
        """Decide whether output has ended, some time after the child's exit without a hang-up.

        A descendant may keep the terminal open for ever, silent or not. Available output is read
        first, as this timer may run before the reader when both are due.
        """
        self._timer = None
        if not self._paused:
            self._read_available()
        if self._over.is_set():
            return
        # Output of the child itself is never cut off, however slow the reader is: since the exit,
        # the kernel has once had nothing more, or has delivered more than it can buffer.
        all_bytes_read = self._all_read or self._bytes_read > _KERNEL_BYTES
        late = self._loop.time() >= self._linger_until
        quiet = self._bytes_read == self._bytes_before and not self._paused
        if quiet or (late and all_bytes_read):
            self._finish()
        elif not self._paused:  # otherwise `resume` sets the timer
            self._set_timer()

    def _finish(self) -> None:
        self._let_go()
        self._ended()

    # Input.

    @property
    def unsent(self) -> int:
        """The number of written bytes that the kernel has not taken."""
        return len(self._queue)

    def unread(self) -> int:
        """Return the number of bytes that the kernel holds and the program has not read."""
        try:
            return line_discipline.unread(self._path)
        except OSError:  # the terminal is closing
            return 0

    def has_output(self) -> bool:
        """Whether the program has printed something that was not read here yet."""
        if self._closed or self._over.is_set():
            return False
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        return any(events & select.POLLIN for _, events in poll.poll(0))

    def has_unread(self) -> bool:
        """Whether typed input is still to be read: by us, or by the program."""
        try:
            return bool(self._queue) or line_discipline.has_unread(self._path)
        except OSError:  # the terminal is closing
            return False

    def notify_read(self, callback: Callable[[], None]) -> ReadNotifier | None:
        """Call back whenever the program has read nearly all input. None on other kernels."""
        if self._closed or sys.platform != "linux":
            return None
        return ReadNotifier(self._master, callback)

    def write(self, data: bytes, *, urgent: bool = False) -> None:
        """Write input. Never blocks: bytes that the kernel does not take are queued, or it raises
        `InputQueueFull`.

        Urgent bytes overtake the queue. After the child's end bytes are dropped, as a child may end
        at any moment; after `close` it raises `PtyClosed`.
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
        """Type the interrupt character so that it takes effect at once.

        If the character is a signal, the kernel discards earlier input, but it processes the
        character only when it has room: behind a paste of 4 KiB that the program does not read, an
        interrupt would have no effect. So we discard first, the queue and the kernel's buffer; the
        rest of a paste without its middle is useless. If the character is ordinary input, it
        overtakes the queue, and nothing is lost.
        """
        now = self.line_settings()
        if now.signals and now.flushes:
            self.discard()
        self.write(now.interrupt, urgent=True)

    def discard(self) -> None:
        """Discard unread input: the queue, and the kernel's buffer."""
        if self._over.is_set():
            return
        self._queue.clear()
        with contextlib.suppress(OSError, termios.error):  # the terminal is closing
            line_discipline.discard_input(self._master, self._path)
        self._settle()

    async def drained(self) -> None:
        """Wait until the kernel has taken all input, or the terminal has ended."""
        await self._drained.wait()

    def _write(self) -> None:
        try:
            self._queue.taken(os.write(self._master, self._queue.next()))
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._queue.clear()  # no process has the terminal open
        self._settle()

    def _settle(self) -> None:
        if not self._queue and not self._drained.is_set():
            self._loop.remove_writer(self._master)
            self._drained.set()

    # The terminal itself.

    def resize(self, size: Size) -> None:
        """Change the size. The foreground program gets SIGWINCH."""
        if self._closed:
            raise PtyClosed
        line_discipline.set_size(self._master, size)

    def line_settings(self) -> LineSettings:
        """Return the settings of the line discipline; the defaults after the end."""
        if self._closed:
            return LineSettings()
        try:
            return line_discipline.line_settings(self._master)
        except termios.error:
            return LineSettings()

    def hides_typing(self) -> bool:
        """Whether the terminal edits lines and does not echo them, as for a password."""
        if self._closed:
            return False
        try:
            return line_discipline.hides_typing(self._master)
        except termios.error:
            return False

    def device(self) -> tuple[int, int] | None:
        """Return the major and minor number of the terminal; None after the end."""
        if self._closed:
            return None
        try:
            return line_discipline.device(self._path)
        except OSError:
            return None

    def foreground(self) -> int | None:
        """Return the foreground process group, if there is one."""
        if self._closed:
            return None
        try:
            return os.tcgetpgrp(self._master) or None
        except OSError:
            return None

    # The end.

    async def end(self, ladder: Ladder = POLITE) -> Exit:
        """End the child's whole process tree (see `Child.end`) and read its last output.

        The last output is delivered even if reading is paused.
        """
        ended = await self.child.end(ladder)
        self._pausable = False
        self.resume()
        await self._over.wait()
        return ended

    def close(self) -> None:
        """Close the terminal, at any time and any number of times. The child gets a hang-up, but is
        not ended."""
        if self._closed:
            return
        self._let_go()
        self._exit.cancel()
        os.close(self._master)
        self._release_slave()
        self._master = -1

    def _let_go(self) -> None:
        """Stop reading and writing."""
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
