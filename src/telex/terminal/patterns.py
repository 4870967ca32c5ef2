"""Regular expressions of callers, on RE2: the time is linear in the text, whatever the pattern.

Patterns have the meaning of the spec's original: `^` and `$` match at the ends of the whole text
and `.` matches no newline, unless the pattern has `(?m)` or `(?s)`. There are no backreferences and
no look-around.
"""

from __future__ import annotations

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


class Pattern:
    """A compiled pattern. `search` and `finditer` find its matches in a text."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            self._regex: Any = re2.compile(source, _OPTIONS)
        except UnicodeEncodeError:
            raise PatternError("it has a lone surrogate, which no text contains") from None
        except re2.error as error:
            raise PatternError(error.args[0].decode("utf-8", "replace")) from None

    def search(self, text: str) -> PatternMatch | None:
        """Return the first match."""
        return next(self.finditer(text), None)

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """Return all matches that do not overlap."""
        for match in self._regex.finditer(text):
            yield PatternMatch(match)


class PatternMatch:
    """A match of a pattern: its span and its capture."""

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
