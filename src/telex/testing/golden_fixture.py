"""The fixture `golden`: compares the screen of a terminal with the file of its test.

    def test_the_menu(telex, golden):
        term = telex.spawn("./menu.py")
        golden(term)                      # __golden__/test_menu/test_the_menu.txt
        term.press("down")
        golden(term, "second")            # __golden__/test_menu/test_the_menu.second.txt

The comparison is repeated whenever the program prints, until the screens are equal or the time is
over, so a test needs no wait before it. Secrets are masked in what is compared and written.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

from telex import match
from telex.automation.client import AsyncTerminal
from telex.automation.errors import SessionClosed, TimedOut
from telex.automation.sync import Terminal
from telex.terminal.waits.matchers import TranscriptRegex
from telex.testing.golden_diff import told
from telex.testing.golden_file import (
    VERSION,
    BadGolden,
    GoldenFile,
    GoldenScreen,
    Mask,
    PatternMask,
    RegionMask,
    from_wire,
    mask_screen,
    read_golden,
    text_rows,
    write_golden,
)
from telex.testing.golden_place import golden_name
from telex.testing.spawned_programs import SpawnedTerminal
from telex.testing.terminal_trace import TracedCaller, TraceStep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from pathlib import Path

    from telex.testing.terminal_trace import TerminalTrace

MaskArgument: TypeAlias = "str | re.Pattern[str] | Iterable[Any]"
STILL_MS: Final = 250
"""A screen that is written to a file must not have changed for so long."""
ANSWER_SECONDS: Final = 2.0
"""How long to wait, before a screen is written, for output that follows the start or an input."""
LOOK_SECONDS: Final = 0.5
"""The longest pause between two comparisons. Output ends it, so this is for a size or a mode that
changes without output."""
ANY_OUTPUT: Final = TranscriptRegex("(?s).")


class MissingGolden(AssertionError):
    """There is no file for this golden yet."""

    __module__ = "telex.testing"


class GoldenMismatch(AssertionError):
    """The screen differs from its file. `expected` and `actual` are masked."""

    __module__ = "telex.testing"

    def __init__(self, sentence: str, expected: GoldenScreen, actual: GoldenScreen) -> None:
        super().__init__(sentence)
        self.expected = expected
        self.actual = actual

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle: test runners send exceptions to another process."""
        return type(self), (self.args[0], self.expected, self.actual)


@dataclass(frozen=True, slots=True)
class GoldenPlace:
    """Where the goldens of one test are, and how its runner writes them."""

    directory: Path
    stem: str
    """The test's name, safe as a file name."""
    shown: str
    """The directory as the messages name it."""
    command: str
    """The command that writes the files of this test."""
    update: bool
    """Whether this run writes files."""
    columns: int
    """The width of the person's terminal."""


class Golden:
    """Compares screens with the files of one test. Call it with a terminal."""

    def __init__(self, place: GoldenPlace) -> None:
        self._place = place
        self.used: set[str] = set()
        """The names of the files that were compared or written."""
        self.written: list[str] = []
        self._unnamed = 0
        self._unawaited = 0

    def __repr__(self) -> str:
        return f"<golden screens in {self._place.shown}>"

    @overload
    def __call__(
        self,
        terminal: Terminal | SpawnedTerminal,
        name: str | None = None,
        *,
        mask: MaskArgument = (),
        timeout: float = 5.0,
    ) -> None: ...

    @overload
    def __call__(
        self,
        terminal: AsyncTerminal,
        name: str | None = None,
        *,
        mask: MaskArgument = (),
        timeout: float = 5.0,
    ) -> Awaitable[None]: ...

    def __call__(
        self,
        terminal: Terminal | SpawnedTerminal | AsyncTerminal,
        name: str | None = None,
        *,
        mask: MaskArgument = (),
        timeout: float = 5.0,
    ) -> Awaitable[None] | None:
        """Compare the screen of a terminal with its file, until they are equal.

        Args:
            terminal: A terminal. For an `AsyncTerminal`, write `await golden(term)`.
            name: Names the golden; without a name the goldens of a test are numbered.
            mask: Parts that may change, one or several: regular expressions (of `re`, within a
                row), and regions `(row, col, rows, cols)`. Masks in the file apply, too.
            timeout: Seconds until the screen must be equal.

        Raises:
            GoldenMismatch: The screens differ. The message says how.
            MissingGolden: There is no file yet. The message has the command that writes it.
            BadGolden: The file cannot be read.
        """
        __tracebackhide__ = True
        masks = _masks(mask)
        comparison = _Comparison(self._place.directory / self._file_name(name), masks, timeout)
        if isinstance(terminal, AsyncTerminal):
            self._unawaited += 1
            return self._awaited(terminal, comparison)
        blocking = terminal.terminal() if isinstance(terminal, SpawnedTerminal) else terminal
        if not isinstance(blocking, Terminal):
            raise TypeError(f"golden needs a terminal, not {type(terminal).__name__}")
        problem = blocking._run(self._compare(blocking._terminal, comparison))
        if problem is not None:
            raise problem
        return None

    def check_awaited(self) -> None:
        """Raise if a coroutine test forgot to await a comparison, which then compared nothing."""
        if self._unawaited:
            raise RuntimeError(
                "golden(term) of an AsyncTerminal compares nothing until it is awaited: write "
                "`await golden(term)`"
            )

    async def _awaited(self, terminal: AsyncTerminal, comparison: _Comparison) -> None:
        __tracebackhide__ = True
        self._unawaited -= 1
        problem = await self._compare(terminal, comparison)
        if problem is not None:
            raise problem

    def _file_name(self, name: str | None) -> str:
        if name is None:
            self._unnamed += 1
            name = "" if self._unnamed == 1 else str(self._unnamed)
        found = golden_name(self._place.stem, name)
        self.used.add(found)
        return found

    async def _compare(
        self, terminal: AsyncTerminal, comparison: _Comparison
    ) -> AssertionError | BadGolden | None:
        """Return the problem, so that the caller's own frame raises it."""
        trace = terminal._caller.trace if isinstance(terminal._caller, TracedCaller) else None
        if trace is not None and trace.finished:
            raise SessionClosed("the terminal is closed: compare its screen before that", {})
        comparison.trace = trace
        at = 0.0 if trace is None else trace.now()
        problem = await self._outcome(comparison, _untraced(terminal))
        if trace is not None:
            words = problem.args[0].partition("\n")[0] if problem is not None else ""
            what = f"golden {comparison.path.name}"
            trace.add(TraceStep(at, "golden", what, trace.now() - at, words))
        return problem

    async def _outcome(
        self, comparison: _Comparison, terminal: AsyncTerminal
    ) -> AssertionError | BadGolden | None:
        path, place = comparison.path, self._place
        shown = f"{place.shown}/{path.name}"
        try:
            known = read_golden(path.read_text("utf-8"))
        except FileNotFoundError:
            known = None
        except (BadGolden, UnicodeDecodeError) as error:
            if not place.update:
                return BadGolden(f"{shown}: {error}")
            known = None
        masks = (*comparison.masks, *(known.masks if known is not None else ()))
        comparison.masks = list(dict.fromkeys(masks))
        if place.update:
            await self._update(comparison, terminal, known)
            return None
        if known is None:
            screen = await comparison.look(terminal, VERSION)
            rows = "\n".join([f"  | {row}" for row in text_rows(screen)])
            return MissingGolden(
                f"there is no golden {shown} yet\n"
                f"if this screen is right: {place.command}\nthe screen:\n{rows}"
            )
        actual = await comparison.until_equal(terminal, known)
        if actual == known.screen:
            return None
        lines = told(known.screen, actual, place.columns)
        sentence = (
            f"the screen differs from {shown} (golden → screen)\n"
            + "\n".join(lines)
            + f"\nif the screen is right: {place.command}"
        )
        return GoldenMismatch(sentence, known.screen, actual)

    async def _update(
        self, comparison: _Comparison, terminal: AsyncTerminal, known: GoldenFile | None
    ) -> None:
        """Write the file, once the screen is still. An equal file is left as it is."""
        with contextlib.suppress(TimedOut, SessionClosed):
            if comparison.trace is not None and not comparison.trace.answered:
                await comparison.look(terminal, VERSION)
                await comparison.output(terminal, min(comparison.timeout, ANSWER_SECONDS))
        with contextlib.suppress(TimedOut, SessionClosed):  # a restless screen is written, too
            await terminal.wait(match.stable(STILL_MS), comparison.timeout)
        if known is not None:
            screen = await comparison.look(terminal, known.version)
            if known == GoldenFile(screen, tuple(comparison.masks)):
                return
        screen = await comparison.look(terminal, VERSION)
        path = comparison.path
        path.parent.mkdir(parents=True, exist_ok=True)
        golden = GoldenFile(screen, tuple(comparison.masks))
        path.write_text(write_golden(golden), "utf-8", newline="\n")
        self.written.append(path.name)


class _Comparison:
    """One call of `golden`: its file, its masks, its deadline."""

    def __init__(self, path: Path, masks: list[Mask], timeout: float) -> None:
        self.path = path
        self.masks = masks
        self.timeout = timeout
        self.trace: TerminalTrace | None = None
        """The trace of the terminal, which reads its screen without a conversion between."""
        self._sequence = 0

    async def look(self, terminal: AsyncTerminal, version: int) -> GoldenScreen:
        if self.trace is not None:
            screen, self._sequence = self.trace.look(version)
        else:  # not spawned by the fixture: a session of a server, for example
            snapshot = await terminal.snapshot(cells="full", redact=True)
            screen, self._sequence = from_wire(snapshot, version), snapshot.sequence
        return mask_screen(screen, self.masks)

    async def output(self, terminal: AsyncTerminal, timeout: float) -> None:
        """Wait until the program has printed something since the last look."""
        await terminal.wait(ANY_OUTPUT, timeout, since=self._sequence)

    async def until_equal(self, terminal: AsyncTerminal, known: GoldenFile) -> GoldenScreen:
        """Return the screen once it equals the known one, or as it is when the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout
        while True:
            screen = await self.look(terminal, known.version)
            left = deadline - loop.time()
            if screen == known.screen or left <= 0:
                return screen
            try:
                await self.output(terminal, min(left, LOOK_SECONDS))
            except TimedOut:
                continue
            except SessionClosed:
                return await self.look(terminal, known.version)


def _untraced(terminal: AsyncTerminal) -> AsyncTerminal:
    """Return the same terminal without its trace, which shows one step for a golden."""
    caller = terminal._caller
    return AsyncTerminal(caller.caller if isinstance(caller, TracedCaller) else caller, terminal.id)


def _masks(given: MaskArgument) -> list[Mask]:
    match given:
        case str() | re.Pattern() | (int(), int(), int(), int()):
            return [_mask(given)]
    return [_mask(one) for one in given]


def _mask(given: Any) -> Mask:
    match given:
        case str():
            return PatternMask(re.compile(given).pattern)
        case re.Pattern():
            letters = {re.IGNORECASE: "i", re.DOTALL: "s", re.VERBOSE: "x", re.ASCII: "a"}
            flags = "".join([letter for flag, letter in letters.items() if given.flags & flag])
            return PatternMask(f"(?{flags}){given.pattern}" if flags else given.pattern)
        case (int(row), int(col), int(rows), int(cols)):
            return RegionMask(row, row + rows - 1, col, col + cols - 1)
        case PatternMask() | RegionMask():
            return given
    raise TypeError(
        f"a mask is a regular expression or a region (row, col, rows, cols), not {given!r}"
    )
