"""What a program printed: the last so many characters, with a cursor that only rises.

Bytes come in as they are read and are decoded across reads, so a character cut in two is still that
character; only bytes that are no UTF-8 become U+FFFD. Escape sequences stay where they stood, as in
the original; `strip_escapes` gives the text without them. Nothing here looks at what the text says:
that is for `waits`, and what is visible of it is on the `screen`.

Decoding is not put off until somebody reads: 64 KiB take 4 µs, and counting their characters
without decoding, which the cursor would still need, takes ten times as long.

Used by `session`, one for each program.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from telex.redaction import visible
from telex.redaction.limits import HELD_SECRET_CHARS
from telex.terminal.limits import TRANSCRIPT_CHARS, TRANSCRIPT_MARKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telex.redaction import Redactor

_PIECE_CHARS: Final = 1024
"""Smaller pieces are put together, so that a program that prints byte by byte costs no more memory
than its text."""

_SEQUENCE_CHARS: Final = 512
"""No escape sequence that is not a string is longer."""

_LINE_BREAK: Final = re.compile(r"\r*+[\n\v\f]\r*+|\r++")


@dataclass(frozen=True, slots=True)
class Delta:
    """What came after a cursor."""

    text: str
    cursor: int
    """Where it ends: what to ask with the next time."""
    dropped: bool
    """Whether some of what came is no longer kept; the text is then what is left of it."""


class Transcript:
    """The end of everything printed. Cursors count the characters since the beginning."""

    def __init__(self, max_chars: int = TRANSCRIPT_CHARS) -> None:
        self.max_chars = max_chars
        self.cursor = 0
        """How many characters were printed."""
        self._decoder = getincrementaldecoder("utf-8")("replace")
        # What was cut off is kept a little longer, so that a secret whose beginning is gone is
        # still known for one; see `redacted`.
        self._room = max_chars + HELD_SECRET_CHARS
        self._pieces: deque[str] = deque()
        self._kept = 0
        self._markers: dict[str, int] = {}

    @property
    def start(self) -> int:
        """The cursor of the oldest character there is to read."""
        return max(0, self.cursor - self.max_chars)

    def feed(self, data: bytes) -> str:
        """Append what was read, and say what it was. A character not yet complete is held."""
        return self._append(self._decoder.decode(data))

    def finish(self) -> str:
        """There is no more: a character that was never completed becomes U+FFFD."""
        return self._append(self._decoder.decode(b"", final=True))

    def text(self) -> str:
        """All there is to read."""
        if len(self._pieces) > 1:  # the next reader finds it joined
            self._pieces = deque(["".join(self._pieces)])
        return self._from(self.start)

    def tail(self, chars: int) -> str:
        """The last so many characters, or all there are."""
        return self._from(max(self.start, self.cursor - chars))

    def since(self, cursor: int, most: int | None = None) -> Delta:
        """What came after a cursor, or the first so many characters of it. One from the future has
        nothing after it."""
        begin = max(self.start, cursor)
        text = self._from(begin)
        if most is not None and len(text) > most:
            return Delta(text[:most], begin + most, cursor < self.start)
        return Delta(text, self.cursor, cursor < self.start)

    def redacted(self, redactor: Redactor, cursor: int = 0) -> Delta:
        """As `since`, without secrets.

        Redacting the text of `since` or `tail` would not do: it may begin in the middle of a
        secret, where nothing gives the rest of it away. This reads from further back. What is
        printed later cannot be known: a text pushed as it comes goes through `redactor.stream()`.
        """
        start = max(self.start, cursor)
        text = self._from(max(0, start - HELD_SECRET_CHARS))
        shown = min(start, self.cursor) - (self.cursor - len(text))
        return Delta("".join(_shown(text, redactor, shown)), self.cursor, cursor < self.start)

    def before(self, cursor: int) -> str:
        """What came before a cursor, as far back as a secret can reach. Not to be told: it is for
        a stream of a redactor to `follow`, which would else not know what it is in the middle of.
        """
        text = self._from(max(0, cursor - HELD_SECRET_CHARS))
        return text[: max(0, len(text) - (self.cursor - cursor))]

    @property
    def unfinished(self) -> tuple[str, bytes]:
        """What the next read completes: half an escape sequence, and half a character."""
        _, sequence = visible.split(self._from(self.cursor - _SEQUENCE_CHARS))
        return sequence, self._decoder.getstate()[0]

    # Markers: names for places.

    @property
    def markers(self) -> Mapping[str, int]:
        """The cursor of each label, the one marked last at the end."""
        return MappingProxyType(self._markers)

    def mark(self, label: str) -> int:
        """Name this place; a label marked again moves here.

        When there are too many, the oldest gives way instead of the newest being refused: a script
        that marks every turn must not fail at its 65th, and what it marked first is what it has
        most likely read, and what is evicted first anyway.
        """
        self._markers.pop(label, None)
        self._markers[label] = self.cursor
        if len(self._markers) > TRANSCRIPT_MARKERS:
            del self._markers[next(iter(self._markers))]
        return self.cursor

    def between(self, first: str, last: str) -> str | None:
        """The text from one marker to another; None if a label is unknown or the text is gone.

        Markers the wrong way round have nothing between them.
        """
        begin, end = self._markers.get(first), self._markers.get(last)
        if begin is None or end is None or begin < self.start:
            return None
        return self._from(begin)[: max(0, end - begin)]

    def _append(self, text: str) -> str:
        pieces, size = self._pieces, len(text)
        self.cursor += size
        if not size:
            return text
        if pieces and len(pieces[-1]) + size <= _PIECE_CHARS:
            pieces[-1] += text
        else:
            pieces.append(text[-self._room :])
        self._kept += min(size, self._room)
        while self._kept - len(pieces[0]) >= self._room:
            self._kept -= len(pieces.popleft())
        return text

    def _from(self, cursor: int) -> str:
        """The text after a cursor, as far back as anything is remembered."""
        wanted = min(self._kept, self.cursor - cursor)
        if wanted <= 0:
            return ""
        taken: list[str] = []
        missing = wanted
        for piece in reversed(self._pieces):
            taken.append(piece[-missing:])
            missing -= len(taken[-1])
            if not missing:
                break
        return "".join(reversed(taken))


def _shown(text: str, redactor: Redactor, begin: int) -> Iterator[str]:
    """What a text says from `begin` on, a marker in the place of each secret."""
    at, hidden = 0, False
    for start, end in redactor.spans(text):
        # As `redact` does: escape sequences alone do not make two secrets of one.
        hidden = hidden and visible.texts(text[at:start]) == [""]
        yield text[max(at, begin) : max(start, begin)]
        if end > begin:
            yield "" if hidden else redactor.replacement
            hidden = True
        at = end
    yield text[max(at, begin) :]


def strip_escapes(text: str) -> str:
    """The words without the terminal: no escape sequences, no controls but newline and tab.

    Control strings (titles, links) are no part of it, nor is a sequence cut off at the end of the
    text. What came before its beginning is not known: the rest of a sequence cut there is text.

    A carriage return before a newline belongs to it. A bare one begins the line again, and what
    it would paint over is kept as a line of its own: `10%`, `20%`, `done` are three lines. Nothing
    is emulated: whoever wants to know what is visible in the end looks at the screen.
    """
    return _LINE_BREAK.sub("\n", visible.texts(text)[0].strip("\r"))
