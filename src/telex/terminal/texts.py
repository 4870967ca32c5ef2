"""Texts and patterns to wait for, on the screen and in the transcript.

What is new since a mark is decided in `since`; what almost matched is found in `nearest`. Made by
`matchers.compile`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from telex.terminal.awaited import Awaited, verdict
from telex.terminal.evidence import Evidence
from telex.terminal.since import new_in_transcript, new_on_screen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.terminal.awaited import Explanation
    from telex.terminal.evidence import Moment
    from telex.terminal.nearest import Search
    from telex.terminal.patterns import Found, Pattern
    from telex.terminal.since import Mark, New

_MATCHES: Final = 10_000
"""So many matches of a pattern are looked at for a new one: a screen holds a million characters,
and a pattern may match at each."""


class ScreenText(Awaited):
    """This text stands on the screen."""

    def __init__(self, text: str, mark: Mark | None = None) -> None:
        self._text, self._mark = text, mark
        self._at_row_end = _at_row_end(text)
        self._evidence = Evidence("contains_text", {"text": text})

    def look(self, moment: Moment) -> Evidence | None:
        text = moment.text
        if self._stands(self._text, text, moment):
            return self._evidence
        if self._at_row_end and self._stands(self._at_row_end, f"{text}\n", moment):
            return self._evidence
        return None

    def _stands(self, wanted: str, text: str, moment: Moment) -> bool:
        if wanted not in text:
            return False
        return self._mark is None or new_on_screen(self._mark, moment).finds(wanted, text)

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        if self.look(moment):
            return verdict(self._evidence, True, "the text is on the screen")
        miss = misses.for_text(self._text, self._mark)
        return verdict(self._evidence, False, _not_shown("the text is not", self._mark), miss)


def _at_row_end(text: str) -> str:
    """The same text where a row ends: there its last blanks are not told. Else empty.

    `$ ` and `>>> ` are what people wait for, and nobody sees that the blank is missing.
    """
    words = text.rstrip(" ")
    return f"{words}\n" if words and words != text else ""


class ScreenPattern(Awaited):
    """The screen matches this pattern."""

    def __init__(self, pattern: Pattern, mark: Mark | None = None) -> None:
        self._pattern, self._mark = pattern, mark

    def look(self, moment: Moment) -> Evidence | None:
        found = self._pattern.search(moment.text)
        if found is not None and self._mark is not None:
            found = _first_new(
                new_on_screen(self._mark, moment), self._pattern.finditer(moment.text)
            )
        return _matched_pattern("screen_regex", self._pattern, found)

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        asked_for = Evidence("screen_regex", {"pattern": self._pattern.source})
        if self.look(moment):
            return verdict(asked_for, True, "the pattern matches the screen")
        miss = misses.for_pattern(self._pattern, self._mark)
        return verdict(asked_for, False, _not_shown("no match of the pattern is", self._mark), miss)


class PrintedText(Awaited):
    """This text was printed."""

    def __init__(self, text: str, mark: Mark | None = None) -> None:
        self._text, self._mark = text, mark
        self._evidence = Evidence("transcript_contains", {"text": text})

    def look(self, moment: Moment) -> Evidence | None:
        if self._mark is None:
            return self._evidence if self._text in moment.transcript.tail else None
        text = moment.transcript.since(self._mark.transcript)
        if self._text not in text:
            return None
        new = new_in_transcript(self._mark, text)
        return self._evidence if new.finds(self._text, text) else None

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        if self.look(moment):
            return verdict(self._evidence, True, "the text was printed")
        miss = misses.for_printed(self._text, self._mark)
        return verdict(self._evidence, False, _not_printed("the text was not", self._mark), miss)


class PrintedPattern(Awaited):
    """What was printed matches this pattern."""

    def __init__(self, pattern: Pattern, mark: Mark | None = None) -> None:
        self._pattern, self._mark = pattern, mark

    def look(self, moment: Moment) -> Evidence | None:
        if self._mark is None:
            found = self._pattern.search(moment.transcript.tail)
        else:
            text = moment.transcript.since(self._mark.transcript)
            found = self._pattern.search(text)
            if found is not None:
                found = _first_new(
                    new_in_transcript(self._mark, text), self._pattern.finditer(text)
                )
        return _matched_pattern("transcript_regex", self._pattern, found)

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        asked_for = Evidence("transcript_regex", {"pattern": self._pattern.source})
        if self.look(moment):
            return verdict(asked_for, True, "the pattern matches what was printed")
        miss = misses.for_printed_pattern(self._pattern, self._mark)
        why = _not_printed("no match of the pattern was", self._mark)
        return verdict(asked_for, False, why, miss)


def _first_new(new: New, matches: Iterable[Found]) -> Found | None:
    fresh = (found for found in islice(matches, _MATCHES) if new.touches(*found.span))
    return next(fresh, None)


def _matched_pattern(kind: str, pattern: Pattern, found: Found | None) -> Evidence | None:
    if found is None:
        return None
    return Evidence(kind, {"pattern": pattern.source, "capture": found.capture})


def _not_shown(what: str, mark: Mark | None) -> str:
    return f"{what} on the screen" if mark is None else f"{what} new on the screen since the mark"


def _not_printed(what: str, mark: Mark | None) -> str:
    return f"{what} printed" if mark is None else f"{what} printed since the mark"


class AbsentText(Awaited):
    """This text does not stand on the screen."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._there = ScreenText(text)
        self._evidence = Evidence("text_absent", {"text": text})

    def look(self, moment: Moment) -> Evidence | None:
        return None if self._there.look(moment) else self._evidence

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        if self.look(moment):
            return verdict(self._evidence, True, "the text is not on the screen")
        row = moment.text.count("\n", 0, moment.text.find(self._text.rstrip(" ")))
        return verdict(self._evidence, False, f"the text is still on the screen, in row {row}")
