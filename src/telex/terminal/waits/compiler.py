"""The compiler of matchers: each matcher becomes a condition, a pure function of a moment.

`compile` checks everything that can be checked before the wait begins: an invalid pattern, an
unknown mark or a tree that is too deep is refused at once with the path of the field. The condition
has no state between checks, so one condition may serve any number of waits. `engine` checks it when
the session changes, and sets one timer for `wake_at`. Strings in evidence and explanations are
output of the program: the code that sends them redacts them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.redaction import Redactor
from telex.terminal.limits import MATCHER_DEPTH, MATCHERS
from telex.terminal.patterns import Pattern, PatternError
from telex.terminal.waits import matchers
from telex.terminal.waits.conditions import (
    AbsentText,
    AllConditions,
    AnyCondition,
    CursorIsAt,
    Explanation,
    HasChanged,
    HasExitCode,
    HasExited,
    Negation,
    PredicateHolds,
    PrintedPattern,
    PrintedText,
    ScreenPattern,
    ScreenText,
    Stable,
    TitleContains,
    WaitCondition,
    WantsInput,
)
from telex.terminal.waits.evidence import Evidence, Moment, PredicateOutcome, PredicateRunner

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.terminal.waits.since import Mark

__all__ = [
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
    "WaitCondition",
    "compile",
]


# Errors of `compile`.


class MatcherRefused(ValueError):
    """A matcher that cannot be waited for. `path` names the field, as msgspec does."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{message} - at `{path}`")
        self.path = path


class InvalidPattern(MatcherRefused):
    """A regular expression that is not valid."""


class UnknownMark(MatcherRefused):
    """A `since` that is not a mark of this session."""


class TooDeep(MatcherRefused):
    """Matchers that are nested too deeply."""


class TooMany(MatcherRefused):
    """More matchers than one wait may have: each is checked for each output."""


class NoPredicates(MatcherRefused):
    """A `lua` matcher where no plugins are loaded."""


@dataclass(frozen=True, slots=True)
class _Context:
    """The arguments of `compile` that every `_compile` needs."""

    marks: Callable[[matchers.Since], Mark | None]
    predicates: Callable[[matchers.Predicate], PredicateRunner] | None
    compiled: list[str] = field(default_factory=list)
    """The paths of all matchers compiled so far."""


def compile(  # noqa: A001 - read as `compiler.compile`
    matcher: matchers.Matcher,
    marks: Callable[[matchers.Since], Mark | None],
    predicates: Callable[[matchers.Predicate], PredicateRunner] | None = None,
    *,
    path: str = "$.matcher",
) -> WaitCondition:
    """Compile a matcher to a condition, or raise a `MatcherRefused`.

    `marks` finds the mark of a `since`, or returns None. `predicates` creates the runner of a `lua`
    matcher; without it `lua` matchers are refused. `path` is the place of the matcher in the
    caller's message.
    """
    return _compile(matcher, _Context(marks, predicates), path, MATCHER_DEPTH)


def _compile(matcher: matchers.Matcher, given: _Context, path: str, depth: int) -> WaitCondition:
    if not depth:
        raise TooDeep(path, f"Matchers may be nested {MATCHER_DEPTH} levels deep; flatten this one")
    given.compiled.append(path)
    if len(given.compiled) > MATCHERS:
        raise TooMany(path, f"One wait may have {MATCHERS} matchers; use fewer")
    value = f"{path}.value"
    match matcher:
        case matchers.ContainsText() | matchers.TranscriptContains():
            return _TEXTS[type(matcher)](matcher.value, _mark(matcher.since, given, path))
        case matchers.ScreenRegex() | matchers.TranscriptRegex():
            pattern = _pattern(matcher.value, value)
            return _PATTERNS[type(matcher)](pattern, _mark(matcher.since, given, path))
        case matchers.ScreenChanged():
            if (mark := _mark(matcher.since, given, path)) is None:
                raise UnknownMark(f"{path}.since", "The moment is missing; use the latest mark")
            return HasChanged(mark)
        case matchers.AnyOf() | matchers.AllOf():
            members = enumerate(matcher.value)
            branches = [_compile(m, given, f"{value}[{n}]", depth - 1) for n, m in members]
            return _JOINTS[type(matcher)](tuple(branches))
        case matchers.Not():
            return Negation(_compile(matcher.value, given, value, depth - 1))
        case matchers.Lua():
            if given.predicates is None:
                raise NoPredicates(path, "No plugins are loaded, so there are no predicates")
            return PredicateHolds(matcher.value, given.predicates(matcher.value))
    return _leaf(matcher)


def _leaf(matcher: matchers.Matcher) -> WaitCondition:
    match matcher:
        case matchers.TextAbsent():
            return AbsentText(matcher.value)
        case matchers.Title():
            return TitleContains(matcher.value)
        case matchers.CursorAt():
            return CursorIsAt(matcher.value.row, matcher.value.col)
        case matchers.ScreenStable():
            return Stable(matcher.value.min_ms, matcher.value.since == "change")
        case matchers.ProcessExited():
            return HasExited()
        case matchers.ExitCode():
            return HasExitCode(matcher.value)
        case matchers.InputWanted():
            return WantsInput(matcher.value)
    raise TypeError(f"{type(matcher).__name__} is not a matcher")


def _mark(since: matchers.Since | None, given: _Context, path: str) -> Mark | None:
    if since is None:
        return None
    if (mark := given.marks(since)) is None:
        sentence = f"This session has no mark {since!r}, or has dropped it; use the latest mark"
        raise UnknownMark(f"{path}.since", sentence)
    return mark


def _pattern(source: str, path: str) -> Pattern:
    try:
        return Pattern(source)
    except PatternError as reason:
        shown = Redactor().quote(source)
        raise InvalidPattern(path, f"The pattern {shown} is not valid: {reason}") from None


_TEXTS: Final = {matchers.ContainsText: ScreenText, matchers.TranscriptContains: PrintedText}
_PATTERNS: Final = {matchers.ScreenRegex: ScreenPattern, matchers.TranscriptRegex: PrintedPattern}
_JOINTS: Final = {matchers.AnyOf: AnyCondition, matchers.AllOf: AllConditions}
