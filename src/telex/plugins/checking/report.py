"""What a check says: clauses, and how a plugin did with each. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from telex.plugins.checking.bench import Bench


class Level(Enum):
    MUST = "MUST"
    SHOULD = "SHOULD"


class Result(Enum):
    PASSED = "passed"
    FAILED = "failed"
    UNTRIED = "untried"


class Broken(Exception):
    """The plugin did otherwise; the sentence says what was seen."""


class Untried(Exception):
    """There was nothing to look at; the sentence says why."""


Test = Callable[["Bench"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing a plugin is looked at for."""

    id: str
    level: Level
    text: str
    """What it is to do."""
    advice: str
    """What to do if it does not."""
    test: Test


@dataclass(frozen=True, slots=True)
class Outcome:
    clause: Clause
    result: Result
    seen: str = ""


@dataclass(slots=True)
class Report:
    """How a plugin did."""

    path: str
    name: str | None = None
    version: str | None = None
    protocol: str | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    """The last lines it wrote there; a reason is often among them."""

    @property
    def ok(self) -> bool:
        """Whether it does all that it must."""
        return not self.count(Level.MUST, Result.FAILED)

    @property
    def grade(self) -> str:
        """The sum in a few words."""
        if failed := self.count(Level.MUST, Result.FAILED):
            return f"does not conform: {failed} of what a plugin must do {_is(failed)} missing"
        if failed := self.count(Level.SHOULD, Result.FAILED):
            return f"conforms, but for {failed} of what a plugin should do"
        return "conforms"

    def count(self, level: Level, result: Result) -> int:
        return sum(one.clause.level is level and one.result is result for one in self.outcomes)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


class Clauses:
    """The clauses of one chapter, in order, by decorating their tests."""

    def __init__(self) -> None:
        self.all: list[Clause] = []

    def must(self, id: str, text: str, advice: str) -> Callable[[Test], Test]:
        return self._add(id, Level.MUST, text, advice)

    def should(self, id: str, text: str, advice: str) -> Callable[[Test], Test]:
        return self._add(id, Level.SHOULD, text, advice)

    def _add(self, id: str, level: Level, text: str, advice: str) -> Callable[[Test], Test]:
        def add(test: Test) -> Test:
            self.all.append(Clause(id, level, text, advice, test))
            return test

        return add


NO_HANDSHAKE: Final = "there was no handshake"
