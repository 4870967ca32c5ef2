"""Run a program in the person's terminal, as if we were not there.

The program is on a terminal of its own, and this joins the two. What the person types goes in as it
is; what the program prints comes out by `Host.output`, the one place that sees it on its way. Size,
signals and stops follow. Whatever ends it (the program's end, a signal to us, a hang-up, a fault of
ours), the person's terminal is theirs again afterwards, and nobody of the program's tree is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
from functools import partial
from signal import (
    SIGCHLD,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGQUIT,
    SIGTERM,
    SIGTSTP,
    SIGUSR1,
    SIGUSR2,
    SIGWINCH,
)
from typing import TYPE_CHECKING, Any, Final, Protocol

from telex.host import job_control, leader
from telex.host.inlet import Inlet
from telex.host.outlet import Outlet
from telex.host.own_terminal import OwnTerminal, terminal_size
from telex.processes.environment import child_environment
from telex.processes.spawn import resolve
from telex.terminal.pty import open_pty
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence

    from telex.terminal.cells import Size
    from telex.terminal.pty import Pty

KEPT: Final = ("TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
"""The program's terminal is the person's in all but name, and so it keeps that one's name."""

RELAYED: Final = (SIGINT, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2)
"""Meant for the program; it decides what they do, and we see the outcome."""

SETTLE_SECONDS: Final = 0.02
"""After a stop: so long without output, and all that the program printed before has come."""

SETTLE_TURNS: Final = 10
"""How often that is waited for, if something in the background goes on printing."""

HURRY_SECONDS: Final = 1.0
"""How long the last output may take to be shown when we are told to end."""


class Witness(Protocol):
    """Sees all of it, and changes nothing. It is told before the terminals are."""

    def output(self, data: bytes) -> None: ...
    def input(self, data: bytes, pty: Pty) -> None: ...
    def resized(self, size: Size) -> None: ...


def run(argv: Sequence[str], *, witness: Callable[[], Witness] | None = None) -> int:
    """Run it to its end; its exit code. Raises `StartFailed` if there is nothing to run.

    A witness is made once there is something to see.
    """
    path = resolve(argv[0], child_environment(os.environ, terminal=True), os.curdir)
    seen_by = witness and witness()
    with OwnTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_hosted(own, path, argv, seen_by))


async def _hosted(own: OwnTerminal, path: str, argv: Sequence[str], witness: Witness | None) -> int:
    return await Host(own, witness).run([path, *argv])


class Host:
    """One program in one person's terminal."""

    def __init__(self, own: OwnTerminal, witness: Witness | None = None) -> None:
        self._own = own
        self._witness = witness
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[int | None] = self._loop.create_future()
        """The exit code, where it is not the program's."""
        self._hurry = asyncio.Event()
        self._size = terminal_size()
        self._ready = False
        self._spoke = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._line_open = False
        """Whether the last of the input was not a whole line."""

    async def run(self, command: Sequence[str]) -> int:
        """Run `[path, *argv]` to its end."""
        with self._attentive():
            try:
                self._own.take()
                async with self._joined(command):
                    code = await self._over
            finally:
                self._own.give_back()
        return self._exit_code() if code is None else code

    @contextlib.asynccontextmanager
    async def _joined(self, command: Sequence[str]) -> AsyncIterator[None]:
        """The program runs, and the two terminals are one."""
        self._outlet = Outlet(
            self._own.writing, full=self._pause, empty=self._go_on, broken=self._unheard
        )
        self._inlet = Inlet(self._own.reading, self._typed, self._no_more)
        self._pty = self._opened(command)
        try:
            yield
        finally:
            self._inlet.close()
            for task in self._tasks:
                task.cancel()
            try:
                await self._pty.end()  # what it says in farewell is shown
                await self._shown()
            finally:
                self._outlet.close()
                self._pty.close()

    def _opened(self, command: Sequence[str]) -> Pty:
        return open_pty(
            [sys.executable, "-I", "-S", leader.__file__, self._own.child_modes(), *command],
            size=self._size,
            env={name: os.environ.get(name) for name in KEPT},
            output=self._printed,
            ended=lambda: self._end(None),
        )

    async def _shown(self) -> None:
        """Until the last output was taken; not for ever, once we were told to end."""
        flushed = self._loop.create_task(self._outlet.flushed())
        hurried = self._loop.create_task(self._hurry.wait())
        try:
            await asyncio.wait({flushed, hurried}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({flushed}, timeout=HURRY_SECONDS)
        finally:
            flushed.cancel()
            hurried.cancel()

    def _exit_code(self) -> int:
        ended = self._pty.child.exit
        assert ended is not None  # the pty said so
        return 128 + ended.signal if ended.signal is not None else ended.code or 0

    # --- the program's output

    def output(self, data: bytes) -> None:
        """What the program printed, on its way to the person. Whoever looks for something in it
        (an escape that is meant for us) stands here."""
        self._spoke.set()
        if self._witness is not None:
            self._witness.output(data)
        self._outlet.write(data)

    def _printed(self, data: bytes) -> None:
        if not self._ready:
            self._ready = True
            self._inlet.resume()
            data = data.removeprefix(leader.READY)
        if data:
            self.output(data)

    def _pause(self) -> None:
        self._pty.pause()

    def _go_on(self) -> None:
        self._pty.resume()

    def _unheard(self, error: OSError) -> None:
        match error.errno:
            case errno.EPIPE:
                self._end(128 + signal.SIGPIPE)
            case errno.EIO:
                self._end(128 + SIGHUP)
            case _:
                self._fail(error)

    # --- the person's input

    def _typed(self, data: bytes) -> None:
        if self._witness is not None:
            self._witness.input(data, self._pty)
        self._line_open = not data.endswith(b"\n")
        if self._overtakes(data):
            self._pty.interrupt()
        else:
            self._pty.write(data)
        if self._pty.unsent > limits.PERSON_BYTES:
            self._inlet.pause()
            self._start(self._read_on())

    def _overtakes(self, data: bytes) -> bool:
        """A lone interrupt does not wait behind a paste that the program does not read."""
        if len(data) > 1 or not self._pty.unsent:
            return False
        characters = self._pty.characters()
        return characters.signals and data == characters.interrupt

    async def _read_on(self) -> None:
        await self._pty.drained()
        self._inlet.resume()

    def _no_more(self) -> None:
        """A terminal that ends has hung up. A file or pipe that ends is the end of file."""
        if self._own.typed:
            self._end(128 + SIGHUP)
        else:
            self._start(self._end_input())

    async def _end_input(self) -> None:
        """Whoever reads on gets the end of file, and gets it again after the program has turned the
        line discipline off or on: what was typed before that it does not read as an end."""
        while True:
            await self._pty.drained()
            characters = self._pty.characters()
            eof = characters.eof or b"\x04"
            # The first one only hands over a line that was not finished.
            self._pty.write(eof * 2 if self._line_open else eof)
            self._line_open = False
            while self._pty.characters().canonical == characters.canonical:
                self._spoke.clear()
                await self._spoke.wait()
                await self._settled()

    # --- signals

    @contextlib.contextmanager
    def _attentive(self) -> Iterator[None]:
        """With all that can happen to us led here, so that no way out leaves the terminal raw."""
        handlers: dict[int, Callable[[], None]] = {
            SIGHUP: lambda: self._end(128 + SIGHUP),
            SIGTERM: lambda: self._end(128 + SIGTERM),
            SIGWINCH: self._resized,
            SIGCHLD: self._child_changed,
            SIGCONT: self._continued,
            **{number: partial(self._relay, number) for number in RELAYED},
        }
        self._loop.set_exception_handler(self._fault)
        for number, handler in handlers.items():
            self._loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                self._loop.remove_signal_handler(number)

    def _end(self, code: int | None) -> None:
        """It is over; without a code, because the program is."""
        if code is not None:
            self._hurry.set()
        if not self._over.done():
            self._over.set_result(code)

    def _fail(self, error: BaseException) -> None:
        self._hurry.set()
        if not self._over.done():
            self._over.set_exception(error)

    def _fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something of ours broke in a callback. Going on would lose output or keys."""
        self._fail(context.get("exception") or RuntimeError(context["message"]))

    def _relay(self, number: int) -> None:
        job_control.relay(self._pty, number)

    def _resized(self) -> None:
        size = terminal_size()
        if size != self._size:
            self._size = size
            self._pty.resize(size)
            if self._witness is not None:
                self._witness.resized(size)

    # --- stops

    def _child_changed(self) -> None:
        if job_control.has_stopped(self._pty.child.pid):
            self._start(self._stop())

    async def _stop(self) -> None:
        await self._settled()
        await self._outlet.flushed()
        self._own.give_back()
        job_control.stop()
        self._continued()

    async def _settled(self) -> None:
        """Until what the program printed is here: the kernel passes it on in its own time."""
        for _ in range(SETTLE_TURNS):
            self._spoke.clear()
            await asyncio.sleep(SETTLE_SECONDS)
            if not self._spoke.is_set():
                return

    def _continued(self) -> None:
        self._own.take()
        self._resized()
        job_control.wake(self._pty)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._fail(error)
