"""One visible text, read rule by rule: what is hidden, what is shown, what is undecided yet.

A lane gets the text of the screen, or the body of one control string, in whatever pieces it comes.
It finds the leads of the rules, lets a `Candidate` read on from each, and knows at any moment up to
where everything is settled. It forgets all but the unsettled end and the length of a lead.

`stream` owns the lanes and the order of the output.
"""

from __future__ import annotations

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
    RedactionRule,
)
from telex.redaction.shapes import Token

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

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
        self._hidden = sorted(hidden)  # a heap
        self._hiding = False

    @property
    def end(self) -> int:
        return self.base + len(self.text)

    @property
    def idle(self) -> bool:
        return not self._candidates and not self._hidden and self.emitted == self.end

    # What the stream says.

    def add(self, runs: Sequence[str]) -> None:
        """Read on. Between two runs there was an escape sequence."""
        self._forget()
        before = len(self.text)
        self._append(runs)
        breaks = [each - self.base for each in self._breaks]
        begin = max(0, before - LEAD_CHARS)
        for end, start, rule in self.book.leads(self.text, begin, before, breaks):
            self._read_to(self.base + end)
            self._begin(rule, self.base + start)
        self._read_to(self.end)
        self._settle()

    def skip(self, runs: Sequence[str], most: int) -> int | None:
        """Pass over a text without a secret, given the last runs of it, when idle; but for its end,
        which may begin one. How many characters that are.

        None, and nothing is done, if they are more than `most`, or if what begins a secret is to be
        shown, so that it must be read.
        """
        text, breaks, emitted = self.text, self._breaks, self.emitted
        looked = [literal.at for literal in self._literals]
        self._append(runs)
        self._settle()
        late = self._late_lead()
        start = self.settled if late is None else min(self.settled, late)
        undecided = self.end - start
        if late is None or undecided > most:
            self.text, self._breaks, self.settled = text, breaks, emitted
            for literal, at in zip(self._literals, looked, strict=True):
                literal.at = at
            return None
        if undecided:
            self.text = self.text[:-undecided]
            self._breaks = [each for each in self._breaks if each <= start]
            for literal in self._literals:
                literal.at = min(literal.at, start)
        self.emitted = self.settled = start
        self._hiding = self._hiding and start == emitted
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

    def verdicts(self, text: str) -> Iterator[tuple[str, LaneVerdict]]:
        """Over the next characters, which are settled."""
        first, stop = self.emitted, self.emitted + len(text)
        here = first
        self.emitted = stop
        while self._hidden and self._hidden[0][0] < stop:
            start, end = heappop(self._hidden)
            if end > stop:
                heappush(self._hidden, (stop, end))
                end = stop
            if start > here:
                yield text[here - first : start - first], LaneVerdict.SHOWN
                self._hiding, here = False, start
            if end > here:
                yield text[here - first : end - first], _HIDDEN[self._hiding]
                self._hiding, here = True, end
        if here < stop:
            yield text[here - first :], LaneVerdict.SHOWN
            self._hiding = False

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

    def match(self, pattern: re.Pattern[str], position: int) -> re.Match[str] | None:
        return pattern.match(self.text, position - self.base, self._limit - self.base)

    def waits_at(self, position: int) -> bool:
        return position >= self._limit and not self.ended

    # Its own.

    def _append(self, runs: Sequence[str]) -> None:
        breaks = accumulate(map(len, runs[:-1]), initial=self.end)
        self._breaks = [*self._breaks, *islice(breaks, 1, None)]
        self.text += "".join(runs)

    def _read_to(self, limit: int) -> None:
        self._limit = limit
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
        held = (start if start >= self.let_go else self._limit) if rule.hides_prefix else None
        self._candidates.append(Candidate(self, rule, self._limit, held))

    def _settle(self) -> None:
        settled = self._unfinished_lead()
        for each in self._candidates:
            if each.start is not None and each.start < settled:
                settled = each.start
        for literal in self._literals:
            literal.look(self)
            if literal.at < settled and (literal.at >= self.let_go or literal.is_likely(self)):
                settled = literal.at
        self.settled = max(self.emitted, settled)
        if settled < self.end:
            self._pass_hidden()

    def _pass_hidden(self) -> None:
        """What one rule hides is settled, whatever another still waits for."""
        for start, end in sorted(self._hidden):
            if start <= self.settled < end:
                self.settled = end

    def _unfinished_lead(self) -> int:
        """Where the end of the text may be the beginning of a hidden lead, or the end itself."""
        if not self.ended and self.text[-1:] in PREFIX_CHARACTERS:
            begin = max(self.emitted, self.let_go, self.end - UNFINISHED_CHARS)
            for offset in range(begin, self.end):
                if self.text[offset - self.base :] in UNFINISHED_LEADS and self._opens_word(offset):
                    return offset
        return self.end

    def _late_lead(self) -> int | None:
        """Where a hidden prefix stands so near the end that it cannot be told what it leads to, or
        the end; None if another lead does. What must come next comes in the same line."""
        line = max(self.text.rfind("\n") + 1, len(self.text) - LEAD_CHARS, 0)
        first = self.end
        if line < len(self.text):
            breaks = [each - self.base for each in self._breaks]
            for end, start, rule in self.book.leads(self.text, line, 0, breaks):
                if rule.waits_after(self.text[end:]) and self._may_lead(rule, self.base + start):
                    if not rule.hides_prefix:
                        return None
                    first = min(first, self.base + start)
        return first

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
        keep = min(self.emitted, self.end - LEAD_CHARS)
        if keep > self.base:
            self.text = self.text[keep - self.base :]
            self.base = keep
            self._breaks = [each for each in self._breaks if each >= keep]
