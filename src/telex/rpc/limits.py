"""The limits of `rpc`, each with its unit and its reason."""

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
    "Calls one peer has open, and requests it serves at once; the next one waits in a queue.",
)
REQUESTS_QUEUED: Final = limit(
    "REQUESTS_QUEUED",
    1024,
    "requests",
    "Requests read but not yet served. More than a telex peer can have open, so reading never "
    "stops between two of them; a peer that floods is no longer read.",
)
QUEUED_BYTES: Final = limit(
    "QUEUED_BYTES",
    32 * MIB,
    "bytes",
    "The bytes in the same queue: two messages of the largest size fit into it.",
)
OUTBOUND_BYTES: Final = limit(
    "OUTBOUND_BYTES",
    256 * KIB,
    "bytes",
    "Bytes written that the other side has not read. Above it callers wait and requests are not "
    "served: backpressure instead of memory.",
)
STREAM_PARTS: Final = limit(
    "STREAM_PARTS",
    256,
    "parts",
    "Parts of one stream that its reader has not taken. Above it only this stream fails; blocking "
    "the others would be worse.",
)
IDS_REMEMBERED: Final = limit(
    "IDS_REMEMBERED",
    1024,
    "ids",
    "Ended calls whose late replies are still recognised; replies to older ones count as unknown.",
)
BATCH_MESSAGES: Final = limit("BATCH_MESSAGES", 1000, "messages", "Messages in one JSON-RPC batch.")
MEMBERS_LOGGED: Final = limit(
    "MEMBERS_LOGGED",
    256,
    "members",
    "Unknown members of requests that are logged, each once: a peer must not fill the log.",
)
MISSPELT_NAME_CHARS: Final = limit(
    "MISSPELT_NAME_CHARS",
    64,
    "characters",
    "Length of an unknown method up to which the nearest names are looked up: twice the longest "
    "method name, and under a millisecond of work.",
)
