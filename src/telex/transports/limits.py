"""The maximums of `transports`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, limit

CLOSE_SECONDS: Final = limit(
    "CLOSE_SECONDS",
    5,
    "seconds",
    "How long closing a channel waits for the other side to take what is unsent.",
)
DOOR_SECRETS: Final = limit(
    "DOOR_SECRETS",
    64,
    "secrets",
    "One-time codes, and cookies, kept at once; the oldest gives way.",
)
CODE_SECONDS: Final = limit(
    "CODE_SECONDS",
    300,
    "seconds",
    "How long a one-time code waits: time to find the browser, not to be found in a backlog.",
)
REQUEST_SECONDS: Final = limit(
    "REQUEST_SECONDS", 10, "seconds", "How long a new connection may take to ask for something."
)
FIRST_MESSAGE_SECONDS: Final = limit(
    "FIRST_MESSAGE_SECONDS", 10, "seconds", "How long a WebSocket may take to show the token."
)
FIRST_MESSAGE_BYTES: Final = limit(
    "FIRST_MESSAGE_BYTES",
    4 * KIB,
    "bytes",
    "How much it may say before that: a stranger gets no room for a large message.",
)
WEBSOCKET_FRAGMENTS: Final = limit(
    "WEBSOCKET_FRAGMENTS",
    1024,
    "fragments",
    "Pieces of one WebSocket message. Each costs more than its bytes, and may have none.",
)
