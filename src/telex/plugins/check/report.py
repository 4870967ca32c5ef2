"""Clauses of a check, and the outcome of each for one plugin. Pure."""

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
    """The plugin violates a clause; the message has what was observed."""


class ClauseUntried(Exception):
    """A clause could not be tested; the message has the reason."""


Test = Callable[["Bench"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule of the protocol, with a test."""

    id: str
    level: ClauseLevel
    text: str
    """The rule."""
    advice: str
    """What an author should do if the plugin violates the rule."""
    test: Test


@dataclass(frozen=True, slots=True)
class ClauseOutcome:
    clause: Clause
    result: ClauseResult
    seen: str = ""


@dataclass(slots=True)
class CheckReport:
    """The outcomes of all clauses for one plugin."""

    path: str
    name: str | None = None
    version: str | None = None
    protocol: str | None = None
    outcomes: list[ClauseOutcome] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    """The last lines of standard error, which often have a reason."""

    @property
    def ok(self) -> bool:
        """Whether no MUST clause failed."""
        return not self.count(ClauseLevel.MUST, ClauseResult.FAILED)

    @property
    def grade(self) -> str:
        """The result of the check in a few words."""
        if failed := self.count(ClauseLevel.MUST, ClauseResult.FAILED):
            return f"does not conform: {failed} MUST {_clauses(failed)} failed"
        if failed := self.count(ClauseLevel.SHOULD, ClauseResult.FAILED):
            return f"conforms, but {failed} SHOULD {_clauses(failed)} failed"
        return "conforms"

    def count(self, level: ClauseLevel, result: ClauseResult) -> int:
        return sum(one.clause.level is level and one.result is result for one in self.outcomes)


def _clauses(count: int) -> str:
    return "clause" if count == 1 else "clauses"


class Clauses:
    """Collects the clauses of one chapter in order: decorators for their tests."""

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
