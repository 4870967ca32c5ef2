"""The printed text of a program: the last characters up to a limit, with a cursor that only rises.

Bytes are decoded across reads, so a character cut in two is still that character; only bytes that
are not UTF-8 become U+FFFD. Escape sequences stay in their places, as in the spec's original;
`strip_escapes` returns the text without them. This module does not interpret the text: `waits`
search it, and `screen` shows what is visible.

Bytes are decoded at once and not on demand: decoding 64 KiB takes 4 µs, and counting the characters
without decoding, which the cursor would still need, takes ten times as long.

Used by `session`, one transcript for each program.
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
"""Smaller pieces are joined, so that a program that prints byte by byte costs no more memory than
its text.
"""

_SEQUENCE_CHARS: Final = 512
"""The maximum length of an escape sequence that is not a control string."""

_LINE_BREAK: Final = re.compile(r"\r*+[\n\v\f]\r*+|\r++")


@dataclass(frozen=True, slots=True)
class Delta:
    """The text after a cursor."""

    text: str
    cursor: int
    """The cursor at the end of the text: where the next request continues."""
    dropped: bool
    """Whether the oldest part of the text is no longer kept; `text` is the rest."""


class Transcript:
    """The end of the printed text. Cursors count the characters since the beginning."""

    def __init__(self, max_chars: int = TRANSCRIPT_CHARS) -> None:
        self.max_chars = max_chars
        self.cursor = 0
        """The number of characters printed so far."""
        self._decoder = getincrementaldecoder("utf-8")("replace")
        # Text over the limit is kept a little longer, so that a secret whose beginning was cut off
        # is still recognised; see `redacted`.
        self._room = max_chars + HELD_SECRET_CHARS
        self._pieces: deque[str] = deque()
        self._kept = 0
        self._markers: dict[str, int] = {}

    @property
    def start(self) -> int:
        """The cursor of the oldest readable character."""
        return max(0, self.cursor - self.max_chars)

    def feed(self, data: bytes) -> str:
        """Append a read, and return its text. An incomplete character is held for the next read."""
        return self._append(self._decoder.decode(data))

    def finish(self) -> str:
        """End the transcript: an incomplete character becomes U+FFFD."""
        return self._append(self._decoder.decode(b"", final=True))

    def text(self) -> str:
        """Return all readable text."""
        if len(self._pieces) > 1:  # join the pieces for the next reader
            self._pieces = deque(["".join(self._pieces)])
        return self._from(self.start)

    def tail(self, chars: int) -> str:
        """Return the last `chars` characters, or all if there are fewer."""
        return self._from(max(self.start, self.cursor - chars))

    def since(self, cursor: int, most: int | None = None) -> Delta:
        """Return the text after a cursor, or its first `most` characters. The text after a cursor
        in the future is empty.
        """
        begin = max(self.start, cursor)
        text = self._from(begin)
        if most is not None and len(text) > most:
            return Delta(text[:most], begin + most, cursor < self.start)
        return Delta(text, self.cursor, cursor < self.start)

    def redacted(self, redactor: Redactor, cursor: int = 0) -> Delta:
        """Return the text after a cursor as `since` does, without secrets.

        Redacting the text of `since` or `tail` is not enough: it may begin in the middle of a
        secret, where no rule recognises the rest. This method reads from further back. It cannot
        know later output: text that is pushed as it arrives goes through `redactor.stream()`.
        """
        start = max(self.start, cursor)
        text = self._from(max(0, start - HELD_SECRET_CHARS))
        shown = min(start, self.cursor) - (self.cursor - len(text))
        return Delta("".join(_shown(text, redactor, shown)), self.cursor, cursor < self.start)

    def before(self, cursor: int) -> str:
        """Return the text before a cursor, as far back as a secret can reach. Do not send it: it is
        context for a redactor's stream to `follow`, which otherwise could not know that it begins
        inside a secret.
        """
        text = self._from(max(0, cursor - HELD_SECRET_CHARS))
        return text[: max(0, len(text) - (self.cursor - cursor))]

    @property
    def unfinished(self) -> tuple[str, bytes]:
        """Return the start of what the next read completes: an escape sequence, and a character."""
        _, sequence = visible.split(self._from(self.cursor - _SEQUENCE_CHARS))
        return sequence, self._decoder.getstate()[0]

    # Markers: named places.

    @property
    def markers(self) -> Mapping[str, int]:
        """Return the cursor of each label; the label marked last is at the end."""
        return MappingProxyType(self._markers)

    def mark(self, label: str) -> int:
        """Name the present place; a label marked again moves here.

        When there are too many labels, the oldest is dropped instead of refusing the new one: a
        script that marks every turn must not fail at its 65th, and its first mark has most likely
        been read, and its text is evicted first anyway.
        """
        self._markers.pop(label, None)
        self._markers[label] = self.cursor
        if len(self._markers) > TRANSCRIPT_MARKERS:
            del self._markers[next(iter(self._markers))]
        return self.cursor

    def between(self, first: str, last: str) -> str | None:
        """Return the text from one marker to another; None if a label is unknown or the text is
        evicted.

        If the markers are in the wrong order, the text between them is empty.
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
        """Return the text after a cursor, as far back as text is kept."""
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
    """Return the text from `begin` on, with a marker in place of each secret."""
    at, hidden = 0, False
    for start, end in redactor.spans(text):
        # As `redact` does: escape sequences alone do not split a secret in two.
        hidden = hidden and visible.texts(text[at:start]) == [""]
        yield text[max(at, begin) : max(start, begin)]
        if end > begin:
            yield "" if hidden else redactor.replacement
            hidden = True
        at = end
    yield text[max(at, begin) :]


def strip_escapes(text: str) -> str:
    """Return the text without escape sequences and without controls except newline and tab.

    Control strings (titles, links) are removed, and so is an incomplete sequence at the end of the
    text. A sequence cut at the beginning of the text cannot be recognised: its rest is kept as
    text.

    A carriage return before a newline belongs to the newline. A bare carriage return starts the
    line again, and the text it would overwrite is kept as a line of its own: `10%`, `20%`, `done`
    are three lines. Nothing is emulated: the screen shows what is visible in the end.
    """
    return _LINE_BREAK.sub("\n", visible.texts(text)[0].strip("\r"))
