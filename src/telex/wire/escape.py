"""The grammar of control strings: how OSC and DCS begin, carry a body, and end.

Only the seven-bit forms count. 0x9C, 0x9D and 0x90 are data here: in UTF-8 they are the middle of
ordinary letters (`Ü` is C3 9C), and treating them as C1 controls would cut text in two. BEL or
`ESC \\` ends an OSC; only `ESC \\` ends a DCS. CAN, SUB, or an ESC that does not begin `ESC \\`
aborts either, and that ESC begins the next sequence: the "anywhere" transitions of every terminal.

This module does not know what a body means. `demux` uses it to cut strings out of a stream;
`json_escape` and `htty_chunk` write their strings with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from telex.wire import limits

ESC = b"\x1b"
BEL = b"\x07"
CAN = b"\x18"
SUB = b"\x1a"
ST = b"\x1b\\"


class Kind(Enum):
    """A family of control strings, by its introducer."""

    OSC = b"\x1b]"
    DCS = b"\x1bP"


class Ending(Enum):
    """How the search for a body's end went."""

    COMPLETE = auto()
    ABORTED = auto()
    OPEN = auto()
    """No end yet: the body continues in the next read, or this read ends in the ESC of its end."""


class Unencodable(ValueError):
    """The body would end, or abort, the control string that should carry it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The control strings that one part of telex takes: all of one kind with one prefix."""

    kind: Kind
    prefix: bytes
    max_body: int = limits.CONTROL_STRING_BYTES
    introducer: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "introducer", self.kind.value + self.prefix)

    def __str__(self) -> str:
        return f"{self.kind.name} {self.prefix.decode('ascii')}"


def encode(claim: Claim, body: bytes) -> bytes:
    """Return one whole control string. BEL ends an OSC, as all terminals accept; ST ends a DCS."""
    end = find_end(body, 0, claim.kind)
    if end != (len(body), len(body), Ending.OPEN):
        raise Unencodable(f"byte {end[0]} of the body would end the {claim} string that carries it")
    return claim.introducer + body + (BEL if claim.kind is Kind.OSC else ST)


def find_end(data: bytes, start: int, kind: Kind) -> tuple[int, int, Ending]:
    """Find where the body that runs at `start` stops.

    Returns the end of the body, where to continue, and how the body ended. The search never passes
    the next ESC, and the next string begins there at the earliest, so a stream of many short
    strings is searched once per byte. (One regex for all four bytes had a third of the speed:
    `find` of a single byte is memchr.)
    """
    esc = data.find(ESC, start)
    stop = len(data) if esc < 0 else esc
    if kind is Kind.OSC and (bel := data.find(BEL, start, stop)) >= 0:
        stop, after, ending = bel, bel + 1, Ending.COMPLETE
    elif esc < 0 or esc + 1 == len(data):
        after, ending = stop, Ending.OPEN
    elif data[esc + 1] == ST[1]:
        after, ending = esc + 2, Ending.COMPLETE
    else:
        after, ending = esc, Ending.ABORTED
    for abort in (CAN, SUB):
        if (cut := data.find(abort, start, stop)) >= 0:
            stop, after, ending = cut, cut + 1, Ending.ABORTED
    return stop, after, ending
