"""Runs a program in the person's terminal, as if telex were not there.

The program has a terminal of its own, and `ProgramRun` joins the two. All output of the program
passes `ProgramRun.program_output`, and all input `ProgramRun._person_input`; both are unchanged
unless the escape filter is on. Size, signals and stops are passed on. The run may end by the
program, a signal to us, a hang-up or an exception in telex: in each case the person's terminal is
restored, and no process of the program's tree is left.
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
from typing import TYPE_CHECKING, Any, Final

from telex.passthrough import session_leader
from telex.passthrough.escape_filter import EscapeFilter, EscapeOptions
from telex.passthrough.joined_terminals import JoinedTerminals
from telex.passthrough.person_terminal import (
    PersonTerminal,
    continue_program,
    has_stopped,
    relay_signal,
    stop_process_group,
    terminal_size,
)
from telex.passthrough.terminal_io import InputReader
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

    from telex.passthrough.joined_terminals import RunWitness
    from telex.terminal.pty import Pty


KEPT: Final = ("TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
"""Variables that the program inherits: its terminal behaves as the person's terminal does, so it
keeps that terminal's name."""

RELAYED: Final = (SIGINT, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2)
"""Signals that telex sends on to the program, which decides about their effect."""

SETTLE_SECONDS: Final = 0.02
"""After a stop: when no output came for so long, all output from before the stop was read."""

SETTLE_TURNS: Final = 10
"""How often to wait for that if a background process continues to print."""


def run(
    argv: Sequence[str],
    *,
    witness: Callable[[], RunWitness] | None = None,
    escapes: EscapeOptions | None = None,
) -> int:
    """Run a command until it exits, and return its exit code.

    Args:
        argv: The command.
        witness: Makes a witness of all input and output. Called after the command was found.
        escapes: Options of JSON escapes and pages; None passes them through as ordinary output.

    Raises:
        StartFailed: The command was not found, or is not executable.
    """
    path = resolve(argv[0], child_environment(os.environ, terminal=True), os.curdir)
    made_witness = witness and witness()
    with PersonTerminal() as own, asyncio.Runner() as runner:
        return runner.run(_run(own, [path, *argv], made_witness, escapes))


async def _run(
    own: PersonTerminal,
    command: Sequence[str],
    witness: RunWitness | None,
    escapes: EscapeOptions | None,
) -> int:
    return await ProgramRun(own, witness, escapes).run(command)


class ProgramRun:
    """Runs one program in the person's terminal. Call `run` once."""

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
        self._terminals = JoinedTerminals(
            own, witness, output_failed=self._output_failed, input_full=self._pause_input
        )
        self._escapes = None if escapes is None else EscapeFilter(self._terminals, escapes)
        self._ready = False
        self._output_seen = asyncio.Event()
        self._line_open = False
        """Whether the input so far ends in the middle of a line."""

    async def run(self, command: Sequence[str]) -> int:
        """Run `[path, *argv]` until it exits, and return the exit code."""
        # A signal while a socket is opened or closed must not leave the socket's file.
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
        """Start the program, pass bytes between the two terminals, and end both."""
        self._reader = InputReader(self._own.reading, self._person_input, self._input_ended)
        async with contextlib.AsyncExitStack() as last, contextlib.AsyncExitStack() as ending:
            last.callback(self._terminals.close)
            ending.push_async_callback(self._flush_output)
            pty = self._terminals.pty = self._start_program(command, environment)
            last.callback(pty.close)
            if self._escapes is not None:
                self._escapes.begin()
                ending.push_async_callback(self._escapes.close)
            ending.push_async_callback(pty.end)  # first, so that its last output is shown
            try:
                yield
            finally:
                self._reader.close()
                self._outcome.stop_all()

    def _start_program(self, command: Sequence[str], environment: dict[str, str]) -> Pty:
        return open_pty(
            [
                sys.executable,
                "-I",
                "-S",
                session_leader.__file__,
                self._own.child_modes(),
                *command,
            ],
            size=self._terminals.size,
            env={**{name: os.environ.get(name) for name in KEPT}, **environment},
            output=self._pty_output,
            ended=lambda: self._outcome.end(None),
        )

    async def _flush_output(self) -> None:
        """Wait until the terminal has taken the last output; after a signal to us, not for long."""
        await self._outcome.unless_hurried(self._terminals.flushed())

    def _exit_code(self) -> int:
        ended = self._terminals.pty.child.exit
        assert ended is not None  # the pty has reported the exit
        return 128 + ended.signal if ended.signal is not None else ended.code or 0

    # --- the program's output

    def program_output(self, data: bytes) -> None:
        """Pass on the program's output. The filter removes frames and chunks from it."""
        self._output_seen.set()
        if self._witness is not None and self._witness.raw:
            self._witness.output(data)
        if self._escapes is None:
            self._terminals.write_to_terminal(data)
        else:
            self._escapes.program_output(data)

    def _pty_output(self, data: bytes) -> None:
        if not self._ready:
            self._ready = True
            self._reader.resume()
            data = data.removeprefix(session_leader.READY)
        if data:
            self.program_output(data)

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
            self._witness.input(data, self._terminals.pty)
        self._line_open = not data.endswith(b"\n")
        if self._escapes is None:
            self._terminals.write_to_program(data)
        else:
            self._escapes.person_input(data)

    def _pause_input(self) -> None:
        self._reader.pause()
        self._outcome.start(self._resume_input())

    async def _resume_input(self) -> None:
        await self._terminals.pty.drained()
        self._reader.resume()

    def _input_ended(self) -> None:
        """End the run if a terminal hung up; type an end of file if a file or pipe ended."""
        if self._own.typed:
            self._outcome.end(128 + SIGHUP)
        else:
            self._outcome.start(self._end_input())

    async def _end_input(self) -> None:
        line_open, self._line_open = self._line_open, False
        async for _ in type_end_of_file(self._terminals.pty, line_open=line_open):
            self._output_seen.clear()
            await self._output_seen.wait()
            await self._settled()

    # --- signals

    @contextlib.contextmanager
    def _signals_handled(self) -> Iterator[None]:
        """Handle all signals and exceptions in this class, so that each restores the terminal."""
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
        relay_signal(self._terminals.pty, number)

    def _resized(self) -> None:
        size = terminal_size()
        if size != self._terminals.size:
            self._terminals.size = size
            self._terminals.pty.resize(size)
            if self._escapes is not None:
                self._escapes.resized(size)
            if self._witness is not None:
                self._witness.resized(size)

    # --- stops

    def _child_changed(self) -> None:
        # While the child is being killed it is stopped too; to stop with it would delay its exit.
        if has_stopped(self._terminals.pty.child.pid) and not self._outcome.over.done():
            self._outcome.start(self._stop())

    async def _stop(self) -> None:
        await self._settled()
        if self._escapes is not None:
            await self._escapes.suspend()
        await self._terminals.flushed()
        self._own.give_back()
        stop_process_group()
        if self._escapes is not None:
            self._escapes.ask_again()  # a shell continued us, for the person
        self._continued()

    async def _settled(self) -> None:
        """Wait until the program's output was read, which the kernel delivers with a delay."""
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
        continue_program(self._terminals.pty)


HURRY_SECONDS: Final = 1.0
"""How long to wait for the last output to be shown when a signal ends the run."""


class RunOutcome:
    """The result of one run: the program's exit, a signal to us, or an exception in telex.

    Background tasks are started here. They are cancelled with the run, and an exception in one of
    them ends the run.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[int | None] = self._loop.create_future()
        """The exit code; None stands for the program's own."""
        self._hurry = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def end(self, code: int | None) -> None:
        """End the run with this exit code, or with None because the program has exited."""
        if code is not None:
            self._hurry.set()
        if not self.over.done():
            self.over.set_result(code)

    def fail(self, error: BaseException) -> None:
        self._hurry.set()
        if not self.over.done():
            self.over.set_exception(error)

    def fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an exception in a callback: to continue would lose output or keys."""
        self.fail(context.get("exception") or RuntimeError(context["message"]))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a background task that is cancelled when the run ends."""
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
        """Wait for this work. After a signal to us, wait at most `HURRY_SECONDS` longer."""
        flushed = asyncio.ensure_future(work)
        hurried = self._loop.create_task(self._hurry.wait())
        try:
            await asyncio.wait({flushed, hurried}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({flushed}, timeout=HURRY_SECONDS)
        finally:
            flushed.cancel()
            hurried.cancel()


async def type_end_of_file(pty: Pty, *, line_open: bool) -> AsyncIterator[None]:
    """Type an end of file into a program's terminal, for a file or pipe that has ended.

    The character is typed again after the program has switched canonical mode off or on, because a
    character typed before the switch is not read as an end of file.

    Yields when the caller must wait until the program prints something.
    """
    while True:
        await pty.drained()
        characters = pty.line_settings()
        eof = characters.eof or b"\x04"
        # In an unfinished line, the first one only hands over that line.
        pty.write(eof * 2 if line_open else eof)
        line_open = False
        while pty.line_settings().canonical == characters.canonical:
            yield
