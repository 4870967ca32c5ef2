"""The limits of `rpc`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB

JSON_DEPTH: Final = 64
"""levels: Nesting of one JSON message; deeper is an attack on the decoder."""
CALLS_IN_FLIGHT: Final = 256
"""calls: Calls one peer has open, and requests it serves at once; the next one waits in a queue."""
REQUESTS_QUEUED: Final = 1024
"""requests: Requests read but not yet served. More than a telex peer can have open, so reading
never stops between two of them; a peer that floods is no longer read."""
QUEUED_BYTES: Final = 32 * MIB
"""bytes: The bytes in the same queue: two messages of the largest size fit into it."""
OUTBOUND_BYTES: Final = 256 * KIB
"""bytes: Bytes written that the other side has not read. Above it callers wait and requests are not
served: backpressure instead of memory."""
STREAM_PARTS: Final = 256
"""parts: Parts of one stream that its reader has not taken. Above it only this stream fails;
blocking the others would be worse."""
IDS_REMEMBERED: Final = 1024
"""ids: Ended calls whose late replies are still recognised; replies to older ones count as
unknown."""
BATCH_MESSAGES: Final = 1000
"""messages: Messages in one JSON-RPC batch."""
MEMBERS_LOGGED: Final = 256
"""members: Unknown members of requests that are logged, each once: a peer must not fill the log."""
MISSPELT_NAME_CHARS: Final = 64
"""characters: Length of an unknown method up to which the nearest names are looked up: twice the
longest method name, and under a millisecond of work."""
