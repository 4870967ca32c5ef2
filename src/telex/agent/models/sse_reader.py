"""Reads server-sent events from bytes, with the decoders of `httpx-sse`. No I/O.

Its `EventSource` reads a response by itself, and has no bound for the size of an event; the
decoders beneath it are what this needs, so they are imported from its private module.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from httpx_sse._decoders import SSEDecoder, SSELineDecoder

from telex.agent.limits import MODEL_EVENT_BYTES, MODEL_STREAM_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator


class StreamTooLarge(Exception):
    """A stream or one of its events is larger than our limits."""


class SseReader:
    """Turns the bytes of one response into the data of its events, however the reads are cut."""

    def __init__(self) -> None:
        self._characters = codecs.getincrementaldecoder("utf-8-sig")()
        self._lines = SSELineDecoder()
        self._events = SSEDecoder()
        self._bytes = 0
        self._of_event = 0

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the data of each event that is complete now.

        Raises:
            StreamTooLarge: The event or the stream is over its limit.
            UnicodeDecodeError: The stream is not UTF-8.
        """
        self._bytes += len(data)
        self._of_event += len(data)
        if text := self._characters.decode(data):
            for line in self._lines.decode(text):
                event = self._events.decode(line)
                if event is not None:
                    self._of_event = 0
                    if event.data:
                        yield event.data
        if self._of_event > MODEL_EVENT_BYTES or self._bytes > MODEL_STREAM_BYTES:
            raise StreamTooLarge
