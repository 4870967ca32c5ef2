"""The HTTP conventions of the server: headers, kinds of frames, event streams.

A POST has one response, so the server must distinguish a response from a notification that is sent
before it, and a request from a message without response. Both dialects are read, loosely: the peer
reports errors in a frame.

An event stream is `data: …` and an empty line. The format's other fields (`event`, `id`, `retry`)
are not sent.

A message with both Content-Length and Transfer-Encoding has two possible ends, and an intermediary
may use the other one: the bytes after it are then a request that was never checked (RFC 9112 §6.3,
§11.2). h11 silently uses the second, which the RFC allows; `length_fault` refuses such a message,
in both directions. Differing lengths, and codings other than `chunked`, are refused by h11 itself.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
"""The media type of a response in parts, one line for each."""
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
    """Return the kind of a frame. An unreadable frame is a request: it gets an error response."""
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
"""A comment, which only shows that the connection is alive."""

_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")


def encode_event(frame: bytes) -> bytes:
    """Return one event. A line break inside a frame is white space between JSON tokens."""
    lines = _LINE_ENDS.split(frame)
    return b"".join(b"data: %b\n" % line for line in lines) + b"\n"


TWO_LENGTHS: Final = "it has both Content-Length and Transfer-Encoding"


def length_fault(headers: Iterable[tuple[bytes, bytes]], version: bytes = b"1.1") -> str:
    """Return why the end of such a message is ambiguous; empty if it is not."""
    names = {name for name, _ in headers}
    if b"transfer-encoding" not in names:
        return ""
    if b"content-length" in names:
        return TWO_LENGTHS
    return "HTTP/1.0 has no Transfer-Encoding" if version < b"1.1" else ""
