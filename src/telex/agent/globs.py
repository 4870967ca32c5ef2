"""Patterns of file names, as people and language models write them. Pure.

`*.py` means such a name at any depth, `src/*.py` such a path, `**` any number of directories,
`{ts,tsx}` either. RE2 does the matching, so that no pattern takes for ever.
"""

from __future__ import annotations

import re
from typing import Final

from telex.terminal.patterns import Pattern, PatternError

_PIECES: Final = re.compile(
    r"(?P<deep>\*\*/)|(?P<rest>\*\*)|(?P<star>\*)|(?P<one>\?)|(?P<set>\[!?\]?[^\]/]*\])"
    r"|(?P<open>\{)|(?P<close>\})|(?P<comma>,)|\\?(?P<other>.)",
    re.DOTALL,
)


class NoGlob(ValueError):
    """A pattern of names that cannot be read."""


class Glob:
    """A pattern that was read."""

    def __init__(self, source: str) -> None:
        rooted = source.removeprefix("./")
        anywhere = "" if "/" in rooted else "(?:.*/)?"
        try:
            self._pattern = Pattern(f"(?s)^{anywhere}{_translated(rooted.lstrip('/'))}$")
        except PatternError as error:
            raise NoGlob(f"{source!r} is not a pattern of file names: {error}") from None

    def matches(self, path: str) -> bool:
        """Whether a path from the directory looked in is meant."""
        return self._pattern.search(path) is not None


def _translated(source: str) -> str:
    told, depth = [], 0
    for piece in _PIECES.finditer(source):
        kind, text = piece.lastgroup or "other", piece[piece.lastgroup or 0]
        depth += (kind == "open") - (kind == "close")
        told.append(_one(kind, text, inside=depth > 0))
    return "".join(told)


def _one(kind: str, text: str, *, inside: bool) -> str:
    match kind:
        case "deep":
            return "(?:.*/)?"
        case "rest":
            return ".*"
        case "star":
            return "[^/]*"
        case "one":
            return "[^/]"
        case "set":
            return _set(text)
        case "open":
            return "(?:"
        case "close":
            return ")"
        case "comma" if inside:
            return "|"
        case _:
            return re.escape(text)


def _set(text: str) -> str:
    negated = text.startswith("[!")
    inner = text[2 if negated else 1 : -1].replace("\\", r"\\").replace("[", r"\[")
    return f"[{'^/' if negated else ''}{inner.replace('^', chr(92) + '^')}]"
