"""Conditions: compiled matchers, as pure functions of a moment.

Each kind of matcher has one: texts and patterns, states other than text, and combinations. A
condition reads no clock, waits for nothing, and has no state between checks. `since` decides which
text is new since a mark; `near_misses` finds text that almost matched. Created only by `compiler`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, Final

from telex.redaction import Redactor
from telex.terminal.input_state import UNKNOWN, WAITING
from telex.terminal.waits.evidence import Evidence
from telex.terminal.waits.near_misses import NearMissSearch
from telex.terminal.waits.since import new_in_transcript, new_on_screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.terminal.input_state import WaitingState
    from telex.terminal.patterns import Pattern, PatternMatch
    from telex.terminal.waits.evidence import Moment, PredicateRunner, PrintedLines
    from telex.terminal.waits.matchers import Predicate
    from telex.terminal.waits.near_misses import NearMiss
    from telex.terminal.waits.since import Mark, NewSpans


Explanation = dict[str, object]
"""Plain data: `kind`, `matched`, `why` as a sentence, the values of the matcher, and `nearest` or
`branches`.
"""


def asked_for(explained: Explanation) -> str:
    """Return what the matcher of an explanation asks for, in words; a long text is cut. The text
    comes first: pytest's summary shows only the beginning."""
    kind, branches = explained["kind"], explained.get("branches")
    if isinstance(branches, list):
        if kind == "not":
            return f"the opposite of {asked_for(branches[0])}"
        return f" {_JOINTS[str(kind)]} ".join(map(asked_for, branches)) or "nothing"
    quote = Redactor().quote
    quoted = {
        name: quote(value) if isinstance(value, str) else value for name, value in explained.items()
    }
    return _ASKED[str(kind)].format(**quoted)


_JOINTS: Final = {"any": "or", "all": "and"}
_ASKED: Final = {
    "contains_text": "{text}",
    "screen_regex": "the pattern {pattern}",
    "transcript_contains": "the printed text {text}",
    "transcript_regex": "the printed pattern {pattern}",
    "text_absent": "the absence of {text}",
    "title": "the title {text}",
    "cursor_at": "the cursor at row {row}, column {col}",
    "screen_stable": "a screen that does not change for {min_ms} ms",
    "screen_changed": "a change of the screen",
    "process_exited": "the end of the program",
    "exit_code": "the exit code {code}",
    "input_wanted": "a wait for input",
    "lua": "the predicate {predicate} of {plugin}",
}


class WaitCondition(ABC):
    """A condition that a wait checks. Each kind of matcher has a subclass."""

    allows_exit: bool = False
    """Whether the condition may become true after the program has exited, all output was read, and
    a check at that moment failed. The screen, the transcript and the title no longer change then,
    so texts, patterns, the cursor, the title and their absence are decided. `process_exited` and
    `exit_code` are decided too, because that check saw the exit; and so is `not` of all these. Two
    kinds remain: `screen_stable`, which becomes true by time alone, and `lua`, which may check
    anything. Even for these `wake_at` decides: without predicates and without a time to wake at,
    nothing will change.
    """

    watches_input: bool = False
    """Whether the condition depends on what the program waits for. That may change without output,
    so the session looks by itself while such a wait is pending."""

    @abstractmethod
    def look(self, moment: Moment) -> Evidence | None:
        """Return the evidence if the condition is true at this moment, otherwise None."""

    def decided(self, moment: Moment) -> bool:
        """Return whether the result of `look` is final. A predicate runs elsewhere and may not have
        returned yet; `not` must not treat that as false.
        """
        return True

    def may_come(self, moment: Moment) -> bool:
        """Return whether the condition may still become true without the program."""
        return self.allows_exit

    def wake_at(self, moment: Moment) -> float | None:
        """Return when time alone could next change the result; always after `moment.now`."""
        return None

    def explain(self, moment: Moment) -> Explanation:
        """Explain a failed wait to a person: the result of each branch, and the nearest miss."""
        return self.explain_with(moment, NearMissSearch(moment))

    @abstractmethod
    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        """Explain as `explain` does, with one search for near misses shared by all branches."""


def explanation(
    asked_for: Evidence, matched: bool, why: str, miss: NearMiss | None = None
) -> Explanation:
    """Return the explanation of a matcher for one moment."""
    result: Explanation = {**asked_for.render(), "matched": matched, "why": why}
    if miss is not None:
        result["nearest"] = miss.render()
    return result


# Texts and patterns, on the screen and in the transcript.


_MATCHES: Final = 10_000
"""The number of matches of a pattern that are checked for new text: a screen has up to a million
characters, and a pattern may match at each.
"""


class ScreenText(WaitCondition):
    """The text is on the screen."""

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
        for lines in moment.lines:
            if self._stands(self._text, lines.text, moment, lines):
                return self._evidence
        return None

    def row(self, moment: Moment) -> int:
        """Return the row where the text begins; it must be on the screen."""
        if (at := moment.text.find(self._text.rstrip(" "))) >= 0:
            return moment.text.count("\n", 0, at)
        places = [(lines, lines.text.find(self._text)) for lines in moment.lines]
        return next((lines.row_at(at) for lines, at in places if at >= 0), 0)

    def _stands(
        self, wanted: str, text: str, moment: Moment, lines: PrintedLines | None = None
    ) -> bool:
        if wanted not in text:
            return False
        return self._mark is None or new_on_screen(self._mark, moment, lines).finds(wanted, text)

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        if self.look(moment):
            return explanation(self._evidence, True, "the text is on the screen")
        miss = misses.for_text(self._text, self._mark)
        return explanation(self._evidence, False, _not_shown("the text is not", self._mark), miss)


def _at_row_end(text: str) -> str:
    """Return the text as it occurs at the end of a row, where trailing blanks are dropped; else "".

    People wait for `$ ` and `>>> `, and cannot see that the blank is missing.
    """
    words = text.rstrip(" ")
    return f"{words}\n" if words and words != text else ""


class ScreenPattern(WaitCondition):
    """The pattern matches the screen."""

    def __init__(self, pattern: Pattern, mark: Mark | None = None) -> None:
        self._pattern, self._mark = pattern, mark

    def look(self, moment: Moment) -> Evidence | None:
        found = self._find(moment.text, moment)
        for lines in () if found else moment.lines:
            found = found or self._find(lines.text, moment, lines)
        return _matched_pattern("screen_regex", self._pattern, found)

    def _find(
        self, text: str, moment: Moment, lines: PrintedLines | None = None
    ) -> PatternMatch | None:
        found = self._pattern.search(text)
        if found is None or self._mark is None:
            return found
        return _first_new(new_on_screen(self._mark, moment, lines), self._pattern.finditer(text))

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        asked_for = Evidence("screen_regex", {"pattern": self._pattern.source})
        if self.look(moment):
            return explanation(asked_for, True, "the pattern matches the screen")
        miss = misses.for_pattern(self._pattern, self._mark)
        return explanation(
            asked_for, False, _not_shown("no match of the pattern is", self._mark), miss
        )


class PrintedText(WaitCondition):
    """The text was printed."""

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

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        if self.look(moment):
            return explanation(self._evidence, True, "the text was printed")
        miss = misses.for_printed(self._text, self._mark)
        return explanation(
            self._evidence, False, _not_printed("the text was not", self._mark), miss
        )


class PrintedPattern(WaitCondition):
    """The pattern matches the printed text."""

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

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        asked_for = Evidence("transcript_regex", {"pattern": self._pattern.source})
        if self.look(moment):
            return explanation(asked_for, True, "the pattern matches the printed text")
        miss = misses.for_printed_pattern(self._pattern, self._mark)
        why = _not_printed("no match of the pattern was", self._mark)
        return explanation(asked_for, False, why, miss)


def _first_new(new: NewSpans, matches: Iterable[PatternMatch]) -> PatternMatch | None:
    fresh = (found for found in islice(matches, _MATCHES) if new.touches(*found.span))
    return next(fresh, None)


def _matched_pattern(kind: str, pattern: Pattern, found: PatternMatch | None) -> Evidence | None:
    if found is None:
        return None
    groups = {"groups": found.groups} if found.groups else {}
    return Evidence(kind, {"pattern": pattern.source, "capture": found.capture, **groups})


def _not_shown(what: str, mark: Mark | None) -> str:
    return f"{what} on the screen" if mark is None else f"{what} new on the screen since the mark"


def _not_printed(what: str, mark: Mark | None) -> str:
    return f"{what} printed" if mark is None else f"{what} printed since the mark"


class AbsentText(WaitCondition):
    """The text is not on the screen."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._there = ScreenText(text)
        self._evidence = Evidence("text_absent", {"text": text})

    def look(self, moment: Moment) -> Evidence | None:
        return None if self._there.look(moment) else self._evidence

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        if self.look(moment):
            return explanation(self._evidence, True, "the text is not on the screen")
        why = f"the text is still on the screen, in row {self._there.row(moment)}"
        return explanation(self._evidence, False, why)


# States other than text: the title, the cursor, stability, the exit, a predicate.


class TitleContains(WaitCondition):
    """The window title contains the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._evidence = Evidence("title", {"text": text})

    def look(self, moment: Moment) -> Evidence | None:
        title = moment.title
        return self._evidence if title is not None and self._text in title else None

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        if (title := moment.title) is None:
            return explanation(self._evidence, False, "the program has set no title")
        return explanation(self._evidence, self._text in title, f"the title is {title!r}")


class CursorIsAt(WaitCondition):
    """The cursor is at the given cell."""

    def __init__(self, row: int, col: int) -> None:
        self._row, self._col = row, col
        self._evidence = Evidence("cursor_at", {"row": row, "col": col})

    def look(self, moment: Moment) -> Evidence | None:
        cursor = moment.cursor
        there = cursor.row == self._row and cursor.col == self._col
        return self._evidence if there else None

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        cursor = moment.cursor
        why = f"the cursor is at row {cursor.row}, column {cursor.col}"
        return explanation(self._evidence, self.look(moment) is not None, why)


class Stable(WaitCondition):
    """Nothing changed for the given time. The plain form counts from the beginning of the wait, as
    the spec's original does, so that a wait right after an input never ends before the program
    reacts. The other form counts from the last visible change or input, and may be true at once.
    """

    allows_exit = True

    def __init__(self, min_ms: int, from_change: bool = False) -> None:
        self._min_ms, self._from_change = min_ms, from_change
        self._evidence = Evidence("screen_stable", {"min_ms": min_ms})

    def _start(self, moment: Moment) -> float:
        if self._from_change:
            return moment.last_change
        return max(moment.began, moment.last_activity)

    def _due(self, moment: Moment) -> float:
        # `look` and `wake_at` compare the same number: with different rounding, a timer could fire
        # slightly too early and never be set again.
        return self._start(moment) + self._min_ms / 1000

    def look(self, moment: Moment) -> Evidence | None:
        return self._evidence if moment.now >= self._due(moment) else None

    def wake_at(self, moment: Moment) -> float | None:
        due = self._due(moment)
        return due if due > moment.now else None

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        elapsed = int(max(0.0, moment.now - self._start(moment)) * 1000)
        what = "the screen changed" if self._from_change else "the wait began"
        if not self._from_change and moment.last_activity > moment.began:
            what = "there was output or input"
        why = f"{what} {elapsed} ms ago, {self._min_ms} ms are required"
        return explanation(self._evidence, self.look(moment) is not None, why)


class HasChanged(WaitCondition):
    """The screen has changed since the mark, in its text or in a style."""

    _EVIDENCE: Final = Evidence("screen_changed")

    def __init__(self, mark: Mark) -> None:
        self._mark = mark

    def look(self, moment: Moment) -> Evidence | None:
        return self._EVIDENCE if moment.last_change_sequence > self._mark.sequence else None

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        yes = self.look(moment) is not None
        why = f"the screen has {'' if yes else 'not '}changed since the mark"
        return explanation(self._EVIDENCE, yes, why)


class HasExited(WaitCondition):
    """The program has exited."""

    _EVIDENCE: Final = Evidence("process_exited")

    def look(self, moment: Moment) -> Evidence | None:
        ended = moment.exit
        if ended is None:
            return None
        return Evidence("process_exited", {"exit_code": ended.code, "signal": ended.signal})

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        return explanation(self._EVIDENCE, moment.exit is not None, _ending(moment))


class HasExitCode(WaitCondition):
    """The program has exited with the given code. A program ended by a signal has no code."""

    def __init__(self, code: int) -> None:
        self._code = code
        self._evidence = Evidence("exit_code", {"code": code})

    def look(self, moment: Moment) -> Evidence | None:
        ended = moment.exit
        return self._evidence if ended is not None and ended.code == self._code else None

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        return explanation(self._evidence, self.look(moment) is not None, _ending(moment))


def _ending(moment: Moment) -> str:
    return "the program is still running" if moment.exit is None else f"the program {moment.exit}"


class WantsInput(WaitCondition):
    """The program waits for input, of one of the given kinds if there are any."""

    watches_input = True
    _EVIDENCE: Final = Evidence("input_wanted")

    def __init__(self, kinds: tuple[WaitingState, ...]) -> None:
        self._kinds = frozenset[str](kinds) or WAITING

    def look(self, moment: Moment) -> Evidence | None:
        seen = moment.input_state
        if seen is None or seen.state not in self._kinds:
            return None
        return Evidence("input_wanted", dataclasses.asdict(seen))

    def decided(self, moment: Moment) -> bool:
        return moment.input_state is not None

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        seen = moment.input_state or UNKNOWN
        why = f"the state is {seen.state}: {seen.why}"
        return explanation(self._EVIDENCE, self.look(moment) is not None, why)


class PredicateHolds(WaitCondition):
    """A plugin's predicate returns true."""

    allows_exit = True

    def __init__(self, predicate: Predicate, runner: PredicateRunner) -> None:
        self._runner = runner
        self._asked = Evidence(
            "lua", {"plugin": predicate.plugin, "predicate": predicate.predicate}
        )

    def look(self, moment: Moment) -> Evidence | None:
        if (outcome := self._runner.look(moment)) is None:
            return None
        returned = {"evidence": outcome.evidence, "capture": outcome.capture}
        facts = {name: value for name, value in returned.items() if value is not None}
        return Evidence("lua", {**self._asked.facts, **facts})

    def decided(self, moment: Moment) -> bool:
        return self._runner.decided

    def may_come(self, moment: Moment) -> bool:
        return self._runner.may_come(moment)

    def wake_at(self, moment: Moment) -> float | None:
        return self._runner.wake_at(moment)

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        yes = self._runner.decided and self.look(moment) is not None
        return explanation(self._asked, yes, f"the predicate {self._runner.says}")


# Combinations of conditions: any, all, not.


class AnyCondition(WaitCondition):
    """At least one condition is true. The evidence is that of the first true one."""

    def __init__(self, branches: tuple[WaitCondition, ...]) -> None:
        self._branches = branches
        self.allows_exit = any(branch.allows_exit for branch in branches)
        self.watches_input = any(branch.watches_input for branch in branches)

    def look(self, moment: Moment) -> Evidence | None:
        for branch in self._branches:
            if evidence := branch.look(moment):
                return Evidence("any", matched=evidence)
        return None

    def decided(self, moment: Moment) -> bool:
        return all(branch.decided(moment) for branch in self._branches)

    def may_come(self, moment: Moment) -> bool:
        return any(branch.may_come(moment) for branch in self._branches)

    def wake_at(self, moment: Moment) -> float | None:
        return _earliest(self._branches, moment)

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        return _explain_branches("any", self._branches, moment, misses, any)


class AllConditions(WaitCondition):
    """All conditions are true at the same moment."""

    def __init__(self, branches: tuple[WaitCondition, ...]) -> None:
        self._branches = branches
        self.allows_exit = any(branch.allows_exit for branch in branches)
        self.watches_input = any(branch.watches_input for branch in branches)

    def look(self, moment: Moment) -> Evidence | None:
        matched = []
        for branch in self._branches:
            if (evidence := branch.look(moment)) is None:
                return None
            matched.append(evidence)
        return Evidence("all", matched=tuple(matched))

    def decided(self, moment: Moment) -> bool:
        for branch in self._branches:  # branches after the first false one were not evaluated
            if branch.look(moment) is None:
                return branch.decided(moment)
        return True

    def may_come(self, moment: Moment) -> bool:
        return all(one.look(moment) or one.may_come(moment) for one in self._branches)

    def wake_at(self, moment: Moment) -> float | None:
        # The earliest time, although all branches must be true: a branch that still waits for its
        # time may be an `any` that is already true, so the latest time could be too late.
        return _earliest(self._branches, moment)

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        return _explain_branches("all", self._branches, moment, misses, all)


class Negation(WaitCondition):
    """The condition is not true."""

    _EVIDENCE: Final = Evidence("not")

    def __init__(self, branch: WaitCondition) -> None:
        self._branch = branch
        self.allows_exit = branch.allows_exit
        self.watches_input = branch.watches_input

    def look(self, moment: Moment) -> Evidence | None:
        if self._branch.look(moment) or not self._branch.decided(moment):
            return None
        return self._EVIDENCE

    def decided(self, moment: Moment) -> bool:
        return self._branch.decided(moment)

    def wake_at(self, moment: Moment) -> float | None:
        return self._branch.wake_at(moment)

    def explain_with(self, moment: Moment, misses: NearMissSearch) -> Explanation:
        inner = self._branch.explain_with(moment, misses)
        no = not inner["matched"]
        why = f"the negated condition is {'not true' if no else 'true'}"
        return {"kind": "not", "matched": no, "why": why, "branches": [inner]}


def _earliest(branches: tuple[WaitCondition, ...], moment: Moment) -> float | None:
    times = [branch.wake_at(moment) for branch in branches]
    return min((time for time in times if time is not None), default=None)


def _explain_branches(
    kind: str,
    branches: tuple[WaitCondition, ...],
    moment: Moment,
    misses: NearMissSearch,
    joined: Callable[[Iterable[object]], bool],
) -> Explanation:
    explained = [branch.explain_with(moment, misses) for branch in branches]
    yes = [branch["matched"] for branch in explained]
    why = f"{sum(map(bool, yes))} of {len(yes)} are true"
    return {"kind": kind, "matched": joined(yes), "why": why, "branches": explained}
