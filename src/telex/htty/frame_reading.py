"""One direction of an HTTP/2 connection, read after the fact: bytes in, frames out. Pure.

h2 is no help here: it is one side of a live connection and refuses what that side may not see. This
only looks, with hyperframe and hpack, and says what it cannot read. For `dumping`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hpack import Decoder, HPACKError
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = 9
_SETTINGS: Final = b"\x04\0\0\0\0\0"
"""Of a frame's head: the type, no flags, stream 0."""
_TABLE_BYTES: Final = 64 * 1024
"""The largest table of headers that any peer may have allowed the sender: which one did, the other
direction knows, and it may be missing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One frame."""

    kind: str
    stream: int
    flags: tuple[str, ...]
    length: int
    about: str = ""
    """What it says, in a few words of ours."""
    headers: tuple[tuple[bytes, bytes], ...] | None = None
    """With the last frame of a header block."""
    data: bytes = b""
    reset: int | None = None
    """RST_STREAM's and GOAWAY's error code."""

    @property
    def ends(self) -> bool:
        return "END_STREAM" in self.flags


@dataclass(frozen=True, slots=True)
class Unread:
    """What is no HTTP/2, as a sentence. What follows it cannot be read either."""

    why: str


class FrameReader:
    """One direction of one connection."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._broken = False
        self._headers = Decoder(max_header_list_size=limits.CONTROL_STRING_BYTES)
        self._headers.max_allowed_table_size = _TABLE_BYTES
        self._block: tuple[bytearray, tuple[str, ...]] | None = None
        self.client = False
        """Whether it began with the client's preface."""
        self.begun = False

    @property
    def unfinished(self) -> int:
        """Bytes of a frame that has not come whole."""
        return len(self._bytes)

    def is_over_by(self, data: bytes) -> bool:
        """Whether a payload opens a new connection: the preface, or a server's first SETTINGS. A
        server that was killed has not said that its last one is over, nor ended its last frame."""
        if not self.begun:
            return False
        if self.client:
            return data.startswith(PREFACE)
        return data[3:_HEAD] == _SETTINGS and int.from_bytes(data[:3], "big") % 6 == 0

    def feed(self, data: bytes) -> Iterator[Seen | Unread]:
        if self._broken:
            return
        self._bytes += data
        if not self.begun:
            if PREFACE.startswith(self._bytes[: len(PREFACE)]) and len(self._bytes) < len(PREFACE):
                return
            self.begun, self.client = True, self._bytes.startswith(PREFACE)
            del self._bytes[: len(PREFACE) if self.client else 0]
        try:
            yield from self._frames()
        except (HyperframeError, HPACKError) as error:
            self._broken = True
            self._bytes.clear()
            yield Unread(f"this is not HTTP/2: {type(error).__name__}")

    def _frames(self) -> Iterator[Seen]:
        at = 0
        try:
            while len(self._bytes) - at >= _HEAD:
                frame, length = Frame.parse_frame_header(
                    memoryview(bytes(self._bytes[at : at + 9]))
                )
                if len(self._bytes) - at < _HEAD + length:
                    return
                frame.parse_body(memoryview(bytes(self._bytes[at + _HEAD : at + _HEAD + length])))
                at += _HEAD + length
                yield self._seen(frame, length)
        finally:
            del self._bytes[:at]

    def _seen(self, frame: Frame, length: int) -> Seen:
        kind = type(frame).__name__.removesuffix("Frame")
        flags = tuple(sorted(frame.flags))
        match frame:
            case HeadersFrame() | PushPromiseFrame() | ContinuationFrame():
                return self._block_seen(frame, kind, flags, length)
            case DataFrame():
                return Seen(kind, frame.stream_id, flags, length, data=frame.data)
            case RstStreamFrame():
                about = f"code {frame.error_code}"
                return Seen(kind, frame.stream_id, flags, length, about, reset=frame.error_code)
            case GoAwayFrame():
                about = f"code {frame.error_code}, last stream {frame.last_stream_id}"
                return Seen(kind, 0, flags, length, about, reset=frame.error_code)
            case SettingsFrame():
                about = ", ".join(f"{name}={value}" for name, value in frame.settings.items())
                return Seen(kind, 0, flags, length, about)
            case WindowUpdateFrame():
                return Seen(kind, frame.stream_id, flags, length, f"+{frame.window_increment}")
            case PingFrame():
                return Seen(kind, 0, flags, length, frame.opaque_data.hex())
            case _:
                return Seen(kind, frame.stream_id, flags, length)

    def _block_seen(
        self,
        frame: HeadersFrame | PushPromiseFrame | ContinuationFrame,
        kind: str,
        flags: tuple[str, ...],
        length: int,
    ) -> Seen:
        """A header block may take several frames; what it says is told with the last of them."""
        block, first = self._block or (bytearray(), flags)
        block += frame.data
        if "END_HEADERS" not in flags:
            self._block = (block, first)
            return Seen(kind, frame.stream_id, flags, length)
        self._block = None
        found = self._headers.decode(bytes(block), raw=True)
        headers = tuple([(bytes(name), bytes(value)) for name, value in found])
        together = tuple(sorted({*first, *flags}))
        return Seen(kind, frame.stream_id, together, length, headers=headers)
