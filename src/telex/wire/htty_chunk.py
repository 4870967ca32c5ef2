"""HTTY chunks: consecutive bytes of an HTTP/2 stream as `ESC P HTTY;1;<base64> ESC \\`.

The envelope is exact and the base64 canonical: what does not come out the same when encoded again
is refused, because two spellings of one payload are a place to hide things (Python's strict
decoders take `aGVsbG9=` for `hello`). An empty chunk is legal and carries nothing. Any fault on a
direction that has begun aborts the carried connection; that is `htty`'s to do, not ours.

Later releases of HTTY say `ESC P +Hraw ESC \\` once, and then the bytes as they are, until the end.
That form is recognised here, so that it can be named to who waits for chunks; it is not spoken.
"""

from __future__ import annotations

import binascii

from telex.wire import escape, limits
from telex.wire.demux import Unwrap
from telex.wire.escape import Claim, Kind
from telex.wire.events import Claimed, Fault, Frame, Reason

CHUNK = Claim(Kind.DCS, b"HTTY;")
RAW = Claim(Kind.DCS, b"+H")
"""How a program announces the raw form."""
RAW_FORM = "the raw form of later HTTY releases, and telex speaks chunks (HTTY;1)"
VERSION = b"1"
_VERSION = VERSION + b";"
_BEGIN = CHUNK.introducer + _VERSION


def encode(data: bytes | memoryview, chunk_bytes: int = limits.CHUNK_BYTES) -> bytes:
    """`data` as one or more whole chunks, in order; no bytes are no chunk."""
    view = memoryview(data)
    pieces: list[bytes] = []
    for at in range(0, len(data), chunk_bytes):
        # Not `escape.encode`: no letter of base64 ends a string, and looking for one took half
        # as long as encoding.
        payload = binascii.b2a_base64(view[at : at + chunk_bytes], newline=False)
        pieces += (_BEGIN, payload, escape.ST)
    return b"".join(pieces)


def parse(claimed: Claimed) -> Frame | Fault:
    """The bytes a claimed chunk carries."""
    body = claimed.body
    if not body.startswith(_VERSION):
        return _other(claimed)
    try:
        data = binascii.a2b_base64(memoryview(body)[len(_VERSION) :], strict_mode=True)
    except binascii.Error:
        return claimed.fault(Reason.ENCODING, "the payload is not base64")
    # Encoding all of it again would take half as long as decoding. Only padding can be spelled in
    # two ways: with letters it does not need, and with bits that no byte needs.
    tail = binascii.b2a_base64(data[len(data) // 3 * 3 :], newline=False)
    if len(body) != len(_VERSION) + (len(data) + 2) // 3 * 4 or not body.endswith(tail):
        return claimed.fault(Reason.ENCODING, "the payload is not canonical base64")
    return Frame(data)


def _other(claimed: Claimed) -> Fault:
    version, separator, _ = claimed.body.partition(b";")
    if not separator or not version.isdigit() or version.startswith(b"0"):
        return claimed.fault(Reason.MALFORMED, "not of the form HTTY;<version>;<base64>")
    return claimed.fault(Reason.VERSION, "only version 1 is spoken here")


def parse_raw(claimed: Claimed) -> Fault:
    """What a program says that speaks another form."""
    return claimed.fault(Reason.VERSION, RAW_FORM)


class HttyChunkDecoder(Unwrap):
    """Chunks of one direction, with the visible bytes between them."""

    def __init__(self) -> None:
        super().__init__({CHUNK: parse, RAW: parse_raw})
