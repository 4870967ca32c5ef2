"""A moment in, evidence out: what a wait waits for, compiled from what a caller asked.

`compile` checks everything that can be checked before any waiting is done: a pattern that is none,
a mark nobody made, a tree too deep fail at once and name the field. What it returns is a pure
function of a `Moment`. It keeps nothing between looks, so one may serve any number of waits.

The session fills moments, looks when something happened, sets one timer for `wake_at`, and turns
evidence into the wire's shape. Nothing here reads a clock or waits. Strings in evidence and
explanations are the program's own: whoever sends them redacts them.

What is new since a mark is decided in `since`; what almost matched is found in `nearest`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.protocols import pty_automation as asked
from telex.terminal.awaited import Awaited, Explanation
from telex.terminal.branches import AllBranches, AnyBranch, NotThis
from telex.terminal.evidence import Evidence, Moment, PredicateOutcome, PredicateRunner
from telex.terminal.patterns import NoPattern, Pattern
from telex.terminal.states import (
    CursorIsAt,
    Exited,
    ExitedWith,
    PredicateSays,
    Stable,
    TitleContains,
)
from telex.terminal.texts import (
    AbsentText,
    PrintedPattern,
    PrintedText,
    ScreenPattern,
    ScreenText,
)
from telex.wire.limits import MATCHER_DEPTH, MATCHERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.terminal.since import Mark

__all__ = [
    "Awaited",
    "Evidence",
    "Explanation",
    "InvalidPattern",
    "MatcherRefused",
    "Moment",
    "NoPredicates",
    "PredicateOutcome",
    "PredicateRunner",
    "TooDeep",
    "TooMany",
    "UnknownMark",
    "compile",
]


# What `compile` refuses.


class MatcherRefused(ValueError):
    """A matcher that cannot be waited for. `path` names the field, as msgspec does."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{message} - at `{path}`")
        self.path = path


class InvalidPattern(MatcherRefused):
    """A regular expression that is none."""


class UnknownMark(MatcherRefused):
    """A `since` that names no mark of this session."""


class TooDeep(MatcherRefused):
    """Matchers within matchers within matchers."""


class TooMany(MatcherRefused):
    """More matchers than one wait may have: each is looked at for each output."""


class NoPredicates(MatcherRefused):
    """A `lua` matcher where no plugin can be asked."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is given to every `_compile` on the way down."""

    marks: Callable[[asked.Since], Mark | None]
    predicates: Callable[[asked.Predicate], PredicateRunner] | None
    compiled: list[str] = field(default_factory=list)
    """The paths of all matchers so far."""


def compile(  # noqa: A001 - read as `matchers.compile`
    matcher: asked.Matcher,
    marks: Callable[[asked.Since], Mark | None],
    predicates: Callable[[asked.Predicate], PredicateRunner] | None = None,
    *,
    path: str = "$.matcher",
) -> Awaited:
    """Make a matcher ready to look, or raise a `MatcherRefused`.

    `marks` finds the mark that a `since` names, None if there is none. `predicates` gives the
    runner of a `lua` matcher; without it there are no such matchers. `path` is where the matcher
    stands in the caller's message.
    """
    return _compile(matcher, _Asked(marks, predicates), path, MATCHER_DEPTH)


def _compile(matcher: asked.Matcher, given: _Asked, path: str, depth: int) -> Awaited:
    if not depth:
        raise TooDeep(path, f"Matchers may be nested {MATCHER_DEPTH} deep; flatten this one")
    given.compiled.append(path)
    if len(given.compiled) > MATCHERS:
        raise TooMany(path, f"One wait may have {MATCHERS} matchers; ask for fewer")
    value = f"{path}.value"
    match matcher:
        case asked.ContainsText() | asked.TranscriptContains():
            return _TEXTS[type(matcher)](matcher.value, _mark(matcher.since, given, path))
        case asked.ScreenRegex() | asked.TranscriptRegex():
            pattern = _pattern(matcher.value, value)
            return _PATTERNS[type(matcher)](pattern, _mark(matcher.since, given, path))
        case asked.AnyOf() | asked.AllOf():
            members = enumerate(matcher.value)
            branches = [_compile(m, given, f"{value}[{n}]", depth - 1) for n, m in members]
            return _JOINTS[type(matcher)](tuple(branches))
        case asked.Not():
            return NotThis(_compile(matcher.value, given, value, depth - 1))
        case asked.Lua():
            if given.predicates is None:
                raise NoPredicates(path, "No plugins are loaded here, so there are no predicates")
            return PredicateSays(matcher.value, given.predicates(matcher.value))
    return _leaf(matcher)


def _leaf(matcher: asked.Matcher) -> Awaited:
    match matcher:
        case asked.TextAbsent():
            return AbsentText(matcher.value)
        case asked.Title():
            return TitleContains(matcher.value)
        case asked.CursorAt():
            return CursorIsAt(matcher.value.row, matcher.value.col)
        case asked.ScreenStable():
            return Stable(matcher.value.min_ms, matcher.value.since == "change")
        case asked.ProcessExited():
            return Exited()
        case asked.ExitCode():
            return ExitedWith(matcher.value)
    raise TypeError(f"{type(matcher).__name__} is no matcher")


def _mark(since: asked.Since | None, given: _Asked, path: str) -> Mark | None:
    if since is None:
        return None
    if (mark := given.marks(since)) is None:
        sentence = f"This session has no mark {since!r}, or none any more; use the latest one"
        raise UnknownMark(f"{path}.since", sentence)
    return mark


def _pattern(source: str, path: str) -> Pattern:
    try:
        return Pattern(source)
    except NoPattern as reason:
        raise InvalidPattern(path, f"The pattern is not valid: {reason}") from None


_TEXTS: Final = {asked.ContainsText: ScreenText, asked.TranscriptContains: PrintedText}
_PATTERNS: Final = {asked.ScreenRegex: ScreenPattern, asked.TranscriptRegex: PrintedPattern}
_JOINTS: Final = {asked.AnyOf: AnyBranch, asked.AllOf: AllBranches}
