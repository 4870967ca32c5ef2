"""What a condition is shown, and what it answers: a moment of a session in, evidence out.

`Moment` is a protocol with two implementations: `LiveMoment`, where each thing is looked up when it
is asked for, and `KeptMoment`, for reporting what was seen. `Evidence` is a value with the shape
that waits answer with on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from telex.terminal import limits

if TYPE_CHECKING:
    from telex.processes.child import Exit
    from telex.redaction import Redactor
    from telex.terminal.cells import Cursor, Row, Snapshot
    from telex.terminal.redact import Masker
    from telex.terminal.session import PtySession
    from telex.terminal.transcript import Transcript


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


class PredicateFailed(Exception):
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


# The moments of a session.


class MomentTranscript:
    """What was printed up to a moment, without secrets if there is a redactor."""

    def __init__(
        self,
        transcript: Transcript,
        redactor: Redactor | None = None,
        chars: int = limits.TRANSCRIPT_TAIL_CHARS,
    ) -> None:
        self._transcript = transcript
        self._chars = chars
        self._redactor = redactor
        self.cursor = transcript.cursor

    @cached_property
    def tail(self) -> str:
        return self.since(self.cursor - self._chars)

    def unredacted_tail(self) -> str:
        """With its secrets. Never told."""
        return self._transcript.since(self.cursor - self._chars).text

    def since(self, cursor: int) -> str:
        if self._redactor is None:
            return self._transcript.since(cursor).text
        return self._transcript.redacted(self._redactor, cursor).text


class LiveMoment:
    """Valid until the session changes: a matcher looks at it at once, and keeps nothing of it."""

    def __init__(self, session: PtySession, now: float, began: float) -> None:
        self.session = session
        self.now = now
        self.began = began
        self.sequence = session.sequence
        self.exit: Exit | None = session.exit
        # A text that two reads have in common must be whole in one look: the second read alone
        # may be as long as the tail that is told.
        chars = limits.TRANSCRIPT_TAIL_CHARS + limits.OUTPUT_BYTES
        self.transcript = MomentTranscript(session.transcript, chars=chars)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return self.session.screen.rows()

    @cached_property
    def text(self) -> str:
        return "\n".join([row.text for row in self.rows]).rstrip("\n")

    @property
    def cursor(self) -> Cursor:
        return self.session.screen.cursor

    @property
    def title(self) -> str | None:
        return self.session.screen.title

    @property
    def last_activity(self) -> float:
        return max(self.session.last_output, self.session.last_input)

    @property
    def last_change(self) -> float:
        return self.session.last_change()

    def keep(self, redactor: Redactor | None = None, masker: Masker | None = None) -> KeptMoment:
        """The same for later, and without its secrets if somebody else is to be told of it."""
        session = self.session
        session.mark_sequence()
        snapshot = unmasked = session.snapshot()
        if masker is not None:
            snapshot = masker.snapshot(snapshot, session.rows_above())
        return KeptMoment(
            now=self.now,
            began=self.began,
            snapshot=snapshot,
            unmasked=unmasked,
            transcript=MomentTranscript(session.transcript, redactor),
            last_activity=self.last_activity,
            last_change=self.last_change,
            exit=self.exit,
        )


@dataclass(frozen=True, kw_only=True)
class KeptMoment:
    """A moment that stays as it was. Of its words only the tail does, once it was read."""

    now: float
    began: float
    snapshot: Snapshot
    unmasked: Snapshot
    """With its secrets, to recognise them where somebody quotes them. Never told."""
    transcript: MomentTranscript
    last_activity: float
    last_change: float
    exit: Exit | None

    @property
    def elapsed(self) -> float:
        return self.now - self.began

    @property
    def sequence(self) -> int:
        return self.snapshot.sequence

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.snapshot.rows

    @property
    def text(self) -> str:
        return self.snapshot.plain_text

    @property
    def cursor(self) -> Cursor:
        return self.snapshot.cursor

    @property
    def title(self) -> str | None:
        return self.snapshot.title
