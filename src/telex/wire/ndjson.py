"""NDJSON framing: one line is one frame.

`\\n`, `\\r\\n` or the end of the input ends a line, and blank lines are skipped. There is no 64 KiB
limit as in asyncio's readers: a line may have up to `limits.LINE_BYTES`, and a longer one is a
`Fault` and skipped up to its newline without being kept. The content of a line is not examined
here. Used on stdio, on unix sockets and by the agent.
"""

from __future__ import annotations

from telex.wire import limits
from telex.wire.events import Event, Fault, Frame, Reason


def encode(body: bytes) -> bytes:
    """Return one line. A newline in the body would make two lines, so it raises ValueError."""
    if b"\n" in body:
        raise ValueError("an NDJSON body holds a newline; write the JSON compactly")
    return body + b"\n"


class NdjsonDecoder:
    """Decodes lines from reads that may end at any byte."""

    def __init__(self, max_line: int = limits.LINE_BYTES) -> None:
        self._max = max_line
        self._offset = 0
        """Stream position where the current line begins."""
        self._line: bytearray | None = bytearray()
        """The current line so far, or None once it is too long to keep."""
        self._size = 0

    def feed(self, data: bytes) -> list[Event]:
        """Return the lines that these bytes complete. Each byte is searched once, at any length."""
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
        """Return nothing: the decoder only holds half a line, which is not a frame."""
        return []

    def eof(self) -> list[Event]:
        """Return the last line, which needs no newline: `printf` and many clients write none.

        A line that was cut short is no longer valid JSON, so the parser above reports it.
        """
        events: list[Event] = []
        if self._size:
            self._end_line(self._whole_line(), events)
        return events

    def _take(self, piece: bytes, events: list[Event]) -> None:
        self._size += len(piece)
        if self._line is None:
            return
        if self._size > self._max + 1:  # one more: the last byte may be the \r of the line's end
            self._give_up(events)
        else:
            self._line += piece

    def _whole_line(self) -> bytes:
        """Return the current line, which ends here; empty if it was too long to keep."""
        line, self._line = self._line, bytearray()
        self._offset += self._size - len(line or b"")  # `_end_line` counts the bytes it gets
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
