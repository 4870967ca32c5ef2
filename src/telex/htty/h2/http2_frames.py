"""HTTP/2 frames by their 9-byte headers, before `h2` sees them, and how many useless ones may come.

`FrameSplitter` does not parse what frames say; `h2` does. It exists because `h2` collects a frame
of 16 MB before it finds it too long, and because what ends or floods a connection must be seen
first.

`FloodBudget` counts what HTTP/2 lets a peer do without end. Each kind has a token bucket that
refills within `HTTY_BUDGET_SECONDS`. Normal use of a page does not come near one; a peer that
empties one is flooding, and its connection ends with ENHANCE_YOUR_CALM.
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


_BEFORE_PADDED: dict[int, int] = {
    FrameType.DATA: 0,
    FrameType.HEADERS: 0,
    FrameType.PUSH_PROMISE: 4,
}
"""Frames that may have padding, and the bytes of what else stands before their content."""
_PRIORITY_BYTES = 5


@dataclass(slots=True)
class Http2Frame:
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
class BadFraming:
    """From here on there are no frames to be found."""

    too_long: bool
    """Too long, or too short: its size is wrong."""
    sentence: str


def padding_fault(frame: Http2Frame) -> BadFraming | None:
    """What is wrong with the padding of a frame, by its length (RFC 9113 §6.1, §6.2, §6.6). A frame
    is the connection's, so this ends that and not one stream."""
    if not frame.flags & PADDED or frame.type not in _BEFORE_PADDED:
        return None
    room = frame.size - 1 - _BEFORE_PADDED[frame.type]
    if frame.type == FrameType.HEADERS and frame.flags & PRIORITY:
        room -= _PRIORITY_BYTES
    if room < 0:
        return BadFraming(True, "a frame is too short for what its flags say it holds")
    if frame.data[HEADER_BYTES] > room:
        return BadFraming(False, "a frame has more padding than it is long")
    return None


class FrameSplitter:
    """One direction. A server's begins with the client's preface."""

    def __init__(self, *, preface: bool) -> None:
        self._held = bytearray()
        self._preface = PREFACE if preface else b""

    def take(self, data: bytes) -> Iterator[Http2Frame | BadFraming]:
        """The frames that are whole with these bytes. `BadFraming` is the last there is."""
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
            return BadFraming(False, "it does not begin as an HTTP/2 client does")
        self._preface = self._preface[len(expected) :]
        del self._held[: len(expected)]
        return None


def frame_header(kind: FrameType, size: int, stream: int, flags: int = 0) -> bytes:
    """What a frame begins with."""
    return _HEADER.pack(size >> 16, size & 0xFFFF, kind, flags, stream)


def goaway_frame(last: int, code: int, text: str) -> bytes:
    """A GOAWAY frame. Ours, because h2 sends and takes nothing more after its own."""
    said = text.encode()[:128]
    return frame_header(FrameType.GOAWAY, 8 + len(said), 0) + struct.pack(">LL", last, code) + said


def reset_frame(stream: int, code: int) -> bytes:
    """A RST_STREAM frame, for a stream that h2 takes for closed already."""
    return frame_header(FrameType.RST_STREAM, 4, stream) + struct.pack(">L", code)


class FloodKind(Enum):
    """What is counted. The value is how a person calls it."""

    RESET = "reset streams"
    PING = "pings"
    SETTINGS = "SETTINGS frames"
    EMPTY = "empty frames"
    UNKNOWN = "frames of no use"
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
    """The buckets of one connection."""

    def __init__(self) -> None:
        self._left = {kind: float(allowed) for kind, allowed in FLOOD_BUDGETS.items()}
        self._counted = dict.fromkeys(FLOOD_BUDGETS, 0.0)

    def spend(self, kind: FloodKind, now: float) -> bool:
        """One more of them. Whether there was one left."""
        left = self.left(kind, now) - 1
        self._left[kind] = max(left, 0.0)
        self._counted[kind] = now
        return left >= 0

    def left(self, kind: FloodKind, now: float) -> float:
        """How many may still come at once."""
        allowed = FLOOD_BUDGETS[kind]
        earned = (now - self._counted[kind]) * allowed / limits.HTTY_BUDGET_SECONDS
        return min(self._left[kind] + earned, allowed)


ALL_STREAMS: Final = 2**31 - 1
"""As the last stream of a GOAWAY: it is only announced, and a second one will say which was."""
