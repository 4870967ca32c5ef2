"""What both ends of HTTP agree on: headers, kinds of frames, server-sent events, message length.

A POST has one response, so its ends must tell a response from a notification that is sent before
it, and a request from a message without response. Both dialects are read, loosely: what is wrong
with a frame is for the peer to say.

An event stream is `data: …` and an empty line. Of the format's other fields (`event`, `id`,
`retry`) none is sent, and received ones are skipped, as comments are. Lines end with LF or CR LF,
not with a lone CR, which the format allows and nobody sends.

A message with both Content-Length and Transfer-Encoding has two ends, and an intermediary may take
the other one: what follows it is then a request that nobody checked (RFC 9112 §6.3, §11.2). h11
takes the second and is silent, which the RFC allows; `length_fault` refuses it, in both directions.
Differing lengths, and codings other than `chunked`, h11 refuses itself.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.transports.channels import ChannelEnded
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
"""An answer in parts, a line for each."""
CONVERSATION: Final = "telex-conversation"
"""The header that names an event stream, in its response and in further POSTs to it."""


class FrameKind(Enum):
    REQUEST = "gets an answer"
    NOTIFICATION = "gets none"
    RESPONSE = "is one"


class _FrameEnvelope(msgspec.Struct):
    method: Any = None
    command: Any = None
    id: Any = None
    rpcid: Any = None
    reqid: Any = None


_envelope_decoder = msgspec.json.Decoder(_FrameEnvelope | list[_FrameEnvelope])


def frame_kind(frame: bytes) -> FrameKind:
    """What a frame is. One that cannot be read asks: it will be told what is wrong with it."""
    try:
        message = _envelope_decoder.decode(frame)
    except (msgspec.DecodeError, RecursionError):
        return FrameKind.REQUEST
    if not isinstance(message, list):
        return _message_kind(message)
    kinds = {_message_kind(member) for member in message}
    return next((kind for kind in FrameKind if kind in kinds), FrameKind.REQUEST)


def _message_kind(message: _FrameEnvelope) -> FrameKind:
    if message.method is not None or message.command is not None:
        ids = (message.id, message.rpcid, message.reqid)
        return FrameKind.NOTIFICATION if ids == (None, None, None) else FrameKind.REQUEST
    if message.rpcid is not None or message.reqid is not None:  # a further part, or a cancel
        return FrameKind.NOTIFICATION
    return FrameKind.RESPONSE


EVENT_STREAM: Final = "text/event-stream"
KEEP_ALIVE_EVENT: Final = b":\n\n"
"""A comment: says nothing but that we are here."""

_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")


def encode_event(frame: bytes) -> bytes:
    """One event. A line break inside a frame is white space between JSON tokens."""
    lines = _LINE_ENDS.split(frame)
    return b"".join(b"data: %b\n" % line for line in lines) + b"\n"


class EventStreamDecoder:
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
            raise ChannelEnded(f"the server sent an event of more than {limits.LINE_BYTES} bytes")
        return frames


TWO_LENGTHS: Final = "it has both Content-Length and Transfer-Encoding"


def length_fault(headers: Iterable[tuple[bytes, bytes]], version: bytes = b"1.1") -> str:
    """Why such a message has no clear end; empty if it has one."""
    names = {name for name, _ in headers}
    if b"transfer-encoding" not in names:
        return ""
    if b"content-length" in names:
        return TWO_LENGTHS
    return "HTTP/1.0 knows no Transfer-Encoding" if version < b"1.1" else ""
