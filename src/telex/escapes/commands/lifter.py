"""Turns ANSI bytes into equivalent commands: the inverse of `lower`, by the same tables.

The lifter reads a program's output and returns commands, and returns as bytes every sequence
without an exact command. Nothing is lost: the items in order, with the commands lowered again, have
the same effect on a terminal as the original bytes. That holds in any state of the terminal,
because the lowered bytes either are the original ones, or begin with an ESC, which starts a new
sequence in every state. Sans-IO and without a clock: an incomplete sequence is held, and `flush`
releases it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from telex.escapes.commands import COMMANDS, LIFTS
from telex.escapes.commands.ansi import PARAMETERS, NotLifted, numbers
from telex.wire import limits
from telex.wire.escape import Ending, Kind, find_end


@dataclass(frozen=True, slots=True)
class Lifted:
    """A command that was found in the output."""

    name: str
    payload: msgspec.Struct

    @property
    def data(self) -> dict[str, Any]:
        """The payload as JSON values, without default members."""
        found: dict[str, Any] = msgspec.to_builtins(self.payload)
        return found


LifterOutput = Lifted | bytes

_TOKEN: Final = re.compile(
    rb"(?P<text>[\x20-\x7e\x80-\xff]+)"
    rb"|(?P<csi>\x1b\[(?P<prefix>[<-?]?)(?P<parameters>[0-9:;]*)(?P<final>[ -/]*[@-~]))"
    rb"|(?P<string>\x1b[\]PX^_])"
    rb"|(?P<escape>\x1b[ -/]*[0-Z\\`-~])"
    rb"|(?P<held>\x1b(?:[ -/]{0,8}|\[[\x00-\x17\x19\x1c-?]{0,256})\Z)"
    rb"|(?P<malformed>\x1b\[[\x00-\x17\x19\x1c-?]*[@-~]?)"
    rb"|(?P<control>[\x00-\x1f\x7f])",
    re.DOTALL,
)
_NOT_TEXT: Final = re.compile(r"([\x80-\x9f\udc80-\udcff]+)")
"""C1 controls, and bytes that are not UTF-8, as decoded by `surrogateescape`."""
_BEGUN: Final = re.compile(rb"(?:[\xc2-\xf4]|[\xe0-\xf4][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{2})\Z")
"""An incomplete character at the end."""
_MARGINS: Final = Lifted(
    "term:setmode", msgspec.convert({"mode": "margins"}, COMMANDS["term:setmode"].payload)
)


class Lifter:
    """Lifts one stream of output. Call `feed` with each read, and `flush` at its end."""

    def __init__(self) -> None:
        self._held = b""
        self._kind: Kind | None = None
        """The kind of the current control string, which decides about its end."""
        self._string = bytearray()
        """The bytes of an OSC from its ESC on. No other control string has a command."""

    def feed(self, data: bytes) -> list[LifterOutput]:
        """Lift these bytes. Never raises, whatever the bytes are."""
        data, self._held = self._held + data, b""
        found: list[LifterOutput] = []
        at = 0
        while at < len(data):
            if self._kind is None:
                at = self._outside(data, at, found)
            else:
                at = self._inside(self._kind, data, at, found)
        return list(_joined(found))

    def flush(self) -> list[LifterOutput]:
        """Return an incomplete sequence as bytes, and start anew."""
        released = bytes(self._string) + self._held
        self._held, self._kind, self._string = b"", None, bytearray()
        return [released] if released else []

    def _outside(self, data: bytes, at: int, found: list[LifterOutput]) -> int:
        token = _TOKEN.match(data, at)
        assert token is not None, "every byte begins some token"
        match token.lastgroup:
            case "text":
                return self._text(data, at, token.end(), found)
            case "csi":
                found += _csi(token, found)
            case "string":
                self._kind = Kind.OSC if token[0] == Kind.OSC.value else Kind.DCS
                self._keep(token[0], found)
            case "held":
                self._held = token[0]
            case "escape" | "control":
                found += _lift(token[0], [], token[0])
            case _:
                found.append(token[0])
        return token.end()

    def _text(self, data: bytes, at: int, end: int, found: list[LifterOutput]) -> int:
        if end == len(data) and (begun := _BEGUN.search(data, max(at, end - 3))):
            self._held = data[begun.start() :]
            end = begun.start()
        for n, part in enumerate(_NOT_TEXT.split(data[at:end].decode("utf-8", "surrogateescape"))):
            if n % 2:
                found.append(part.encode("utf-8", "surrogateescape"))
            elif part:
                found.append(_made("term:write", {"text": part}))
        return end + len(self._held)

    def _inside(self, kind: Kind, data: bytes, at: int, found: list[LifterOutput]) -> int:
        stop, after, ending = find_end(data, at, kind)
        self._keep(data[at:stop], found)
        if ending is Ending.OPEN:
            self._held = data[after:]
            return len(data)
        body, self._string, self._kind = bytes(self._string), bytearray(), None
        raw = body + data[stop:after]
        found += _osc(body, raw) if ending is Ending.COMPLETE and body else [raw]
        return after

    def _keep(self, part: bytes, found: list[LifterOutput]) -> None:
        """Keep an OSC up to the longest possible command. Return other strings as bytes."""
        released = self._kind is Kind.DCS or not (self._string or part == Kind.OSC.value)
        if released or len(self._string) + len(part) > limits.CONTROL_STRING_BYTES:
            found.append(bytes(self._string) + part)
            self._string = bytearray()
        else:
            self._string += part


def _csi(token: re.Match[bytes], before: list[LifterOutput]) -> list[LifterOutput]:
    parameters = token["parameters"].decode("ascii")
    if parameters.count(";") + parameters.count(":") >= PARAMETERS:
        return [token[0]]
    key = b"\x1b[" + token["prefix"] + token["final"]
    given = parameters.split(";")
    if key == b"\x1b[s" and given != [""] and before and before[-1] == _MARGINS:
        return _columns(given, token[0], before)
    return _lift(key, given, token[0])


def _columns(given: list[str], raw: bytes, before: list[LifterOutput]) -> list[LifterOutput]:
    """Lift `CSI s` right after the mode that makes it set margins; elsewhere its meaning is
    unknown.
    """
    try:
        left, right = numbers(given, 1, 0)
        made = _made("term:scrollregion", {"left": max(left, 1), "right": right or None})
    except (NotLifted, msgspec.ValidationError):
        return [raw]
    before.pop()
    return [made]


def _osc(begun: bytes, raw: bytes) -> list[LifterOutput]:
    number, semicolon, rest = begun.partition(b";")
    try:
        return _lift(number + semicolon, [rest.decode("utf-8")] if semicolon else [], raw)
    except UnicodeDecodeError:
        return [raw]


def _lift(key: bytes, parameters: list[str], raw: bytes) -> list[LifterOutput]:
    lift = LIFTS.get(key)
    if lift is None:
        return [raw]
    try:
        return [_made(name, data) for name, data in lift(parameters)]
    except (NotLifted, msgspec.ValidationError):
        return [raw]


def _made(name: str, data: object) -> Lifted:
    return Lifted(name, msgspec.convert(data, COMMANDS[name].payload))


def _joined(found: list[LifterOutput]) -> Iterator[LifterOutput]:
    """Join neighbouring bytes, and drop empty ones."""
    waiting: list[bytes] = []
    for one in found:
        if isinstance(one, bytes):
            waiting.append(one)
            continue
        if any(waiting):
            yield b"".join(waiting)
        waiting = []
        yield one
    if any(waiting):
        yield b"".join(waiting)
