"""A page's connection in chunks: its bytes, and where a connection begins and ends.

`ChunkReceiver` turns the chunks of one direction back into bytes, by the rules of the spec for
receivers. Either side of a terminal has one for each session, and feeds it the strings that its
`Demux` claimed for `htty_chunk.CHUNK`. `htty_chunk.encode` is the sending side.

`begins_connection` and `GoAwayWatch` inspect those bytes, for the terminal's side. A server's first
frame is SETTINGS without ACK. Chunks between two connections belong to no connection: a killed
program left them, or a log is printed. So a connection begins with a chunk that begins with such a
frame (two programs never share a chunk), and everything before it is dropped. GOAWAY is detected
because nothing may be written after it. Neither buffers bytes or parses HTTP/2.

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
    """The framing of the carried connection is broken, so it has ended. The terminal continues."""

    sentence: str


class ChunkReceiver:
    """One direction of one session, from its first chunk to its first fault."""

    def __init__(self) -> None:
        self.begun = False
        """Whether a valid chunk was received: from then on a fault ends the session."""
        self.answering = False
        """Whether chunks were already sent in the other direction. Their version is the session's,
        so another version here is a fault even in the first chunk."""
        self.aborted: StreamAborted | None = None
        self.ignored = 0
        """Faults before the first valid chunk: any program may print such strings, and there is no
        connection that they could break."""

    def take(self, event: Claimed | Fault) -> bytes | StreamAborted | None:
        """Return the bytes of a chunk (maybe none), the end of the session, or None.

        The end is returned once; everything after it is dropped. A string that was cut off by the
        end of the input is a fault like any other.
        """
        if self.aborted is not None:
            return None
        found = htty_chunk.parse(event) if isinstance(event, Claimed) else event
        if not isinstance(found, Fault):
            self.begun = True
            return found.body
        if self.begun or (self.answering and found.reason is Reason.VERSION):
            self.aborted = StreamAborted(f"the page's connection was aborted: {found.detail}")
            return self.aborted
        self.ignored += 1
        return None


_SETTINGS: Final = bytes([FrameType.SETTINGS, 0, 0, 0, 0, 0])
"""The rest of the header after the length: the type, no flags, and stream 0."""
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
    """Follows the frames of a server, and detects its final GOAWAY.

    A GOAWAY that excludes no stream only announces another (RFC 9113 §6.8): until then the server
    waits for frames under way, and for our response to a PING.
    """

    def __init__(self) -> None:
        self._head = b""
        self._wanted = HEADER_BYTES
        self._skip = 0
        self.seen = False

    @property
    def between(self) -> bool:
        """Whether the bytes so far end with a whole frame."""
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
        """Handle the header of a frame. Return how many bytes of the frame can be skipped."""
        size = int.from_bytes(head[:3])
        if head[3] == FrameType.GOAWAY and size >= _LAST_STREAM_BYTES and len(head) == HEADER_BYTES:
            self._wanted += _LAST_STREAM_BYTES
            return 0
        last = int.from_bytes(head[HEADER_BYTES:]) & ALL_STREAMS
        self.seen = self.seen or (len(head) > HEADER_BYTES and last != ALL_STREAMS)
        self._head, self._wanted = b"", HEADER_BYTES
        return size - (len(head) - HEADER_BYTES)
