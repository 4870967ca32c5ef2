"""How a connection begins and takes its leave, as far as a terminal must know it.

A server's first frame is SETTINGS that acknowledge nothing. Between two connections there are
chunks of nobody: leavings of a program that was killed, a log that somebody shows. So a connection
begins where a chunk begins with such a frame (two programs never share a chunk), and all before it
is nobody's. GOAWAY is looked for here too, because after it nothing may be written.

Pure, and no parser of HTTP/2 (`frames`): it keeps no bytes. Used by `terminal_side` and
`command_stream`.
"""

from __future__ import annotations

from typing import Final

from telex.htty.connection import ALL_STREAMS
from telex.htty.frames import HEADER_BYTES, Type
from telex.wire import limits

_SETTINGS: Final = bytes([Type.SETTINGS, 0, 0, 0, 0, 0])
"""What follows the length: the type, no flags, and stream 0."""
_SETTING_BYTES: Final = 6
_LAST_STREAM_BYTES: Final = 4


def opens(data: bytes) -> bool:
    """Whether these bytes begin a connection, or would if more followed."""
    length, rest = data[:3], data[3:HEADER_BYTES]
    size = int.from_bytes(length + bytes(3 - len(length)))
    return (
        _SETTINGS.startswith(rest)
        and size <= limits.HTTY_FRAME_BYTES
        and (len(length) < 3 or size % _SETTING_BYTES == 0)
    )


class Leaving:
    """Follows what a server sends, and sees its last GOAWAY.

    One that excludes no stream yet is only the announcement of another (RFC 9113 §6.8): until then
    the server waits for what is under way, and for our answer to a PING.
    """

    def __init__(self) -> None:
        self._head = b""
        self._wanted = HEADER_BYTES
        self._skip = 0
        self.seen = False

    @property
    def between(self) -> bool:
        """Whether what came so far ends with a whole frame."""
        return not self._head and not self._skip

    def feed(self, data: bytes) -> None:
        at = self._skip
        while at < len(data):
            piece = data[at : at + self._wanted - len(self._head)]
            self._head += piece
            at += len(piece)
            if len(self._head) == self._wanted:
                at += self._begun(self._head)
        self._skip = max(0, at - len(data))

    def _begun(self, head: bytes) -> int:
        """How much of the frame, if any, need not be looked at."""
        size = int.from_bytes(head[:3])
        if head[3] == Type.GOAWAY and size >= _LAST_STREAM_BYTES and len(head) == HEADER_BYTES:
            self._wanted += _LAST_STREAM_BYTES
            return 0
        last = int.from_bytes(head[HEADER_BYTES:]) & ALL_STREAMS
        self.seen = self.seen or (len(head) > HEADER_BYTES and last != ALL_STREAMS)
        self._head, self._wanted = b"", HEADER_BYTES
        return size - (len(head) - HEADER_BYTES)
