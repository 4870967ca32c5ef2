"""The maximums of `wire`, and how every package declares its own: in its `limits.py`.

The names are plain integers, ready to compare with; `TABLE` holds the same numbers with their unit
and reason, for `telex doctor` and `docs/reference/limits.md`. It has the limits of the packages
that are loaded; `all_limits` of `telex doctor` loads them all. Over a limit the sender gets a clear
error, the connection stays usable where the framing allows, and memory stays bounded.
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


def limit(name: str, value: int, unit: str, reason: str) -> int:
    """Enter one limit into the table. Returns its value."""
    assert name not in TABLE, f"two limits are called {name}"
    TABLE[name] = Limit(value, unit, reason)
    return value


LINE_BYTES: Final = limit(
    "LINE_BYTES",
    16 * MIB,
    "bytes",
    "One NDJSON line. Far above a full 200x60 snapshot (2.4 MB), far below what hurts; "
    "asyncio's 64 KiB line limit is the cliff other servers fall from.",
)
CONTENT_BYTES: Final = limit(
    "CONTENT_BYTES",
    16 * MIB,
    "bytes",
    "One Content-Length body: the same message must fit whichever framing carries it.",
)
HEADER_BYTES: Final = limit(
    "HEADER_BYTES",
    8 * KIB,
    "bytes",
    "One header block. Two short fields are all anyone sends; 8 KiB is what web servers allow.",
)
HEADER_FIELDS: Final = limit(
    "HEADER_FIELDS",
    32,
    "fields",
    "Fields in one header block, so that a flood of them stays cheap.",
)
CONTROL_STRING_BYTES: Final = limit(
    "CONTROL_STRING_BYTES",
    1 * MIB,
    "bytes",
    "One claimed OSC or DCS body: tmux's own buffer size, and what we announce as `maxframe`.",
)
CHUNK_BYTES: Final = limit(
    "CHUNK_BYTES",
    3 * KIB,
    "bytes",
    "Payload of one HTTY chunk we send: 4 KiB of base64, about what one PTY read returns.",
)
