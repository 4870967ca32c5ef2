"""A transcript, decoded: the requests and responses that went through a terminal, after the fact.

Chunks are found as a terminal finds them, put together in their direction, and read as HTTP/2. What
is broken is named with its place, and the next connection begins with its own first bytes. Bodies
are counted and hashed, never kept. Pure: `telex htty dump` reads the files and prints.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.htty.frame_reading import FrameReader, Seen, Unread
from telex.wire import htty_chunk
from telex.wire.events import Fault, Frame, Visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.htty.transcripts import Part

_STATUS: Final = b":status"


@dataclass(slots=True)
class Side:
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

    def take(self, frame: Seen) -> None:
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
class Stream:
    request: Side = field(default_factory=Side)
    response: Side = field(default_factory=Side)


@dataclass(slots=True)
class Session:
    """One HTTP/2 connection."""

    streams: dict[int, Stream] = field(default_factory=dict)
    goaway: list[str] = field(default_factory=list)
    """Which side said it, and its code."""


@dataclass(frozen=True, slots=True)
class FrameSeen:
    session: int
    sender: str
    """`terminal` (the client) or `program` (the server)."""
    frame: Seen


@dataclass(frozen=True, slots=True)
class Problem:
    offset: int
    sentence: str


@dataclass(slots=True)
class Dump:
    sessions: list[Session] = field(default_factory=list)
    frames: list[FrameSeen] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    chunks: int = 0
    text: int = 0
    """Bytes that were no chunks."""


class _Direction:
    """What went one way."""

    def __init__(self, dump: Dump, keep_frames: bool) -> None:
        self._dump = dump
        self._keep = keep_frames
        self._decoder = htty_chunk.Decoder()
        self._reader = FrameReader()
        self._session = -1
        self._shift: int | None = None
        """How far the decoder's offsets are from the file's."""
        self._at = 0

    def feed(self, part: Part) -> None:
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
            self._dump.sessions.append(Session())
        for seen in self._reader.feed(data):
            if isinstance(seen, Unread):
                self._problem(self._at, seen.why)
            else:
                self._frame(seen)

    def _frame(self, seen: Seen) -> None:
        sender = "terminal" if self._reader.client else "program"
        if self._keep:
            self._dump.frames.append(FrameSeen(self._session, sender, seen))
        session = self._dump.sessions[self._session]
        if seen.kind == "GoAway":
            session.goaway.append(f"{sender}: {seen.about}")
        elif seen.stream and seen.kind in {"Headers", "Continuation", "Data", "RstStream"}:
            stream = session.streams.setdefault(seen.stream, Stream())
            (stream.request if self._reader.client else stream.response).take(seen)

    def _problem(self, offset: int, sentence: str) -> None:
        self._dump.problems.append(Problem(offset, sentence))


def dump(files: Iterable[Iterable[Part]], *, frames: bool = False) -> Dump:
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
