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
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

from telex import match
from telex.automation.client import AsyncTerminal
from telex.automation.errors import SessionClosed, TimedOut
from telex.automation.sync import Terminal
from telex.terminal.screen_difference import told
from telex.terminal.shown_screen import BLANK, text_rows
from telex.terminal.waits.matchers import TranscriptRegex
from telex.testing.golden_file import (
    LAST,
    VERSION,
    BadGolden,
    GoldenFile,
    GoldenScreen,
    Mask,
    NewerGolden,
    PatternMask,
    RegionMask,
    decode_golden,
    from_wire,
    mask_screen,
    write_golden,
)
from telex.testing.golden_place import file_key, golden_name
from telex.testing.spawned_programs import SpawnedTerminal
from telex.testing.terminal_trace import TracedCaller, TraceStep

if TYPE_CHECKING:
    from collections.abc import Awaitable
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


class MaskOutside(ValueError):
    """A region that no cell of the screen is in, and that therefore hides nothing."""


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
        self._names: dict[str, str] = {}
        """The goldens so far: their names by their files, in which case does not count."""
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
        **unknown: object,
    ) -> Awaitable[None] | None:
        """Compare the screen of a terminal with its file, until they are equal.

        Args:
            terminal: A terminal. For an `AsyncTerminal`, write `await golden(term)`.
            name: Names the golden; without a name the goldens of a test are numbered. A test
                can use a name once.
            mask: Parts that may change, one or several: regular expressions (of `re`, within a
                row), and regions `(row, col, rows, cols)`. The file has the masks with which it was
                written; other masks are a difference, too.
            timeout: Seconds until the screen must be equal.

        Raises:
            GoldenMismatch: The screens or the masks differ. The message says how.
            MissingGolden: There is no file yet. The message has the command that writes it. A
                blank screen is not written.
            BadGolden: The file cannot be read or written.
            ValueError: The name was used before, or a mask is none.
        """
        __tracebackhide__ = True
        for wrong in unknown:
            near = get_close_matches(wrong, ["name", "mask", "timeout"], 1)
            hint = f"did you mean {near[0]!r}?" if near else "there are name, mask, timeout"
            raise TypeError(f"golden() got an unexpected keyword argument {wrong!r}; {hint}")
        masks = _masks(mask)
        comparison = _Comparison(
            self._place.directory / self._file_name(name), masks, _seconds(timeout)
        )
        if isinstance(terminal, AsyncTerminal):
            self._unawaited += 1
            return self._awaited(terminal, comparison)
        blocking = terminal.terminal() if isinstance(terminal, SpawnedTerminal) else terminal
        if not isinstance(blocking, Terminal):
            raise TypeError(f"golden needs a terminal, not {type(terminal).__name__}")
        problem = blocking._run(self._compare(blocking._terminal, comparison))
        if problem is not None:
            raise problem
        self._warn(comparison)
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
        self._warn(comparison)

    def _file_name(self, name: str | None) -> str:
        __tracebackhide__ = True
        if not isinstance(name, str | None):
            raise TypeError(f"the name of a golden is a text, not {name!r}")
        said = f"the golden {name!r}"
        if not name:
            self._unnamed += 1
            name = "" if self._unnamed == 1 else str(self._unnamed)
            said = f"golden number {self._unnamed}, which has no name,"
        found = golden_name(self._place.stem, name)
        before = self._names.setdefault(file_key(found), said)
        if before != said:
            raise ValueError(
                f"{said} would have the file of {before.removesuffix(',')} ({found}): give one of "
                "them another name"
            )
        if found in self.used:
            raise ValueError(f"{said} was compared in this test before: give this one another name")
        self.used.add(found)
        return found

    async def _compare(
        self, terminal: AsyncTerminal, comparison: _Comparison
    ) -> AssertionError | ValueError | None:
        """Return the problem, so that the caller's own frame raises it."""
        trace = terminal._caller.trace if isinstance(terminal._caller, TracedCaller) else None
        if trace is not None and trace.finished:
            raise SessionClosed("the terminal is closed: compare its screen before that", {})
        comparison.trace = trace
        at = 0.0 if trace is None else trace.now()
        problem: AssertionError | ValueError | None
        try:
            problem = await self._outcome(comparison, _untraced(terminal))
        except MaskOutside as error:
            problem = error.with_traceback(None)
        if trace is not None:
            words = problem.args[0].partition("\n")[0] if problem is not None else ""
            what = f"golden {comparison.path.name}"
            took = trace.now() - at
            trace.add(TraceStep(at, "golden", trace.clean(what), took, trace.clean(words)))
        return problem

    async def _outcome(
        self, comparison: _Comparison, terminal: AsyncTerminal
    ) -> AssertionError | BadGolden | None:
        path, place = comparison.path, self._place
        shown = f"{place.shown}/{path.name}"
        try:
            known = decode_golden(path.read_bytes())
        except FileNotFoundError:
            known = None
        except BadGolden as error:
            if not place.update or isinstance(error, NewerGolden):  # that would lose what it knows
                return type(error)(f"{shown}: {error}")
            known = None
        except OSError as error:
            return BadGolden(_file_problem(shown, path, error))
        if place.update:
            try:
                return await self._update(comparison, terminal, known)
            except OSError as error:
                return BadGolden(_file_problem(shown, path, error))
        if known is None:
            screen = await comparison.look(terminal, VERSION)
            rows = "\n".join([f"  | {row}" for row in text_rows(screen)])
            return MissingGolden(
                f"there is no golden {shown} yet\n"
                f"if this screen is right: {place.command}\nthe screen:\n{rows}"
            )
        masks = _mask_difference(known.masks, comparison.masks)
        if masks:  # compare the rest of the screens
            comparison.masks = [*comparison.masks, *known.masks]
            known = replace(known, screen=mask_screen(known.screen, comparison.masks))
        actual = await comparison.until_equal(terminal, known)
        if actual == known.screen and not masks:
            return None
        lines = [*masks, *told(known.screen, actual, place.columns)]
        what = "screen differs" if actual != known.screen else "masks of this call differ"
        right = "the screen is right" if actual != known.screen else "this call is right"
        sentence = (
            f"the {what} from {shown} (golden → {'screen' if actual != known.screen else 'call'})\n"
            + "\n".join(lines)
            + f"\nif {right}: {place.command}"
        )
        return GoldenMismatch(sentence, known.screen, actual)

    async def _update(
        self, comparison: _Comparison, terminal: AsyncTerminal, known: GoldenFile | None
    ) -> MissingGolden | None:
        """Write the file, once the screen is still. An equal file is left as it is, and a blank
        screen is not written: nearly always the program has not drawn it yet."""
        with contextlib.suppress(TimedOut, SessionClosed):
            if comparison.trace is not None and not comparison.trace.answered:
                await comparison.look(terminal, VERSION)
                await comparison.output(terminal, min(comparison.timeout, ANSWER_SECONDS))
        screen = await comparison.rest(terminal)
        if _is_blank(screen):
            with contextlib.suppress(TimedOut, SessionClosed):
                await comparison.output(terminal, comparison.timeout)
            screen = await comparison.rest(terminal)
        if known is not None:
            same = await comparison.look(terminal, known.version)
            if known.screen == same and set(known.masks) == set(comparison.masks):
                return None
        path = comparison.path
        if _is_blank(screen):
            return MissingGolden(
                f"the screen is blank, so {self._place.shown}/{path.name} was not written: wait "
                "for a text before golden(term), or give it a longer timeout; a screen that must "
                "be blank needs no golden: assert not term.text().strip()"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        golden = GoldenFile(screen, tuple(comparison.masks))
        path.write_text(write_golden(golden), "utf-8", newline="\n")
        self.written.append(path.name)
        return None

    def _warn(self, comparison: _Comparison) -> None:
        if comparison.restless and comparison.path.name in self.written:
            path = f"{self._place.shown}/{comparison.path.name}"
            warnings.warn(
                f"the screen never rested, so {path} has one of several: wait for the "
                "last text before golden(term), or mask what changes",
                RuntimeWarning,
                stacklevel=3,
            )


def _is_blank(screen: GoldenScreen) -> bool:
    return all(cell == BLANK for row in screen.rows for cell in row)


class _Comparison:
    """One call of `golden`: its file, its masks, its deadline."""

    def __init__(self, path: Path, masks: list[Mask], timeout: float) -> None:
        self.path = path
        self.masks = self._asked = masks
        self.timeout = timeout
        self.trace: TerminalTrace | None = None
        """The trace of the terminal, which reads its screen without a conversion between."""
        self.restless = False
        """Whether the screen, with the masks, did not come to rest."""
        self._sequence = 0

    async def look(self, terminal: AsyncTerminal, version: int) -> GoldenScreen:
        if self.trace is not None:
            screen, self._sequence = self.trace.look(version)
        else:  # not spawned by the fixture: a session of a server, for example
            snapshot = await terminal.snapshot(cells="full", redact=True)
            screen, self._sequence = from_wire(snapshot, version), snapshot.sequence
        for mask in self.masks:
            outside = isinstance(mask, RegionMask) and (
                mask.top >= len(screen.rows) or mask.left >= screen.cols
            )
            if outside and mask in self._asked:
                size = f"{screen.cols} columns and {len(screen.rows)} rows"
                raise MaskOutside(f"the mask of {mask} is outside of a screen of {size}")
        return mask_screen(screen, self.masks)

    async def output(self, terminal: AsyncTerminal, timeout: float) -> None:
        """Wait until the program has printed something since the last look."""
        await terminal.wait(ANY_OUTPUT, timeout, since=self._sequence)

    async def rest(self, terminal: AsyncTerminal) -> GoldenScreen:
        """Return the screen once it is still, or as it is when the time is over."""
        self.restless = False
        try:
            await terminal.wait(match.stable(STILL_MS), self.timeout)
        except TimedOut:  # what moves may be masked
            screen = await self.look(terminal, VERSION)
            with contextlib.suppress(TimedOut, SessionClosed):
                await self.output(terminal, LOOK_SECONDS)
            self.restless = screen != await self.look(terminal, VERSION)
        except SessionClosed:
            pass
        return await self.look(terminal, VERSION)

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


def _seconds(given: Any) -> float:
    __tracebackhide__ = True
    if not isinstance(given, int | float) or isinstance(given, bool):
        kind = type(given).__name__
        raise TypeError(f"timeout must be a number of seconds; given is the {kind} {given!r:.60}")
    return given


def _untraced(terminal: AsyncTerminal) -> AsyncTerminal:
    """Return the same terminal without its trace, which shows one step for a golden."""
    caller = terminal._caller
    return AsyncTerminal(caller.caller if isinstance(caller, TracedCaller) else caller, terminal.id)


def _file_problem(shown: str, path: Path, error: OSError) -> str:
    for place in reversed(path.parents):
        if place.exists() and not place.is_dir():
            return (
                f"{shown} has no place: {place} is a file, and goldens need a directory of that "
                "name; move the file away"
            )
    return f"{shown} cannot be read or written: {error.strerror}"


# Masks.


def _mask_difference(known: Iterable[Mask], asked: Iterable[Mask]) -> list[str]:
    """Return in words how the masks of a file and of a call differ. Their order does not count."""
    old, new = list(dict.fromkeys(known)), list(dict.fromkeys(asked))
    return [
        *[f"  mask {mask}: only in the golden" for mask in old if mask not in new],
        *[f"  mask {mask}: only in the call" for mask in new if mask not in old],
    ]


def _masks(given: Any) -> list[Mask]:
    __tracebackhide__ = True
    match given:
        case str() | re.Pattern() | (int(), int(), int(), int()):
            return [_mask(given)]
    if not isinstance(given, Iterable):
        return [_mask(given)]
    return list(dict.fromkeys(map(_mask, given)))


def _mask(given: Any) -> Mask:
    __tracebackhide__ = True
    match given:
        case str():
            return _pattern_mask(given)
        case re.Pattern(pattern=str(pattern)):
            letters = {re.IGNORECASE: "i", re.DOTALL: "s", re.VERBOSE: "x", re.ASCII: "a"}
            flags = "".join([letter for flag, letter in letters.items() if given.flags & flag])
            return _pattern_mask(f"(?{flags}){pattern}" if flags else pattern)
        case (int(row), int(col), int(rows), int(cols)):
            if min(row, col, rows - 1, cols - 1) < 0 or max(row + rows, col + cols) > LAST + 1:
                raise ValueError(
                    f"the mask {given!r} is no region of a screen: (row, col, rows, cols) are "
                    f"counted from 0, with 1 row and 1 column at least, up to {LAST}"
                )
            return RegionMask(row, row + rows - 1, col, col + cols - 1)
    raise TypeError(
        f"a mask is a regular expression or a region (row, col, rows, cols), not {given!r}"
    )


def _pattern_mask(pattern: str) -> PatternMask:
    __tracebackhide__ = True
    try:
        re.compile(pattern)
        pattern.encode()
    except (re.error, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(f"the mask {pattern!r} is not a regular expression: {error}") from None
    return PatternMask(pattern)
