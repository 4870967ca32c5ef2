"""The maximums of `server`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

UNUSED_SESSION_SECONDS: Final = 3600
"""seconds: How long a session of `telex open` is held without input or reader; `--ttl` and `--keep`
change it. A forgotten session would hold its program for days."""
SCREENS_KEPT: Final = 16
"""screens: Of one session, for `telex see --since`. An older sequence brings the whole screen."""
RESULT_CHARS: Final = 40_000
"""characters: Text of one result of an MCP tool. Clients cut results at about 25,000 tokens."""
FACT_CHARS: Final = 10_000
"""characters: All texts of the structured content of an MCP result together, but for the screen,
and one sentence of a failure. A matched line may be as long as a screen."""
CHANGES_PER_SECOND: Final = 5
"""notifications: To an MCP client about one screen: a model reads no faster."""
SUBSCRIPTIONS: Final = 64
"""screens: That one MCP connection or `subscriptions/listen` follows."""
MCP_SESSIONS: Final = 128
"""sessions: MCP sessions of the older versions over HTTP, each with its own handshake. The one that
was unused for longest is dropped for a new one; its client begins again."""
CONFIRM_SECONDS: Final = 50
"""seconds: How long a person may take to confirm a program that an MCP client opens: clients give
up on a call after a minute."""
