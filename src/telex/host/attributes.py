"""The terminal's own answer to "what are you?" (DA1), with our attribute added on its way back.

A program learns by `CSI c` what its terminal can do. The person's terminal answers for itself; that
it now also understands JSON escapes is ours to add, and nothing else of its answer is touched. So
output is searched for the question, and only while one is open is what comes from the keyboard
looked at. An escape that may begin the answer is held back for a moment, and a lone one, which is a
key, for no longer than 25 ms. Pure: bytes and time come in as arguments.
"""

from __future__ import annotations

import re
from typing import Final

from telex.wire import limits

_ASKED: Final = re.compile(rb"c(?:(?<=\x1b\[c)|(?<=\x1b\[0c))")
"""From its last byte on, which is rarer than its first: four times faster."""
_ASKING: Final = re.compile(rb"\x1b(?:\[0?)?\Z")
_ANSWER: Final = re.compile(rb"\x1b\[\?[0-9;]{0,64}c")
_BEGUN: Final = re.compile(rb"\x1b(?:\[(?:\?[0-9;]{0,64})?)?\Z")
"""An answer that goes on in the next read, or a key."""

_HELD_SECONDS: Final = 0.025
_PATIENCE_SECONDS: Final = 5.0
"""So long after a question the keyboard is looked at; over a slow line an answer takes seconds."""


class Attributes:
    """Between one program and the person's terminal."""

    def __init__(self, attribute: int) -> None:
        self._added = b";%dc" % attribute
        self._tail = b""
        self._open = 0
        self._until = 0.0
        self._held = b""
        self._release_at = 0.0

    @property
    def held_until(self) -> float | None:
        """When to call `release`, if something is held back."""
        return self._release_at if self._held else None

    def printed(self, data: bytes, now: float) -> None:
        """The program printed this: did it ask? A question cut in two is still one."""
        seen = self._tail + data if self._tail else data
        if b"\x1b" not in seen:  # ten times faster than the rest
            self._tail = b""
            return
        if asked := len(_ASKED.findall(seen)):
            self._open = min(self._open + asked, limits.ATTRIBUTE_QUESTIONS)
            self._until = now + _PATIENCE_SECONDS
        begun = _ASKING.search(seen, max(len(seen) - 3, 0))
        self._tail = begun[0] if begun else b""

    def typed(self, data: bytes, now: float) -> bytes:
        """What goes on to the program of what the person's terminal sent."""
        if not self._open and not self._held:
            return data
        data, self._held = self._held + data, b""
        if now > self._until:
            self._open = 0
        data = _ANSWER.sub(self._added_to, data, count=self._open) if self._open else data
        if self._open and (begun := _BEGUN.search(data)):
            self._held = begun[0]
            self._release_at = now + _HELD_SECONDS
            data = data[: begun.start()]
        return data

    def release(self) -> bytes:
        """Nothing followed what was held back: it was a key."""
        data, self._held = self._held, b""
        return data

    def _added_to(self, found: re.Match[bytes]) -> bytes:
        self._open -= 1
        told = found[0]
        # There already, if what we run in adds it too.
        return told if told.endswith(self._added) else told[:-1] + self._added
