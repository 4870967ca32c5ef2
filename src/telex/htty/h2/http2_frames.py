"""HTTP/2 frames by their 9-byte headers, before `h2` sees them, and budgets for useless frames.

`FrameSplitter` does not parse the payload of frames; `h2` does. It exists because `h2` buffers a
frame of 16 MB before it finds it too long, and because frames that end or flood a connection must
be handled before `h2` gets them.

`FloodBudget` counts the frames that HTTP/2 lets a peer send without limit. Each kind has a token
bucket that refills within `HTTY_BUDGET_SECONDS`. Normal use of a page does not come near the limit;
a peer that empties a bucket is flooding, and its connection ends with ENHANCE_YOUR_CALM.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from telex.htty import limits

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES = 9
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20
_HEADER = struct.Struct(">BHBBL")
_STREAM_BITS = 0x7FFF_FFFF


class FrameType(IntEnum):
    """The frame types of RFC 9113 §6."""

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


_BEFORE_PADDED: dict[int, int] = {
    FrameType.DATA: 0,
    FrameType.HEADERS: 0,
    FrameType.PUSH_PROMISE: 4,
}
"""Frames that may have padding, and how many other bytes stand before their content."""
_PRIORITY_BYTES = 5


@dataclass(slots=True)
class Http2Frame:
    """One whole frame. Not frozen, because frozen is slower, and one is created per frame."""

    type: int
    flags: int
    stream: int
    data: bytearray
    """The whole frame, with its header."""

    @property
    def size(self) -> int:
        return len(self.data) - HEADER_BYTES


@dataclass(frozen=True, slots=True)
class BadFraming:
    """The byte stream contains no frames from here on."""

    too_long: bool
    """Whether the size is wrong: too long or too short."""
    sentence: str


def padding_fault(frame: Http2Frame) -> BadFraming | None:
    """Return the fault in the padding of a frame, by its length (RFC 9113 §6.1, §6.2, §6.6).

    A frame belongs to the connection, so the fault ends the connection and not one stream.
    """
    if not frame.flags & PADDED or frame.type not in _BEFORE_PADDED:
        return None
    room = frame.size - 1 - _BEFORE_PADDED[frame.type]
    if frame.type == FrameType.HEADERS and frame.flags & PRIORITY:
        room -= _PRIORITY_BYTES
    if room < 0:
        return BadFraming(True, "a frame is too short for the fields that its flags announce")
    if frame.data[HEADER_BYTES] > room:
        return BadFraming(False, "the padding of a frame is longer than the frame")
    return None


class FrameSplitter:
    """Splits one direction into frames. A server's input begins with the client's preface."""

    def __init__(self, *, preface: bool) -> None:
        self._held = bytearray()
        self._preface = PREFACE if preface else b""

    def take(self, data: bytes) -> Iterator[Http2Frame | BadFraming]:
        """Yield the frames that these bytes complete. `BadFraming` is always the last item."""
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
                yield BadFraming(True, f"a frame of {end - at - HEADER_BYTES} bytes was announced")
                return
            if end > len(held):
                break
            yield Http2Frame(kind, flags, stream & _STREAM_BITS, held[at:end])
            at = end
        del held[:at]

    def _begin(self) -> BadFraming | None:
        expected = self._preface[: len(self._held)]
        if not self._held.startswith(expected):
            return BadFraming(False, "it does not begin with the preface of an HTTP/2 client")
        self._preface = self._preface[len(expected) :]
        del self._held[: len(expected)]
        return None


def frame_header(kind: FrameType, size: int, stream: int, flags: int = 0) -> bytes:
    """Return the header of a frame."""
    return _HEADER.pack(size >> 16, size & 0xFFFF, kind, flags, stream)


def goaway_frame(last: int, code: int, text: str) -> bytes:
    """Return a GOAWAY frame. Not made by h2, which sends and receives nothing after its own."""
    reason = text.encode()[:128]
    return (
        frame_header(FrameType.GOAWAY, 8 + len(reason), 0) + struct.pack(">LL", last, code) + reason
    )


def reset_frame(stream: int, code: int) -> bytes:
    """Return a RST_STREAM frame, for a stream that h2 considers closed already."""
    return frame_header(FrameType.RST_STREAM, 4, stream) + struct.pack(">L", code)


class FloodKind(Enum):
    """The kinds of frames that are counted. The value is the name for people."""

    RESET = "reset streams"
    PING = "pings"
    SETTINGS = "SETTINGS frames"
    EMPTY = "empty frames"
    UNKNOWN = "useless frames"
    WINDOW = "window updates"


FLOOD_BUDGETS = {
    FloodKind.RESET: limits.HTTY_RESETS,
    FloodKind.PING: limits.HTTY_PINGS,
    FloodKind.SETTINGS: limits.HTTY_SETTINGS,
    FloodKind.EMPTY: limits.HTTY_EMPTY_FRAMES,
    FloodKind.UNKNOWN: limits.HTTY_UNKNOWN_FRAMES,
    FloodKind.WINDOW: limits.HTTY_WINDOW_UPDATES,
}


class FloodBudget:
    """The token buckets of one connection."""

    def __init__(self) -> None:
        self._left = {kind: float(allowed) for kind, allowed in FLOOD_BUDGETS.items()}
        self._counted = dict.fromkeys(FLOOD_BUDGETS, 0.0)

    def spend(self, kind: FloodKind, now: float) -> bool:
        """Count one more frame of a kind. Returns whether the budget had room for it."""
        left = self.left(kind, now) - 1
        self._left[kind] = max(left, 0.0)
        self._counted[kind] = now
        return left >= 0

    def left(self, kind: FloodKind, now: float) -> float:
        """Return how many frames of a kind may still arrive at once."""
        allowed = FLOOD_BUDGETS[kind]
        earned = (now - self._counted[kind]) * allowed / limits.HTTY_BUDGET_SECONDS
        return min(self._left[kind] + earned, allowed)


ALL_STREAMS: Final = 2**31 - 1
"""The last stream id of a GOAWAY that only announces: a second GOAWAY names the real one."""
