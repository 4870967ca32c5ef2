"""States to wait for that are no text: the title, the cursor, stillness, the end, a predicate.

Made by `matchers.compile`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.terminal.awaited import Awaited, verdict
from telex.terminal.evidence import Evidence

if TYPE_CHECKING:
    from telex.protocols.pty_automation import Predicate
    from telex.terminal.awaited import Explanation
    from telex.terminal.evidence import Moment, PredicateRunner
    from telex.terminal.nearest import Search


class TitleContains(Awaited):
    """The window title contains this text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._evidence = Evidence("title", {"text": text})

    def look(self, moment: Moment) -> Evidence | None:
        title = moment.title
        return self._evidence if title is not None and self._text in title else None

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        if (title := moment.title) is None:
            return verdict(self._evidence, False, "the program has set no title")
        return verdict(self._evidence, self._text in title, f"the title is {title!r}")


class CursorIsAt(Awaited):
    """The cursor stands there."""

    def __init__(self, row: int, col: int) -> None:
        self._row, self._col = row, col
        self._evidence = Evidence("cursor_at", {"row": row, "col": col})

    def look(self, moment: Moment) -> Evidence | None:
        cursor = moment.cursor
        there = cursor.row == self._row and cursor.col == self._col
        return self._evidence if there else None

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        cursor = moment.cursor
        why = f"the cursor is at row {cursor.row}, column {cursor.col}"
        return verdict(self._evidence, self.look(moment) is not None, why)


class Stable(Awaited):
    """Nothing happened for so long. The plain form counts from the begin of the wait, as the
    original does, so that a wait right after an input never ends before the program reacted. The
    other form counts from the last visible change or input, and may be true at once."""

    allows_exit = True

    def __init__(self, min_ms: int, from_change: bool = False) -> None:
        self._min_ms, self._from_change = min_ms, from_change
        self._evidence = Evidence("screen_stable", {"min_ms": min_ms})

    def _start(self, moment: Moment) -> float:
        if self._from_change:
            return moment.last_change
        return max(moment.began, moment.last_activity)

    def _due(self, moment: Moment) -> float:
        # Looking and waking compare the same number: if each rounded in its own way, a timer could
        # fire a moment too early and never be set again.
        return self._start(moment) + self._min_ms / 1000

    def look(self, moment: Moment) -> Evidence | None:
        return self._evidence if moment.now >= self._due(moment) else None

    def wake_at(self, moment: Moment) -> float | None:
        due = self._due(moment)
        return due if due > moment.now else None

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        elapsed = int(max(0.0, moment.now - self._start(moment)) * 1000)
        what = "the screen changed" if self._from_change else "the wait began"
        if not self._from_change and moment.last_activity > moment.began:
            what = "there was output or input"
        why = f"{what} {elapsed} ms ago, {self._min_ms} ms are wanted"
        return verdict(self._evidence, self.look(moment) is not None, why)


class Exited(Awaited):
    """The program ended."""

    _EVIDENCE: Final = Evidence("process_exited")

    def look(self, moment: Moment) -> Evidence | None:
        ended = moment.exit
        if ended is None:
            return None
        return Evidence("process_exited", {"exit_code": ended.code, "signal": ended.signal})

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        return verdict(self._EVIDENCE, moment.exit is not None, _ending(moment))


class ExitedWith(Awaited):
    """The program ended with this code. One ended by a signal has no code."""

    def __init__(self, code: int) -> None:
        self._code = code
        self._evidence = Evidence("exit_code", {"code": code})

    def look(self, moment: Moment) -> Evidence | None:
        ended = moment.exit
        return self._evidence if ended is not None and ended.code == self._code else None

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        return verdict(self._evidence, self.look(moment) is not None, _ending(moment))


def _ending(moment: Moment) -> str:
    return "the program is still running" if moment.exit is None else f"the program {moment.exit}"


class PredicateSays(Awaited):
    """A plugin's predicate says so."""

    allows_exit = True

    def __init__(self, predicate: Predicate, runner: PredicateRunner) -> None:
        self._runner = runner
        self._asked = Evidence(
            "lua", {"plugin": predicate.plugin, "predicate": predicate.predicate}
        )

    def look(self, moment: Moment) -> Evidence | None:
        if (outcome := self._runner.look(moment)) is None:
            return None
        said = {"evidence": outcome.evidence, "capture": outcome.capture}
        told = {name: value for name, value in said.items() if value is not None}
        return Evidence("lua", {**self._asked.facts, **told})

    def decided(self, moment: Moment) -> bool:
        return self._runner.decided

    def may_come(self, moment: Moment) -> bool:
        return self._runner.may_come(moment)

    def wake_at(self, moment: Moment) -> float | None:
        return self._runner.wake_at(moment)

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        yes = self._runner.decided and self.look(moment) is not None
        return verdict(self._asked, yes, f"the predicate {self._runner.says}")
