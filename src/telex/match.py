"""Matchers: what to wait for, as in `term.wait(any_of("ok", regex(r"error: (.*)"), exited()))`.

Each function makes a matcher of the automation protocol (`telex.terminal.waits.matchers`), so the
same matcher works in this process and on a server. A plain string means that this text is on the
screen.
"""

from __future__ import annotations

import re
from typing import Any

from telex.terminal.waits import matchers

__all__ = [
    "What",
    "absent",
    "all_of",
    "any_of",
    "changed",
    "cursor",
    "exited",
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
        ValueError: The pattern is of bytes, or has a flag that RE2 does not know.

    Example:
        assert telex.match.matcher("ready") == telex.match.text("ready")
    """
    match what:
        case str():
            return matchers.ContainsText(what)
        case re.Pattern():
            return matchers.ScreenRegex(_flags(what) + what.pattern)
        case _:
            return what


def _flags(pattern: re.Pattern[str]) -> str:
    """Return the flags of a pattern in RE2's notation. Raises ValueError for an unknown flag."""
    if not isinstance(pattern.pattern, str):
        raise ValueError("the pattern is of bytes; the screen is text, so use a pattern of str")
    flags = re.RegexFlag(pattern.flags) & ~re.UNICODE
    if unknown := flags & ~(re.IGNORECASE | re.MULTILINE | re.DOTALL):
        raise ValueError(f"unsupported flag {unknown!r}; use IGNORECASE, MULTILINE or DOTALL")
    letters = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    given = "".join(letter for flag, letter in letters.items() if flag in flags)
    return f"(?{given})" if given else ""


def text(value: str, since: matchers.Since | None = None) -> matchers.Matcher:
    """Match when this text is on the screen.

    Args:
        value: The text. A line that the terminal wrapped counts as one line, and a blank that the
            program printed as a blank.
        since: A mark; see `Terminal.wait`.

    Example:
        term.wait(telex.match.text("ready"))
    """
    return matchers.ContainsText(value, since)


def regex(pattern: str, since: matchers.Since | None = None) -> matchers.Matcher:
    """Match when the screen matches a pattern.

    Args:
        pattern: A regular expression in RE2 syntax: no lookaround, no backreferences. It sees the
            same screen as `text`: blanks that were printed, and wrapped lines as one line. `$` is
            the end of the screen; with `(?m)` also the end of a line.
        since: A mark; see `Terminal.wait`.

    Example:
        found = term.wait(telex.match.regex(r"version (\\d+)"))
        print(found.evidence["capture"])
    """
    return matchers.ScreenRegex(pattern, since)


def printed(value: str, since: matchers.Since | None = None) -> matchers.Matcher:
    """Match when this text was printed, even if it has scrolled off or was cleared.

    Args:
        value: The text.
        since: A mark; see `Terminal.wait`.

    Example:
        term.wait(telex.match.printed("ready"))
    """
    return matchers.TranscriptContains(value, since)


def absent(value: str) -> matchers.Matcher:
    """Match when this text is not on the screen.

    Args:
        value: The text.

    Example:
        term.wait(telex.match.absent("Loading"))
    """
    return matchers.TextAbsent(value)


def title(value: str) -> matchers.Matcher:
    """Match when the window title contains this text.

    Args:
        value: The text.

    Example:
        term.wait(telex.match.title("demo"))
    """
    return matchers.Title(value)


def cursor(row: int, col: int) -> matchers.Matcher:
    """Match when the cursor is at this cell.

    Args:
        row: The row, counted from 0.
        col: The column, counted from 0.

    Example:
        term.wait(telex.match.cursor(1, 0))
    """
    return matchers.CursorAt(matchers.CellPosition(row, col))


def stable(milliseconds: int = 250) -> matchers.Matcher:
    """Match when the screen has not changed, and nothing was typed, for some time.

    Args:
        milliseconds: How long.

    Example:
        term.wait(telex.match.stable(100))
    """
    return matchers.ScreenStable(matchers.Stability(milliseconds, "change"))


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


def exited(code: int | None = None) -> matchers.Matcher:
    """Match when the program has ended.

    Args:
        code: The exit code it must have; None for any.

    Example:
        term.eof()
        term.wait(telex.match.exited(0))
    """
    return matchers.ProcessExited() if code is None else matchers.ExitCode(code)


def lua(plugin: str, predicate: str, /, **params: Any) -> matchers.Matcher:
    """Match when a predicate of a Lua plugin returns true.

    Args:
        plugin: The name of the plugin; in this process also the path of its directory.
        predicate: The name of the predicate's function.
        params: Parameters, which the predicate gets as `input.params`.
    """
    return matchers.Lua(matchers.Predicate(plugin, predicate, params))


def any_of(*what: What) -> matchers.Matcher:
    """Match when one of these matches. The evidence says which.

    Args:
        what: Texts, patterns or matchers.

    Example:
        term.wait(telex.match.any_of("ready", telex.match.exited()))
    """
    return matchers.AnyOf(tuple(matcher(one) for one in what))


def all_of(*what: What) -> matchers.Matcher:
    """Match when all of these match at the same moment.

    Args:
        what: Texts, patterns or matchers.

    Example:
        term.wait(telex.match.all_of("ready", telex.match.stable(50)))
    """
    return matchers.AllOf(tuple(matcher(one) for one in what))


def none_of(*what: What) -> matchers.Matcher:
    """Match when none of these matches.

    Args:
        what: Texts, patterns or matchers.

    Example:
        term.wait(telex.match.none_of("error", "failed"))
    """
    return matchers.Not(any_of(*what))
