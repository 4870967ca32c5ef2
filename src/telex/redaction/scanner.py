"""The scanner: it reads one visible text and decides which of its characters are hidden.

A scanner gets the text of the screen, or the body of one control string, in pieces of any size. It
finds the leads of the rules, runs a `Candidate` from each lead, and knows up to which offset
everything is decided. It remembers only the undecided end and as much text before it as a lead can
have.

`stream` owns the scanners and the order of the output.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import Enum
from heapq import heappop, heappush
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final

from telex.redaction.candidate import Candidate
from telex.redaction.prefilter import LITERAL_LEAD, WORD_START, ends_in_long_word
from telex.redaction.rules import (
    LEAD_CHARS,
    PREFIX_CHARACTERS,
    UNFINISHED_CHARS,
    UNFINISHED_LEADS,
    RedactionRule,
)
from telex.redaction.shapes import Token

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from telex.redaction.prefilter import Rulebook

_CUT_LITERAL: Final = RedactionRule("literal with many escape sequences in it", Token(r"^\s", 0))


_ESCAPED_BREAKS: Final = ("\\n", "\\r", "\\t")


class Visibility(Enum):
    """The decision about one piece of text."""

    SHOWN = "shown"
    HIDDEN = "hidden"
    """The first piece of a secret; the marker replaces it."""
    STILL_HIDDEN = "still hidden"
    """A further piece of the same secret; it is dropped."""


_HIDDEN: Final = (Visibility.HIDDEN, Visibility.STILL_HIDDEN)


class _Literal:
    """A caller's literal, with the offset up to which the text was searched for it."""

    __slots__ = ("at", "lead", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lead = min(LITERAL_LEAD, len(text))
        """The number of characters after which the literal is likely; a shorter literal must be
        complete."""
        self.at = 0
        """The text before this offset is decided; the text from here on may be the literal."""

    def look(self, scanner: Scanner) -> None:
        """Hide each occurrence, and stop at the first offset where the literal may have begun."""
        text, base, size = scanner.text, scanner.base, len(self.text)
        at = max(self.at, base) - base
        while (found := text.find(self.text, at)) >= 0:
            shown = self.lead - 1 if base + found < scanner.released_until else 0
            scanner.hide(base + found + shown, base + found + size)
            at = found + 1
        at = len(text) if scanner.ended else max(at, len(text) - size + 1)
        while not self.text.startswith(text[at:]):
            at = text.find(self.text[0], at + 1)
            at = len(text) if at < 0 else at
        self.at = base + at

    def is_likely(self, scanner: Scanner) -> bool:
        """Whether enough of the literal came that the rest is expected."""
        return scanner.end - self.at >= self.lead


class Scanner:
    """The state of one visible text. `add` appends text; `settled` is the offset up to which it is
    decided, and `emit` returns the decisions.

    Offsets count visible characters from the beginning of the text. They are in this order: `base`
    (start of the remembered text) <= `emitted` (decisions returned) <= `settled` (decisions known)
    <= `end`.
    """

    __slots__ = (
        "_breaks",
        "_candidates",
        "_hidden",
        "_hiding",
        "_limit",
        "_literals",
        "_passed",
        "base",
        "emitted",
        "ended",
        "released_until",
        "rulebook",
        "settled",
        "text",
    )

    def __init__(self, rulebook: Rulebook, hidden: Sequence[tuple[int, int]] = ()) -> None:
        self.rulebook = rulebook
        self.text = ""
        """The remembered text: the undecided end, and before it enough to recognise a lead."""
        self.base = 0
        """The offset of the first remembered character."""
        self.emitted = 0
        """The offset up to which `emit` returned decisions."""
        self.settled = 0
        """The offset up to which decisions are known."""
        self.ended = False
        self.released_until = 0
        """A lead or literal that begins before this offset is no longer held back."""
        self._limit = 0  # candidates read up to here, so that leads come in order
        self._breaks: list[int] = []  # offsets of escape sequences, which separate words
        self._candidates: list[Candidate] = []
        self._literals = [_Literal(text) for text in rulebook.literals]
        self._passed: dict[int, int] = {}  # by rule, the offset up to which `decide` read
        self._hidden = sorted(hidden)  # a heap
        self._hiding = False

    @property
    def end(self) -> int:
        return self.base + len(self.text)

    @property
    def idle(self) -> bool:
        return not self._candidates and not self._hidden and self.emitted == self.end

    def context(self) -> str:
        """Return the remembered text of an idle scanner. It is long enough to recognise a lead that
        begins in it."""
        if len(self.text) > LEAD_CHARS:
            self._forget()
        return self.text

    @property
    def breaks(self) -> list[int]:
        """The positions in the remembered text where escape sequences stood."""
        return [each - self.base for each in self._breaks] if self._breaks else []

    # For the stream.

    def add(self, runs: Sequence[str]) -> None:
        """Append text and let the rules read it. An escape sequence stood between each two runs."""
        self._forget()
        before = len(self.text)
        self._append(runs)
        begin = max(0, before - LEAD_CHARS)
        for end, start, rule in self.rulebook.leads(self.text, begin, before, self.breaks):
            self._read_to(self.base + end)
            self._begin(rule, self.base + start)
        self._read_to(self.end)
        self._settle()

    def skip(self, runs: Sequence[str], may_wait: Callable[[int], bool]) -> int | None:
        """Append the last runs of a text in which the prefilter found no secret, without reading
        them. The scanner is idle.

        Returns:
            The number of characters at the end that may begin a secret; the scanner leaves them
            out, and they must be added again. None, with nothing changed, if `may_wait` refuses
            that number or if a word at the end must be read.
        """
        text, breaks = self.text, self._breaks
        looked = [literal.at for literal in self._literals]
        self._append(runs)
        start = self._undecided()
        undecided = self.base + len(self.text) - start
        if (undecided and not may_wait(undecided)) or (
            ends_in_long_word(self.text)
            and self.rulebook.may_end_in_suffix_word(self.text, self.breaks)
        ):
            self.text, self._breaks = text, breaks
            for literal, at in zip(self._literals, looked, strict=True):
                literal.at = at
            return None
        if undecided:
            self.text = self.text[:-undecided]
            self._breaks = [each for each in self._breaks if each <= start]
            for literal in self._literals:
                literal.at = min(literal.at, start)
        self._hiding = self._hiding and start == self.emitted
        self.emitted = self.settled = start
        self._forget()
        return undecided

    def unread(self) -> int:
        """Remove the undecided end, if the scanner holds nothing else, so that it can be added
        again with the next piece. Return the number of removed characters."""
        if self._candidates or self._hidden:
            return 0
        undecided = self.end - self.emitted
        if undecided:
            self.text = self.text[:-undecided]
            self._breaks = [each for each in self._breaks if each <= self.emitted]
            for literal in self._literals:
                literal.at = min(literal.at, self.emitted)
        return undecided

    def force(self) -> None:
        """Decide the first undecided text because it was held for too long: a candidate's value
        counts as a secret.

        An unfinished lead is only the public beginning of a secret. It is shown, and still
        recognised if its rest comes.
        """
        at = self.settled
        self.released_until = at + 1
        for candidate in self._candidates:
            if candidate.start is not None and candidate.start <= at:
                candidate.force()
        for literal in self._literals:
            if literal.at <= at and literal.is_likely(self):
                literal.at = self.end
                self._candidates.append(Candidate(self, _CUT_LITERAL, self.end, at))
        self._read_to(self.end)
        self._settle()

    def finish(self) -> None:
        """End the text; every candidate is decided."""
        self.ended = True
        self._read_to(self.end)
        self._settle()

    def emit(self, text: str, output: list[tuple[str, Visibility]]) -> None:
        """Append the decisions about the next characters, which are settled, to `output`."""
        first, stop = self.emitted, self.emitted + len(text)
        here = first
        self.emitted = stop
        while self._hidden and self._hidden[0][0] < stop:
            start, end = heappop(self._hidden)
            if end > stop:
                heappush(self._hidden, (stop, end))
                end = stop
            if start > here:
                output.append((text[here - first : start - first], Visibility.SHOWN))
                self._hiding, here = False, start
            if end > here:
                output.append((text[here - first : end - first], _HIDDEN[self._hiding]))
                self._hiding, here = True, end
        if here < stop:
            output.append((text[here - first :], Visibility.SHOWN))
            self._hiding = False

    def show_all(self) -> bool:
        """Mark all remaining text as emitted and return True, if all of it is shown."""
        if self._hidden or self.settled < self.end or self.emitted == self.end:
            return False
        self.emitted, self._hiding = self.end, False
        return True

    # For the candidates.

    def hide(self, start: int, end: int) -> None:
        if end > start:
            heappush(self._hidden, (start, end))

    def slice(self, start: int, end: int) -> str:
        return self.text[max(0, start - self.base) : min(self._limit, end) - self.base]

    def character(self, position: int) -> str:
        return self.text[position - self.base] if position < self._limit else ""

    def end_of(self, run: re.Pattern[str], position: int, stop: int) -> int:
        """Return where a run of characters ends, as far as the text is known."""
        base = self.base
        found = run.match(self.text, position - base, min(self._limit, stop) - base)
        return base + found.end() if found else position

    def waits_at(self, position: int) -> bool:
        return position >= self._limit and not self.ended

    def _append(self, runs: Sequence[str]) -> None:
        if len(runs) > 1:
            breaks = accumulate(map(len, runs[:-1]), initial=self.end)
            self._breaks = [*self._breaks, *islice(breaks, 1, None)]
        self.text += "".join(runs)

    def _read_to(self, limit: int) -> None:
        self._limit = limit
        if not self._candidates:
            return
        reading: list[Candidate] = []
        rules: set[int] = set()  # rules with an exclusive candidate
        for each in self._candidates:
            if each.advance() and not (each.exclusive and id(each.rule) in rules):
                reading.append(each)
                if each.exclusive:
                    rules.add(id(each.rule))
        self._candidates = reading

    def _begin(self, rule: RedactionRule, start: int) -> None:
        if not self._may_lead(rule, start):
            return
        for each in self._candidates:
            if each.rule is rule and each.exclusive:
                return
        if self._limit <= self._passed.get(id(rule), -1):
            return
        held = (
            (start if start >= self.released_until else self._limit) if rule.hides_prefix else None
        )
        verdict = self.rulebook.decide(rule, self.text, self._limit - self.base)
        if verdict is None or (verdict[0] == verdict[1] and self._breaks[-1:] > [self._limit]):
            self._candidates.append(Candidate(self, rule, self._limit, held))
            return
        first, end, passed = verdict
        if end > first:
            self.hide(self.base + first if held is None else held, self.base + end)
        self._passed[id(rule)] = self.base + passed

    def _settle(self) -> None:
        settled = self._undecided()
        for each in self._candidates:
            if each.start is not None and each.start < settled:
                settled = each.start
        self.settled = max(self.emitted, settled)
        if settled < self.end:
            self._pass_hidden()

    def _undecided(self) -> int:
        """Return the offset where the end of the text may begin a hidden lead or a literal; else
        the end."""
        start = self._unfinished_lead()
        for literal in self._literals:
            literal.look(self)
            if literal.at < start and (
                literal.at >= self.released_until or literal.is_likely(self)
            ):
                start = literal.at
        return max(self.emitted, start)

    def _pass_hidden(self) -> None:
        """Move `settled` over text that one rule hides, whatever another rule still waits for."""
        for start, end in sorted(self._hidden):
            if start <= self.settled < end:
                self.settled = end

    def _unfinished_lead(self) -> int:
        """Return the offset where the end of the text may begin a hidden lead; else the end."""
        end = self.base + len(self.text)
        if self.ended or self.text[-1:] not in PREFIX_CHARACTERS:
            return end
        begin = max(self.emitted, self.released_until, end - UNFINISHED_CHARS)
        starts = [
            self.base + word.start() for word in WORD_START.finditer(self.text, begin - self.base)
        ]
        if self._breaks:
            starts = sorted([*starts, *self._breaks[bisect_left(self._breaks, begin) :]])
        for start in starts:
            if self.text[start - self.base :] in UNFINISHED_LEADS:
                return start
        return end

    def _may_lead(self, rule: RedactionRule, start: int) -> bool:
        if not (rule.prefixes or rule.whole_word) or self._opens_word(start):
            return True
        at = start - self.base  # source code and errors write a line break as `\\n`
        return rule.whole_word and self.text[max(0, at - 2) : at] in _ESCAPED_BREAKS

    def _opens_word(self, offset: int) -> bool:
        """Whether a word may begin at an offset. A mark may stand anywhere, but a dash inside a
        word does not begin one."""
        at = offset - self.base
        before, here = self.text[max(0, at - 1) : at], self.text[at : at + 1]
        inside = before.isascii() and before.isalnum() and (here.isalnum() or here == "-")
        return not inside or offset in self._breaks

    def _forget(self) -> None:
        """Drop emitted text that is not needed to recognise a lead."""
        keep = min(self.emitted, self.base + len(self.text) - LEAD_CHARS)
        if keep > self.base:
            self.text = self.text[keep - self.base :]
            self.base = keep
            self._breaks = [each for each in self._breaks if each >= keep]
