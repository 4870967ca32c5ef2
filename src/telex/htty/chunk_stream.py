"""A page's connection in chunks: the bytes they carry, and where a connection begins and ends.

`ChunkReceiver` turns the chunks of one direction back into bytes, by the rules of the spec for
receivers. Either side of a terminal has one for each session, and feeds it what its `Demux` claimed
for `htty_chunk.CHUNK`. Sending is `htty_chunk.encode`.

`begins_connection` and `GoAwayWatch` look at those bytes, for the terminal's side. A server's first
frame is SETTINGS without ACK. Chunks between two connections belong to nobody: a killed program
left them, or somebody prints a log. So a connection begins with a chunk that begins with such a
frame (two programs never share a chunk), and everything before it is dropped. GOAWAY is looked for
because nothing may be written after it. Neither keeps bytes or parses HTTP/2.

No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from telex.htty import limits
from telex.htty.h2.http2_frames import ALL_STREAMS, HEADER_BYTES, FrameType
from telex.wire import htty_chunk
from telex.wire.events import Claimed, Fault, Reason


@dataclass(frozen=True, slots=True)
class StreamAborted:
    """The carried connection is over, for a reason of the framing. The terminal goes on."""

    sentence: str


class ChunkReceiver:
    """One direction of one session, from its first chunk to its first fault."""

    def __init__(self) -> None:
        self.begun = False
        """Whether a valid chunk has come: from then on a fault ends the session."""
        self.answering = False
        """Whether chunks go the other way already. Their version is the session's, and so another
        one here is a fault even as the first thing that comes."""
        self.aborted: StreamAborted | None = None
        self.ignored = 0
        """Faults before the first valid chunk: anybody may print such a thing, and no connection
        is there to be harmed by it."""

    def take(self, event: Claimed | Fault) -> bytes | StreamAborted | None:
        """The bytes of a chunk (there may be none), the end of the session, or nothing at all.

        The end is told once; after it everything is swallowed. A string that the input ended in is
        a fault like any other.
        """
        if self.aborted is not None:
            return None
        found = htty_chunk.parse(event) if isinstance(event, Claimed) else event
        if not isinstance(found, Fault):
            self.begun = True
            return found.body
        if self.begun or (self.answering and found.reason is Reason.VERSION):
            self.aborted = StreamAborted(f"the page's connection was broken off: {found.detail}")
            return self.aborted
        self.ignored += 1
        return None


_SETTINGS: Final = bytes([FrameType.SETTINGS, 0, 0, 0, 0, 0])
"""What follows the length: the type, no flags, and stream 0."""
_SETTING_BYTES: Final = 6
_LAST_STREAM_BYTES: Final = 4


def begins_connection(data: bytes) -> bool:
    """Whether these bytes begin a connection, or would if more followed."""
    length, rest = data[:3], data[3:HEADER_BYTES]
    size = int.from_bytes(length + bytes(3 - len(length)))
    return (
        _SETTINGS.startswith(rest)
        and size <= limits.HTTY_FRAME_BYTES
        and (len(length) < 3 or size % _SETTING_BYTES == 0)
    )


class GoAwayWatch:
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
        if head[3] == FrameType.GOAWAY and size >= _LAST_STREAM_BYTES and len(head) == HEADER_BYTES:
            self._wanted += _LAST_STREAM_BYTES
            return 0
        last = int.from_bytes(head[HEADER_BYTES:]) & ALL_STREAMS
        self.seen = self.seen or (len(head) > HEADER_BYTES and last != ALL_STREAMS)
        self._head, self._wanted = b"", HEADER_BYTES
        return size - (len(head) - HEADER_BYTES)
