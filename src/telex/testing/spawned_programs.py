"""The fixture `telex`: the module `telex`, whose `spawn` also ends its programs after the test.

    def test_the_answer(telex):
        term = telex.spawn("python3 -q")
        term.wait(">>> ")
        term.type("6 * 7\\n")
        term.wait("42")

In a plain test, `spawn` starts the program at once; use its result as here, or by `with`. A
coroutine must use `async with`, which starts the program, because only that can close a terminal in
the test's own event loop; the end of the test warns of a result that nothing opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from typing import TYPE_CHECKING, Any, Final, NoReturn

import telex
from telex.automation.caller import LocalCaller
from telex.automation.client import WAIT_SECONDS
from telex.automation.sync import Terminal
from telex.testing.terminal_trace import TerminalTrace, TracedCaller

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence
    from pathlib import Path

    from telex.automation.client import AsyncTerminal
    from telex.automation.portal import DualContext

IN_A_COROUTINE: Final = (
    "in a coroutine, write `async with telex.spawn(…) as term:`; only a plain test can use the "
    "result of spawn directly"
)

STARTED_BEFORE: Final = (
    "this program was started outside of the coroutine, for a plain test; call telex.spawn(…) in "
    "the coroutine or in an async fixture to use `async with`"
)


class SpawnedPrograms:
    """Has every public name of the module `telex`, and remembers the programs that it starts."""

    def __init__(self, recording: Callable[[], Path | None], timeout: float = WAIT_SECONDS) -> None:
        """`recording` returns the path for the next recording; None records nothing. `timeout` is
        that of `telex.spawn` where a test gives none."""
        self._recording = recording
        self._timeout = timeout
        self._spawned: list[SpawnedTerminal] = []
        self.traces: list[TerminalTrace] = []
        """The programs that were started, in order."""
        self.kept: set[str] = set()
        """The names of their recordings that were kept."""

    def __getattr__(self, name: str) -> Any:
        if name not in telex.__all__:
            raise AttributeError(f"the fixture 'telex' has no attribute {name!r}")
        return getattr(telex, name)

    def __dir__(self) -> list[str]:
        return [*telex.__all__, "traces"]

    def spawn(self, command: str | Sequence[str], **how: Any) -> SpawnedTerminal:
        """Start a program on a terminal, as `telex.spawn` does. It ends with the test.

        Args:
            command: An argument list, or a string that is split as a shell splits words.
            how: The parameters of `telex.spawn`: `rows`, `cols`, `env`, `cwd` and others.

        Returns:
            A terminal to use at once or by `with`; in a coroutine, an object for `async with`.

        Raises:
            NotStarted: The program could not be started.
        """
        __tracebackhide__ = True
        how.setdefault("timeout", self._timeout)
        opened = SpawnedTerminal(telex.spawn(command, **how), self._begin_trace)
        self._spawned.append(opened)
        if not _in_a_loop():
            opened.start()
        return opened

    async def _begin_trace(self, terminal: AsyncTerminal) -> None:
        """Put a trace between a terminal and its session, in the event loop of both."""
        caller = terminal._caller
        assert isinstance(caller, LocalCaller)  # spawned in this process
        trace = TerminalTrace(caller.session(terminal.id), self._recording())
        self.traces.append(trace)
        terminal._caller = TracedCaller(caller, trace)

    def finished(self) -> list[TerminalTrace]:
        """Return the traces, complete also for programs that still run: a test has failed.

        Left out is a terminal of a coroutine whose `async with` has not ended.
        """
        for one in self._spawned:
            one.finish()
        return [trace for trace in self.traces if trace.finished]

    def close(self) -> None:
        """End every program that still runs, the last one first."""
        with contextlib.ExitStack() as ending:
            for one in self._spawned:
                ending.callback(one.close)


class SpawnedTerminal:
    """A terminal that a plain test has open already, or that `async with` opens."""

    def __init__(
        self,
        context: DualContext[AsyncTerminal, Terminal],
        begin: Callable[[AsyncTerminal], Coroutine[Any, Any, None]],
    ) -> None:
        """`begin` is called in the terminal's event loop when it is open."""
        self._context = context
        self._begin = begin
        self._terminal: Terminal | None = None
        self._running = False
        """Whether the program runs in a thread of its own."""
        self._used = False
        self._entered = False

    def __repr__(self) -> str:
        return repr(self._terminal or self._context)

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.terminal(), name)

    def __dir__(self) -> list[str]:
        return dir(Terminal)

    def start(self) -> Terminal:
        """Start the program in a thread of its own."""
        __tracebackhide__ = True
        self._used = True
        terminal = self._context.__enter__()
        self._running = True
        terminal._run(self._begin(terminal._terminal))
        self._terminal = terminal
        return terminal

    def __enter__(self) -> Terminal:
        __tracebackhide__ = True
        if self._entered:
            raise telex.OpenedTwice("already opened; spawn a new one for each `with` block")
        self._entered = True
        return self._terminal or self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> AsyncTerminal:
        if self._terminal is not None:
            raise RuntimeError(STARTED_BEFORE)
        self._used = True
        terminal = await self._context.__aenter__()
        await self._begin(terminal)
        return terminal

    async def __aexit__(self, *_: object) -> None:
        await self._context.__aexit__(*_)

    def __await__(self) -> Generator[Any, None, NoReturn]:
        raise RuntimeError(IN_A_COROUTINE)

    def terminal(self) -> Terminal:
        """Return the blocking terminal.

        Raises:
            RuntimeError: Called in a coroutine, which must use `async with`.
            NotStarted: The program could not be started.
        """
        __tracebackhide__ = True
        if self._terminal is None:
            if self._used:
                raise RuntimeError("use the object that `with` or `async with` gave you")
            if _in_a_loop():
                raise RuntimeError(IN_A_COROUTINE)
            return self.start()
        return self._terminal

    def finish(self) -> None:
        """Complete the trace, if the program still runs in a thread of its own."""
        if self._running and self._terminal is not None:
            self._terminal._run(_finish(self._terminal._terminal))

    def close(self) -> None:
        """End the program, unless its `with` block did. Warn if it was never started."""
        if not self._used:
            sentence = f"{self._context!r} was never opened, so no program ran: {IN_A_COROUTINE}"
            warnings.warn(sentence, RuntimeWarning, stacklevel=2)
        if self._running:
            self._running = False
            self._context.__exit__()


async def _finish(terminal: AsyncTerminal) -> None:
    if isinstance(caller := terminal._caller, TracedCaller):
        caller.trace.finish()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
