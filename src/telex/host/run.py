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
from typing import TYPE_CHECKING, Final, Protocol

from telex.host import job_control, leader
from telex.host.end_of_input import end_again
from telex.host.escaping import Escapes, Escaping
from telex.host.inlet import Inlet
from telex.host.outcome import Outcome
from telex.host.outlet import Outlet
from telex.host.own_terminal import OwnTerminal, terminal_size
from telex.processes.child_environment import child_environment
from telex.processes.spawn import resolve
from telex.terminal.pty import open_pty
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

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


class Witness(Protocol):
    """Sees all of it, and changes nothing. It is told before the terminals are."""

    @property
    def raw(self) -> bool:
        """Whether it sees what the program prints for us, too, and what we type to it of a page."""
        ...

    def output(self, data: bytes) -> None: ...
    def input(self, data: bytes, pty: Pty) -> None: ...
    def resized(self, size: Size) -> None: ...


def run(
    argv: Sequence[str],
    *,
    witness: Callable[[], Witness] | None = None,
    escapes: Escapes | None = None,
) -> int:
    """Run it to its end; its exit code. Raises `StartFailed` if there is nothing to run.

    A witness is made once there is something to see. Without `escapes`, JSON escapes are nothing
    special.
    """
    path = resolve(argv[0], child_environment(os.environ, terminal=True), os.curdir)
    seen_by = witness and witness()
    with OwnTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_hosted(own, [path, *argv], seen_by, escapes))


async def _hosted(
    own: OwnTerminal, command: Sequence[str], witness: Witness | None, escapes: Escapes | None
) -> int:
    return await Host(own, witness, escapes).run(command)


class Host:
    """One program in one person's terminal."""

    def __init__(
        self, own: OwnTerminal, witness: Witness | None = None, escapes: Escapes | None = None
    ) -> None:
        self._own = own
        self._witness = witness
        self._loop = asyncio.get_running_loop()
        self._outcome = Outcome()
        self.size = terminal_size()
        self.person = own.shown
        self._held: set[str] = set()
        """Why the program's output is not read now."""
        self._escaping = None if escapes is None else Escaping(self, escapes)
        self._ready = False
        self._spoke = asyncio.Event()
        self._line_open = False
        """Whether the last of the input was not a whole line."""

    async def run(self, command: Sequence[str]) -> int:
        """Run `[path, *argv]` to its end."""
        # Told to end while a door opens or closes, it must not be left behind.
        with self._led({n: partial(self._outcome.end, 128 + n) for n in (SIGHUP, SIGTERM)}):
            async with self._doors() as told:
                with self._attentive():
                    try:
                        self._own.take()
                        async with self._joined(command, told):
                            code = await self._outcome.over
                    finally:
                        self._own.give_back()
        return self._exit_code() if code is None else code

    def _doors(self) -> AbstractAsyncContextManager[dict[str, str]]:
        return contextlib.nullcontext({}) if self._escaping is None else self._escaping.doors()

    @contextlib.asynccontextmanager
    async def _joined(self, command: Sequence[str], told: dict[str, str]) -> AsyncIterator[None]:
        """The program runs, and the two terminals are one."""
        hold, go_on = partial(self.hold, "full"), partial(self.go_on, "full")
        self._outlet = Outlet(self._own.writing, full=hold, empty=go_on, broken=self._unheard)
        self._inlet = Inlet(self._own.reading, self._typed, self._no_more)
        async with contextlib.AsyncExitStack() as last, contextlib.AsyncExitStack() as ending:
            last.callback(self._outlet.close)
            ending.push_async_callback(self._shown)
            self.pty = self._opened(command, told)
            last.callback(self.pty.close)
            if self._escaping is not None:
                self._escaping.begin()
                ending.push_async_callback(self._escaping.close)
            ending.push_async_callback(self.pty.end)  # what it says in farewell is shown
            try:
                yield
            finally:
                self._inlet.close()
                self._outcome.stop_all()

    def _opened(self, command: Sequence[str], told: dict[str, str]) -> Pty:
        return open_pty(
            [sys.executable, "-I", "-S", leader.__file__, self._own.child_modes(), *command],
            size=self.size,
            env={**{name: os.environ.get(name) for name in KEPT}, **told},
            output=self._printed,
            ended=lambda: self._outcome.end(None),
        )

    async def _shown(self) -> None:
        """Until the last output was taken; not for ever, once we were told to end."""
        await self._outcome.unless_hurried(self._outlet.flushed())

    def _exit_code(self) -> int:
        ended = self.pty.child.exit
        assert ended is not None  # the pty said so
        return 128 + ended.signal if ended.signal is not None else ended.code or 0

    # --- the program's output

    def output(self, data: bytes) -> None:
        """What the program printed, on its way to the person; what is meant for us is taken out."""
        self._spoke.set()
        if self._witness is not None and self._witness.raw:
            self._witness.output(data)
        if self._escaping is None:
            self.show(data)
        else:
            self._escaping.printed(data)

    def show(self, data: bytes) -> None:
        """To the person: what they see."""
        if self._witness is not None and not self._witness.raw:
            self._witness.output(data)
        self._own.showing(data)
        self._outlet.write(data)

    def carried(self, data: bytes) -> None:
        """To the program, of a page: nobody typed it."""
        if self._witness is not None and self._witness.raw:
            self._witness.input(data, self.pty)

    def say(self, data: bytes) -> None:
        """To the person's terminal: what nobody sees."""
        self._outlet.write(data)

    async def flushed(self) -> None:
        await self._outlet.flushed()

    def _printed(self, data: bytes) -> None:
        if not self._ready:
            self._ready = True
            self._inlet.resume()
            data = data.removeprefix(leader.READY)
        if data:
            self.output(data)

    def hold(self, why: str) -> None:
        self._held.add(why)
        self.pty.pause()

    def go_on(self, why: str) -> None:
        self._held.discard(why)
        if not self._held:
            self.pty.resume()

    def _unheard(self, error: OSError) -> None:
        match error.errno:
            case errno.EPIPE:
                self._outcome.end(128 + signal.SIGPIPE)
            case errno.EIO:
                self._outcome.end(128 + SIGHUP)
            case _:
                self._outcome.fail(error)

    # --- the person's input

    def _typed(self, data: bytes) -> None:
        if self._witness is not None:
            self._witness.input(data, self.pty)
        self._line_open = not data.endswith(b"\n")
        if self._escaping is None:
            self.enter(data)
        else:
            self._escaping.heard(data)

    def typed_on(self, data: bytes) -> None:
        assert self._escaping is not None  # who held it back
        self._escaping.heard_on(data)

    def enter(self, data: bytes) -> None:
        """To the program."""
        if self._overtakes(data):
            self.pty.interrupt()
        else:
            self.pty.write(data)
        if self.pty.unsent > limits.PERSON_BYTES:
            self._inlet.pause()
            self._outcome.start(self._read_on())

    def _overtakes(self, data: bytes) -> bool:
        """A lone interrupt does not wait behind a paste that the program does not read."""
        if len(data) > 1 or not self.pty.unsent:
            return False
        characters = self.pty.line_settings()
        return characters.signals and data == characters.interrupt

    async def _read_on(self) -> None:
        await self.pty.drained()
        self._inlet.resume()

    def _no_more(self) -> None:
        """A terminal that ends has hung up. A file or pipe that ends is the end of file."""
        if self._own.typed:
            self._outcome.end(128 + SIGHUP)
        else:
            self._outcome.start(self._end_input())

    async def _end_input(self) -> None:
        line_open, self._line_open = self._line_open, False
        async for _ in end_again(self.pty, line_open=line_open):
            self._spoke.clear()
            await self._spoke.wait()
            await self._settled()

    # --- signals

    @contextlib.contextmanager
    def _attentive(self) -> Iterator[None]:
        """With all that can happen to us led here, so that no way out leaves the terminal raw."""
        handlers: dict[int, Callable[[], None]] = {
            SIGWINCH: self._resized,
            SIGCHLD: self._child_changed,
            SIGCONT: self._continued,
            **{number: partial(self._relay, number) for number in RELAYED},
        }
        self._loop.set_exception_handler(self._outcome.fault)
        with self._led(handlers):
            yield

    @contextlib.contextmanager
    def _led(self, handlers: Mapping[int, Callable[[], None]]) -> Iterator[None]:
        for number, handler in handlers.items():
            self._loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                self._loop.remove_signal_handler(number)

    def _relay(self, number: int) -> None:
        job_control.relay(self.pty, number)

    def _resized(self) -> None:
        size = terminal_size()
        if size != self.size:
            self.size = size
            self.pty.resize(size)
            if self._escaping is not None:
                self._escaping.resized(size)
            if self._witness is not None:
                self._witness.resized(size)

    # --- stops

    def _child_changed(self) -> None:
        # Not when it is being ended, which stops it too, and whose end we would put off.
        if job_control.has_stopped(self.pty.child.pid) and not self._outcome.over.done():
            self._outcome.start(self._stop())

    async def _stop(self) -> None:
        await self._settled()
        if self._escaping is not None:
            await self._escaping.suspend()
        await self._outlet.flushed()
        self._own.give_back()
        job_control.stop()
        if self._escaping is not None:
            self._escaping.ask_again()  # a shell continued us, for the person
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
        if self._escaping is not None:
            self._escaping.resume()
        job_control.wake(self.pty)
