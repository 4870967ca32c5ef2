"""What happened in a terminal, as asciicast: lines to append to a file, and a file read back.

Versions 2 and 3 of the format (docs.asciinema.org/manual/asciicast). They differ in the header, and
in how time is told: since the beginning in 2, since the line before in 3. Both leave the list of
event codes open and ask readers to pass over what they do not know, so the exit is an `x` in both,
though only 3 names it.

A `Recorder` hides secrets as a stream does, also one that comes in several reads. What it holds
back is written as soon as it is decided, with the time of that moment: a player never shows a
letter before the recorder knew that it could. Order is kept within the output, and within the
input; held output may come after a marker set meanwhile.

Nothing here touches a file or a clock. Text comes decoded, from `transcript`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from telex.terminal.cells import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from telex.redaction import Redactor

_SIZE: Final = re.compile(r"([0-9]{1,5})x([0-9]{1,5})")
_STATUS: Final = re.compile(r"-?[0-9]{1,10}")
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Header:
    """What a recording says of itself before anything happens."""

    version: Literal[2, 3]
    size: Size
    timestamp: int | None = None
    """When it began, in seconds since 1970."""
    term: str | None = None
    command: str | None = None
    title: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    idle_time_limit: float | None = None
    """No pause should be played longer than this, in seconds."""


@dataclass(frozen=True, slots=True)
class Output:
    """The program wrote this. All times are seconds since the beginning, whatever the version."""

    time: float
    text: str


@dataclass(frozen=True, slots=True)
class Input:
    """Somebody typed this."""

    time: float
    text: str


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal got another size."""

    time: float
    size: Size


@dataclass(frozen=True, slots=True)
class Marker:
    """A place to jump to, or to pause at."""

    time: float
    label: str


@dataclass(frozen=True, slots=True)
class Exited:
    """The program ended."""

    time: float
    code: int


Event = Output | Input | Resized | Marker | Exited


class NotARecording(ValueError):
    """Something else than asciicast 2 or 3. The text names the line."""


# Writing.


class Recorder:
    """One recording. Every method answers with the lines to append, often none.

    `now` and `started` are of one clock, any clock. Without a redactor everything is written as it
    is. One with `extra_regexes` cannot redact a stream: making the recorder raises then.
    """

    def __init__(self, header: Header, started: float, redactor: Redactor | None) -> None:
        self._header = header
        self._started = started
        self._last = 0  # microseconds since the beginning; whole ones, so that sums do not drift
        self._redactor = redactor
        self._output = redactor.stream() if redactor else None
        self._input = redactor.stream() if redactor else None

    def header(self) -> bytes:
        """The first line."""
        header = self._header
        told: dict[str, object] = {"version": header.version}
        env = dict(header.env)
        if header.version == 2:
            told |= {"width": header.size.cols, "height": header.size.rows}
            env |= {"TERM": header.term} if header.term is not None else {}
        else:
            term: dict[str, object] = {"cols": header.size.cols, "rows": header.size.rows}
            told["term"] = term | ({"type": header.term} if header.term is not None else {})
        for name in ("timestamp", "command", "title", "idle_time_limit"):
            if (value := getattr(header, name)) is not None:
                told[name] = self._clean(value) if isinstance(value, str) else value
        if env:
            told["env"] = {name: self._clean(value, name) for name, value in env.items()}
        return msgspec.json.encode(told) + b"\n"

    def go_on(self, before: str, drawn: str, now: float) -> bytes:
        """The program has been running: what it wrote before, of which nothing is recorded, and
        what draws the screen as it is, which has no secrets any more."""
        if self._output:
            self._output.follow(before)
        return self._text("o", drawn, now)

    def output(self, text: str, now: float) -> bytes:
        """The program wrote this."""
        return self._text("o", self._output.feed(text) if self._output else text, now)

    def input(self, text: str, now: float) -> bytes:
        """Somebody typed this. What the terminal did not echo should not be given here."""
        return self._text("i", self._input.feed(text) if self._input else text, now)

    def resize(self, size: Size, now: float) -> bytes:
        """The terminal got another size."""
        return self._line("r", f"{size.cols}x{size.rows}", now)

    def marker(self, label: str, now: float) -> bytes:
        """A place with a name."""
        return self._line("m", self._clean(label), now)

    def exit(self, code: int, now: float) -> bytes:
        """The program ended. Nothing comes after this."""
        return self.finish(now) + self._line("x", str(code), now)

    def finish(self, now: float) -> bytes:
        """The recording ends: what was held back. `exit` does this too."""
        typed = self._input.finish() if self._input else ""
        held = self._output.finish() if self._output else ""
        return self._text("i", typed, now) + self._text("o", held, now)

    def _clean(self, text: str, name: str = "") -> str:
        """A whole text without secrets. A name before it may be what gives one away."""
        label = name and f"{name}="
        return self._redactor.redact(label + text)[len(label) :] if self._redactor else text

    def _text(self, code: str, text: str, now: float) -> bytes:
        return self._line(code, text, now) if text else b""

    def _line(self, code: str, data: str, now: float) -> bytes:
        at = max(self._last, round((now - self._started) * _MICRO))
        told = at - self._last if self._header.version == 3 else at
        self._last = at
        # Written out, because some readers take no exponent.
        seconds = f"[{told // _MICRO}.{told % _MICRO:06}".encode()
        return b'%b,"%b",%b]\n' % (seconds, code.encode(), msgspec.json.encode(data))


# Reading.


@dataclass(frozen=True, slots=True)
class Recording:
    """A whole recording."""

    header: Header
    events: tuple[Event, ...]

    @property
    def duration(self) -> float:
        return self.events[-1].time if self.events else 0.0


def read(lines: Iterable[bytes]) -> Recording:
    """Read a recording as players do: comments, blank lines, unknown codes and fields are passed
    over, and so is a last line without its end, which is what a killed recorder leaves behind.
    """
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (1, b""))
    header = _header(first)
    events: list[Event] = []
    at = 0
    for number, line in numbered:
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            seconds, code, data = _parts(line)
            at = max(0, round(seconds * _MICRO)) + (at if header.version == 3 else 0)
            event = _event(at / _MICRO, code, data)
        except (msgspec.DecodeError, ValueError) as error:
            if not line.endswith(b"\n"):
                break
            raise NotARecording(f"line {number} is no event of a recording: {error}") from error
        if event is not None:
            events.append(event)
    return Recording(header, tuple(events))


def _parts(line: bytes) -> tuple[float, str, object]:
    match msgspec.json.decode(line):
        case [int() | float() as time, str(code), data, *_] if math.isfinite(time):
            return time, code, data
        case _:
            raise ValueError("it should be [time, code, data]")


def _event(time: float, code: str, data: object) -> Event | None:
    match code, data:
        case "o", str(text):
            return Output(time, text)
        case "i", str(text):
            return Input(time, text)
        case "r", str(size) if found := _SIZE.fullmatch(size):
            return Resized(time, Size(int(found[2]), int(found[1])))
        case "m", str(label):
            return Marker(time, label)
        case "x", str(status) if _STATUS.fullmatch(status):
            return Exited(time, int(status))
        case (("o" | "i" | "r" | "m" | "x"), _):
            raise ValueError(f"that is no data for an event of kind {code!r}")
        case _:
            return None


Count = Annotated[int, msgspec.Meta(ge=1)]


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
        told = msgspec.json.decode(line, type=_Header2 | _Header3)
    except msgspec.DecodeError as error:
        raise NotARecording(f"line 1 is no header of asciicast 2 or 3: {error}") from error
    env = {name: value for name, value in (told.env or {}).items() if value is not None}
    version: Literal[2, 3]
    if isinstance(told, _Header2):
        version, size, term = 2, Size(told.height, told.width), env.pop("TERM", None)
    else:
        version, size, term = 3, Size(told.term.rows, told.term.cols), told.term.type
    time = None if told.timestamp is None else int(told.timestamp)
    return Header(version, size, time, term, told.command, told.title, env, told.idle_time_limit)
