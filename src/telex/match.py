"""What to wait for, as short words: `term.wait(any_of("ok", regex(r"error: (.*)"), exited()))`.

Each makes a matcher of the protocol (`telex.protocols.pty_automation`), so the same works in this
process and on a server. A plain string means "this text stands on the screen".
"""

from __future__ import annotations

import re
from typing import Any

from telex.protocols import pty_automation as spec

What = str | re.Pattern[str] | spec.Matcher
"""A text on the screen, a pattern, or any matcher."""


def matcher(what: What) -> spec.Matcher:
    """The matcher that is meant."""
    match what:
        case str():
            return spec.ContainsText(what)
        case re.Pattern():
            return spec.ScreenRegex(_flags(what) + what.pattern)
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


def text(value: str, since: spec.Since | None = None) -> spec.Matcher:
    """This text stands on the screen."""
    return spec.ContainsText(value, since)


def regex(pattern: str, since: spec.Since | None = None) -> spec.Matcher:
    """The screen matches this pattern (RE2: no lookaround, no backreferences)."""
    return spec.ScreenRegex(pattern, since)


def printed(value: str, since: spec.Since | None = None) -> spec.Matcher:
    """This text was printed, whether or not it can still be seen."""
    return spec.TranscriptContains(value, since)


def absent(value: str) -> spec.Matcher:
    """This text does not stand on the screen."""
    return spec.TextAbsent(value)


def title(value: str) -> spec.Matcher:
    """The window title contains this text."""
    return spec.Title(value)


def cursor(row: int, col: int) -> spec.Matcher:
    """The cursor stands there, counted from 0."""
    return spec.CursorAt(spec.Place(row, col))


def stable(milliseconds: int = 250) -> spec.Matcher:
    """Nothing visible changed, and nobody typed, for so long."""
    return spec.ScreenStable(spec.Stability(milliseconds, "change"))


def exited(code: int | None = None) -> spec.Matcher:
    """The program ended; with that code, if one is given."""
    return spec.ProcessExited() if code is None else spec.ExitCode(code)


def lua(plugin: str, predicate: str, /, **params: Any) -> spec.Matcher:
    """A plugin's predicate says so: any condition that takes more than one matcher to say. Here a
    plugin may also be named by its path; a server knows it by its name."""
    return spec.Lua(spec.Predicate(plugin, predicate, params))


def any_of(*what: What) -> spec.Matcher:
    """One of these; the answer's evidence says which."""
    return spec.AnyOf(tuple(matcher(one) for one in what))


def all_of(*what: What) -> spec.Matcher:
    """All of these at once."""
    return spec.AllOf(tuple(matcher(one) for one in what))


def none_of(*what: What) -> spec.Matcher:
    """None of these."""
    return spec.Not(any_of(*what))
