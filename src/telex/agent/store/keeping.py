"""Which bytes are kept: one JSON object, in UTF-8, on one line, of bounded size. Pure.

They are sent again exactly as they came, inside a line of NDJSON; so a line break between two
members would do harm later, and is refused now.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from telex.agent.store.problems import NotKept
from telex.wire.limits import AGENT_EVENT_BYTES

T = TypeVar("T")


class _Any(msgspec.Struct):
    """An object, whatever its members."""


class _Event(msgspec.Struct):
    type: str


_ANY = msgspec.json.Decoder(_Any)
_EVENT = msgspec.json.Decoder(_Event)


def check(kept: bytes | None, what: str, *, beside: int = 0) -> None:
    """Of something that may be kept, with so many bytes on the same line."""
    if kept is not None:
        _decoded(kept, what, _ANY, beside)


def event_type(event: bytes) -> str:
    """Of an event that may be kept."""
    return _decoded(event, "an event", _EVENT).type


def _decoded(kept: bytes, what: str, decoder: msgspec.json.Decoder[T], beside: int = 0) -> T:
    if (size := beside + len(kept)) > AGENT_EVENT_BYTES:
        raise NotKept(f"{what} makes {size} bytes; at most {AGENT_EVENT_BYTES} are kept")
    if b"\n" in kept or b"\r" in kept:
        raise NotKept(f"{what} holds a line break; write it on one line")
    try:
        str(kept, "utf-8")  # msgspec does not look into the strings it skips
        return decoder.decode(kept)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotKept(f"{what} cannot be kept: {error}") from error
