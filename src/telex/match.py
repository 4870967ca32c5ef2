"""Matchers: what to wait for, as in `term.wait(any_of("ok", regex(r"error: (.*)"), exited()))`.

Each function makes a matcher of the automation protocol (`telex.terminal.waits.matchers`), so the
same matcher works in this process and on a server. A plain string means that this text is on the
screen.
"""

from __future__ import annotations

import re
from typing import Any

from telex.automation.arguments import checks_arguments
from telex.terminal.input_state import WaitingState
from telex.terminal.patterns import Pattern, PatternError
from telex.terminal.waits import matchers

__all__ = [
    "What",
    "absent",
    "all_of",
    "any_of",
    "changed",
    "cursor",
    "exited",
    "input_wanted",
    "lua",
    "matcher",
    "none_of",
    "printed",
    "regex",
    "stable",
    "text",
    "title",
]


def __dir__() -> list[str]:
    return __all__


What = str | re.Pattern[str] | matchers.Matcher
"""A text on the screen, a pattern, or any matcher."""


def matcher(what: What) -> matchers.Matcher:
    """Return the matcher for a text, a pattern or a matcher. Every wait calls this.

    Args:
        what: A text on the screen, a compiled `re` pattern, or a matcher.

    Raises:
        TypeError: It is none of these.
        ValueError: The pattern is of bytes, or has a flag that RE2 does not know.
        Refused: The pattern is not valid in RE2.

    Example:
        assert telex.match.matcher("ready") == telex.match.text("ready")
    """
    given: object = what
    match given:
        case "":
            raise ValueError("what is an empty text, which every screen has; give a text")
        case str():
            return matchers.ContainsText(given)
        case re.Pattern():
            return regex(re2_source(given))
        case _ if isinstance(given, matchers.Matcher):
            return given
    hint = "; a locator has its own wait()" if hasattr(what, "query") else ""
    if isinstance(given, list | tuple | set | frozenset):
        hint = "; for one of several use telex.match.any_of('a', 'b'), each on its own"
    raise TypeError(
        "what must be a str, a compiled pattern of str or a matcher of telex.match; given is the "
        f"{type(what).__name__}{hint}"
    )


def re2_source(pattern: re.Pattern[str]) -> str:
    """Return a compiled pattern in RE2's notation. Raises ValueError for an unknown flag."""
    if not isinstance(pattern.pattern, str):
        raise ValueError("the pattern is of bytes; the screen is text, so use a pattern of str")
    flags = re.RegexFlag(pattern.flags) & ~re.UNICODE
    if unknown := flags & ~(re.IGNORECASE | re.MULTILINE | re.DOTALL):
        raise ValueError(f"unsupported flag {unknown!r}; use IGNORECASE, MULTILINE or DOTALL")
    letters = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    given = "".join(letter for flag, letter in letters.items() if flag in flags)
    return f"(?{given}){pattern.pattern}" if given else pattern.pattern


@checks_arguments
def text(value: str, *, since: matchers.Since | None = None) -> matchers.Matcher:
    """Match when this text is on the screen.

    Args:
        value: The text. A line that the terminal wrapped counts as one line, and a blank that the
            program printed as a blank.
        since: A mark; see `Terminal.wait`.

    Example:
        term.wait(telex.match.text("ready"))
    """
    return matchers.ContainsText(value, since)


@checks_arguments
def regex(pattern: str, *, since: matchers.Since | None = None) -> matchers.Matcher:
    """Match when the screen matches a pattern.

    Args:
        pattern: A regular expression in RE2 syntax: no lookaround, no backreferences. It sees the
            same screen as `text`: blanks that were printed, and wrapped lines as one line. `$` is
            the end of the screen; with `(?m)` also the end of a line.
        since: A mark; see `Terminal.wait`.

    Raises:
        Refused: The pattern is not valid in RE2.

    Example:
        found = term.wait(telex.match.regex(r"version (\\d+)"))
        print(found.evidence["capture"])
    """
    try:
        Pattern(pattern)
    except PatternError as reason:
        from telex.automation.errors import Refused
        from telex.redaction import Redactor

        shown = Redactor().quote(pattern)
        raise Refused(f"the pattern {shown} is not valid: {reason}", {}) from None
    return matchers.ScreenRegex(pattern, since)


@checks_arguments
def printed(value: str, *, since: matchers.Since | None = None) -> matchers.Matcher:
    """Match when this text was printed, even if it has scrolled off or was cleared.

    Args:
        value: The text.
        since: A mark; see `Terminal.wait`.

    Example:
        term.wait(telex.match.printed("ready"))
    """
    return matchers.TranscriptContains(value, since)


@checks_arguments
def absent(value: str) -> matchers.Matcher:
    """Match when this text is not on the screen.

    Args:
        value: The text.

    Example:
        term.wait(telex.match.absent("Loading"))
    """
    return matchers.TextAbsent(value)


@checks_arguments
def title(value: str) -> matchers.Matcher:
    """Match when the window title contains this text.

    Args:
        value: The text.

    Example:
        term.wait(telex.match.title("demo"))
    """
    return matchers.Title(value)


@checks_arguments
def cursor(row: int, col: int) -> matchers.Matcher:
    """Match when the cursor is at this cell.

    Args:
        row: The row, counted from 0.
        col: The column, counted from 0.

    Example:
        term.wait(telex.match.cursor(1, 0))
    """
    return matchers.CursorAt(matchers.CellPosition(row, col))


@checks_arguments
def stable(milliseconds: int = 250) -> matchers.Matcher:
    """Match when the screen has not changed, and nothing was typed, for some time.

    Args:
        milliseconds: How long.

    Example:
        term.wait(telex.match.stable(100))
    """
    return matchers.ScreenStable(matchers.Stability(milliseconds, "change"))


@checks_arguments
def changed(since: matchers.Since) -> matchers.Matcher:
    """Match when the screen has changed since a mark: its text, or a style.

    Args:
        since: A mark, or the sequence of a snapshot.

    Example:
        screen = term.snapshot()
        term.type("x")
        term.wait(telex.match.changed(screen.sequence))
    """
    return matchers.ScreenChanged(since)


@checks_arguments
def exited(code: int | None = None) -> matchers.Matcher:
    """Match when the program has ended.

    Args:
        code: The exit code it must have; None for any.

    Example:
        term.eof()
        term.wait(telex.match.exited(0))
    """
    return matchers.ProcessExited() if code is None else matchers.ExitCode(code)


@checks_arguments
def input_wanted(*kinds: WaitingState) -> matchers.Matcher:
    """Match when the program waits for input. The evidence has the `state`, the `prompt`, the
    `choices` of a menu and their `selected` one.

    Args:
        kinds: The kinds of input that count: "line", "password", "key", "menu", "pager", "editor"
            and "shell". None of them for all.

    Example:
        term.type("make\\n")
        found = term.wait(telex.match.input_wanted())
        print(found.evidence["state"], found.evidence["prompt"])
    """
    return matchers.InputWanted(kinds)


@checks_arguments
def lua(plugin: str, predicate: str, /, **params: Any) -> matchers.Matcher:
    """Match when a predicate of a Lua plugin returns true.

    Args:
        plugin: The name of the plugin; in this process also the path of its directory.
        predicate: The name of the predicate's function.
        params: Parameters, which the predicate gets as `input.params`.
    """
    return matchers.Lua(matchers.Predicate(plugin, predicate, params))


@checks_arguments
def any_of(*what: What) -> matchers.Matcher:
    """Match when one of these matches. The evidence says which.

    Args:
        what: Texts, patterns or matchers.

    Example:
        term.wait(telex.match.any_of("ready", telex.match.exited()))
    """
    return matchers.AnyOf(_several("any_of", what))


@checks_arguments
def all_of(*what: What) -> matchers.Matcher:
    """Match when all of these match at the same moment.

    Args:
        what: Texts, patterns or matchers.

    Example:
        term.wait(telex.match.all_of("ready", telex.match.stable(50)))
    """
    return matchers.AllOf(_several("all_of", what))


def _several(name: str, what: tuple[What, ...]) -> tuple[matchers.Matcher, ...]:
    if not what:
        raise ValueError(f"{name} needs at least one text, pattern or matcher")
    return tuple(map(matcher, what))


@checks_arguments
def none_of(*what: What) -> matchers.Matcher:
    """Match when none of these matches.

    Args:
        what: Texts, patterns or matchers.

    Example:
        term.wait(telex.match.none_of("error", "failed"))
    """
    return matchers.Not(matchers.AnyOf(_several("none_of", what)))
