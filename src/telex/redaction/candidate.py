"""A candidate: one lead that was found, and the state of the shape that reads the text after it.

The shape decides what to expect next and whether the characters it reads are shown, held or hidden.
The candidate keeps the position. Its reading methods are generators: they `yield` where the scanner
has no more text, and at the end of the text they return what there is.

`scanner` creates candidates; the shapes use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.redaction.shapes import LINE_ENDS, run_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from telex.redaction.rules import RedactionRule
    from telex.redaction.scanner import Scanner
    from telex.redaction.shapes import Reading

_ENDLESS: Final = 1 << 62


class Candidate:
    """The cursor of one shape, with one of three states for the characters that it reads:

    - *showing*, the first state: they are no part of a secret (`show`);
    - *holding*: they may be part of one and are undecided from `start` on (`hold`);
    - *hiding*: they are part of one (`hide`, which also hides the characters held before).

    A shape may change the state at any time. A rule that hides its prefix begins in holding.
    """

    __slots__ = ("_hides", "_reading", "_scanner", "exclusive", "position", "rule", "start")

    def __init__(
        self, scanner: Scanner, rule: RedactionRule, position: int, start: int | None
    ) -> None:
        self.rule = rule
        self.position = position
        self.start = start
        """The offset of the first held character, or None."""
        self.exclusive = True
        """Whether further leads of the same rule are ignored while this candidate reads, because
        they would read to the same end."""
        self._scanner = scanner
        self._hides = False
        self._reading = rule.shape.read(self)

    def advance(self) -> bool:
        """Read the text there is. Return False when the shape is done; text that is held then is no
        secret."""
        return next(self._reading, self) is not self

    def force(self) -> None:
        """Treat the held text as a secret and read on to the end of the value."""
        self.hide()
        self._reading = self.run_out(self.rule.shape.rest)

    # Decisions of the shapes.

    @property
    def holds(self) -> bool:
        return self.start is not None

    @property
    def marker(self) -> str:
        return self._scanner.rulebook.marker

    def show(self) -> None:
        self.start, self._hides = None, False

    def hold(self) -> None:
        self.start, self._hides = self.position, False

    def hide(self) -> None:
        if self.start is not None:
            self._scanner.hide(self.start, self.position)
        self.start, self._hides = None, True

    def hide_before(self, mark: str) -> None:
        """Hide the part of the held text before the last `mark`."""
        if self.start is not None:
            held = self._scanner.slice(self.start, self.position)
            self._scanner.hide(self.start, self.start + max(0, held.rfind(mark)))

    def hide_until(self, position: int) -> None:
        """Hide the part of the held text before a position, and show the rest."""
        if self.start is not None:
            self._scanner.hide(self.start, position)
        self.show()

    def behind(self, count: int) -> str:
        return self._scanner.slice(self.position - count, self.position)

    # Reading methods of the shapes.

    def run(self, characters: str, most: int = _ENDLESS) -> Generator[None, None, int]:
        """Read as many of these characters as come, and return their number."""
        scanner, pattern = self._scanner, run_of(characters)
        start, stop = self.position, self.position + most
        while True:
            self._take(scanner.end_of(pattern, self.position, stop))
            if self.position == stop or not scanner.waits_at(self.position):
                return self.position - start
            yield

    def run_out(self, characters: str, *, ends: bool = True) -> Reading:
        """Read these characters to the end of the value. If `ends`, the candidate ends with the
        value.

        A shell's line editor that reaches the right margin prints ` \\r` and continues the value in
        the next row.
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
        """Return the next character without reading it; the empty string at the end of the text."""
        while self._scanner.waits_at(self.position):
            yield
        return self._scanner.character(self.position)

    def reads(self, literal: str) -> Generator[None, None, bool]:
        """Read this literal and return True, or read nothing and return False."""
        while True:
            ahead = self._scanner.slice(self.position, self.position + len(literal))
            if ahead == literal:
                self._take(self.position + len(literal))
                return True
            if not literal.startswith(ahead) or self._scanner.ended:
                return False
            yield

    def word(self, characters: str, most: int) -> Generator[None, None, tuple[str, str]]:
        """Return the run of these characters that comes next and the character after it, without
        reading either. The character is empty if the run is cut at `most`."""
        scanner, pattern = self._scanner, run_of(characters)
        stop = self.position + most
        while True:
            end = scanner.end_of(pattern, self.position, stop)
            if end == stop:
                return scanner.slice(self.position, end), ""
            if not scanner.waits_at(end):
                return scanner.slice(self.position, end), scanner.character(end)
            yield

    def _take(self, end: int) -> None:
        if self._hides:
            self._scanner.hide(self.position, end)
        self.position = end
