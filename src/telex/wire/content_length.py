"""A header block, then exactly so many bytes: the plugin spec's grammar, and LSP's.

Names are case-insensitive, other fields are tolerated, LF-only headers are read and CRLF is
written. The count is of bytes. A block that does not say once and plainly how long its content is
becomes a `Fault`, and reading goes on at the next place that looks like a `Content-Length` field:
stray output before or between frames costs a fault and not the connection. (JSON has no raw
newline inside a string, so content is not mistaken for a header.)

Used by plugins, by `serve --framing lsp`, and by anything that talks like a language server.
"""

from __future__ import annotations

import re

from telex.wire import limits
from telex.wire.events import Event, Fault, Frame, Reason

_BLOCK_END = re.compile(rb"\n\r?\n")
_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:[ \t]*([ -~\t]*?)[ \t]*")
_LENGTH = re.compile(rb"[0-9]{1,10}")
_HEADER_BEGINS = re.compile(rb"content-length[ \t]*:[ \t]*[0-9]", re.IGNORECASE)
_KEPT_WHILE_SEEKING = 64
"""More than the beginning of a field that a read may have cut in two."""


def encode(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class _BadHeader(Exception):
    """Inside this module only: why a block says no length, and where reading may go on."""

    def __init__(self, why: str, go_on: int) -> None:
        super().__init__(why)
        self.go_on = go_on


class Decoder:
    """Contents out of reads, wherever the reads fall."""

    def __init__(self, max_content: int = limits.CONTENT_BYTES) -> None:
        self._max = max_content
        self._offset = 0
        """Where in the stream the next byte to look at stands."""
        self._head = b""
        """Outside content: what may still become a header block."""
        self._searched = 0
        """How much of `_head` is known not to hold the block's end."""
        self._seeking = False
        """After a bad header: nothing counts but what looks like a header."""
        self._missing: int | None = None
        """Inside content: how many bytes are still to come."""
        self._content: bytearray | None = None
        """The content so far; None when it is too long to keep."""
        self._began = 0

    def feed(self, data: bytes) -> list[Event]:
        """The contents these bytes complete, and the faults they are."""
        events: list[Event] = []
        while data:
            if self._missing is None:
                data = self._read_header(self._head + data, events)
            else:
                data = self._read_content(data, self._missing, events)
        return events

    def flush(self) -> list[Event]:
        """Nothing is ever held that could be let go: half a frame is not one."""
        return []

    def eof(self) -> list[Event]:
        """Anything begun was cut short, unless it has had its fault already."""
        in_content = self._missing is not None and self._content is not None
        in_header = self._missing is None and not self._seeking and bool(self._head)
        began = self._began if in_content else self._offset
        self._keep_head(b"", searched=0)
        self._missing, self._content, self._seeking = None, None, False
        if not (in_content or in_header):
            return []
        return [Fault(Reason.TRUNCATED, began, "the input ended inside a frame")]

    def _read_header(self, data: bytes, events: list[Event]) -> bytes:
        """Begin content if a whole block is here. Returns what is left to look at."""
        data = self._skip_to_header(data)
        end = _BLOCK_END.search(data, max(0, self._searched - 2))
        size = end.end() if end else len(data)
        if size > limits.HEADER_BYTES:
            bad = _BadHeader(f"over {limits.HEADER_BYTES} bytes of header", limits.HEADER_BYTES)
            return self._recover(data, bad, events)
        if end is None:
            self._keep_head(data, searched=len(data))
            return b""
        try:
            length = _content_length(data[:size])
        except _BadHeader as bad:
            return self._recover(data, bad, events)
        return self._begin_content(length, data, size, events)

    def _skip_to_header(self, data: bytes) -> bytes:
        """Past blank lines, which some peers write after a frame; past everything if seeking."""
        if self._seeking:
            found = _HEADER_BEGINS.search(data)
            start = found.start() if found else max(0, len(data) - _KEPT_WHILE_SEEKING)
            self._seeking = found is None
            self._searched = 0
        else:
            start = len(data) - len(data.lstrip(b"\r\n"))
        self._offset += start
        return data[start:]

    def _keep_head(self, head: bytes, searched: int) -> None:
        self._head, self._searched = head, searched

    def _recover(self, data: bytes, bad: _BadHeader, events: list[Event]) -> bytes:
        events.append(Fault(Reason.HEADER, self._offset, str(bad)))
        self._seeking = True
        self._keep_head(b"", searched=0)
        self._offset += bad.go_on
        return data[bad.go_on :]

    def _begin_content(self, length: int, data: bytes, size: int, events: list[Event]) -> bytes:
        self._began = self._offset
        self._offset += size
        self._keep_head(b"", searched=0)
        self._missing, self._content = length, bytearray()
        if length > self._max:
            self._content = None
            events.append(Fault(Reason.TOO_LONG, self._began, f"over {self._max} bytes of content"))
        return self._read_content(data[size:], length, events)

    def _read_content(self, data: bytes, missing: int, events: list[Event]) -> bytes:
        piece = data[:missing]
        self._offset += len(piece)
        self._missing = missing - len(piece)
        if self._content is not None:
            self._content += piece
        if self._missing == 0:
            if self._content is not None:
                events.append(Frame(bytes(self._content)))
            self._missing, self._content = None, None
        return data[len(piece) :]


def _content_length(block: bytes) -> int:
    """The one length a header block declares."""
    lengths: list[bytes] = []
    at = 0
    lines = block.split(b"\n")[:-2]  # the block ends in an empty line
    if len(lines) > limits.HEADER_FIELDS:
        raise _BadHeader(f"more than {limits.HEADER_FIELDS} header fields", len(block))
    for line in lines:
        at += len(line) + 1
        field = _FIELD.fullmatch(line.removesuffix(b"\r"))
        if field is None:
            raise _BadHeader("a line that is no header field", at)
        if field[1].lower() == b"content-length":
            lengths.append(field[2])
    match lengths:
        case [length] if _LENGTH.fullmatch(length):
            return int(length)
        case [_]:
            raise _BadHeader("a Content-Length that is no plain decimal number", len(block))
        case []:
            raise _BadHeader("a header without Content-Length", len(block))
        case _:
            raise _BadHeader("more than one Content-Length", len(block))
