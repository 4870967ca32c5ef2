"""One visible text, read rule by rule: what is hidden, what is shown, what is undecided yet.

A lane gets the text of the screen, or the body of one control string, in whatever pieces it comes.
It finds the leads of the rules, lets a `Candidate` read on from each, and knows at any moment up to
where everything is settled. It forgets all but the unsettled end and the length of a lead.

`stream` owns the lanes and the order of the output.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import Enum
from heapq import heappop, heappush
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final

from telex.redaction.candidate import Candidate
from telex.redaction.rules import (
    LEAD_CHARS,
    LITERAL_LEAD,
    PREFIX_CHARACTERS,
    UNFINISHED_CHARS,
    UNFINISHED_LEADS,
    WORD_START,
    RedactionRule,
    ends_in_word,
)
from telex.redaction.shapes import Token

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from telex.redaction.rules import Rulebook

_CUT_LITERAL: Final = RedactionRule(
    "literal with a flood of escape sequences in it", Token(r"^\s", 0)
)


_ESCAPED_BREAKS: Final = ("\\n", "\\r", "\\t")


class LaneVerdict(Enum):
    """What becomes of a piece of text."""

    SHOWN = "shown"
    HIDDEN = "hidden"
    """The first piece of a secret: the marker stands for it."""
    STILL_HIDDEN = "still hidden"
    """A further piece of the same secret: nothing stands for it."""


_HIDDEN: Final = (LaneVerdict.HIDDEN, LaneVerdict.STILL_HIDDEN)


class _Literal:
    """A caller's literal, and up to where it was looked for."""

    __slots__ = ("at", "lead", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lead = min(LITERAL_LEAD, len(text))
        """So much of it makes it likely; a shorter one has to be whole."""
        self.at = 0
        """What comes before this is decided; from here on the text may be the literal."""

    def look(self, lane: Lane) -> None:
        """Hide it wherever it stands, and stop where it may have begun."""
        text, base, size = lane.text, lane.base, len(self.text)
        at = max(self.at, base) - base
        while (found := text.find(self.text, at)) >= 0:
            shown = self.lead - 1 if base + found < lane.let_go else 0
            lane.hide(base + found + shown, base + found + size)
            at = found + 1
        at = len(text) if lane.ended else max(at, len(text) - size + 1)
        while not self.text.startswith(text[at:]):
            at = text.find(self.text[0], at + 1)
            at = len(text) if at < 0 else at
        self.at = base + at

    def is_likely(self, lane: Lane) -> bool:
        """So much of it came that the rest is expected, not merely possible."""
        return lane.end - self.at >= self.lead


class Lane:
    """Offsets count visible characters since the beginning of this text."""

    __slots__ = (
        "_breaks",
        "_candidates",
        "_hidden",
        "_hiding",
        "_limit",
        "_literals",
        "_passed",
        "base",
        "book",
        "emitted",
        "ended",
        "let_go",
        "settled",
        "text",
    )

    def __init__(self, book: Rulebook, hidden: Sequence[tuple[int, int]] = ()) -> None:
        self.book = book
        self.text = ""
        """What is remembered: the unsettled end, and enough before it to recognise a lead."""
        self.base = 0
        """The offset of the first character remembered."""
        self.emitted = 0
        """Up to here the verdicts were given."""
        self.settled = 0
        """Up to here they can be."""
        self.ended = False
        self.let_go = 0
        """What may have begun before this is held no longer."""
        self._limit = 0  # candidates read no further, so that they meet each lead in its turn
        self._breaks: list[int] = []  # where an escape sequence stands, which parts words too
        self._candidates: list[Candidate] = []
        self._literals = [_Literal(text) for text in book.literals]
        self._passed: dict[int, int] = {}  # by rule, up to where it has read at a glance
        self._hidden = sorted(hidden)  # a heap
        self._hiding = False

    @property
    def end(self) -> int:
        return self.base + len(self.text)

    @property
    def idle(self) -> bool:
        return not self._candidates and not self._hidden and self.emitted == self.end

    def context(self) -> str:
        """What is remembered of the text, when idle: enough to recognise a lead begun in it."""
        if len(self.text) > LEAD_CHARS:
            self._forget()
        return self.text

    @property
    def breaks(self) -> list[int]:
        """Where sequences stood in the text that is remembered."""
        return [each - self.base for each in self._breaks] if self._breaks else []

    # What the stream says.

    def add(self, runs: Sequence[str]) -> None:
        """Read on. Between two runs there was an escape sequence."""
        self._forget()
        before = len(self.text)
        self._append(runs)
        begin = max(0, before - LEAD_CHARS)
        for end, start, rule in self.book.leads(self.text, begin, before, self.breaks):
            self._read_to(self.base + end)
            self._begin(rule, self.base + start)
        self._read_to(self.end)
        self._settle()

    def skip(self, runs: Sequence[str], may_wait: Callable[[int], bool]) -> int | None:
        """Pass over a text without a secret, given the last runs of it, when idle; but for its end,
        which may begin one. How many characters that are.

        None, and nothing is done, if they are too many, which `may_wait` tells, or if a word at the
        end must be read.
        """
        text, breaks = self.text, self._breaks
        looked = [literal.at for literal in self._literals]
        self._append(runs)
        start = self._undecided()
        undecided = self.base + len(self.text) - start
        if (undecided and not may_wait(undecided)) or (
            ends_in_word(self.text) and self.book.is_word_begun(self.text, self.breaks)
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
        """Forget the end that may begin a secret, if that is all there is, so that it can be read
        again with what comes next. How long that was."""
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
        """What has been held the longest has been held too long: take it for a secret.

        An unfinished lead is none, only the public beginning of one: it is let go, and still
        recognised should the rest come.
        """
        at = self.settled
        self.let_go = at + 1
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
        """There is no more text."""
        self.ended = True
        self._read_to(self.end)
        self._settle()

    def tell(self, text: str, told: list[tuple[str, LaneVerdict]]) -> None:
        """Give the verdicts over the next characters, which are settled."""
        first, stop = self.emitted, self.emitted + len(text)
        here = first
        self.emitted = stop
        while self._hidden and self._hidden[0][0] < stop:
            start, end = heappop(self._hidden)
            if end > stop:
                heappush(self._hidden, (stop, end))
                end = stop
            if start > here:
                told.append((text[here - first : start - first], LaneVerdict.SHOWN))
                self._hiding, here = False, start
            if end > here:
                told.append((text[here - first : end - first], _HIDDEN[self._hiding]))
                self._hiding, here = True, end
        if here < stop:
            told.append((text[here - first :], LaneVerdict.SHOWN))
            self._hiding = False

    def show_all(self) -> bool:
        """Give one verdict over all text there is, if all of it is shown; false if it is not."""
        if self._hidden or self.settled < self.end or self.emitted == self.end:
            return False
        self.emitted, self._hiding = self.end, False
        return True

    # What the candidates say.

    def hide(self, start: int, end: int) -> None:
        if end > start:
            heappush(self._hidden, (start, end))

    def slice(self, start: int, end: int) -> str:
        return self.text[max(0, start - self.base) : min(self._limit, end) - self.base]

    def character(self, position: int) -> str:
        return self.text[position - self.base] if position < self._limit else ""

    def end_of(self, run: re.Pattern[str], position: int, stop: int) -> int:
        """Where the run of characters at a position ends, as far as is known."""
        base = self.base
        found = run.match(self.text, position - base, min(self._limit, stop) - base)
        return base + found.end() if found else position

    def waits_at(self, position: int) -> bool:
        return position >= self._limit and not self.ended

    # Its own.

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
        rules: set[int] = set()  # that are being read to the end of a value already
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
        held = (start if start >= self.let_go else self._limit) if rule.hides_prefix else None
        verdict = self.book.glance(rule, self.text, self._limit - self.base)
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
        """Where the end of the text may begin a hidden lead or a literal, or the end itself."""
        start = self._unfinished_lead()
        for literal in self._literals:
            literal.look(self)
            if literal.at < start and (literal.at >= self.let_go or literal.is_likely(self)):
                start = literal.at
        return max(self.emitted, start)

    def _pass_hidden(self) -> None:
        """What one rule hides is settled, whatever another still waits for."""
        for start, end in sorted(self._hidden):
            if start <= self.settled < end:
                self.settled = end

    def _unfinished_lead(self) -> int:
        """Where the end of the text may be the beginning of a hidden lead, or the end itself."""
        end = self.base + len(self.text)
        if self.ended or self.text[-1:] not in PREFIX_CHARACTERS:
            return end
        begin = max(self.emitted, self.let_go, end - UNFINISHED_CHARS)
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
        """Whether a word may begin here; a mark may stand anywhere, but for a dash in a word."""
        at = offset - self.base
        before, here = self.text[max(0, at - 1) : at], self.text[at : at + 1]
        inside = before.isascii() and before.isalnum() and (here.isalnum() or here == "-")
        return not inside or offset in self._breaks

    def _forget(self) -> None:
        """Drop what was emitted and is no longer needed to recognise a lead."""
        keep = min(self.emitted, self.base + len(self.text) - LEAD_CHARS)
        if keep > self.base:
            self.text = self.text[keep - self.base :]
            self.base = keep
            self._breaks = [each for each in self._breaks if each >= keep]
