"""What a check says: clauses, and how a plugin did with each. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from telex.plugins.check.bench import Bench


class ClauseLevel(Enum):
    MUST = "MUST"
    SHOULD = "SHOULD"


class ClauseResult(Enum):
    PASSED = "passed"
    FAILED = "failed"
    UNTRIED = "untried"


class ClauseBroken(Exception):
    """The plugin did otherwise; the sentence says what was seen."""


class ClauseUntried(Exception):
    """There was nothing to look at; the sentence says why."""


Test = Callable[["Bench"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing a plugin is looked at for."""

    id: str
    level: ClauseLevel
    text: str
    """What it is to do."""
    advice: str
    """What to do if it does not."""
    test: Test


@dataclass(frozen=True, slots=True)
class ClauseOutcome:
    clause: Clause
    result: ClauseResult
    seen: str = ""


@dataclass(slots=True)
class CheckReport:
    """How a plugin did."""

    path: str
    name: str | None = None
    version: str | None = None
    protocol: str | None = None
    outcomes: list[ClauseOutcome] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    """The last lines it wrote there; a reason is often among them."""

    @property
    def ok(self) -> bool:
        """Whether it does all that it must."""
        return not self.count(ClauseLevel.MUST, ClauseResult.FAILED)

    @property
    def grade(self) -> str:
        """The sum in a few words."""
        if failed := self.count(ClauseLevel.MUST, ClauseResult.FAILED):
            return f"does not conform: {failed} of what a plugin must do {_is(failed)} missing"
        if failed := self.count(ClauseLevel.SHOULD, ClauseResult.FAILED):
            return f"conforms, but for {failed} of what a plugin should do"
        return "conforms"

    def count(self, level: ClauseLevel, result: ClauseResult) -> int:
        return sum(one.clause.level is level and one.result is result for one in self.outcomes)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


class Clauses:
    """The clauses of one chapter, in order, by decorating their tests."""

    def __init__(self) -> None:
        self.all: list[Clause] = []

    def must(self, id: str, text: str, advice: str) -> Callable[[Test], Test]:
        return self._add(id, ClauseLevel.MUST, text, advice)

    def should(self, id: str, text: str, advice: str) -> Callable[[Test], Test]:
        return self._add(id, ClauseLevel.SHOULD, text, advice)

    def _add(self, id: str, level: ClauseLevel, text: str, advice: str) -> Callable[[Test], Test]:
        def add(test: Test) -> Test:
            self.all.append(Clause(id, level, text, advice, test))
            return test

        return add


NO_HANDSHAKE: Final = "there was no handshake"
