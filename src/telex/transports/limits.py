"""The limits of `transports`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB

CLOSE_SECONDS: Final = 5
"""seconds: How long closing a channel waits for the other side to read the unsent bytes."""
LOGIN_SECRETS: Final = 64
"""secrets: One-time codes, and cookies, kept at once; the oldest is dropped."""
CODE_SECONDS: Final = 300
"""seconds: How long a one-time code is valid: enough to open the browser, too short to be found in
a scrollback later."""
REQUEST_SECONDS: Final = 10
"""seconds: How long a new connection may take to send a request."""
FIRST_MESSAGE_SECONDS: Final = 10
"""seconds: How long a WebSocket may take to send the token."""
FIRST_MESSAGE_BYTES: Final = 4 * KIB
"""bytes: Size of the message with the token: an unauthenticated client cannot send a large
message."""
WEBSOCKET_FRAGMENTS: Final = 1024
"""fragments: Fragments of one WebSocket message. Each costs more than its bytes, and may be
empty."""
