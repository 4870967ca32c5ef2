"""The maximums of `rpc`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB, limit

JSON_DEPTH: Final = limit(
    "JSON_DEPTH", 64, "levels", "Nesting of one JSON message; deeper is an attack on the decoder."
)
CALLS_IN_FLIGHT: Final = limit(
    "CALLS_IN_FLIGHT",
    256,
    "calls",
    "Calls one peer has open, and requests it serves at once; the next waits its turn.",
)
REQUESTS_QUEUED: Final = limit(
    "REQUESTS_QUEUED",
    1024,
    "requests",
    "Requests read but not yet served. More than any peer of ours can have open, so between two of "
    "them reading never stops; a flooder is read no further.",
)
QUEUED_BYTES: Final = limit(
    "QUEUED_BYTES",
    32 * MIB,
    "bytes",
    "The same queue, by weight: one largest message may always wait beside another.",
)
OUTBOUND_BYTES: Final = limit(
    "OUTBOUND_BYTES",
    256 * KIB,
    "bytes",
    "Bytes written but not yet taken by the other side, above which callers wait and requests are "
    "not served: backpressure instead of memory.",
)
STREAM_PARTS: Final = limit(
    "STREAM_PARTS",
    256,
    "parts",
    "Parts of one stream that its reader has not taken. Past it that stream fails alone; holding "
    "the others up would be worse.",
)
IDS_REMEMBERED: Final = limit(
    "IDS_REMEMBERED",
    1024,
    "ids",
    "Ended calls whose late replies are still recognised; older ones are counted as unknown.",
)
BATCH_MESSAGES: Final = limit("BATCH_MESSAGES", 1000, "messages", "Messages in one JSON-RPC batch.")
MISSPELT_NAME_CHARS: Final = limit(
    "MISSPELT_NAME_CHARS",
    64,
    "characters",
    "An unknown method for which the nearest names are looked up: twice the longest method's name, "
    "and under a millisecond of work.",
)
