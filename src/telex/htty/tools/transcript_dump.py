"""A transcript, decoded after the fact: the requests and responses that went through a terminal.

`transcript_parts` reads files: a raw transcript is just the bytes; util-linux's `script` puts a
line before them and one after, and with `--log-io` both directions into one file, which a second
file tells apart; an asciicast has text in events. `FrameReader` reads one direction as HTTP/2. `h2`
is no help there: it is one side of a live connection and refuses what that side may not see. So
this uses hyperframe and hpack, and reports what they cannot read.

`dump` finds chunks as a terminal does, joins those of one direction and reads their frames. A
broken place is reported with its offset, and the next connection begins with its own first bytes.
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
    """The second file of `script` is not what `--log-timing` writes."""


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """Consecutive bytes of one direction."""

    typed: bool
    """Whether they went to the program; in a file that does not say, whether they went the other
    way than the rest of it."""
    data: bytes
    offset: int
    """Where in the file they stand; in an asciicast, where in the text of their direction."""


def transcript_parts(data: bytes, timing: bytes | None = None) -> list[TranscriptPart]:
    """Raises `NotARecording` and `NotTiming`."""
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
            typed, told = isinstance(event, InputEvent), event.text.encode("utf-8", "surrogatepass")
            yield TranscriptPart(typed, told, at[typed])
            at[typed] += len(told)


def _timed(data: bytes, at: int, timing: bytes) -> Iterator[TranscriptPart]:
    """By the lines of `script --log-timing`: `O 0.012 340`, `I 0.5 1`, and others without data."""
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
    """Without what tmux needs to pass something on. Offsets behind it are a little too small."""
    return _WRAPPED.sub(lambda found: found[1].replace(ESC + ESC, ESC), data)


PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = 9
_SETTINGS: Final = b"\x04\0\0\0\0\0"
"""Of a frame's head: the type, no flags, stream 0."""
_TABLE_BYTES: Final = 64 * 1024
"""The largest table of headers that any peer may have allowed the sender: which one did, the other
direction knows, and it may be missing."""


@dataclass(frozen=True, slots=True)
class DecodedFrame:
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
class UndecodableBytes:
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
                yield self._seen(frame, length)
        finally:
            del self._bytes[:at]

    def _seen(self, frame: HyperFrame, length: int) -> DecodedFrame:
        kind = type(frame).__name__.removesuffix("Frame")
        flags = tuple(sorted(frame.flags))
        match frame:
            case HeadersFrame() | PushPromiseFrame() | ContinuationFrame():
                return self._block_seen(frame, kind, flags, length)
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

    def _block_seen(
        self,
        frame: HeadersFrame | PushPromiseFrame | ContinuationFrame,
        kind: str,
        flags: tuple[str, ...],
        length: int,
    ) -> DecodedFrame:
        """A header block may take several frames; what it says is told with the last of them."""
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
    """A request or a response, as far as it was seen."""

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
            informational = self[_STATUS].startswith("1")  # 103 and the like come before the answer
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
    """One HTTP/2 connection."""

    streams: dict[int, DumpedStream] = field(default_factory=dict)
    goaway: list[str] = field(default_factory=list)
    """Which side said it, and its code."""


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
    """Bytes that were no chunks."""


class _Direction:
    """What went one way."""

    def __init__(self, dump: Dump, keep_frames: bool) -> None:
        self._dump = dump
        self._keep = keep_frames
        self._decoder = htty_chunk.HttyChunkDecoder()
        self._reader = FrameReader()
        self._session = -1
        self._shift: int | None = None
        """How far the decoder's offsets are from the file's."""
        self._at = 0

    def feed(self, part: TranscriptPart) -> None:
        if self._shift is None:
            self._shift = part.offset
        self._at = part.offset
        for event in self._decoder.feed(part.data):
            self._take(event)

    def finish(self) -> None:
        for event in self._decoder.eof():
            self._take(event)
        if self._reader.unfinished:
            self._problem(self._at, "the last HTTP/2 frame is not whole")

    def _take(self, event: object) -> None:
        match event:
            case Visible(data):
                self._dump.text += len(data)
            case Fault() as fault:
                self._problem((self._shift or 0) + fault.offset, f"{fault.reason}: {fault.detail}")
            case Frame(data):
                self._dump.chunks += 1
                self._carried(data)

    def _carried(self, data: bytes) -> None:
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
    """Files of one terminal: mostly one; two where input and output were written apart."""
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
