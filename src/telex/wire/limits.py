"""Every maximum, once, with its reason.

The names are plain integers, ready to compare with; `TABLE` holds the same numbers with their unit
and reason, for `telex doctor` and `docs/reference/limits.md`. Over a limit the peer that sent it
gets a clear error, the connection stays usable where the framing allows, and memory stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limit:
    """One row of the table."""

    value: int
    unit: str
    reason: str


TABLE: Final[dict[str, Limit]] = {}


def _limit(name: str, value: int, unit: str, reason: str) -> int:
    TABLE[name] = Limit(value, unit, reason)
    return value


LINE_BYTES: Final = _limit(
    "LINE_BYTES",
    16 * MIB,
    "bytes",
    "One NDJSON line. Far above a full 200x60 snapshot (2.4 MB), far below what hurts; "
    "asyncio's 64 KiB line limit is the cliff other servers fall from.",
)
CONTENT_BYTES: Final = _limit(
    "CONTENT_BYTES",
    16 * MIB,
    "bytes",
    "One Content-Length body: the same message must fit whichever framing carries it.",
)
HEADER_BYTES: Final = _limit(
    "HEADER_BYTES",
    8 * KIB,
    "bytes",
    "One header block. Two short fields are all anyone sends; 8 KiB is what web servers allow.",
)
HEADER_FIELDS: Final = _limit(
    "HEADER_FIELDS",
    32,
    "fields",
    "Fields in one header block, so that a flood of them stays cheap.",
)
CONTROL_STRING_BYTES: Final = _limit(
    "CONTROL_STRING_BYTES",
    1 * MIB,
    "bytes",
    "One claimed OSC or DCS body: tmux's own buffer size, and what we announce as `maxframe`.",
)
SENT_CONTROL_STRING_BYTES: Final = _limit(
    "SENT_CONTROL_STRING_BYTES",
    2 * KIB,
    "bytes",
    "One JSON escape we send until the other side announced more: the smallest OSC buffer of a "
    "terminal in use today.",
)
CHUNK_BYTES: Final = _limit(
    "CHUNK_BYTES",
    3 * KIB,
    "bytes",
    "Payload of one HTTY chunk we send: 4 KiB of base64, about what one PTY read returns.",
)
JSON_DEPTH: Final = _limit(
    "JSON_DEPTH", 64, "levels", "Nesting of one JSON message; deeper is an attack on the decoder."
)
HELD_SECRET_CHARS: Final = _limit(
    "HELD_SECRET_CHARS",
    4 * KIB,
    "characters",
    "Text held back while it may be a secret; longer values are masked without being held.",
)
CALLS_IN_FLIGHT: Final = _limit(
    "CALLS_IN_FLIGHT",
    256,
    "calls",
    "Calls one peer has open, and requests it serves at once; the next waits its turn.",
)
REQUESTS_QUEUED: Final = _limit(
    "REQUESTS_QUEUED",
    1024,
    "requests",
    "Requests read but not yet served. More than any peer of ours can have open, so between two of "
    "them reading never stops; a flooder is read no further.",
)
QUEUED_BYTES: Final = _limit(
    "QUEUED_BYTES",
    32 * MIB,
    "bytes",
    "The same queue, by weight: one largest message may always wait beside another.",
)
OUTBOUND_BYTES: Final = _limit(
    "OUTBOUND_BYTES",
    1 * MIB,
    "bytes",
    "Bytes written but not yet taken by the other side, above which callers wait and requests are "
    "not served: backpressure instead of memory.",
)
STREAM_PARTS: Final = _limit(
    "STREAM_PARTS",
    256,
    "parts",
    "Parts of one stream that its reader has not taken. Past it that stream fails alone; holding "
    "the others up would be worse.",
)
IDS_REMEMBERED: Final = _limit(
    "IDS_REMEMBERED",
    1024,
    "ids",
    "Ended calls whose late replies are still recognised; older ones are counted as unknown.",
)
BATCH_MESSAGES: Final = _limit(
    "BATCH_MESSAGES", 1000, "messages", "Messages in one JSON-RPC batch."
)
SOCKET_PATH_BYTES: Final = _limit(
    "SOCKET_PATH_BYTES",
    103,
    "bytes",
    "A unix socket's path. macOS has room for 104 with the closing NUL, Linux for 108; the smaller "
    "serves both, so that the same environment means the same path everywhere.",
)
CONFIG_FILE_BYTES: Final = _limit(
    "CONFIG_FILE_BYTES",
    1 * MIB,
    "bytes",
    "One configuration file. It is a page; a directory we stand in may hold anything.",
)
CLOSE_SECONDS: Final = _limit(
    "CLOSE_SECONDS",
    5,
    "seconds",
    "How long closing a channel waits for the other side to take what is unsent.",
)
DOOR_SECRETS: Final = _limit(
    "DOOR_SECRETS",
    64,
    "secrets",
    "One-time codes, and cookies, kept at once; the oldest gives way.",
)
CODE_SECONDS: Final = _limit(
    "CODE_SECONDS",
    300,
    "seconds",
    "How long a one-time code waits: time to find the browser, not to be found in a backlog.",
)
REQUEST_SECONDS: Final = _limit(
    "REQUEST_SECONDS", 10, "seconds", "How long a new connection may take to ask for something."
)
FIRST_MESSAGE_SECONDS: Final = _limit(
    "FIRST_MESSAGE_SECONDS", 10, "seconds", "How long a WebSocket may take to show the token."
)
FIRST_MESSAGE_BYTES: Final = _limit(
    "FIRST_MESSAGE_BYTES",
    4 * KIB,
    "bytes",
    "How much it may say before that: a stranger gets no room for a large message.",
)
WEBSOCKET_FRAGMENTS: Final = _limit(
    "WEBSOCKET_FRAGMENTS",
    1024,
    "fragments",
    "Pieces of one WebSocket message. Each costs more than its bytes, and may have none.",
)
