"""One line, one frame.

`\\n`, `\\r\\n` or the end of the input ends a line, blank lines are skipped, and there is no 64 KiB
cliff: a line may be as long as `limits.LINE_BYTES`, and a longer one is a `Fault` that is skipped
to its newline without being kept. What a line says is not known here. Used on stdio, unix sockets
and by the agent.
"""

from __future__ import annotations

from telex.wire import limits
from telex.wire.events import Event, Fault, Frame, Reason


def encode(body: bytes) -> bytes:
    """One line. A body with a newline in it would be two, so that is our own mistake."""
    if b"\n" in body:
        raise ValueError("an NDJSON body holds a newline; write the JSON compactly")
    return body + b"\n"


class NdjsonDecoder:
    """Lines out of reads, wherever the reads fall."""

    def __init__(self, max_line: int = limits.LINE_BYTES) -> None:
        self._max = max_line
        self._offset = 0
        """Where the current line begins in the stream."""
        self._line: bytearray | None = bytearray()
        """The current line so far; None once it is too long to keep."""
        self._size = 0

    def feed(self, data: bytes) -> list[Event]:
        """The lines these bytes complete. Each byte is searched once, also in a long line."""
        events: list[Event] = []
        *ended, rest = data.split(b"\n")
        for piece in ended:
            if self._size:
                self._take(piece, events)
                piece = self._whole_line()
            self._end_line(piece, events)
        if rest:
            self._take(rest, events)
        return events

    def flush(self) -> list[Event]:
        """Nothing is ever held that could be let go: half a line is not a frame."""
        return []

    def eof(self) -> list[Event]:
        """The last line needs no newline: `printf` and many clients write none. One that was cut
        short is no JSON any more, which its reader says."""
        events: list[Event] = []
        if self._size:
            self._end_line(self._whole_line(), events)
        return events

    def _take(self, piece: bytes, events: list[Event]) -> None:
        self._size += len(piece)
        if self._line is None:
            return
        if self._size > self._max + 1:  # one more, should it be the \r of the line's end
            self._give_up(events)
        else:
            self._line += piece

    def _whole_line(self) -> bytes:
        """The current line, which ends here; nothing if it was too long to keep."""
        line, self._line = self._line, bytearray()
        self._offset += self._size - len(line or b"")  # `_end_line` counts what it gets
        self._size = 0
        return bytes(line or b"")

    def _end_line(self, line: bytes, events: list[Event]) -> None:
        body = line.removesuffix(b"\r")
        if len(body) > self._max:
            self._give_up(events)
            self._line = bytearray()
        elif body and not body.isspace():
            events.append(Frame(body))
        self._offset += len(line) + 1

    def _give_up(self, events: list[Event]) -> None:
        self._line = None
        events.append(
            Fault(Reason.TOO_LONG, self._offset, f"a line of more than {self._max} bytes")
        )
