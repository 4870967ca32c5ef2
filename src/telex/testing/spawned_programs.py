"""The fixture `telex`: the module `telex`, whose `spawn` also ends its programs after the test.

    def test_the_answer(telex):
        term = telex.spawn("python3 -q")
        term.wait(">>> ")
        term.type("6 * 7\\n")
        term.wait("42")

In a plain test, the result of `spawn` may be used at once, as here; it is then opened by its first
use. `with` and `async with` work as usual. A coroutine must use `async with`, because only that can
close a terminal in the test's own event loop.
"""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any

import telex
from telex.automation.caller import LocalCaller
from telex.automation.client import words
from telex.automation.portal import DualContext
from telex.automation.sync import Terminal
from telex.testing.terminal_trace import TerminalTrace, TracedCaller

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from telex.automation.client import AsyncTerminal
    from telex.automation.portal import Portal


class SpawnedPrograms:
    """Has every public name of the module `telex`, and remembers the programs that it starts."""

    def __init__(self, recording: Callable[[], Path | None]) -> None:
        """`recording` returns the path for the next recording; None records nothing."""
        self._recording = recording
        self._spawned: list[SpawnedTerminal] = []
        self.traces: list[TerminalTrace] = []
        """The programs that were started, in order."""

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
            A terminal to use at once, or an object for `with` and `async with`.
        """
        __tracebackhide__ = True
        shown = shlex.join(words(command))

        async def start() -> AsyncTerminal:
            terminal = await telex.spawn(command, **how)
            caller = terminal._caller
            assert isinstance(caller, LocalCaller)  # spawned in this process
            session, _ = caller.service.find(terminal.id)
            trace = TerminalTrace(shown, session, self._recording())
            self.traces.append(trace)
            terminal._caller = TracedCaller(caller, trace)
            return terminal

        opened = SpawnedTerminal(start, Terminal)
        self._spawned.append(opened)
        return opened

    def finished(self) -> list[TerminalTrace]:
        """Return the traces, complete also for programs that still run: a test has failed.

        Left out is a terminal that a coroutine opened by `await` and did not close.
        """
        for one in self._spawned:
            one.finish()
        return [trace for trace in self.traces if trace.finished]

    def close(self) -> None:
        """End every program that still runs."""
        for one in reversed(self._spawned):
            one.close()


class SpawnedTerminal(DualContext["AsyncTerminal", Terminal]):
    """A terminal that opens itself when it is used, or by `with` or `async with`."""

    def __init__(
        self,
        start: Callable[[], Any],
        blocking: Callable[[AsyncTerminal, Portal], Terminal],
    ) -> None:
        super().__init__(start, blocking)
        self._terminal: Terminal | None = None

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.terminal(), name)

    def __dir__(self) -> list[str]:
        return dir(Terminal)

    def __enter__(self) -> Terminal:
        self._terminal = super().__enter__()
        return self._terminal

    def __exit__(self, *_: object) -> None:
        try:
            super().__exit__()
        finally:
            self._portal = None

    def terminal(self) -> Terminal:
        """Return the blocking terminal; open it first if nobody has.

        Raises:
            RuntimeError: Called in a coroutine, which must use `async with`.
            NotStarted: The program could not be started.
        """
        __tracebackhide__ = True
        if self._terminal is None:
            if self._used:
                raise RuntimeError("use the object that `with` or `async with` gave you")
            if _in_a_loop():
                raise RuntimeError(
                    "in a coroutine, write `async with telex.spawn(…) as term:`; only a plain test "
                    "can use the result of spawn directly"
                )
            self.__enter__()
            assert self._terminal is not None
        return self._terminal

    def finish(self) -> None:
        """Complete the trace, if the program still runs in a thread of its own."""
        if self._portal is not None and self._opened is not None:
            self._portal.run(_finish(self._opened))

    def close(self) -> None:
        """End the program, unless its `with` block did."""
        if self._portal is not None:
            self.__exit__()


async def _finish(terminal: AsyncTerminal) -> None:
    if isinstance(caller := terminal._caller, TracedCaller):
        caller.trace.finish()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
