"""Content-Length framing: a header block, then exactly that many bytes (plugin spec, LSP).

Header names are case-insensitive and unknown fields are ignored. LF-only headers are read; CRLF is
written. The length counts bytes. A header block that does not declare exactly one plain length
becomes a `Fault`, and the decoder resumes at the next text that looks like a `Content-Length`
field, so stray output before or between frames costs a fault and not the connection. (JSON has no
raw newline inside a string, so content is not mistaken for a header.)

Used by plugins, by `serve --framing lsp`, and by any other program that frames like a language
server.
"""

from __future__ import annotations

import re

from telex.wire import limits
from telex.wire.events import Event, Fault, Frame, Reason

_PLAIN_BLOCK = re.compile(rb"Content-Length: ([0-9]{1,10})\r\n\r\n")
"""The block that nearly every peer sends, matched in one step."""
_BLOCK_END = re.compile(rb"\n\r?\n")
_BLANK = re.compile(rb"[\r\n]*")
_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:[ \t]*([ -~\t]*?)[ \t]*")
_LENGTH = re.compile(rb"[0-9]+")
_LENGTH_DIGITS = 10
"""More digits than the limit has. Longer numbers are not converted."""
_HEADER_BEGINS = re.compile(rb"content-length[ \t]*:[ \t]*[0-9]", re.IGNORECASE)
_KEPT_WHILE_SEEKING = 64
"""Longer than any beginning of a field that a read may have cut in two."""


def encode(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class _BadHeader(Exception):
    """Internal: why a block declares no usable length, and where in it to resume reading."""

    def __init__(self, why: str, resume_at: int, reason: Reason = Reason.HEADER) -> None:
        super().__init__(why)
        self.resume_at = resume_at
        self.reason = reason


class ContentLengthDecoder:
    """Decodes contents from reads that may end at any byte."""

    def __init__(self, max_content: int = limits.CONTENT_BYTES) -> None:
        self._max = max_content
        self._offset = 0
        """Stream position of the next byte to examine."""
        self._head = b""
        """Outside content: bytes that may still become a header block."""
        self._searched = 0
        """How many bytes of `_head` are known not to contain the block's end."""
        self._seeking = False
        """After a bad header: skip everything that does not look like a header."""
        self._missing: int | None = None
        """Inside content: how many bytes are still missing."""
        self._content: bytearray | None = None
        """The content so far, or None when it is too long to keep."""
        self._began = 0

    def feed(self, data: bytes) -> list[Event]:
        """Return the contents that these bytes complete, and the faults in them."""
        if self._missing is None:
            data = self._head + data
            self._head = b""
        events: list[Event] = []
        at = 0
        while at < len(data):
            if self._missing is None:
                at = self._read_header(data, at, events)
            else:
                at = self._read_content(data, at, self._missing, events)
        self._offset += len(data) - len(self._head)
        return events

    def flush(self) -> list[Event]:
        """Return nothing: the decoder only holds incomplete frames, which cannot be released."""
        return []

    def eof(self) -> list[Event]:
        """Report a frame that was cut short, unless its fault was already reported."""
        in_content = self._missing is not None and self._content is not None
        in_header = self._missing is None and not self._seeking and bool(self._head)
        began = self._began if in_content else self._offset
        self._head, self._searched, self._seeking = b"", 0, False
        self._missing, self._content = None, None
        if not (in_content or in_header):
            return []
        return [Fault(Reason.TRUNCATED, began, "the input ended inside a frame")]

    def _read_header(self, data: bytes, at: int, events: list[Event]) -> int:
        """Begin content if a whole block is present. Return where to continue."""
        if (plain := _PLAIN_BLOCK.match(data, at)) and not self._seeking:
            return self._begin_content(int(plain[1]), at, plain.end(), events)
        at = self._skip_to_header(data, at)
        if self._seeking:
            self._head = data[at:]
            return len(data)
        found = _BLOCK_END.search(data, max(at, self._searched))
        end = found.end() if found else len(data)
        if end - at > limits.HEADER_BYTES:
            bad = _BadHeader(f"over {limits.HEADER_BYTES} bytes of header", limits.HEADER_BYTES)
            return self._recover(at, bad, events)
        if found is None:
            self._head = data[at:]
            self._searched = max(0, len(self._head) - 2)  # `_head` may end in part of the end mark
            return len(data)
        try:
            length = self._content_length(data[at:end])
        except _BadHeader as bad:
            return self._recover(at, bad, events)
        return self._begin_content(length, at, end, events)

    def _skip_to_header(self, data: bytes, at: int) -> int:
        """Skip blank lines, which some peers write after a frame; skip everything if seeking."""
        if not self._seeking:
            skipped = _BLANK.match(data, at)
            return skipped.end() if skipped else at
        found = _HEADER_BEGINS.search(data, at)
        self._seeking = found is None
        self._searched = 0
        return found.start() if found else max(at, len(data) - _KEPT_WHILE_SEEKING)

    def _recover(self, at: int, bad: _BadHeader, events: list[Event]) -> int:
        events.append(Fault(bad.reason, self._offset + at, str(bad)))
        self._seeking = True
        self._searched = 0
        return at + bad.resume_at

    def _begin_content(self, length: int, at: int, end: int, events: list[Event]) -> int:
        self._began = self._offset + at
        self._searched = 0
        self._missing, self._content = length, bytearray()
        if length > self._max:
            self._content = None
            events.append(Fault(Reason.TOO_LONG, self._began, self._over_the_limit()))
        elif length == 0:
            self._end_content(events)
        return end

    def _over_the_limit(self) -> str:
        return f"over {self._max} bytes of content"

    def _content_length(self, block: bytes) -> int:
        """Return the length that a header block declares.

        A length that no peer can send is a fault at once; the decoder does not wait for that many
        bytes but resumes at the next header.
        """
        digits = _declared_length(block)
        if len(digits) > _LENGTH_DIGITS:
            raise _BadHeader(self._over_the_limit(), len(block), Reason.TOO_LONG)
        return int(digits)

    def _read_content(self, data: bytes, at: int, missing: int, events: list[Event]) -> int:
        end = min(at + missing, len(data))
        self._missing = missing - (end - at)
        if self._content is not None:
            self._content += data[at:end]
        if self._missing == 0:
            self._end_content(events)
        return end

    def _end_content(self, events: list[Event]) -> None:
        if self._content is not None:
            events.append(Frame(bytes(self._content)))
        self._missing, self._content = None, None


def _declared_length(block: bytes) -> bytes:
    """Return the digits of the one length that a header block declares, without leading zeros."""
    lengths: list[bytes] = []
    at = 0
    lines = block.split(b"\n")[:-2]  # the block ends with an empty line
    if len(lines) > limits.HEADER_FIELDS:
        raise _BadHeader(f"more than {limits.HEADER_FIELDS} header fields", len(block))
    for line in lines:
        began, at = at, at + len(line) + 1
        field = _FIELD.fullmatch(line.removesuffix(b"\r"))
        if field is None:
            raise _BadHeader("a line that is not a header field", _header_within(block, began, at))
        if field[1].lower() == b"content-length":
            lengths.append(field[2])
    match lengths:
        case [length] if _LENGTH.fullmatch(length):
            return length.lstrip(b"0") or b"0"
        case [_]:
            raise _BadHeader("a Content-Length that is not a plain decimal number", len(block))
        case []:
            resume_at = _header_within(block, 0, len(block))
            raise _BadHeader("a header without Content-Length", resume_at)
        case _:
            raise _BadHeader("more than one Content-Length", len(block))


def _header_within(block: bytes, began: int, end: int) -> int:
    """Return where a header begins inside a bad block, after output without a newline."""
    found = _HEADER_BEGINS.search(block, began + 1, end)
    return found.start() if found else end
