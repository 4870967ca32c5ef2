"""What to wait for, as short words: `term.wait(any_of("ok", regex(r"error: (.*)"), exited()))`.

Each makes a matcher (`telex.terminal.waits.matchers`), so the same works in this
process and on a server. A plain string means "this text stands on the screen".
"""

from __future__ import annotations

import re
from typing import Any

from telex.terminal.waits import matchers

What = str | re.Pattern[str] | matchers.Matcher
"""A text on the screen, a pattern, or any matcher."""


def matcher(what: What) -> matchers.Matcher:
    """The matcher that is meant."""
    match what:
        case str():
            return matchers.ContainsText(what)
        case re.Pattern():
            return matchers.ScreenRegex(_flags(what) + what.pattern)
        case _:
            return what


def _flags(pattern: re.Pattern[str]) -> str:
    """What it was compiled with, as RE2 writes it. Raises ValueError for what RE2 does not know."""
    if not isinstance(pattern.pattern, str):
        raise ValueError("a screen is text: give a pattern of str, not of bytes")
    flags = re.RegexFlag(pattern.flags) & ~re.UNICODE
    if unknown := flags & ~(re.IGNORECASE | re.MULTILINE | re.DOTALL):
        raise ValueError(f"{unknown!r} is not known here; IGNORECASE, MULTILINE and DOTALL are")
    letters = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    given = "".join(letter for flag, letter in letters.items() if flag in flags)
    return f"(?{given})" if given else ""


def text(value: str, since: matchers.Since | None = None) -> matchers.Matcher:
    """This text stands on the screen."""
    return matchers.ContainsText(value, since)


def regex(pattern: str, since: matchers.Since | None = None) -> matchers.Matcher:
    """The screen matches this pattern (RE2: no lookaround, no backreferences)."""
    return matchers.ScreenRegex(pattern, since)


def printed(value: str, since: matchers.Since | None = None) -> matchers.Matcher:
    """This text was printed, whether or not it can still be seen."""
    return matchers.TranscriptContains(value, since)


def absent(value: str) -> matchers.Matcher:
    """This text does not stand on the screen."""
    return matchers.TextAbsent(value)


def title(value: str) -> matchers.Matcher:
    """The window title contains this text."""
    return matchers.Title(value)


def cursor(row: int, col: int) -> matchers.Matcher:
    """The cursor stands there, counted from 0."""
    return matchers.CursorAt(matchers.CellPosition(row, col))


def stable(milliseconds: int = 250) -> matchers.Matcher:
    """Nothing visible changed, and nobody typed, for so long."""
    return matchers.ScreenStable(matchers.Stability(milliseconds, "change"))


def exited(code: int | None = None) -> matchers.Matcher:
    """The program ended; with that code, if one is given."""
    return matchers.ProcessExited() if code is None else matchers.ExitCode(code)


def lua(plugin: str, predicate: str, /, **params: Any) -> matchers.Matcher:
    """A plugin's predicate says so: any condition that takes more than one matcher to say. Here a
    plugin may also be named by its path; a server knows it by its name."""
    return matchers.Lua(matchers.Predicate(plugin, predicate, params))


def any_of(*what: What) -> matchers.Matcher:
    """One of these; the answer's evidence says which."""
    return matchers.AnyOf(tuple(matcher(one) for one in what))


def all_of(*what: What) -> matchers.Matcher:
    """All of these at once."""
    return matchers.AllOf(tuple(matcher(one) for one in what))


def none_of(*what: What) -> matchers.Matcher:
    """None of these."""
    return matchers.Not(any_of(*what))
