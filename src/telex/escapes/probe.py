"""Detects whether a terminal has JSON escapes: DA1 and its reply, round-trip time, multiplexers.

The query is DA1 (`CSI c`), to which every terminal replies; the reply of a terminal with JSON
escapes contains 23198. DA1 is also a sentinel: replies come in order, so after the reply to DA1
every earlier query has its reply, or will never get one. Multiplexers reply to DA1 themselves and
drop sequences that they do not know. A frame that should pass through has to be wrapped, in a
different form for each of them.

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
"""How long the first reply may take: twice around the world, by a bad line."""
LEAST_SECONDS: Final = 0.2
"""How long any reply may take at least: a terminal is a program, and may be busy for a moment."""

_ANSWER = re.compile(rb"\x1b\[\?([0-9;]{0,128})c")
_BEGUN = re.compile(rb"\x1b(?:\[(?:\?[0-9;]{0,128})?)?\Z")


@dataclass(frozen=True, slots=True)
class DeviceAttributes:
    """The numbers in a terminal's reply to DA1."""

    numbers: frozenset[int]


class DA1Answers:
    """Finds replies to DA1 in the input of a terminal; all other input was typed.

    Input is searched only while a reply is due, however late it is: a late reply is not a keystroke
    either.
    """

    def __init__(self) -> None:
        self.due = 0
        self._held = b""
        """The possible beginning of a reply."""

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
        """Return held input as keystrokes: nothing followed it in time."""
        released, self._held = self._held, b""
        return released


def _attributes(numbers: bytes) -> DeviceAttributes:
    return DeviceAttributes(frozenset(int(one) for one in numbers.split(b";") if one))


class RoundTrip:
    """Measures how long the terminal takes to reply, to know how long to wait for it."""

    def __init__(self, first: float = FIRST_SECONDS) -> None:
        self._first = first
        self.seconds: float | None = None
        """The longest so far; None before the first reply."""

    def took(self, seconds: float) -> None:
        self.seconds = max(seconds, self.seconds or 0.0)

    @property
    def patience(self) -> float:
        """Seconds to wait: twice the longest so far; before the first reply, the initial value."""
        return self._first if self.seconds is None else max(LEAST_SECONDS, 2 * self.seconds)


@dataclass(frozen=True, slots=True)
class MultiplexerWrap:
    """The form in which a multiplexer passes a frame on to the terminal around it."""

    name: str
    begin: bytes
    doubled: bool
    """Whether an ESC inside has to be written twice."""
    frame_bytes: int | None
    """The longest string that it passes on; None if there is no limit for our frames."""

    def around(self, frame: bytes) -> bytes:
        inner = frame.replace(ESC, ESC + ESC) if self.doubled else frame
        return self.begin + inner + ST


TMUX: Final = MultiplexerWrap("tmux", b"\x1bPtmux;", doubled=True, frame_bytes=None)
SCREEN: Final = MultiplexerWrap("screen", b"\x1bP", doubled=False, frame_bytes=700)
"""screen passes on a plain DCS unchanged, and cuts it off at 768 bytes."""


def multiplexer(environ: Mapping[str, str]) -> MultiplexerWrap | None:
    """Return the multiplexer between this program and its terminal, by the environment."""
    if environ.get("TMUX"):
        return TMUX
    return SCREEN if environ.get("STY") else None
