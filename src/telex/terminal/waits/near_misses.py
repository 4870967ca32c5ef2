"""What came nearest: for a wait that timed out, the likely reason, found on the screen.

Most waits that fail do so for one of a few reasons: other capitals, a text wrapped over two rows, a
text that was there before the mark or is one's own echo, blanks at the end of a row, a text that
scrolled away, a misspelt word. Each is looked for, the surest first. The row and the line are told,
and so is the reason as a sentence. Rows are counted from 0, as the cursor is.

It is done once per failed wait, and bounded: a few matchers of a tree get an answer, and a likeness
is looked for in a few rows. Pure; used by `conditions`. What it returns is not redacted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Final

from telex.terminal.patterns import Pattern, PatternError
from telex.terminal.transcript import strip_escapes
from telex.terminal.waits.since import new_on_screen

if TYPE_CHECKING:
    from telex.terminal.waits.evidence import Moment
    from telex.terminal.waits.since import Mark

_ANSWERS: Final = 8
"""So many matchers of one tree get a nearest miss; a tree may have hundreds, and each costs."""
_ROWS: Final = 200
"""So many rows, the last ones, are compared for likeness; of the likeliest few in earnest."""
_CLOSELY: Final = 3
_CHARS: Final = 160
"""Longer texts are compared by so much of them."""
_LINE_CHARS: Final = 1000
_SPACED_CHARS: Final = 32 * 1024
"""So much, at the end of the screen, is read without regard to its blanks."""
_ALIKE: Final = 0.6
"""Below it, a likeness is chance."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """Something that was almost it."""

    kind: str
    """`older`, `echo`, `blanks`, `case`, `wrapped`, `spacing`, `gone`, `escapes` or `similar`."""
    says: str
    row: int | None = None
    line: str | None = None

    def render(self) -> dict[str, object]:
        told: dict[str, object] = {"kind": self.kind, "says": self.says}
        if self.row is not None:
            told["row"] = self.row
        if self.line is not None:
            told["line"] = self.line
        return told


_OLD_OR_ECHO: Final = NearMiss(
    "older", "it was printed before the mark, or is the echo of the typing"
)


class NearMissSearch:
    """Near misses in one moment. What several matchers need is worked out once."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self._left = _ANSWERS

    def for_text(self, text: str, mark: Mark | None) -> NearMiss | None:
        """Why a text is not on the screen, or not new there."""
        if not self._may_answer() or not text:
            return None
        return (
            (mark and self._not_new(text, mark))
            or self._other_blanks(text)
            or self._other_case(text)
            or self._wrapped(text)
            or self._gone(text)
            or self._similar(text)
        )

    def for_pattern(self, pattern: Pattern, mark: Mark | None) -> NearMiss | None:
        """Why a pattern does not match the screen, or nothing new there."""
        if not self._may_answer():
            return None
        screen = self._moment.text
        if mark and (found := pattern.search(screen)):
            return self._stale(*found.span, mark)
        if found := _any_case(pattern).search(screen):
            return self._at(found.span[0], "case", "row {} matches but for upper and lower case")
        if (found := pattern.search(self._joined[0])) and (row := self._joint(found.span)) >= 0:
            return self._at_row(
                row, "wrapped", f"a match stands wrapped over rows {row} and {row + 1}"
            )
        if pattern.search(self._printed):
            return NearMiss(
                "gone", "it matches what was printed, but not what is still on the screen"
            )
        return None

    def for_printed(self, text: str, mark: Mark | None) -> NearMiss | None:
        """Why a text is not in the transcript, or not new there."""
        if not self._may_answer() or not text:
            return None
        tail = self._moment.transcript.tail
        if mark and text in tail:
            return _OLD_OR_ECHO
        if text in self._printed:
            return NearMiss(
                "escapes", "it was printed with escape sequences within; use the screen"
            )
        if text.lower() in tail.lower():
            return NearMiss("case", "it was printed in other upper and lower case")
        return None

    def for_printed_pattern(self, pattern: Pattern, mark: Mark | None) -> NearMiss | None:
        """Why a pattern does not match the transcript, or nothing new there."""
        if not self._may_answer():
            return None
        tail = self._moment.transcript.tail
        if mark and pattern.search(tail):
            return _OLD_OR_ECHO
        if pattern.search(self._printed):
            return NearMiss(
                "escapes", "it matches what was printed, but for escape sequences within"
            )
        if _any_case(pattern).search(tail):
            return NearMiss("case", "it matches but for upper and lower case")
        return None

    # One reason each.

    def _may_answer(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def _not_new(self, text: str, mark: Mark) -> NearMiss | None:
        at = self._moment.text.rfind(text)
        return None if at < 0 else self._stale(at, at + len(text), mark)

    def _stale(self, start: int, end: int, mark: Mark) -> NearMiss:
        if new_on_screen(replace(mark, typed=""), self._moment).touches(start, end):
            return self._at(start, "echo", "row {} has it, as the echo of what was typed")
        return self._at(start, "older", "row {} has it, but it was there before the mark")

    def _other_blanks(self, text: str) -> NearMiss | None:
        """Rows end at their last character, so no blank ever stands before a line's end."""
        trimmed = "\n".join([line.rstrip(" ") for line in text.split("\n")])
        if trimmed in ("", text) or (at := self._moment.text.rfind(trimmed)) < 0:
            return None
        return self._at(at, "blanks", "row {} has it without the blanks at the end")

    def _other_case(self, text: str) -> NearMiss | None:
        at = self._lower.rfind(text.lower())
        return (
            None if at < 0 else self._at(at, "case", "row {} has it in other upper and lower case")
        )

    def _wrapped(self, text: str) -> NearMiss | None:
        joined = self._joined[0]
        if (at := joined.rfind(text)) >= 0 and (row := self._joint((at, at + len(text)))) >= 0:
            return self._at_row(row, "wrapped", f"it stands wrapped over rows {row} and {row + 1}")
        if _squeezed(text) in _squeezed(self._moment.text[-_SPACED_CHARS:]):
            return NearMiss(
                "spacing", "it is on the screen with other blanks or line breaks within"
            )
        return None

    def _gone(self, text: str) -> NearMiss | None:
        if text not in self._printed:
            return None
        return NearMiss("gone", "it was printed, but it is not on the screen any more")

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
        return self._at_row(best[1], "similar", f"row {best[1]} has something like it")

    # What is looked at, worked out once.

    @cached_property
    def _lower(self) -> str:
        return self._moment.text.lower()

    @cached_property
    def _printed(self) -> str:
        return strip_escapes(self._moment.transcript.tail)

    @cached_property
    def _joined(self) -> tuple[str, list[int]]:
        """The rows with those that wrap joined to the next, and where each row starts in that.
        Empty if no row wraps."""
        if not any(row.wrapped for row in self._moment.rows):
            return "", []
        parts: list[str] = []
        starts: list[int] = []
        length = 0
        for row in self._moment.rows:
            starts.append(length)
            text = row.text.ljust(row.cols) if row.wrapped else row.text + "\n"
            parts.append(text)
            length += len(text)
        return "".join(parts), starts

    def _joint(self, span: tuple[int, int]) -> int:
        """The row at whose end a part of the joined rows is cut in two; -1 if none is."""
        cuts = [row for row, at in enumerate(self._joined[1]) if span[0] < at < span[1]]
        return cuts[0] - 1 if cuts else -1

    def _at(self, offset: int, kind: str, says: str) -> NearMiss:
        row = self._moment.text.count("\n", 0, offset)
        return self._at_row(row, kind, says.format(row))

    def _at_row(self, row: int, kind: str, says: str) -> NearMiss:
        return NearMiss(kind, says, row, self._moment.rows[row].text[:_LINE_CHARS])


def _any_case(pattern: Pattern) -> Pattern:
    try:
        return Pattern(f"(?i:{pattern.source})")
    except PatternError:  # larger by the other case, and so perhaps too large
        return pattern


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _likeness(wanted: str, row: str) -> float:
    """How much of a text some part of a row has."""
    matcher = SequenceMatcher(None, row[: 2 * _CHARS], wanted, autojunk=False)
    found = matcher.find_longest_match()
    start = max(0, found.a - found.b)
    return SequenceMatcher(None, row[start : start + len(wanted)], wanted, autojunk=False).ratio()
