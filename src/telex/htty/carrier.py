"""Chunks of one direction, back to the bytes they carry, by the rules of the spec for receivers.

Either side of a terminal has one `Receiver` for each session, and feeds it what its `Demux` claimed
for `htty_chunk.CHUNK`. What stands between chunks is not seen here, and neither is HTTP/2: where a
session ends and the next begins is for those who read the bytes. Sending is `htty_chunk.encode`.

Pure. Used by `tty_stream` and `terminal_side`.
"""

from __future__ import annotations

from dataclasses import dataclass

from telex.wire import htty_chunk
from telex.wire.events import Claimed, Fault, Reason


@dataclass(frozen=True, slots=True)
class Aborted:
    """The carried connection is over, for a reason of the framing. The terminal goes on."""

    sentence: str


class Receiver:
    """One direction of one session, from its first chunk to its first fault."""

    def __init__(self) -> None:
        self.begun = False
        """Whether a valid chunk has come: from then on a fault ends the session."""
        self.answering = False
        """Whether chunks go the other way already. Their version is the session's, and so another
        one here is a fault even as the first thing that comes."""
        self.aborted: Aborted | None = None
        self.ignored = 0
        """Faults before the first valid chunk: anybody may print such a thing, and no connection
        is there to be harmed by it."""

    def take(self, event: Claimed | Fault) -> bytes | Aborted | None:
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
            self.aborted = Aborted(f"the page's connection was broken off: {found.detail}")
            return self.aborted
        self.ignored += 1
        return None
