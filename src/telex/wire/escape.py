"""The grammar of control strings: how OSC and DCS begin, carry a body, and end.

Seven-bit forms only. 0x9C, 0x9D and 0x90 are data here: in UTF-8 they are the middle of ordinary
letters (`Ü` is C3 9C), and taking them for C1 controls cuts text in two. BEL or `ESC \\` ends an
OSC, and only `ESC \\` a DCS. CAN, SUB, or an ESC that does not begin `ESC \\` aborts either, and
that ESC begins the next sequence: the "anywhere" transitions every terminal has.

It knows nothing of what a body means. `demux` cuts strings out of a stream with it; `json_escape`
and `htty_chunk` write theirs with `encode`.
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
    """What was found where a body stops."""

    COMPLETE = auto()
    ABORTED = auto()
    OPEN = auto()
    """Nothing yet: the body goes on in the next read, or in the ESC that ends this one."""


class Unencodable(ValueError):
    """A body that would end, or abort, the control string that should carry it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Control strings that somebody wants for themselves: all of one kind with one prefix."""

    kind: Kind
    prefix: bytes
    max_body: int = limits.CONTROL_STRING_BYTES
    introducer: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "introducer", self.kind.value + self.prefix)

    def __str__(self) -> str:
        return f"{self.kind.name} {self.prefix.decode('ascii')}"


def encode(claim: Claim, body: bytes) -> bytes:
    """One whole control string. BEL ends an OSC (what every terminal takes), `ESC \\` a DCS."""
    end = find_end(body, 0, claim.kind)
    if end != (len(body), len(body), Ending.OPEN):
        raise Unencodable(f"byte {end[0]} of the body would end the {claim} string that carries it")
    return claim.introducer + body + (BEL if claim.kind is Kind.OSC else ST)


def find_end(data: bytes, start: int, kind: Kind) -> tuple[int, int, Ending]:
    """Where the body that runs at `start` stops: its end, where to go on, and how it ended.

    Only up to the next ESC is ever looked at, and the next string begins there at the earliest, so
    a stream of many short strings costs one look per byte. (One regex for all four bytes was a
    third of the speed: `find` of a single byte is memchr.)
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
