"""HTTY chunks: consecutive bytes of an HTTP/2 connection as `ESC P HTTY;1;<base64> ESC \\`.

The envelope is exact and the base64 canonical. A payload that does not encode to the same text
again is refused, because two spellings of one payload are a place to hide things (Python's strict
decoders accept `aGVsbG9=` as `hello`). An empty chunk is legal and carries nothing. Any fault on a
direction that has begun aborts the carried connection; `htty` does that, not this module.

Later releases of HTTY send `ESC P +Hraw ESC \\` once, and then raw bytes until the end. This module
recognises that form so that it can be named to a reader that waits for chunks. Telex does not
support it.
"""

from __future__ import annotations

import binascii

from telex.wire import escape, limits
from telex.wire.demux import Unwrap
from telex.wire.escape import Claim, Kind
from telex.wire.events import Claimed, Fault, Frame, Reason

CHUNK = Claim(Kind.DCS, b"HTTY;")
RAW = Claim(Kind.DCS, b"+H")
"""The control string by which a program announces the raw form."""
RAW_FORM = "the raw form of later HTTY releases, and telex speaks chunks (HTTY;1)"
VERSION = b"1"
_VERSION = VERSION + b";"
_BEGIN = CHUNK.introducer + _VERSION


def encode(data: bytes | memoryview, chunk_bytes: int = limits.CHUNK_BYTES) -> bytes:
    """Return `data` as whole chunks, in order; empty data gives no chunk."""
    view = memoryview(data)
    pieces: list[bytes] = []
    for at in range(0, len(data), chunk_bytes):
        # Not `escape.encode`: no letter of base64 ends a string, and searching for one took half
        # as long as encoding.
        payload = binascii.b2a_base64(view[at : at + chunk_bytes], newline=False)
        pieces += (_BEGIN, payload, escape.ST)
    return b"".join(pieces)


def parse(claimed: Claimed) -> Frame | Fault:
    """Return the bytes that a claimed chunk carries."""
    body = claimed.body
    if not body.startswith(_VERSION):
        return _other(claimed)
    try:
        data = binascii.a2b_base64(memoryview(body)[len(_VERSION) :], strict_mode=True)
    except binascii.Error:
        return claimed.fault(Reason.ENCODING, "the payload is not base64")
    # Encoding the whole payload again would take half as long as decoding it. Only the padding can
    # be spelled in two ways: with superfluous letters, and with bits that belong to no byte.
    tail = binascii.b2a_base64(data[len(data) // 3 * 3 :], newline=False)
    if len(body) != len(_VERSION) + (len(data) + 2) // 3 * 4 or not body.endswith(tail):
        return claimed.fault(Reason.ENCODING, "the payload is not canonical base64")
    return Frame(data)


def _other(claimed: Claimed) -> Fault:
    version, separator, _ = claimed.body.partition(b";")
    if not separator or not version.isdigit() or version.startswith(b"0"):
        return claimed.fault(Reason.MALFORMED, "not of the form HTTY;<version>;<base64>")
    return claimed.fault(Reason.VERSION, "only version 1 is supported")


def parse_raw(claimed: Claimed) -> Fault:
    """Return the fault of a program that uses the raw form."""
    return claimed.fault(Reason.VERSION, RAW_FORM)


class HttyChunkDecoder(Unwrap):
    """Decodes the chunks of one direction, with the visible bytes between them."""

    def __init__(self) -> None:
        super().__init__({CHUNK: parse, RAW: parse_raw})
