"""The limits of `wire`; every package declares its own in a `limits.py` like this one.

A limit is a plain integer, ready for comparison, with a docstring: its unit, a colon, and the
reason. `all_limits` of `telex doctor` reads them in every package, for `telex doctor --json` and
`docs/reference/limits.md`; names are unique in all packages. A sender that exceeds a limit gets a
clear error, the connection stays usable where the framing allows it, and memory stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limit:
    """One row of the table of limits."""

    value: int
    unit: str
    reason: str


LINE_BYTES: Final = 16 * MIB
"""bytes: One message: a line of NDJSON, a WebSocket message, the body of a POST. Far above a full
200x60 snapshot (2.4 MB), far below a size that hurts; asyncio's default line limit of 64 KiB is
what other servers fail at."""
CONTENT_BYTES: Final = 16 * MIB
"""bytes: One Content-Length body: a message must fit whichever framing carries it."""
HEADER_BYTES: Final = 8 * KIB
"""bytes: One header block. Peers send two short fields; 8 KiB is the limit of web servers."""
HEADER_FIELDS: Final = 32
"""fields: Fields in one header block, so that a flood of them stays cheap."""
CONTROL_STRING_BYTES: Final = 1 * MIB
"""bytes: One claimed OSC or DCS body: tmux's own buffer size, and what we announce as
`maxframe`."""
CHUNK_BYTES: Final = 3 * KIB
"""bytes: Payload of one HTTY chunk we send: 4 KiB of base64, about what one PTY read returns."""
