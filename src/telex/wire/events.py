"""What a codec found in the bytes: four frozen values, and nothing else.

Used by every codec in `wire` and by everyone who feeds one. A peer's mistake is one of the values
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
    """Why a fault is one. The values are for people and logs; code compares the members."""

    TOO_LONG = "too long"
    """More bytes than `limits` allows; the rest of the frame is skipped, not kept."""
    TRUNCATED = "truncated"
    """The input ended inside a frame."""
    ABORTED = "aborted"
    """CAN, SUB or a new ESC cut a control string short, as every terminal lets them."""
    HEADER = "bad header"
    """A header block that does not say, once and plainly, how long the content is."""
    LENGTH = "length mismatch"
    """The declared number of bytes is not the number that came."""
    MALFORMED = "malformed"
    """The envelope is not the one the spec prints."""
    VERSION = "unsupported version"
    """A well-formed envelope in a version we do not speak."""
    ENCODING = "bad encoding"
    """A payload that is not the canonical encoding of any bytes."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One delimited run of bytes, without its delimiters."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Visible:
    """Bytes nobody claimed, exactly as they came, in order."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """The body of a control string whose prefix somebody claimed, between prefix and terminator."""

    claim: Claim
    body: bytes
    offset: int
    """Where in the stream its introducer began."""

    def fault(self, reason: Reason, detail: str) -> Fault:
        """What is wrong with this string."""
        return Fault(reason, self.offset, f"{self.claim}: {detail}", self.claim)


@dataclass(frozen=True, slots=True)
class Fault:
    """The peer erred here; carry on."""

    reason: Reason
    offset: int
    """Where in the stream the faulty frame began, in bytes since the first `feed`."""
    detail: str
    """A sentence for a person. It never quotes the peer's bytes: they may be hostile or secret."""
    claim: Claim | None = None
    """Whose control string it was, where the fault is inside one."""
    begins: bytes = field(default=b"", compare=False, repr=False)
    """How a string that is too long begins, for whoever can tell from that whose it is."""


Event = Frame | Visible | Claimed | Fault
