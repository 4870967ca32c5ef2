"""The maximums of `automation`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB

SESSIONS: Final = 4096
"""sessions: In one server. Linux allows 4,096 terminals by default."""
DESCRIPTORS_KEPT: Final = 64
"""open files: Kept free when a session is created, for connections and for ending programs. A
session has two or three."""
ATTACHED_BYTES: Final = 256 * KIB
"""bytes: Buffered for the attachments of a connection that have no credit, in equal shares. Beyond
it, an attachment gets the whole screen instead."""
ATTACHED_PIECE_BYTES: Final = 64 * KIB
"""bytes: In one message of an attachment, so that other responses can be sent between two."""
TOLD_TAIL_ROWS: Final = 40
"""rows: Rows of the screen in the error of a wait that failed."""
STYLES_KEPT: Final = 4096
"""styles: Styles cached as wire types. An image in true colour would fill memory with them."""
CELLS_TOLD: Final = 60_000
"""cells: Sent one by one. Each takes 200 bytes of JSON, and more would not fit in one message; a
larger screen is sent as runs."""
OUTPUT_CHARS_TOLD: Final = 64 * KIB
"""characters: In one `session.output`. A reader that fell behind gets several."""
NEWS_WAITING: Final = 1_024
"""notices: Queued for one connection about one session. More are dropped."""
STEP_CHARS: Final = 16_384
"""characters: In one step of `telex do`: splitting a longer line into words would block the server.
Long texts go by `telex type -` or `telex paste -`."""
STEPS: Final = 1000
"""steps: In one `telex do`."""
QUOTED_CHARS: Final = 200
"""characters: Of a terminal's title above a screen, and of a name that an MCP client sent and an
error repeats."""
