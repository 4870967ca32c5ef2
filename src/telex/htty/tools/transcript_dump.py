"""Decodes a recorded transcript: the requests and responses that went through a terminal.

`transcript_parts` reads files. A raw transcript is just the bytes. util-linux's `script` adds a
line before and after them, and with `--log-io` writes both directions into one file, which a second
file separates. An asciicast has text in events. `FrameReader` reads one direction as HTTP/2. It
cannot use `h2`, which is one side of a live connection and refuses frames of the other side. So it
uses hyperframe and hpack, and reports what they cannot decode.

`dump` finds chunks as a terminal does, joins those of one direction and decodes their frames. A
broken chunk is reported with its offset, and the next connection begins with its own first bytes.
Bodies are counted and hashed, never kept. No I/O: `telex htty dump` reads the files and prints.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hpack import Decoder, HPACKError
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hyperframe.frame import Frame as HyperFrame

from telex.terminal.recording import InputEvent, OutputEvent, read_recording
from telex.wire import htty_chunk, limits
from telex.wire.escape import ESC
from telex.wire.events import Fault, Frame, Visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_STARTED: Final = re.compile(rb"Script started on [^\n]*\n")
_DONE: Final = re.compile(rb"\r?\n?Script done on [^\n]*\n?\Z")
_CAST: Final = re.compile(rb'\s*\{[^\n]*"version"\s*:\s*[23]\b')
_WRAPPED: Final = re.compile(rb"\x1bPtmux;((?:[^\x1b]|\x1b\x1b)*)\x1b\\")


class NotTiming(ValueError):
    """The second file was not written by `script --log-timing`."""


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """Consecutive bytes of one direction."""

    typed: bool
    """Whether they were sent to the program; in a file without that information, whether they were
    sent in the other direction than the rest of it."""
    data: bytes
    offset: int
    """Their offset in the file; in an asciicast, in the text of their direction."""


def transcript_parts(data: bytes, timing: bytes | None = None) -> list[TranscriptPart]:
    """Split a transcript into parts. Raises `NotARecording` and `NotTiming`."""
    if _CAST.match(data):
        return list(_of_recording(data))
    started = _STARTED.match(data)
    begin = started.end() if started else 0
    if timing is not None:
        return list(_timed(data, begin, timing))
    done = _DONE.search(data, max(begin, len(data) - 1024)) if started else None
    return [TranscriptPart(False, unwrapped(data[begin : done.start() if done else None]), begin)]


def _of_recording(data: bytes) -> Iterator[TranscriptPart]:
    at = {False: 0, True: 0}
    for event in read_recording(data.splitlines(keepends=True)).events:
        if isinstance(event, OutputEvent | InputEvent):
            typed, text = isinstance(event, InputEvent), event.text.encode("utf-8", "surrogatepass")
            yield TranscriptPart(typed, text, at[typed])
            at[typed] += len(text)


def _timed(data: bytes, at: int, timing: bytes) -> Iterator[TranscriptPart]:
    """Split by the lines of `script --log-timing`:

    `O 0.012 340`, `I 0.5 1`; others have no data.
    """
    for number, line in enumerate(timing.splitlines(), 1):
        match line.split():
            case [b"O" | b"I" as kind, _, count] if count.isdigit():
                yield TranscriptPart(kind == b"I", data[at : at + int(count)], at)
                at += int(count)
            case [b"H" | b"S", *_]:
                pass
            case _:
                raise NotTiming(f"line {number} of the timing file is not of `script --log-timing`")


def unwrapped(data: bytes) -> bytes:
    """Remove the wrapping of tmux. Offsets behind it become a little too small."""
    return _WRAPPED.sub(lambda found: found[1].replace(ESC + ESC, ESC), data)


PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = 9
_SETTINGS: Final = b"\x04\0\0\0\0\0"
"""The rest of a frame's header: the type, no flags, stream 0."""
_TABLE_BYTES: Final = 64 * 1024
"""The largest header table that a peer may have allowed the sender: only the other direction shows
the actual size, and it may be missing."""


@dataclass(frozen=True, slots=True)
class DecodedFrame:
    """One frame of a transcript, decoded."""

    kind: str
    stream: int
    flags: tuple[str, ...]
    length: int
    about: str = ""
    """A short description of its content."""
    headers: tuple[tuple[bytes, bytes], ...] | None = None
    """The header fields, with the last frame of a header block."""
    data: bytes = b""
    reset: int | None = None
    """The error code of RST_STREAM and GOAWAY."""

    @property
    def ends(self) -> bool:
        return "END_STREAM" in self.flags


@dataclass(frozen=True, slots=True)
class UndecodableBytes:
    """Bytes that are not HTTP/2, with the reason. The bytes after them cannot be decoded either."""

    why: str


class FrameReader:
    """Reads one direction of one connection."""

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
        """How many bytes of an incomplete frame are buffered."""
        return len(self._bytes)

    def is_over_by(self, data: bytes) -> bool:
        """Whether a payload begins a new connection: the preface, or a server's first SETTINGS.

        A server that was killed has neither sent GOAWAY nor completed its last frame.
        """
        if not self.begun:
            return False
        if self.client:
            return data.startswith(PREFACE)
        return data[3:_HEAD] == _SETTINGS and int.from_bytes(data[:3], "big") % 6 == 0

    def feed(self, data: bytes) -> Iterator[DecodedFrame | UndecodableBytes]:
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
            yield UndecodableBytes(f"this is not HTTP/2: {type(error).__name__}")

    def _frames(self) -> Iterator[DecodedFrame]:
        at = 0
        try:
            while len(self._bytes) - at >= _HEAD:
                frame, length = HyperFrame.parse_frame_header(
                    memoryview(bytes(self._bytes[at : at + 9]))
                )
                if len(self._bytes) - at < _HEAD + length:
                    return
                frame.parse_body(memoryview(bytes(self._bytes[at + _HEAD : at + _HEAD + length])))
                at += _HEAD + length
                yield self._decoded(frame, length)
        finally:
            del self._bytes[:at]

    def _decoded(self, frame: HyperFrame, length: int) -> DecodedFrame:
        kind = type(frame).__name__.removesuffix("Frame")
        flags = tuple(sorted(frame.flags))
        match frame:
            case HeadersFrame() | PushPromiseFrame() | ContinuationFrame():
                return self._decoded_block(frame, kind, flags, length)
            case DataFrame():
                return DecodedFrame(kind, frame.stream_id, flags, length, data=frame.data)
            case RstStreamFrame():
                about = f"code {frame.error_code}"
                return DecodedFrame(
                    kind, frame.stream_id, flags, length, about, reset=frame.error_code
                )
            case GoAwayFrame():
                about = f"code {frame.error_code}, last stream {frame.last_stream_id}"
                return DecodedFrame(kind, 0, flags, length, about, reset=frame.error_code)
            case SettingsFrame():
                about = ", ".join(f"{name}={value}" for name, value in frame.settings.items())
                return DecodedFrame(kind, 0, flags, length, about)
            case WindowUpdateFrame():
                return DecodedFrame(
                    kind, frame.stream_id, flags, length, f"+{frame.window_increment}"
                )
            case PingFrame():
                return DecodedFrame(kind, 0, flags, length, frame.opaque_data.hex())
            case _:
                return DecodedFrame(kind, frame.stream_id, flags, length)

    def _decoded_block(
        self,
        frame: HeadersFrame | PushPromiseFrame | ContinuationFrame,
        kind: str,
        flags: tuple[str, ...],
        length: int,
    ) -> DecodedFrame:
        """Collect a header block of several frames; its fields are returned with the last one."""
        block, first = self._block or (bytearray(), flags)
        block += frame.data
        if "END_HEADERS" not in flags:
            self._block = (block, first)
            return DecodedFrame(kind, frame.stream_id, flags, length)
        self._block = None
        found = self._headers.decode(bytes(block), raw=True)
        headers = tuple([(bytes(name), bytes(value)) for name, value in found])
        together = tuple(sorted({*first, *flags}))
        return DecodedFrame(kind, frame.stream_id, together, length, headers=headers)


_STATUS: Final = b":status"


@dataclass(slots=True)
class DumpedMessage:
    """A request or a response, as far as it is in the transcript."""

    headers: tuple[tuple[bytes, bytes], ...] = ()
    trailers: tuple[tuple[bytes, bytes], ...] = ()
    size: int = 0
    ended: bool = False
    reset: int | None = None
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def __getitem__(self, name: bytes) -> str:
        return next((v.decode("utf-8", "replace") for n, v in self.headers if n == name), "")

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def take(self, frame: DecodedFrame) -> None:
        if frame.headers is not None and frame.kind != "PushPromise":
            informational = self[_STATUS].startswith("1")  # a 103 precedes the response
            if self.headers and not informational:
                self.trailers = frame.headers
            else:
                self.headers = frame.headers
        if frame.data:
            self.size += len(frame.data)
            self._hash.update(frame.data)
        self.ended |= frame.ends
        self.reset = frame.reset if frame.reset is not None else self.reset


@dataclass(slots=True)
class DumpedStream:
    request: DumpedMessage = field(default_factory=DumpedMessage)
    response: DumpedMessage = field(default_factory=DumpedMessage)


@dataclass(slots=True)
class DumpedConnection:
    """One HTTP/2 connection of the transcript."""

    streams: dict[int, DumpedStream] = field(default_factory=dict)
    goaway: list[str] = field(default_factory=list)
    """Which side sent it, and its code."""


@dataclass(frozen=True, slots=True)
class DumpedFrame:
    session: int
    sender: str
    """`terminal` (the client) or `program` (the server)."""
    frame: DecodedFrame


@dataclass(frozen=True, slots=True)
class DumpProblem:
    offset: int
    sentence: str


@dataclass(slots=True)
class Dump:
    sessions: list[DumpedConnection] = field(default_factory=list)
    frames: list[DumpedFrame] = field(default_factory=list)
    problems: list[DumpProblem] = field(default_factory=list)
    chunks: int = 0
    text: int = 0
    """Bytes outside of chunks."""


class _Direction:
    """Decodes one direction of the transcript."""

    def __init__(self, dump: Dump, keep_frames: bool) -> None:
        self._dump = dump
        self._keep = keep_frames
        self._decoder = htty_chunk.HttyChunkDecoder()
        self._reader = FrameReader()
        self._session = -1
        self._shift: int | None = None
        """The difference between the decoder's offsets and the file's."""
        self._at = 0

    def feed(self, part: TranscriptPart) -> None:
        if self._shift is None:
            self._shift = part.offset
        self._at = part.offset
        for event in self._decoder.feed(part.data):
            self._handle(event)

    def finish(self) -> None:
        for event in self._decoder.eof():
            self._handle(event)
        if self._reader.unfinished:
            self._problem(self._at, "the last HTTP/2 frame is incomplete")

    def _handle(self, event: object) -> None:
        match event:
            case Visible(data):
                self._dump.text += len(data)
            case Fault() as fault:
                self._problem((self._shift or 0) + fault.offset, f"{fault.reason}: {fault.detail}")
            case Frame(data):
                self._dump.chunks += 1
                self._read_frames(data)

    def _read_frames(self, data: bytes) -> None:
        if self._session < 0 or self._reader.is_over_by(data):
            self._session += 1
            self._reader = FrameReader()
        while len(self._dump.sessions) <= self._session:
            self._dump.sessions.append(DumpedConnection())
        for seen in self._reader.feed(data):
            if isinstance(seen, UndecodableBytes):
                self._problem(self._at, seen.why)
            else:
                self._frame(seen)

    def _frame(self, seen: DecodedFrame) -> None:
        sender = "terminal" if self._reader.client else "program"
        if self._keep:
            self._dump.frames.append(DumpedFrame(self._session, sender, seen))
        session = self._dump.sessions[self._session]
        if seen.kind == "GoAway":
            session.goaway.append(f"{sender}: {seen.about}")
        elif seen.stream and seen.kind in {"Headers", "Continuation", "Data", "RstStream"}:
            stream = session.streams.setdefault(seen.stream, DumpedStream())
            (stream.request if self._reader.client else stream.response).take(seen)

    def _problem(self, offset: int, sentence: str) -> None:
        self._dump.problems.append(DumpProblem(offset, sentence))


def dump(files: Iterable[Iterable[TranscriptPart]], *, frames: bool = False) -> Dump:
    """Decode the files of one terminal: usually one; two if input and output are separate."""
    found = Dump()
    for parts in files:
        directions: dict[bool, _Direction] = {}
        for part in parts:
            if part.typed not in directions:
                directions[part.typed] = _Direction(found, frames)
            directions[part.typed].feed(part)
        for direction in directions.values():
            direction.finish()
    return found
