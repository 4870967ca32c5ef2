"""A caller's regular expression, on RE2: linear in the text, whatever the pattern says.

Patterns read as in the original: `^` and `$` are the ends of the whole text and `.` is no newline,
unless the pattern says `(?m)` or `(?s)`. There are no backreferences and no look-around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import re2

if TYPE_CHECKING:
    from collections.abc import Iterator


class PatternError(ValueError):
    """RE2 cannot read it; the message says why."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


_OPTIONS: Final = _options()


class Pattern:
    """A pattern that was read."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            self._regex: Any = re2.compile(source, _OPTIONS)
        except UnicodeEncodeError:
            raise PatternError("it has a lone surrogate, which no text has") from None
        except re2.error as error:
            raise PatternError(error.args[0].decode("utf-8", "replace")) from None

    def search(self, text: str) -> PatternMatch | None:
        """The first match."""
        return next(self.finditer(text), None)

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """All matches that do not overlap."""
        for match in self._regex.finditer(text):
            yield PatternMatch(match)


class PatternMatch:
    """One match."""

    __slots__ = ("_match",)

    def __init__(self, match: Any) -> None:
        self._match = match

    @property
    def span(self) -> tuple[int, int]:
        start, end = self._match.span()
        return start, end

    @property
    def capture(self) -> str:
        """The first group; the whole match where there is no group, or it took no part."""
        first = self._match.group(1) if self._match.re.groups else None
        return str(self._match.group() if first is None else first)
