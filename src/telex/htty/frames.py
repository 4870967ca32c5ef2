"""The frames of an HTTP/2 connection by their 9-byte headers, before the library sees them.

Not a parser of what frames say; h2 is that. It is here because h2 collects a frame of 16 MB before
it finds it too long, and because what ends or floods a connection must be seen first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from telex.wire import limits

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES = 9
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20
_HEADER = struct.Struct(">BHBBL")
_STREAM_BITS = 0x7FFF_FFFF


class Type(IntEnum):
    """RFC 9113 §6."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


_BEFORE_PADDED: dict[int, int] = {Type.DATA: 0, Type.HEADERS: 0, Type.PUSH_PROMISE: 4}
"""Frames that may have padding, and the bytes of what else stands before their content."""
_PRIORITY_BYTES = 5


@dataclass(slots=True)
class Frame:
    """One whole frame. Not frozen: there is one for each frame that comes, and frozen is slower."""

    type: int
    flags: int
    stream: int
    data: bytearray
    """All of it, with its header."""

    @property
    def size(self) -> int:
        return len(self.data) - HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Unreadable:
    """From here on there are no frames to be found."""

    too_long: bool
    """Too long, or too short: its size is wrong."""
    sentence: str


def padding_fault(frame: Frame) -> Unreadable | None:
    """What is wrong with the padding of a frame, by its length (RFC 9113 §6.1, §6.2, §6.6). A frame
    is the connection's, so this ends that and not one stream."""
    if not frame.flags & PADDED or frame.type not in _BEFORE_PADDED:
        return None
    room = frame.size - 1 - _BEFORE_PADDED[frame.type]
    if frame.type == Type.HEADERS and frame.flags & PRIORITY:
        room -= _PRIORITY_BYTES
    if room < 0:
        return Unreadable(True, "a frame is too short for what its flags say it holds")
    if frame.data[HEADER_BYTES] > room:
        return Unreadable(False, "a frame has more padding than it is long")
    return None


class Frames:
    """One direction. A server's begins with the client's preface."""

    def __init__(self, *, preface: bool) -> None:
        self._held = bytearray()
        self._preface = PREFACE if preface else b""

    def take(self, data: bytes) -> Iterator[Frame | Unreadable]:
        """The frames that are whole with these bytes. `Unreadable` is the last there is."""
        self._held += data
        if self._preface and (fault := self._begin()):
            yield fault
            return
        if self._preface:
            return
        held, at = self._held, 0
        while len(held) - at >= HEADER_BYTES:
            high, low, kind, flags, stream = _HEADER.unpack_from(held, at)
            end = at + HEADER_BYTES + (high << 16 | low)
            if end - at - HEADER_BYTES > limits.HTTY_FRAME_BYTES:
                yield Unreadable(True, f"a frame of {end - at - HEADER_BYTES} bytes was announced")
                return
            if end > len(held):
                break
            yield Frame(kind, flags, stream & _STREAM_BITS, held[at:end])
            at = end
        del held[:at]

    def _begin(self) -> Unreadable | None:
        expected = self._preface[: len(self._held)]
        if not self._held.startswith(expected):
            return Unreadable(False, "it does not begin as an HTTP/2 client does")
        self._preface = self._preface[len(expected) :]
        del self._held[: len(expected)]
        return None


def head(kind: Type, size: int, stream: int, flags: int = 0) -> bytes:
    """What a frame begins with."""
    return _HEADER.pack(size >> 16, size & 0xFFFF, kind, flags, stream)


def go_away(last: int, code: int, text: str) -> bytes:
    """A GOAWAY frame. Ours, because h2 sends and takes nothing more after its own."""
    said = text.encode()[:128]
    return head(Type.GOAWAY, 8 + len(said), 0) + struct.pack(">LL", last, code) + said


def reset(stream: int, code: int) -> bytes:
    """A RST_STREAM frame, for a stream that h2 takes for closed already."""
    return head(Type.RST_STREAM, 4, stream) + struct.pack(">L", code)
