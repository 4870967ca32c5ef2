"""Whether a terminal speaks JSON escapes: DA1 and its answer, round-trip time, multiplexers.

The query is DA1 (`CSI c`), which every terminal answers; the answer of one with JSON escapes
contains 23198. It is also a sentinel: answers come in order, so once DA1 is answered, every earlier
query has been answered or never will be. Multiplexers answer DA1 themselves and swallow what they
do not know; what should pass through has to be wrapped, for each in its own way.

Pure: bytes and seconds come in as arguments. Also used by `htty`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.wire.escape import ESC, ST

if TYPE_CHECKING:
    from collections.abc import Mapping

DA1_QUERY: Final = b"\x1b[c"
FIRST_SECONDS: Final = 1.0
"""How long the first answer may take: the other end of the world, twice, by a bad line."""
LEAST_SECONDS: Final = 0.2
"""How long any answer may take: a terminal is a program, and may be busy for a moment."""

_ANSWER = re.compile(rb"\x1b\[\?([0-9;]{0,128})c")
_BEGUN = re.compile(rb"\x1b(?:\[(?:\?[0-9;]{0,128})?)?\Z")


@dataclass(frozen=True, slots=True)
class DeviceAttributes:
    """What a terminal answered to DA1."""

    numbers: frozenset[int]


class DA1Answers:
    """Finds the answers to DA1 in what comes from a terminal; everything else was typed.

    Looked for only while one is due, however late it is: a late answer is no keystroke either.
    """

    def __init__(self) -> None:
        self.due = 0
        self._held = b""
        """What may be the beginning of an answer."""

    def feed(self, data: bytes) -> list[DeviceAttributes | bytes]:
        if not self.due:
            return [data]
        data, self._held = self._held + data, b""
        found: list[DeviceAttributes | bytes] = []
        at = 0
        while self.due and (answer := _ANSWER.search(data, at)):
            found += [data[at : answer.start()], _attributes(answer[1])]
            self.due -= 1
            at = answer.end()
        rest = data[at:]
        if self.due and (begun := _BEGUN.search(rest)):
            rest, self._held = rest[: begun.start()], rest[begun.start() :]
        return [piece for piece in [*found, rest] if piece]

    def release(self) -> bytes:
        """What was held, as keystrokes: nothing came after it in time."""
        released, self._held = self._held, b""
        return released


def _attributes(numbers: bytes) -> DeviceAttributes:
    return DeviceAttributes(frozenset(int(one) for one in numbers.split(b";") if one))


class RoundTrip:
    """How long the terminal takes to answer, and so how long to wait for it."""

    def __init__(self, first: float = FIRST_SECONDS) -> None:
        self._first = first
        self.seconds: float | None = None
        """The slowest seen; None before any."""

    def took(self, seconds: float) -> None:
        self.seconds = max(seconds, self.seconds or 0.0)

    @property
    def patience(self) -> float:
        """Twice what it took at worst; before anything is known, what was said at first."""
        return self._first if self.seconds is None else max(LEAST_SECONDS, 2 * self.seconds)


@dataclass(frozen=True, slots=True)
class MultiplexerWrap:
    """How to hand something through a multiplexer to the terminal it runs in."""

    name: str
    begin: bytes
    doubled: bool
    """Whether an ESC inside has to be written twice."""
    frame_bytes: int | None
    """The longest string it passes on; None where it takes what we send."""

    def around(self, frame: bytes) -> bytes:
        inner = frame.replace(ESC, ESC + ESC) if self.doubled else frame
        return self.begin + inner + ST


TMUX: Final = MultiplexerWrap("tmux", b"\x1bPtmux;", doubled=True, frame_bytes=None)
SCREEN: Final = MultiplexerWrap("screen", b"\x1bP", doubled=False, frame_bytes=700)
"""screen passes on a plain DCS as it is, and cuts it off at 768 bytes."""


def multiplexer(environ: Mapping[str, str]) -> MultiplexerWrap | None:
    """What stands between this program and the terminal, as the environment has it."""
    if environ.get("TMUX"):
        return TMUX
    return SCREEN if environ.get("STY") else None
