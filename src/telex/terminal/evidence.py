"""What a matcher is shown, and what it answers: a moment of a session in, evidence out.

`Moment` is a protocol: `moment` has the session's own, which compute each attribute when it is
asked for. `Evidence` is a value with the shape that waits answer with on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from telex.processes.child import Exit
    from telex.terminal.cells import Cursor, Row


class TranscriptView(Protocol):
    """What was printed, as a matcher sees it."""

    @property
    def tail(self) -> str:
        """The last 16 Ki characters, escape sequences kept."""

    @property
    def cursor(self) -> int:
        """How many characters were printed in all."""

    def since(self, cursor: int, /) -> str:
        """What is kept of all that came after a cursor."""


class Moment(Protocol):
    """One moment of a session. A session may compute each of these when it is asked for: matchers
    touch only what they need, and without `since` never the rows."""

    @property
    def now(self) -> float:
        """Monotonic seconds, as all times here."""

    @property
    def sequence(self) -> int: ...

    @property
    def rows(self) -> tuple[Row, ...]:
        """The visible rows."""

    @property
    def text(self) -> str:
        """Their text as in a snapshot: joined by newlines, blank rows at the end left out."""

    @property
    def cursor(self) -> Cursor: ...

    @property
    def title(self) -> str | None: ...

    @property
    def transcript(self) -> TranscriptView: ...

    @property
    def began(self) -> float:
        """When this wait began."""

    @property
    def last_activity(self) -> float:
        """When there last was output, input or a resize."""

    @property
    def last_change(self) -> float:
        """When what is visible last changed, or there was input or a resize."""

    @property
    def exit(self) -> Exit | None:
        """How the program ended, once it has and all its output is here."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What matched: which kind of matcher, its facts, and the branches it has it from."""

    kind: str
    facts: dict[str, object] = field(default_factory=dict)
    matched: Evidence | tuple[Evidence, ...] | None = None

    def render(self) -> dict[str, object]:
        """As it goes over the wire, in a fresh dict."""
        shape: dict[str, object] = {"kind": self.kind, **self.facts}
        match self.matched:
            case Evidence() as one:
                shape["matched"] = one.render()
            case tuple() as several:
                shape["matched"] = [branch.render() for branch in several]
        return shape


@dataclass(frozen=True, slots=True)
class PredicateOutcome:
    """What a predicate said when it said yes."""

    evidence: object = None
    capture: str | None = None


class NoAnswer(Exception):
    """A predicate that nobody has, or that failed. The wait it is part of cannot go on."""

    def __init__(self, sentence: str, facts: dict[str, object], *, asked_wrongly: bool) -> None:
        super().__init__(sentence)
        self.facts = facts
        self.asked_wrongly = asked_wrongly
        """Whether the caller could have known better."""


class PredicateRunner(Protocol):
    """Asks one predicate about the moments of one session.

    It answers at once. One that needs longer answers with the last it knows, and wakes the session
    when it knows more, which looks again.
    """

    @property
    def decided(self) -> bool:
        """Whether it knows anything yet: not to know is not a no."""

    @property
    def says(self) -> str:
        """What it said last, for a person: "says no"."""

    def look(self, moment: Moment, /) -> PredicateOutcome | None:
        """What is known: yes, or None. Raises NoAnswer."""

    def may_come(self, moment: Moment, /) -> bool:
        """Whether it may still say yes, though the program is gone."""

    def wake_at(self, moment: Moment, /) -> float | None:
        """When it wants to be asked again though nothing happened."""
