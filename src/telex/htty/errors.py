"""The errors of pages, named for the condition."""

from __future__ import annotations


class ConnectionOver(Exception):
    """The HTTP/2 connection has ended; the message says how."""


class StreamReset(Exception):
    """One stream was reset; the connection continues."""

    def __init__(self, code: int, *, ours: bool = False) -> None:
        who = "this side" if ours else "the other side"
        super().__init__(f"{who} reset the stream (HTTP/2 error code {code})")
        self.code = code
        self.ours = ours


class BadHeaders(ValueError):
    """The header fields are not allowed in HTTP/2, or exceed the other side's limit."""


class StartupFailed(Exception):
    """The app could not start. The message contains the app's own message."""


class WebSocketOver(Exception):
    """The WebSocket has ended, and nothing can be sent any more."""


class NoUpstream(ValueError):
    """The given address is not a server that can be proxied."""
