"""JSON terminal escapes as frames: `ESC ] 23198 ; <num-bytes> ; <json> BEL`, and 23199 back.

`num-bytes` counts the bytes of the JSON; 0 means "until the terminator". It is a check and never an
allocation: on a mismatch the frame is dropped and reported, not cut where the number says. Frames
without the length field (Wave's form) are read too, where a body that begins with `{` is all JSON;
and written, for who reads no other. Whether the JSON is any good is for `rpc.dialects` to say.

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
    """One frame around compact JSON, made printable ASCII on the way; in Wave's form, without its
    `length`.

    Outside ASCII a character can only stand inside a JSON string, so spelling it `\\uXXXX` changes
    nothing a decoder sees, and no terminal between here and there can take offence.
    """
    body = printable(body)
    return escape.encode(claim, b"%d;%b" % (len(body), body) if length else body)


def json_bytes(body: bytes) -> int:
    """How many bytes of JSON this is in a frame."""
    return len(body) if body.isascii() and b"\x7f" not in body else len(printable(body))


def printable(body: bytes) -> bytes:
    """The same JSON in printable ASCII, on one line."""
    body = body.translate(_ONE_LINE)  # JSON has raw layout only between its tokens
    if body.isascii() and b"\x7f" not in body:
        return body
    return _NOT_PLAIN_ASCII.sub(_spelled, body.decode("utf-8")).encode("ascii")


def _spelled(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


AROUND: Final = len(encode(b"{}")) - 2 + 8
"""Bytes of a frame beside its JSON, and eight digits of its length."""


def has_length(beginning: bytes) -> bool:
    """Whether a frame that begins so has the spec's form, and not Wave's."""
    return not beginning.startswith(b"{")


def parse(claimed: Claimed) -> Frame | Fault:
    """The JSON a claimed string carries."""
    body = claimed.body
    if not has_length(body):
        return Frame(body)
    found = _BODY.fullmatch(body)
    if found is None:
        return claimed.fault(Reason.MALFORMED, "no number of bytes, or no JSON after it")
    declared, payload = int(found[1]), found[2]
    if declared not in (0, len(payload)):
        detail = f"{declared} bytes declared, {len(payload)} came"
        return claimed.fault(Reason.LENGTH, detail)
    return Frame(payload)


class JsonEscapeDecoder(Unwrap):
    """JSON frames of one direction, with the visible bytes between them."""

    def __init__(self, claim: Claim = TO_TERMINAL) -> None:
        super().__init__({claim: parse})
