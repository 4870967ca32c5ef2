"""JSON terminal escapes as frames: `ESC ] 23198 ; <num-bytes> ; <json> BEL`, and 23199 back.

`num-bytes` counts the bytes of the JSON; 0 means "until the terminator". The number is a check and
never an allocation: on a mismatch the frame is dropped and reported, not cut at the number. Frames
without the length field (Wave's form) are accepted too: a body that begins with `{` is all JSON.
They are also written, for readers that know no other form. Validation of the JSON belongs to
`rpc.dialects`.

Used by `escapes` on both sides of a terminal.
"""

from __future__ import annotations

import re
from typing import Final

from telex.wire import escape
from telex.wire.demux import Unwrap
from telex.wire.escape import Claim, Kind
from telex.wire.events import Claimed, Fault, Frame, Reason

TO_TERMINAL = Claim(Kind.OSC, b"23198;")
"""Commands and data from a program to its terminal."""
TO_PROGRAM = Claim(Kind.OSC, b"23199;")
"""Events, data and responses from a terminal to its program."""

_BODY = re.compile(rb"([0-9]{1,10});(.+)", re.DOTALL)
_ONE_LINE = bytes.maketrans(b"\n\r\t", b"   ")
_NOT_PLAIN_ASCII = re.compile(r"[^ -~]")


def encode(body: bytes, claim: Claim = TO_TERMINAL, *, length: bool = True) -> bytes:
    """Return one frame around compact JSON, converted to printable ASCII.

    Outside ASCII a character can only stand inside a JSON string, so spelling it `\\uXXXX` changes
    nothing for a decoder, and no terminal in between can misread it.

    Args:
        length: False writes Wave's form, without the length field.
    """
    body = printable(body)
    return escape.encode(claim, b"%d;%b" % (len(body), body) if length else body)


def json_bytes(body: bytes) -> int:
    """Return how many bytes this JSON takes in a frame."""
    return len(body) if body.isascii() and b"\x7f" not in body else len(printable(body))


def printable(body: bytes) -> bytes:
    """Return the same JSON in printable ASCII, on one line."""
    body = body.translate(_ONE_LINE)  # JSON allows raw line breaks only between its tokens
    if body.isascii() and b"\x7f" not in body:
        return body
    return _NOT_PLAIN_ASCII.sub(_spelled, body.decode("utf-8")).encode("ascii")


def _spelled(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


AROUND: Final = len(encode(b"{}")) - 2 + 8
"""Bytes of a frame besides its JSON, with eight digits for the length."""


def has_length(beginning: bytes) -> bool:
    """Whether a frame with this beginning has the spec's form, and not Wave's."""
    return not beginning.startswith(b"{")


def parse(claimed: Claimed) -> Frame | Fault:
    """Return the JSON that a claimed string carries."""
    body = claimed.body
    if not has_length(body):
        return Frame(body)
    found = _BODY.fullmatch(body)
    if found is None:
        return claimed.fault(Reason.MALFORMED, "no number of bytes, or no JSON after it")
    declared, payload = int(found[1]), found[2]
    if declared not in (0, len(payload)):
        detail = f"{declared} bytes declared, {len(payload)} received"
        return claimed.fault(Reason.LENGTH, detail)
    return Frame(payload)


class JsonEscapeDecoder(Unwrap):
    """Decodes the JSON frames of one direction, with the visible bytes between them."""

    def __init__(self, claim: Claim = TO_TERMINAL) -> None:
        super().__init__({claim: parse})
