"""Regular expressions of callers, on RE2: the time is linear in the text, whatever the pattern.

Patterns have the meaning of the spec's original: `^` and `$` match at the ends of the whole text
and `.` matches no newline, unless the pattern has `(?m)` or `(?s)`. There are no backreferences and
no look-around.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import re2

if TYPE_CHECKING:
    from collections.abc import Iterator


class PatternError(ValueError):
    """RE2 cannot parse the pattern; the message has the reason."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


_OPTIONS: Final = _options()


_LACKING: Final = {
    "lookaround": re.compile(r"\(\?<?[=!]"),
    "backreferences": re.compile(r"\\[1-9]|\(\?P="),
}
"""The constructs of other engines that RE2 does not have."""


def _masked(reason: str, source: str) -> str:
    """Return RE2's reason. The part of the pattern at its end is left out if it may be secret."""
    from telex.redaction import Redactor  # only needed here

    return reason.partition(": ")[0] if Redactor().suspects(source) else reason


def _hint(source: str) -> str:
    """Return what to do instead, for a pattern that other engines accept."""
    for name, construct in _LACKING.items():
        if construct.search(source):
            return (
                f"; patterns run on RE2, which has no {name}: match more text with a group around "
                "the part you want (`capture` of the evidence has it), and compare it in your code"
            )
    return ""


class Pattern:
    """A compiled pattern. `search` and `finditer` find its matches in a text."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            self._regex: Any = re2.compile(source, _OPTIONS)
        except UnicodeEncodeError:
            raise PatternError("it has a lone surrogate, which no text contains") from None
        except re2.error as error:
            reason = error.args[0].decode("utf-8", "replace")
            raise PatternError(_masked(reason, source) + _hint(source)) from None

    def search(self, text: str) -> PatternMatch | None:
        """Return the first match."""
        return next(self.finditer(text), None)

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """Return all matches that do not overlap."""
        for match in self._regex.finditer(text):
            yield PatternMatch(match)


class PatternMatch:
    """A match of a pattern: its span, its capture and its groups."""

    __slots__ = ("_match",)

    def __init__(self, match: Any) -> None:
        self._match = match

    @property
    def span(self) -> tuple[int, int]:
        start, end = self._match.span()
        return start, end

    @property
    def capture(self) -> str:
        """Return the first group, or the whole match if that group does not exist or match."""
        first = self._match.group(1) if self._match.re.groups else None
        return str(self._match.group() if first is None else first)

    @property
    def groups(self) -> dict[str, str | None]:
        """Return the groups by number and by name; None for one that did not match. Empty if there
        is no more than `capture` has."""
        names = dict(self._match.re.groupindex)
        if self._match.re.groups < 2 and not names:
            return {}
        found = {str(n): one for n, one in enumerate(self._match.groups(), 1)}
        return found | {name: found[str(number)] for name, number in names.items()}
