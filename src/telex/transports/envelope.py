"""What both ends of HTTP must agree on: names, and whether a frame asks, tells or answers.

A POST has one answer, so its two ends must tell an answer from a notification that happens to go
out before it, and a request from a message that gets none. Both dialects are read, loosely: what is
wrong with a frame is for the peer to say.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
"""An answer in parts, a line for each."""
CONVERSATION: Final = "telex-conversation"
"""The header that names an event stream, in its response and in further POSTs to it."""


class Kind(Enum):
    ASKS = "gets an answer"
    TELLS = "gets none"
    ANSWERS = "is one"


class _Envelope(msgspec.Struct):
    method: Any = None
    command: Any = None
    id: Any = None
    rpcid: Any = None
    reqid: Any = None


_decoder = msgspec.json.Decoder(_Envelope | list[_Envelope])


def kind(frame: bytes) -> Kind:
    """What a frame is. One that cannot be read asks: it will be told what is wrong with it."""
    try:
        message = _decoder.decode(frame)
    except (msgspec.DecodeError, RecursionError):
        return Kind.ASKS
    if not isinstance(message, list):
        return _kind(message)
    kinds = {_kind(member) for member in message}
    return next((kind for kind in Kind if kind in kinds), Kind.ASKS)


def _kind(message: _Envelope) -> Kind:
    if message.method is not None or message.command is not None:
        ids = (message.id, message.rpcid, message.reqid)
        return Kind.TELLS if ids == (None, None, None) else Kind.ASKS
    if message.rpcid is not None or message.reqid is not None:  # a further part, or a cancel
        return Kind.TELLS
    return Kind.ANSWERS
