"""Frames made one by one, for tests that play either side of a connection by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    SettingsFrame,
)

from telex.htty.h2.header_fields import Headers
from telex.htty.h2.http2_frames import PREFACE

F = TypeVar("F", bound=Frame)

GET: Headers = [
    (b":method", b"GET"),
    (b":scheme", b"http"),
    (b":path", b"/"),
    (b":authority", b"page.localhost"),
]
POST: Headers = [(b":method", b"POST"), *GET[1:]]
OK: Headers = [(b":status", b"200")]
HELLO = PREFACE + SettingsFrame(0).serialize()
"""The first bytes of a client."""


def headers(stream: int, fields: Headers, *flags: str) -> bytes:
    return headers_begun(stream, fields, "END_HEADERS", *flags)


def headers_begun(stream: int, fields: Headers, *flags: str) -> bytes:
    """Return HEADERS that do not end the header block, unless the flags say so."""
    return HeadersFrame(stream, Encoder().encode(fields, huffman=False), flags=flags).serialize()


def continuation(stream: int, data: bytes = b"", *flags: str) -> bytes:
    return ContinuationFrame(stream, data, flags=flags).serialize()


def data(stream: int, payload: bytes = b"", *flags: str) -> bytes:
    return DataFrame(stream, payload, flags=flags).serialize()


def parsed(raw: bytes) -> list[Frame]:
    """Return all frames that a connection sent, without the preface of a client."""
    raw = raw.removeprefix(PREFACE)
    found = []
    while raw:
        frame, size = Frame.parse_frame_header(memoryview(raw[:9]))
        frame.parse_body(memoryview(raw[9 : 9 + size]))
        found.append(frame)
        raw = raw[9 + size :]
    return found


def only(kind: type[F], frames: Iterable[Frame]) -> list[F]:
    return [frame for frame in frames if isinstance(frame, kind)]
