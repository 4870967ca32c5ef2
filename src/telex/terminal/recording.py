"""Recordings of terminals as asciicast: a writer, a reader, and a recorder for live sessions.

The formats are versions 2 and 3 (docs.asciinema.org/manual/asciicast). They differ in the header
and in their times: since the beginning in 2, since the previous line in 3. Both leave the list of
event codes open and ask readers to skip unknown codes, so the exit is an `x` in both, although only
version 3 defines it.

`AsciicastWriter` redacts its input as a stream, so a secret that arrives in several reads is found.
Text that may belong to a secret is held back, and written with the time at which the writer
decided: a player never shows a character earlier than that. Order is kept within the output and
within the input; held output may follow a marker that was set later. The writer uses neither a file
nor a clock; its text is already decoded. `SessionRecorder` writes a live session to a file.
"""

from __future__ import annotations

import math
import os
import re
import time
from codecs import getincrementaldecoder
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from telex.processes.child_environment import TERMINAL
from telex.terminal import limits
from telex.terminal.cells import Size
from telex.terminal.raw_transcript import FileFailed, open_raw
from telex.terminal.redact import draw_screen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from telex.redaction import Redactor
    from telex.terminal.session import PtySession


_STATUS: Final = re.compile(r"-?[0-9]{1,10}")
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Header:
    """The metadata in the first line of a recording."""

    version: Literal[2, 3]
    size: Size
    timestamp: int | None = None
    """When the recording began, in seconds since 1970."""
    term: str | None = None
    command: str | None = None
    title: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    idle_time_limit: float | None = None
    """The longest pause that a player should keep, in seconds."""


@dataclass(frozen=True, slots=True)
class OutputEvent:
    """Output of the program. All times are seconds since the beginning, in both versions."""

    time: float
    text: str


@dataclass(frozen=True, slots=True)
class InputEvent:
    """Input that was typed."""

    time: float
    text: str


@dataclass(frozen=True, slots=True)
class SizeEvent:
    """A change of the terminal's size."""

    time: float
    size: Size


@dataclass(frozen=True, slots=True)
class MarkerEvent:
    """A named place that players can jump to or pause at."""

    time: float
    label: str


@dataclass(frozen=True, slots=True)
class ExitEvent:
    """The exit of the program."""

    time: float
    code: int


RecordedEvent = OutputEvent | InputEvent | SizeEvent | MarkerEvent | ExitEvent


class NotARecording(ValueError):
    """The data is not asciicast 2 or 3. The message names the line."""


# Writing.


class AsciicastWriter:
    """Writes one recording. Every method returns the lines to append, often none.

    `now` and `started` are times of the same clock, which may be any clock. Without a redactor
    everything is written unchanged. The constructor raises for a redactor with `extra_regexes`,
    because it cannot redact a stream.
    """

    def __init__(self, header: Header, started: float, redactor: Redactor | None) -> None:
        self._header = header
        self._started = started
        self._last = 0  # microseconds since the beginning; integers, so that sums do not drift
        self._redactor = redactor
        self._output = redactor.stream() if redactor else None
        self._input = redactor.stream() if redactor else None

    def header(self) -> bytes:
        """Return the first line."""
        header = self._header
        fields: dict[str, object] = {"version": header.version}
        env = dict(header.env)
        if header.version == 2:
            fields |= {"width": header.size.cols, "height": header.size.rows}
            env |= {"TERM": header.term} if header.term is not None else {}
        else:
            term: dict[str, object] = {"cols": header.size.cols, "rows": header.size.rows}
            fields["term"] = term | ({"type": header.term} if header.term is not None else {})
        for name in ("timestamp", "command", "title", "idle_time_limit"):
            if (value := getattr(header, name)) is not None:
                fields[name] = self._clean(value) if isinstance(value, str) else value
        if header.command is not None and self._redactor:
            fields["command"] = self._redactor.redact_command(header.command)
        if env:
            fields["env"] = {name: self._clean(value, name) for name, value in env.items()}
        return msgspec.json.encode(fields) + b"\n"

    def start_midway(self, before: str, drawn: str, now: float) -> bytes:
        """Start with a running program: its earlier output, which is context for the redactor and
        not recorded, and the bytes that draw its present screen, which are redacted already.
        """
        if self._output:
            self._output.follow(before)
        return self._text("o", drawn, now)

    def output(self, text: str, now: float) -> bytes:
        """Record output of the program."""
        return self._text("o", self._output.feed(text) if self._output else text, now)

    def input(self, text: str, now: float) -> bytes:
        """Record typed input. The caller should leave out input that the terminal did not echo."""
        return self._text("i", self._input.feed(text) if self._input else text, now)

    def resize(self, size: Size, now: float) -> bytes:
        """Record a new size of the terminal."""
        return self._line("r", str(size), now)

    def marker(self, label: str, now: float) -> bytes:
        """Record a named place."""
        return self._line("m", self._clean(label), now)

    def exit(self, code: int, now: float) -> bytes:
        """Record the exit of the program. No event may follow."""
        return self.finish(now) + self._line("x", str(code), now)

    def finish(self, now: float) -> bytes:
        """End the recording with the text that was held back. `exit` does this too."""
        typed = self._input.finish() if self._input else ""
        held = self._output.finish() if self._output else ""
        return self._text("i", typed, now) + self._text("o", held, now)

    def _clean(self, text: str, name: str = "") -> str:
        """Redact a whole text. The name before a value may be what makes it a secret."""
        label = name and f"{name}="
        return self._redactor.redact(label + text)[len(label) :] if self._redactor else text

    def _text(self, code: str, text: str, now: float) -> bytes:
        return self._line(code, text, now) if text else b""

    def _line(self, code: str, data: str, now: float) -> bytes:
        at = max(self._last, round((now - self._started) * _MICRO))
        elapsed = at - self._last if self._header.version == 3 else at
        self._last = at
        # Written without an exponent, because some readers do not accept one.
        seconds = f"[{elapsed // _MICRO}.{elapsed % _MICRO:06}".encode()
        return b'%b,"%b",%b]\n' % (seconds, code.encode(), msgspec.json.encode(data))


# Reading.


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that was read completely."""

    header: Header
    events: tuple[RecordedEvent, ...]
    cut_line: int | None = None
    """The number of an incomplete last line, which was skipped."""

    @property
    def duration(self) -> float:
        return self.events[-1].time if self.events else 0.0


def read_recording(lines: Iterable[bytes]) -> Recording:
    """Read a recording as players do: skip comments, blank lines, unknown codes and unknown fields.

    A last line without a line end is skipped too: a killed recorder leaves one. Times never go
    back: an earlier time counts as that of the line before. Half a surrogate pair, and bytes that
    are no UTF-8, are read as U+FFFD: some recorders cut a character in two.
    """
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (1, b""))
    header = _header(first)
    events: list[RecordedEvent] = []
    at, cut = 0, None
    for number, line in numbered:
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            seconds, code, data = _parts(line)
            elapsed = max(0, round(seconds * _MICRO))
            at = at + elapsed if header.version == 3 else max(at, elapsed)
            event = _event(at / _MICRO, code, data)
        except (msgspec.DecodeError, ValueError) as error:
            if not line.endswith(b"\n"):
                cut = number
                break
            raise NotARecording(f"line {number} is not an event of a recording: {error}") from error
        if event is not None:
            events.append(event)
    return Recording(header, tuple(events), cut)


_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB]..(?=\\u[dD][c-fC-F])\\u....|(?P<half>u[dD][89a-fA-F]..)|.)", re.DOTALL
)
"""An escape in a JSON string: a surrogate pair, half of one, or any other."""


def _decoded(line: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        whole = line.decode("utf-8", "replace").encode()
        mended = _ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], whole)
        return msgspec.json.decode(mended, type=kind)


def _parts(line: bytes) -> tuple[float, str, object]:
    match _decoded(line, Any):
        case [int() | float() as time, str(code), data, *_] if math.isfinite(time):
            return time, code, data
        case _:
            raise ValueError("an event must be [time, code, data]")


def _event(time: float, code: str, data: object) -> RecordedEvent | None:
    match code, data:
        case "o", str(text):
            return OutputEvent(time, text)
        case "i", str(text):
            return InputEvent(time, text)
        case "r", str(text) if size := Size.parse(text):
            return SizeEvent(time, _checked(size))
        case "m", str(label):
            return MarkerEvent(time, label)
        case "x", str(status) if _STATUS.fullmatch(status):
            return ExitEvent(time, int(status))
        case (("o" | "i" | "r" | "m" | "x"), _):
            raise ValueError(f"the data does not fit an event of kind {code!r}")
        case _:
            return None


def _checked(size: Size) -> Size:
    most = limits.RECORDED_SIDE
    if max(size.rows, size.cols) > most:
        raise ValueError(f"{size} is larger than a terminal of {most}x{most}")
    return size


Count = Annotated[int, msgspec.Meta(ge=1, le=limits.RECORDED_SIDE)]


class _Term(msgspec.Struct):
    cols: Count
    rows: Count
    type: str | None = None


class _Header(msgspec.Struct, kw_only=True):
    timestamp: float | None = None
    command: str | None = None
    title: str | None = None
    env: dict[str, str | None] | None = None
    idle_time_limit: float | None = None


class _Header2(_Header, tag_field="version", tag=2):
    width: Count
    height: Count


class _Header3(_Header, tag_field="version", tag=3):
    term: _Term


def _header(line: bytes) -> Header:
    try:
        header: _Header2 | _Header3 = _decoded(line, _Header2 | _Header3)
    except msgspec.DecodeError as error:
        raise NotARecording(f"line 1 is not a header of asciicast 2 or 3: {error}") from error
    env = {name: value for name, value in (header.env or {}).items() if value is not None}
    version: Literal[2, 3]
    if isinstance(header, _Header2):
        version, size, term = 2, Size(header.height, header.width), env.pop("TERM", None)
    else:
        version, size, term = 3, Size(header.term.rows, header.term.cols), header.term.type
    time = None if header.timestamp is None else int(header.timestamp)
    return Header(
        version, size, time, term, header.command, header.title, env, header.idle_time_limit
    )


# A live session.


class SessionRecorder:
    """Records the output of a session and, with `typed`, its input, until it ends or `stop` is
    called.

    The file is a `raw_transcript`: readable only by its owner, never replacing another file,
    written at once. A full disk ends the file after its last whole line; the session continues and
    reports the failure. With a redactor, input typed while the terminal does not echo is left out,
    because it may be a password. The constructor raises RawTranscriptRefused, or FileFailed if
    there is no room for the present screen.
    """

    def __init__(
        self,
        session: PtySession,
        path: str,
        redactor: Redactor | None,
        *,
        version: Literal[2, 3] = 2,
        typed: bool = False,
    ) -> None:
        self.path = os.path.abspath(path)
        self.failure: FileFailed | None = None
        """Why the recording is incomplete."""
        self._session = session
        self._typed = typed
        self._hides = redactor is not None
        self._decoder = getincrementaldecoder("utf-8")("replace")
        header = Header(
            version=version,
            size=session.size,
            timestamp=int(time.time()),
            term=TERMINAL["TERM"],
            command=" ".join(session.program.argv),
        )
        self._recorder = AsciicastWriter(header, time.monotonic(), redactor)
        before = session.transcript.before(session.transcript.cursor)
        screen = draw_screen(session, redactor).decode()
        self._file = open_raw(self.path, lines=True)
        self._file.write(self._recorder.header())
        self._file.write(self._recorder.start_midway(before, screen, time.monotonic()))
        if self._file.failure is not None:
            self._file.discard()
            raise FileFailed("recording", self.path, self._file.failure)
        self._file.on_failure = self._failed
        self._decoder.decode(session.transcript.unfinished[1])  # the next read completes it
        session.output_taps.add(self._output)
        session.watchers.add(self._look)
        session.input_taps.add(self._input)
        session.label_listeners.add(self._marked)
        self._size = session.size
        self._stopped = False
        self._look()

    def stop(self) -> None:
        """Write the held text, and detach from the session. Stopping again does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self._session.output_taps.discard(self._output)
        self._session.watchers.discard(self._look)
        self._session.input_taps.discard(self._input)
        self._session.label_listeners.discard(self._marked)
        self._file.write(self._recorder.finish(time.monotonic()))
        self._file.close()

    def _failed(self, error: OSError) -> None:
        self.failure = FileFailed("recording", self.path, error)
        self._session.report_file_failure(self.failure)

    def _marked(self, label: str) -> None:
        self._file.write(self._recorder.marker(label, time.monotonic()))

    def _output(self, data: bytes) -> None:
        text = self._decoder.decode(data)
        self._file.write(self._recorder.output(text, time.monotonic()))

    def _input(self, data: bytes) -> None:
        if self._typed and not (self._hides and not self._session.pty.line_settings().echo):
            text = data.decode("utf-8", "replace")
            self._file.write(self._recorder.input(text, time.monotonic()))

    def _look(self) -> None:
        """Record a change of the size and the exit of the program."""
        if self._session.size != self._size:
            self._resized(self._session.size)
        if (ended := self._session.exit) is not None:
            code = ended.code if ended.code is not None else 128 + (ended.signal or 0)
            self._file.write(self._recorder.exit(code, time.monotonic()))
            self.stop()

    def _resized(self, size: Size) -> None:
        self._size = size
        self._file.write(self._recorder.resize(size, time.monotonic()))
