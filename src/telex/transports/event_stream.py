"""Frames as server-sent events, and back: `data: …`, an empty line, nothing else.

Sans-IO. Of the format's other fields (`event`, `id`, `retry`) none is sent, and those that come are
skipped, as comments are. Lines end with LF or CR LF; the lone CR that the format also allows is not
taken for an end, and nobody sends it. Used by `http` and `http_client`.
"""

from __future__ import annotations

import re
from typing import Final

from telex.transports.queued import Ended
from telex.wire import limits

MEDIA_TYPE: Final = "text/event-stream"
KEEP_ALIVE: Final = b":\n\n"
"""A comment: says nothing but that we are here."""

_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")


def encode(frame: bytes) -> bytes:
    """One event. A line break inside a frame is white space between JSON tokens."""
    lines = _LINE_ENDS.split(frame)
    return b"".join(b"data: %b\n" % line for line in lines) + b"\n"


class Decoder:
    """Bytes in, frames out, wherever the reads fall."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Raises Ended for an event that is too long."""
        self._buffer += data
        frames = []
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end]).removesuffix(b"\r")
            del self._buffer[: end + 1]
            self._searched = 0
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                frames.append(b"\n".join(self._data))
                self._data.clear()
        self._searched = len(self._buffer)
        if self._searched + sum(map(len, self._data)) > limits.LINE_BYTES:
            raise Ended(f"the server sent an event of more than {limits.LINE_BYTES} bytes")
        return frames
