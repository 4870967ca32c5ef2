"""The input and output of a condition: it checks a moment of a session and returns evidence.

`Moment` is a protocol with two implementations: `LiveMoment`, which computes each value on demand,
and `KeptMoment`, a copy for reports. `Evidence` is a value with the shape that waits return on the
wire.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from telex.terminal import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.processes.child import Exit
    from telex.redaction import Redactor
    from telex.terminal.cells import Cursor, Row, Snapshot
    from telex.terminal.input_state import InputState
    from telex.terminal.redact import Masker
    from telex.terminal.session import PtySession
    from telex.terminal.transcript import Transcript


class TranscriptView(Protocol):
    """The printed text, as a matcher sees it."""

    @property
    def tail(self) -> str:
        """The last 16 Ki characters, with escape sequences."""

    @property
    def cursor(self) -> int:
        """The number of characters printed so far."""

    def since(self, cursor: int, /) -> str:
        """Return the text after a cursor, as far as it is kept."""


class Moment(Protocol):
    """One moment of a session. A session may compute each value on demand: matchers use only the
    values they need.
    """

    @property
    def now(self) -> float:
        """The time in monotonic seconds, as all times here."""

    @property
    def sequence(self) -> int: ...

    @property
    def rows(self) -> tuple[Row, ...]:
        """The visible rows."""

    @property
    def text(self) -> str:
        """The text of the rows as in a snapshot: joined by newlines, no blank rows at the end."""

    @property
    def lines(self) -> tuple[PrintedLines, ...]:
        """The other readings of the rows, where they differ from `text`: see `printed_lines`."""

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
        """The time of the last output, input or resize."""

    @property
    def last_change(self) -> float:
        """The time of the last visible change, input or resize."""

    @property
    def last_change_sequence(self) -> int:
        """The sequence of the last visible change."""

    @property
    def exit(self) -> Exit | None:
        """The exit of the program, set when all its output was read."""

    @property
    def input_state(self) -> InputState | None:
        """The input that the program waits for; None until the session has looked."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The proof of a match: the kind of matcher, its facts, and the evidence of its branches."""

    kind: str
    facts: dict[str, object] = field(default_factory=dict)
    matched: Evidence | tuple[Evidence, ...] | None = None

    def render(self) -> dict[str, object]:
        """Return the evidence as it is sent on the wire, in a new dict."""
        shape: dict[str, object] = {"kind": self.kind, **self.facts}
        match self.matched:
            case Evidence() as one:
                shape["matched"] = one.render()
            case tuple() as several:
                shape["matched"] = [branch.render() for branch in several]
        return shape


@dataclass(frozen=True, slots=True)
class PredicateOutcome:
    """The result of a predicate that returned true."""

    evidence: object = None
    capture: str | None = None


class PredicateFailed(Exception):
    """A predicate that does not exist, or that failed. The wait it belongs to fails too."""

    def __init__(self, sentence: str, facts: dict[str, object], *, asked_wrongly: bool) -> None:
        super().__init__(sentence)
        self.facts = facts
        self.asked_wrongly = asked_wrongly
        """Whether the error is the caller's."""


class PredicateRunner(Protocol):
    """Evaluates one predicate for the moments of one session.

    `look` returns at once. A runner that needs longer returns its last result, and wakes the
    session when it has a new one; then the session checks again.
    """

    @property
    def decided(self) -> bool:
        """Whether there is a result yet: no result is not the same as false."""

    @property
    def says(self) -> str:
        """The last result as text for a person: "says no"."""

    def look(self, moment: Moment, /) -> PredicateOutcome | None:
        """Return the outcome if the last result is true, else None. Raises PredicateFailed."""

    def may_come(self, moment: Moment, /) -> bool:
        """Return whether the predicate may still become true after the exit of the program."""

    def wake_at(self, moment: Moment, /) -> float | None:
        """Return when to evaluate the predicate again without a change of the session."""


# The moments of a session.


class MomentTranscript:
    """The printed text up to a moment, without secrets if there is a redactor."""

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
        """Return the tail with its secrets. Never send it."""
        return self._transcript.since(self.cursor - self._chars).text

    def since(self, cursor: int) -> str:
        if self._redactor is None:
            return self._transcript.since(cursor).text
        return self._transcript.redacted(self._redactor, cursor).text


class LiveMoment:
    """The present moment, valid until the session changes: conditions check it and keep nothing."""

    def __init__(self, session: PtySession, now: float, began: float) -> None:
        self.session = session
        self.now = now
        self.began = began
        self.sequence = session.sequence
        self.exit: Exit | None = session.exit
        # A text that continues from one read into the next must be found in one check: the second
        # read alone may be as long as the tail that is reported.
        chars = limits.TRANSCRIPT_TAIL_CHARS + limits.OUTPUT_BYTES
        self.transcript = MomentTranscript(session.transcript, chars=chars)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return self.session.screen.rows()

    @cached_property
    def text(self) -> str:
        return "\n".join([row.text for row in self.rows]).rstrip("\n")

    @cached_property
    def lines(self) -> tuple[PrintedLines, ...]:
        return printed_lines(self.rows, self.cursor)

    @property
    def cursor(self) -> Cursor:
        return self.session.screen.cursor

    @property
    def title(self) -> str | None:
        return self.session.screen.title

    @property
    def input_state(self) -> InputState | None:
        return self.session.input_watch.noted

    @property
    def last_activity(self) -> float:
        return max(self.session.last_output, self.session.last_input)

    @property
    def last_change(self) -> float:
        return self.session.last_change()

    @property
    def last_change_sequence(self) -> int:
        return self.session.last_change_sequence()

    def keep(self, redactor: Redactor | None = None, masker: Masker | None = None) -> KeptMoment:
        """Return a copy of the moment, without its secrets if it is sent to others."""
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
            last_change_sequence=self.last_change_sequence,
            exit=self.exit,
            input_state=session.input_watch.last,
        )


@dataclass(frozen=True, kw_only=True)
class KeptMoment:
    """A moment that does not change. Of the transcript only the tail is kept, once it was read."""

    now: float
    began: float
    snapshot: Snapshot
    unmasked: Snapshot
    """The snapshot with its secrets, to recognise them in quotes. Never send it."""
    transcript: MomentTranscript
    last_activity: float
    last_change: float
    last_change_sequence: int
    exit: Exit | None
    input_state: InputState | None = None

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

    @cached_property
    def lines(self) -> tuple[PrintedLines, ...]:
        return printed_lines(self.rows, self.cursor)

    @property
    def cursor(self) -> Cursor:
        return self.snapshot.cursor

    @property
    def title(self) -> str | None:
        return self.snapshot.title


# The rows of a screen as lines of text: what a program printed, and not what the grid made of it.
#
# A snapshot has one line for each row, without blanks at its end. Two things are lost there: a
# line that the terminal wrapped at the margin is cut in two, and the blank of a prompt is
# missing. So a text or pattern that is not in the snapshot's text is also searched in these
# readings of the rows:
#
# *joined*: a wrapped row continues in the next one.
# *with blanks*: joined, and each row has the blanks at its end that the program printed. Blanks
# left of the cursor in its row count as printed: some programs move the cursor instead.
#
# The order is fixed: what is found in the snapshot's text is found as before.


class PrintedLines:
    """One reading of the rows: its text, and the place of each row in it."""

    __slots__ = ("_ends", "starts", "text")

    def __init__(self, rows: Sequence[Row], pieces: Sequence[str]) -> None:
        """`pieces` has the text of each row."""
        lines = zip(rows, pieces, strict=True)
        whole = [piece if row.wrapped else f"{piece}\n" for row, piece in lines]
        self.text = "".join(whole).rstrip("\n")
        self.starts = [0, *accumulate(map(len, whole))]
        """The offset of each row."""
        self._ends = [start + len(piece) for start, piece in zip(self.starts, pieces, strict=False)]

    def row_at(self, offset: int) -> int:
        """Return the row of an offset."""
        return bisect_right(self.starts, offset, hi=len(self._ends)) - 1

    def place(self, row: int, begin: int, end: int, text: str) -> tuple[int, int]:
        """Return the place of a span of a row's text. Blanks at the end of the row follow its last
        character: they are as new as that."""
        start = self.starts[row]
        return start + begin, self._ends[row] if end == len(text) else start + end


def printed_lines(rows: tuple[Row, ...], cursor: Cursor) -> tuple[PrintedLines, ...]:
    """Return the readings that differ from the text of a snapshot."""
    joined = [row.printed_text if row.wrapped else row.text for row in rows]
    blanks = [row.printed_text for row in rows]
    if cursor.row < len(rows):
        blanks[cursor.row] = _up_to_cursor(rows[cursor.row], cursor.col)
    readings = []
    if any(row.wrapped for row in rows):
        readings.append(PrintedLines(rows, joined))
    if blanks != joined:
        readings.append(PrintedLines(rows, blanks))
    return tuple(readings)


def _up_to_cursor(row: Row, col: int) -> str:
    text = row.printed_text
    if len(text) >= col:
        return text
    if text.isascii():
        return text.ljust(col)
    shown = sum([cell.width > 0 for cell in row.cells[:col]])
    return text.ljust(shown)
