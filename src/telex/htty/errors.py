"""What can go wrong with a page, named for the condition."""

from __future__ import annotations


class ConnectionOver(Exception):
    """The HTTP/2 connection has ended; the sentence says how."""


class StreamReset(Exception):
    """One stream was given up; the connection goes on."""

    def __init__(self, code: int, *, ours: bool = False) -> None:
        who = "this side" if ours else "the other side"
        super().__init__(f"{who} reset the stream (HTTP/2 error code {code})")
        self.code = code
        self.ours = ours


class BadHeaders(ValueError):
    """Header fields that HTTP/2 does not allow, or more of them than the other side takes."""


class StartupFailed(Exception):
    """The app could not begin. The sentence holds what it said."""


class WebSocketOver(Exception):
    """The WebSocket has ended, and nothing can be sent on it any more."""


class NoUpstream(ValueError):
    """What was given names no server that can be served."""
