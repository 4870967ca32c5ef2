"""One moment of a session: live, for matchers, where each thing is looked up when it is asked for;
and kept, for whoever has to tell what was seen. Both fit `matchers.Moment`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from telex.wire import limits

if TYPE_CHECKING:
    from telex.processes.child import Exit
    from telex.redaction import Redactor
    from telex.terminal.cells import Cursor, Row, Snapshot
    from telex.terminal.masking import Masker
    from telex.terminal.session import PtySession
    from telex.terminal.transcript import Transcript


class Words:
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
        self.transcript = Words(session.transcript, chars=chars)

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
        snapshot = unmasked = session.snapshot()
        if masker is not None:
            snapshot = masker.snapshot(snapshot, session.above())
        return KeptMoment(
            now=self.now,
            began=self.began,
            snapshot=snapshot,
            unmasked=unmasked,
            transcript=Words(session.transcript, redactor),
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
    transcript: Words
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
