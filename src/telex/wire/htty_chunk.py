"""HTTY chunks: consecutive bytes of an HTTP/2 stream as `ESC P HTTY;1;<base64> ESC \\`.

The envelope is exact and the base64 canonical: what does not come out the same when encoded again
is refused, because two spellings of one payload are a place to hide things (Python's strict
decoders take `aGVsbG9=` for `hello`). An empty chunk is legal and carries nothing. Any fault on a
direction that has begun aborts the carried connection; that is `htty`'s to do, not ours.
"""

from __future__ import annotations

import binascii

from telex.wire import escape, limits
from telex.wire.demux import Unwrap
from telex.wire.escape import Claim, Kind
from telex.wire.events import Claimed, Fault, Frame, Reason

CHUNK = Claim(Kind.DCS, b"HTTY;")
VERSION = b"1"


def encode(data: bytes, chunk_bytes: int = limits.CHUNK_BYTES) -> bytes:
    """`data` as one or more whole chunks, in order; no bytes are no chunk."""
    pieces = (data[at : at + chunk_bytes] for at in range(0, len(data), chunk_bytes))
    return b"".join(
        escape.encode(CHUNK, VERSION + b";" + binascii.b2a_base64(piece, newline=False))
        for piece in pieces
    )


def parse(claimed: Claimed) -> Frame | Fault:
    """The bytes a claimed chunk carries."""
    version, separator, payload = claimed.body.partition(b";")
    if not separator or not version.isdigit() or version.startswith(b"0"):
        return claimed.fault(Reason.MALFORMED, "not of the form HTTY;<version>;<base64>")
    if version != VERSION:
        return claimed.fault(Reason.VERSION, "only version 1 is spoken here")
    try:
        data = binascii.a2b_base64(payload, strict_mode=True)
    except binascii.Error:
        return claimed.fault(Reason.ENCODING, "the payload is not base64")
    if binascii.b2a_base64(data, newline=False) != payload:
        return claimed.fault(Reason.ENCODING, "the payload is not canonical base64")
    return Frame(data)


class Decoder(Unwrap):
    """Chunks of one direction, with the visible bytes between them."""

    def __init__(self) -> None:
        super().__init__({CHUNK: parse})
