"""Runs a program in the person's terminal, as if telex were not there.

The program is on a terminal of its own, and `ProgramRun` joins the two. Input is passed on as it
is; output goes through `ProgramRun.program_output`, the one place that all of it passes. Size,
signals and stops follow. Whatever ends the run (the program, a signal to us, a hang-up, a fault of
ours), the person's terminal is restored afterwards, and no process of the program's tree is left.
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

from telex.passthrough import job_control, limits, session_leader
from telex.passthrough.escape_filter import EscapeFilter, EscapeOptions
from telex.passthrough.person_terminal import PersonTerminal, terminal_size
from telex.passthrough.terminal_io import InputReader, OutputWriter
from telex.processes.child_environment import child_environment
from telex.processes.spawn import resolve
from telex.terminal.pty import open_pty

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Iterator,
        Mapping,
        Sequence,
    )
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


class RunWitness(Protocol):
    """Sees all input and output, before the terminals do, and changes nothing."""

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
    witness: Callable[[], RunWitness] | None = None,
    escapes: EscapeOptions | None = None,
) -> int:
    """Run it to its end; its exit code. Raises `StartFailed` if there is nothing to run.

    A witness is made once there is something to see. Without `escapes`, JSON escapes are nothing
    special.
    """
    path = resolve(argv[0], child_environment(os.environ, terminal=True), os.curdir)
    seen_by = witness and witness()
    with PersonTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_hosted(own, [path, *argv], seen_by, escapes))


async def _hosted(
    own: PersonTerminal,
    command: Sequence[str],
    witness: RunWitness | None,
    escapes: EscapeOptions | None,
) -> int:
    return await ProgramRun(own, witness, escapes).run(command)


class ProgramRun:
    """One program in one person's terminal."""

    def __init__(
        self,
        own: PersonTerminal,
        witness: RunWitness | None = None,
        escapes: EscapeOptions | None = None,
    ) -> None:
        self._own = own
        self._witness = witness
        self._loop = asyncio.get_running_loop()
        self._outcome = RunOutcome()
        self.size = terminal_size()
        self.person = own.shown
        self._held: set[str] = set()
        """Why the program's output is not read now."""
        self._escapes = None if escapes is None else EscapeFilter(self, escapes)
        self._ready = False
        self._output_seen = asyncio.Event()
        self._line_open = False
        """Whether the last of the input was not a whole line."""

    async def run(self, command: Sequence[str]) -> int:
        """Run `[path, *argv]` to its end."""
        # A signal while a socket is opened or closed must not leave it behind.
        end = self._outcome.end
        ending: dict[int, Callable[[], None]] = {
            n: partial(end, 128 + n) for n in (SIGHUP, SIGTERM)
        }
        with self._handlers_set(ending):
            async with self._listeners() as environment:
                with self._signals_handled():
                    try:
                        self._own.take()
                        async with self._joined(command, environment):
                            code = await self._outcome.over
                    finally:
                        self._own.give_back()
        return self._exit_code() if code is None else code

    def _listeners(self) -> AbstractAsyncContextManager[dict[str, str]]:
        return contextlib.nullcontext({}) if self._escapes is None else self._escapes.listeners()

    @contextlib.asynccontextmanager
    async def _joined(
        self, command: Sequence[str], environment: dict[str, str]
    ) -> AsyncIterator[None]:
        """The program runs, and the two terminals are one."""
        full, empty = partial(self.pause_output, "full"), partial(self.resume_output, "full")
        self._writer = OutputWriter(
            self._own.writing, full=full, empty=empty, broken=self._output_failed
        )
        self._reader = InputReader(self._own.reading, self._person_input, self._input_ended)
        async with contextlib.AsyncExitStack() as last, contextlib.AsyncExitStack() as ending:
            last.callback(self._writer.close)
            ending.push_async_callback(self._shown)
            self.pty = self._opened(command, environment)
            last.callback(self.pty.close)
            if self._escapes is not None:
                self._escapes.begin()
                ending.push_async_callback(self._escapes.close)
            ending.push_async_callback(self.pty.end)  # what it says in farewell is shown
            try:
                yield
            finally:
                self._reader.close()
                self._outcome.stop_all()

    def _opened(self, command: Sequence[str], environment: dict[str, str]) -> Pty:
        return open_pty(
            [
                sys.executable,
                "-I",
                "-S",
                session_leader.__file__,
                self._own.child_modes(),
                *command,
            ],
            size=self.size,
            env={**{name: os.environ.get(name) for name in KEPT}, **environment},
            output=self._pty_output,
            ended=lambda: self._outcome.end(None),
        )

    async def _shown(self) -> None:
        """Until the last output was taken; not for ever, once we were told to end."""
        await self._outcome.unless_hurried(self._writer.flushed())

    def _exit_code(self) -> int:
        ended = self.pty.child.exit
        assert ended is not None  # the pty said so
        return 128 + ended.signal if ended.signal is not None else ended.code or 0

    # --- the program's output

    def program_output(self, data: bytes) -> None:
        """What the program printed, on its way to the person; what is meant for us is taken out."""
        self._output_seen.set()
        if self._witness is not None and self._witness.raw:
            self._witness.output(data)
        if self._escapes is None:
            self.write_to_terminal(data)
        else:
            self._escapes.program_output(data)

    def write_to_terminal(self, data: bytes) -> None:
        """Output for the person to see."""
        if self._witness is not None and not self._witness.raw:
            self._witness.output(data)
        self._own.showing(data)
        self._writer.write(data)

    def page_input_written(self, data: bytes) -> None:
        """A page's bytes were written to the program: nobody typed them."""
        if self._witness is not None and self._witness.raw:
            self._witness.input(data, self.pty)

    def write_control(self, data: bytes) -> None:
        """Queries and mode switches for the person's terminal: nothing to see."""
        self._writer.write(data)

    async def flushed(self) -> None:
        await self._writer.flushed()

    def _pty_output(self, data: bytes) -> None:
        if not self._ready:
            self._ready = True
            self._reader.resume()
            data = data.removeprefix(session_leader.READY)
        if data:
            self.program_output(data)

    def pause_output(self, why: str) -> None:
        self._held.add(why)
        self.pty.pause()

    def resume_output(self, why: str) -> None:
        self._held.discard(why)
        if not self._held:
            self.pty.resume()

    def _output_failed(self, error: OSError) -> None:
        match error.errno:
            case errno.EPIPE:
                self._outcome.end(128 + signal.SIGPIPE)
            case errno.EIO:
                self._outcome.end(128 + SIGHUP)
            case _:
                self._outcome.fail(error)

    # --- the person's input

    def _person_input(self, data: bytes) -> None:
        if self._witness is not None:
            self._witness.input(data, self.pty)
        self._line_open = not data.endswith(b"\n")
        if self._escapes is None:
            self.write_to_program(data)
        else:
            self._escapes.person_input(data)

    def write_to_program(self, data: bytes) -> None:
        """Input for the program."""
        if self._overtakes(data):
            self.pty.interrupt()
        else:
            self.pty.write(data)
        if self.pty.unsent > limits.PERSON_BYTES:
            self._reader.pause()
            self._outcome.start(self._read_on())

    def _overtakes(self, data: bytes) -> bool:
        """A lone interrupt does not wait behind a paste that the program does not read."""
        if len(data) > 1 or not self.pty.unsent:
            return False
        characters = self.pty.line_settings()
        return characters.signals and data == characters.interrupt

    async def _read_on(self) -> None:
        await self.pty.drained()
        self._reader.resume()

    def _input_ended(self) -> None:
        """A terminal that ends has hung up. A file or pipe that ends is the end of file."""
        if self._own.typed:
            self._outcome.end(128 + SIGHUP)
        else:
            self._outcome.start(self._end_input())

    async def _end_input(self) -> None:
        line_open, self._line_open = self._line_open, False
        async for _ in type_end_of_file(self.pty, line_open=line_open):
            self._output_seen.clear()
            await self._output_seen.wait()
            await self._settled()

    # --- signals

    @contextlib.contextmanager
    def _signals_handled(self) -> Iterator[None]:
        """With all that can happen to us led here, so that no way out leaves the terminal raw."""
        handlers: dict[int, Callable[[], None]] = {
            SIGWINCH: self._resized,
            SIGCHLD: self._child_changed,
            SIGCONT: self._continued,
            **{number: partial(self._relay, number) for number in RELAYED},
        }
        self._loop.set_exception_handler(self._outcome.fault)
        with self._handlers_set(handlers):
            yield

    @contextlib.contextmanager
    def _handlers_set(self, handlers: Mapping[int, Callable[[], None]]) -> Iterator[None]:
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
            if self._escapes is not None:
                self._escapes.resized(size)
            if self._witness is not None:
                self._witness.resized(size)

    # --- stops

    def _child_changed(self) -> None:
        # Not when it is being ended, which stops it too, and whose end we would put off.
        if job_control.has_stopped(self.pty.child.pid) and not self._outcome.over.done():
            self._outcome.start(self._stop())

    async def _stop(self) -> None:
        await self._settled()
        if self._escapes is not None:
            await self._escapes.suspend()
        await self._writer.flushed()
        self._own.give_back()
        job_control.stop()
        if self._escapes is not None:
            self._escapes.ask_again()  # a shell continued us, for the person
        self._continued()

    async def _settled(self) -> None:
        """Until what the program printed is here: the kernel passes it on in its own time."""
        for _ in range(SETTLE_TURNS):
            self._output_seen.clear()
            await asyncio.sleep(SETTLE_SECONDS)
            if not self._output_seen.is_set():
                return

    def _continued(self) -> None:
        self._own.take()
        self._resized()
        if self._escapes is not None:
            self._escapes.resume()
        job_control.wake(self.pty)


HURRY_SECONDS: Final = 1.0
"""How long the last output may take to be shown when we are told to end."""


class RunOutcome:
    """How one run ends: with the program, by a signal to us, or by a fault of ours.

    Background tasks are started here: they end with the run, and a fault in one of them ends it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[int | None] = self._loop.create_future()
        """The exit code, where it is not the program's."""
        self._hurry = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def end(self, code: int | None) -> None:
        """It is over; without a code, because the program is."""
        if code is not None:
            self._hurry.set()
        if not self.over.done():
            self.over.set_result(code)

    def fail(self, error: BaseException) -> None:
        self._hurry.set()
        if not self.over.done():
            self.over.set_exception(error)

    def fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something of ours broke in a callback. Going on would lose output or keys."""
        self.fail(context.get("exception") or RuntimeError(context["message"]))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside all else, and no longer than it."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def stop_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.fail(error)

    async def unless_hurried(self, work: Awaitable[None]) -> None:
        """To its end; not for ever, once we were told to end."""
        flushed = asyncio.ensure_future(work)
        hurried = self._loop.create_task(self._hurry.wait())
        try:
            await asyncio.wait({flushed, hurried}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({flushed}, timeout=HURRY_SECONDS)
        finally:
            flushed.cancel()
            hurried.cancel()


async def type_end_of_file(pty: Pty, *, line_open: bool) -> AsyncIterator[None]:
    """Types the end of a file or pipe into a program's terminal: whoever reads on gets the end of
    file. It is typed again after the program has turned the line discipline off or on, because what
    was typed before that is not read as an end.

    Yields when it is time to wait until the program prints something.
    """
    while True:
        await pty.drained()
        characters = pty.line_settings()
        eof = characters.eof or b"\x04"
        # The first one only hands over a line that was not finished.
        pty.write(eof * 2 if line_open else eof)
        line_open = False
        while pty.line_settings().canonical == characters.canonical:
            yield
