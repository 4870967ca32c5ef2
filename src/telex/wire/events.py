"""The values that a codec returns: four frozen classes, and nothing else.

Used by every codec in `wire` and by all code that feeds one. A peer's mistake is one of the values
(`Fault`) and not an exception: one read may hold three good frames and a bad one, and raising would
lose the good ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telex.wire.escape import Claim


class Reason(StrEnum):
    """Why a frame is a fault. The values are for people and logs; code compares the members."""

    TOO_LONG = "too long"
    """More bytes than `limits` allows; the rest of the frame is skipped, not kept."""
    TRUNCATED = "truncated"
    """The input ended inside a frame."""
    ABORTED = "aborted"
    """CAN, SUB or a new ESC cut a control string short, as in every terminal."""
    HEADER = "bad header"
    """A header block that does not declare exactly one plain content length."""
    LENGTH = "length mismatch"
    """The declared number of bytes differs from the number received."""
    MALFORMED = "malformed"
    """The envelope is not the one the spec prints."""
    VERSION = "unsupported version"
    """A well-formed envelope in a version that telex does not support."""
    ENCODING = "bad encoding"
    """A payload that is not the canonical encoding of any bytes."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One delimited run of bytes, without its delimiters."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Visible:
    """Bytes outside every claim, unchanged and in order."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """The body of a control string with a claimed prefix, between prefix and terminator."""

    claim: Claim
    body: bytes
    offset: int
    """Stream position of its introducer."""

    def fault(self, reason: Reason, detail: str) -> Fault:
        """Return a fault about this string."""
        return Fault(reason, self.offset, f"{self.claim}: {detail}", self.claim)


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake of the peer. Decoding continues after it."""

    reason: Reason
    offset: int
    """Stream position of the faulty frame, in bytes since the first `feed`."""
    detail: str
    """A sentence for a person. It never quotes the peer's bytes: they may be hostile or secret."""
    claim: Claim | None = None
    """The claim whose control string is faulty, where the fault is inside a string."""
    begins: bytes = field(default=b"", compare=False, repr=False)
    """The first bytes of a string that is too long, so that its owner can be identified."""


Event = Frame | Visible | Claimed | Fault
