"""The maximums of `automation`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, limit

SESSIONS: Final = limit(
    "SESSIONS",
    4096,
    "sessions",
    "In one server. Linux has 4,096 terminals unless told otherwise.",
)
ATTACHED_BYTES: Final = limit(
    "ATTACHED_BYTES",
    256 * KIB,
    "bytes",
    "Kept for all attachments of a connection that have no credit, each its share. Beyond it, one "
    "gets the screen anew instead.",
)
ATTACHED_PIECE_BYTES: Final = limit(
    "ATTACHED_PIECE_BYTES",
    64 * KIB,
    "bytes",
    "In one message of an attachment, so that others' answers get through between two.",
)
TOLD_TAIL_ROWS: Final = limit(
    "TOLD_TAIL_ROWS", 40, "rows", "Of the screen, in the error of a wait that failed."
)
STYLES_KEPT: Final = limit(
    "STYLES_KEPT",
    4096,
    "styles",
    "Remembered in the shape of the wire. A picture in true colour would fill memory with them.",
)
CELLS_TOLD: Final = limit(
    "CELLS_TOLD",
    60_000,
    "cells",
    "Told one by one. Each takes 200 bytes of JSON, so that more would not fit in one message; a "
    "larger screen is told in runs.",
)
OUTPUT_CHARS_TOLD: Final = limit(
    "OUTPUT_CHARS_TOLD",
    64 * KIB,
    "characters",
    "In one `session.output`. A reader who was away gets several.",
)
NEWS_WAITING: Final = limit(
    "NEWS_WAITING",
    1_024,
    "notices",
    "Of one session, each for itself, that one connection has not been told. More are dropped.",
)
