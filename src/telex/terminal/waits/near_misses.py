"""The nearest miss: the likely reason why a wait timed out, found on the screen.

Most failed waits have one of a few reasons: different upper and lower case, a text that was there
before the mark or is the echo of typed input, blanks at the end of a row, a text that scrolled
away, a pattern given as a text, a misspelt word. The search tries each of them, the most certain
first. The result has the row, the line, and the reason as a sentence. Rows are counted from 0, like
the rows of the cursor.

The search runs once per failed wait and is bounded: only a few matchers of a tree get a result, and
similar text is searched in a few rows. Pure; used by `conditions`. The result is not redacted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Final

from telex.terminal.patterns import Pattern, PatternError
from telex.terminal.transcript import strip_escapes
from telex.terminal.waits.since import new_on_screen

if TYPE_CHECKING:
    from telex.terminal.waits.evidence import Moment, PrintedLines
    from telex.terminal.waits.since import Mark

_ANSWERS: Final = 8
"""The number of matchers in one tree that get a nearest miss; a tree may have hundreds."""
_ROWS: Final = 200
"""The number of rows, from the end, that are compared for similarity; only the most similar few are
compared exactly.
"""
_CLOSELY: Final = 3
_CHARS: Final = 160
"""The length of a text that is compared; the rest of a longer text is ignored."""
_LINE_CHARS: Final = 1000
_SPACED_CHARS: Final = 32 * 1024
"""The number of characters at the end of the screen that are searched without regard to blanks."""
_ALIKE: Final = 0.6
"""The least similarity that is not chance."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A text that almost matched, with its place and the reason."""

    kind: str
    """`older`, `echo`, `blanks`, `case`, `spacing`, `gone`, `escapes`, `pattern` or `similar`."""
    says: str
    row: int | None = None
    line: str | None = None

    def render(self) -> dict[str, object]:
        fields: dict[str, object] = {"kind": self.kind, "says": self.says}
        if self.row is not None:
            fields["row"] = self.row
        if self.line is not None:
            fields["line"] = self.line
        return fields


_OLD_OR_ECHO: Final = NearMiss(
    "older", "it was printed before the mark, or is the echo of typed input"
)


class NearMissSearch:
    """The search for near misses in one moment. Values that several matchers need are cached."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self._left = _ANSWERS

    def for_text(self, text: str, mark: Mark | None) -> NearMiss | None:
        """Return why a text is not on the screen, or not new there."""
        if not self._may_answer() or not text:
            return None
        return (
            (mark and self._not_new(text, mark))
            or self._other_blanks(text)
            or self._other_case(text)
            or self._other_spacing(text)
            or self._gone(text)
            or self._as_pattern(text, mark)
            or self._similar(text)
        )

    def for_pattern(self, pattern: Pattern, mark: Mark | None) -> NearMiss | None:
        """Return why a pattern does not match the screen, or matches nothing new there."""
        if not self._may_answer():
            return None
        for screen, lines in self._readings:
            if mark and (found := pattern.search(screen)):
                return self._stale(*found.span, mark, lines)
            if found := _any_case(pattern).search(screen):
                return self._at(found.span[0], "case", "row {} matches except for case", lines)
        if pattern.search(self._printed):
            return NearMiss("gone", "it matches printed text that is no longer on the screen")
        return None

    def for_printed(self, text: str, mark: Mark | None) -> NearMiss | None:
        """Return why a text is not in the transcript, or not new there."""
        if not self._may_answer() or not text:
            return None
        tail = self._moment.transcript.tail
        if mark and text in tail:
            return _OLD_OR_ECHO
        if text in self._printed:
            return NearMiss(
                "escapes", "it was printed with escape sequences inside; use the screen"
            )
        if text.lower() in tail.lower():
            return NearMiss("case", "it was printed in different case")
        if (pattern := _meant_pattern(text)) and pattern.search(tail):
            return NearMiss("pattern", "as a pattern it matches: use transcript_regex")
        return None

    def for_printed_pattern(self, pattern: Pattern, mark: Mark | None) -> NearMiss | None:
        """Return why a pattern does not match the transcript, or matches nothing new there."""
        if not self._may_answer():
            return None
        tail = self._moment.transcript.tail
        if mark and pattern.search(tail):
            return _OLD_OR_ECHO
        if pattern.search(self._printed):
            return NearMiss(
                "escapes", "it matches the printed text except for escape sequences inside"
            )
        if _any_case(pattern).search(tail):
            return NearMiss("case", "it matches except for case")
        return None

    # The reasons.

    def _may_answer(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def _not_new(self, text: str, mark: Mark) -> NearMiss | None:
        for screen, lines in self._readings:
            if (at := screen.rfind(text)) >= 0:
                return self._stale(at, at + len(text), mark, lines)
        return None

    def _stale(self, start: int, end: int, mark: Mark, lines: PrintedLines | None) -> NearMiss:
        if new_on_screen(replace(mark, typed=""), self._moment, lines).touches(start, end):
            return self._at(start, "echo", "row {} has it, but as the echo of typed input", lines)
        return self._at(start, "older", "row {} has it, but it was there before the mark", lines)

    def _other_blanks(self, text: str) -> NearMiss | None:
        """Find the text without the blanks before its line ends: rows have no trailing blanks."""
        trimmed = "\n".join([line.rstrip(" ") for line in text.split("\n")])
        if trimmed in ("", text) or (at := self._moment.text.rfind(trimmed)) < 0:
            return None
        return self._at(at, "blanks", "row {} has it without the trailing blanks")

    def _other_case(self, text: str) -> NearMiss | None:
        for (_, lines), lower in zip(self._readings, self._lower, strict=True):
            if (at := lower.rfind(text.lower())) >= 0:
                return self._at(at, "case", "row {} has it in different case", lines)
        return None

    def _other_spacing(self, text: str) -> NearMiss | None:
        if _squeezed(text) in _squeezed(self._moment.text[-_SPACED_CHARS:]):
            return NearMiss(
                "spacing", "it is on the screen with different blanks or line breaks inside"
            )
        return None

    def _gone(self, text: str) -> NearMiss | None:
        if text not in self._printed:
            return None
        return NearMiss("gone", "it was printed, but is no longer on the screen")

    def _as_pattern(self, text: str, mark: Mark | None) -> NearMiss | None:
        if (pattern := _meant_pattern(text)) is None:
            return None
        says = "as a pattern it matches row {}: use telex.match.regex (screen_regex)"
        for screen, lines in self._readings:
            new = mark and new_on_screen(mark, self._moment, lines)
            if (found := pattern.search(screen)) and (not new or new.touches(*found.span)):
                return self._at(found.span[0], "pattern", says, lines)
        return None

    def _similar(self, text: str) -> NearMiss | None:
        wanted = text.strip()[:_CHARS]
        rows = self._moment.text.split("\n")
        first = max(0, len(rows) - _ROWS)
        pairs = {wanted[n : n + 2] for n in range(0, len(wanted) - 1, 1 + len(wanted) // 16)}
        shares = [
            (sum([pair in row for pair in pairs]), n) for n, row in enumerate(rows[first:], first)
        ]
        likely = [n for share, n in sorted(shares, reverse=True)[:_CLOSELY] if share]
        best = max(((_likeness(wanted, rows[n]), n) for n in likely), default=(0.0, 0))
        if best[0] < _ALIKE:
            return None
        return self._at_row(best[1], "similar", f"row {best[1]} has a similar text")

    # The searched texts, computed once.

    @cached_property
    def _readings(self) -> list[tuple[str, PrintedLines | None]]:
        """The text of the screen, and its other readings."""
        lines = self._moment.lines
        return [(self._moment.text, None), *[(reading.text, reading) for reading in lines]]

    @cached_property
    def _lower(self) -> list[str]:
        return [text.lower() for text, _ in self._readings]

    @cached_property
    def _printed(self) -> str:
        return strip_escapes(self._moment.transcript.tail)

    def _at(self, offset: int, kind: str, says: str, lines: PrintedLines | None = None) -> NearMiss:
        row = self._moment.text.count("\n", 0, offset) if lines is None else lines.row_at(offset)
        return self._at_row(row, kind, says.format(row))

    def _at_row(self, row: int, kind: str, says: str) -> NearMiss:
        return NearMiss(kind, says, row, self._moment.rows[row].text[:_LINE_CHARS])


_PATTERN_SIGN: Final = re.compile(
    r"\\[dDwWsSbB.^$()\[\]+*?|]|[.)\]][*+?]|\[\^|\[\w-\w|\w\|\w|\w[*+](?![*+])|^\^\w|\w\$$|\(\?"
)
"""Texts without such a sign mean themselves: `Continue?`, `v1.2` and `$ ` are patterns too."""


def _meant_pattern(text: str) -> Pattern | None:
    if not _PATTERN_SIGN.search(text):
        return None
    try:
        return Pattern(text)
    except PatternError:  # it is a plain text
        return None


def _any_case(pattern: Pattern) -> Pattern:
    try:
        return Pattern(f"(?i:{pattern.source})")
    except PatternError:  # the pattern is larger without case, and perhaps too large
        return pattern


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _likeness(wanted: str, row: str) -> float:
    """Return how much of a text occurs in some part of a row."""
    matcher = SequenceMatcher(None, row[: 2 * _CHARS], wanted, autojunk=False)
    found = matcher.find_longest_match()
    start = max(0, found.a - found.b)
    return SequenceMatcher(None, row[start : start + len(wanted)], wanted, autojunk=False).ratio()
