"""A place where a secret may have begun, and how far it was read on from there.

A candidate is the pen of a shape: the shape says what it expects next and whether what it reads is
shown, held or hidden, and the candidate keeps the place. Where the lane has no more text the
reading methods wait, by `yield`; at the end of the text they return what there is.

Made by `lane`, used by `shapes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.redaction.shapes import LINE_ENDS, run_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from telex.redaction.lane import Lane
    from telex.redaction.rules import RedactionRule
    from telex.redaction.shapes import Reading

_ENDLESS: Final = 1 << 62


class Candidate:
    """It shows what it reads, or holds it from `start` on, or hides it."""

    __slots__ = ("_hides", "_lane", "_reading", "exclusive", "position", "rule", "start")

    def __init__(self, lane: Lane, rule: RedactionRule, position: int, start: int | None) -> None:
        self.rule = rule
        self.position = position
        self.start = start
        """The first character held, if any is."""
        self.exclusive = True
        """Whether the same rule's lead means nothing new to it: it reads to the same end anyway."""
        self._lane = lane
        self._hides = False
        self._reading = rule.shape.read(self)

    def advance(self) -> bool:
        """Read what there is; false when done, and what is still held then was no secret."""
        return next(self._reading, self) is not self

    def force(self) -> None:
        """It was held for too long: take it for a secret, to the end of the value."""
        self.hide()
        self._reading = self.run_out(self.rule.shape.rest)

    # What the shapes say.

    @property
    def holds(self) -> bool:
        return self.start is not None

    @property
    def marker(self) -> str:
        return self._lane.book.marker

    def show(self) -> None:
        self.start, self._hides = None, False

    def hold(self) -> None:
        self.start, self._hides = self.position, False

    def hide(self) -> None:
        if self.start is not None:
            self._lane.hide(self.start, self.position)
        self.start, self._hides = None, True

    def hide_before(self, mark: str) -> None:
        """Of what is held, hide what comes before the last `mark`."""
        if self.start is not None:
            held = self._lane.slice(self.start, self.position)
            self._lane.hide(self.start, self.start + max(0, held.rfind(mark)))

    def hide_until(self, position: int) -> None:
        """Of what is held, hide what comes before a place that was read already."""
        if self.start is not None:
            self._lane.hide(self.start, position)
        self.show()

    def behind(self, count: int) -> str:
        return self._lane.slice(self.position - count, self.position)

    # How the shapes read.

    def run(self, characters: str, most: int = _ENDLESS) -> Generator[None, None, int]:
        """Read as many of these characters as come, and say how many came."""
        lane, pattern = self._lane, run_of(characters)
        start, stop = self.position, self.position + most
        while True:
            self._take(lane.end_of(pattern, self.position, stop))
            if self.position == stop or not lane.waits_at(self.position):
                return self.position - start
            yield

    def run_out(self, characters: str, *, ends: bool = True) -> Reading:
        """Read these characters to the end of the value, with which the candidate `ends` too.

        A shell's line editor that reaches the right margin prints ` \\r` there and goes on.
        """
        while True:
            yield from self.run(characters)
            if (yield from self.peek()) != " ":
                return
            self.show()
            self.exclusive = not ends
            yield from self.run(" ", 1)
            if not (yield from self.reads("\r")) or (yield from self.peek()) in LINE_ENDS:
                return
            self.hide()
            self.exclusive = True

    def peek(self) -> Generator[None, None, str]:
        """The next character, unread; the empty string at the end."""
        while self._lane.waits_at(self.position):
            yield
        return self._lane.character(self.position)

    def reads(self, literal: str) -> Generator[None, None, bool]:
        """Read exactly this, or nothing."""
        while True:
            ahead = self._lane.slice(self.position, self.position + len(literal))
            if ahead == literal:
                self._take(self.position + len(literal))
                return True
            if not literal.startswith(ahead) or self._lane.ended:
                return False
            yield

    def word(self, characters: str, most: int) -> Generator[None, None, tuple[str, str]]:
        """The run of these characters that comes next and, unless it is cut at `most`, the
        character after it; all unread."""
        lane, pattern = self._lane, run_of(characters)
        stop = self.position + most
        while True:
            end = lane.end_of(pattern, self.position, stop)
            if end == stop:
                return lane.slice(self.position, end), ""
            if not lane.waits_at(end):
                return lane.slice(self.position, end), lane.character(end)
            yield

    def _take(self, end: int) -> None:
        if self._hides:
            self._lane.hide(self.position, end)
        self.position = end
