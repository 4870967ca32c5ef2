"""What a person's terminal sends, as events: keys, the mouse, pastes, focus, its size and colours.

Bytes and the time go in, events come out, each with the bytes it was made of. What is not
understood comes out as bytes, so nothing is ever lost: the bytes of all that comes out are the
bytes that went in, and where they were cut makes no difference.

Only a lone ESC needs the clock. It is a key, or the beginning of one, and after 25 ms it was a key:
`deadline` says when to look again, with no bytes. Pure; what a sequence means is in `decoding`.
Used by `host` for what a program subscribed to, and for its question's keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar, cast

import msgspec

from telex.escapes import decoding
from telex.protocols.json_escapes import (
    ColorScheme,
    FocusEvent,
    KeyEvent,
    MouseEvent,
    NotificationEvent,
    PasteEvent,
    ResizeEvent,
)
from telex.rpc.messages import Notification
from telex.terminal.keys import PASTE_BEGINS, PASTE_ENDS
from telex.wire import json_escape, limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONE_ESCAPE_SECONDS: Final = 0.025
"""As long a terminal needs for the rest of a key at the most, and less than a person notices."""
UNFINISHED_SECONDS: Final = 1.0
"""For what nobody types by hand: the rest of a longer sequence, or of a paste, on a slow line."""

T = TypeVar("T")
Payload = decoding.Payload | PasteEvent

NAMES: Final[dict[type[Payload], str]] = {
    KeyEvent: "event:key",
    MouseEvent: "event:mouse",
    PasteEvent: "event:paste",
    FocusEvent: "event:focus",
    ResizeEvent: "event:resize",
    ColorScheme: "event:colorscheme",
    NotificationEvent: "event:notification",
}
CLICK: Final = "event:mouseclick"
"""The spec's own name for the press of a button; for whoever did not subscribe to `event:mouse`."""

_CAUSES: Final[dict[type[Payload], frozenset[int]]] = {
    MouseEvent: frozenset({9, 1000, 1002, 1003}),
    FocusEvent: frozenset({1004}),
    PasteEvent: frozenset({2004}),
    ResizeEvent: frozenset({2048}),
    ColorScheme: frozenset({2031}),
}
"""Private modes without which a terminal does not tell of it."""


@dataclass(frozen=True, slots=True)
class Happened:
    """An event, and the bytes that told of it."""

    payload: Payload
    raw: bytes


_ESC: Final = 0x1B
_UTF8: Final = (
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
_BODY: Final = rb"[ -?]{0,%d}+" % (limits.TYPED_SEQUENCE_BYTES - 3)
_NOTICE: Final = rb"[ -~]{0,%d}+" % limits.TYPED_SEQUENCE_BYTES
"""What follows the number 99, of what a terminal tells of a notification. Short, so that it can
wait for its end; what is longer is any string."""
_TOKEN: Final = re.compile(
    rb"(?P<keys>[\x00-\x1a\x1c-\x7f]+)"
    rb"|(?P<char>" + _UTF8 + rb")"
    rb"|(?P<csi>\x1b\[(?!M)" + _BODY + rb"[@-~])"
    rb"|(?P<ss3>\x1bO[!-~])"
    rb"|(?P<notice>\x1b\]99;" + _NOTICE + rb"(?:\x07|\x1b\\))"
    # An answer, and no key held with alt.
    rb"|(?P<string>\x1b(?:\](?!9(?:9(?:;" + _NOTICE + rb"\x1b?)?)?\Z)[0-9]|P[01>!]|_[A-Z]))"
    rb"|(?P<alt>\x1b(?:[\x00-\x1a\x1c-NQ-Z\\^`-\x7f]|" + _UTF8 + rb"|\[(?=[^ -~])|O(?=[^!-~])"
    rb"|\](?=[^0-9])|P(?=[^01>!])|_(?=[^A-Z])))"
    rb"|(?P<escape>\x1b(?=\x1b))"
    # The first way to tell of the mouse, in three bytes of anything; and what breaks off.
    rb"|(?P<unknown>\x1b\[M(?:[ -\xff]{3}|(?=[ -\xff]{0,2}[\x00-\x1f]))"
    rb"|\x1b\[" + _BODY + rb"(?=[^@-~]))",
    re.DOTALL,
)
_UNFINISHED: Final = re.compile(
    rb"\x1b(?:\[(?:" + _BODY + rb"|M[ -\xff]{0,2})|[O\]P_]|[\xc2-\xf4][\x80-\xbf]{0,2}"
    rb"|\]9(?:9(?:;" + _NOTICE + rb"\x1b?)?)?)?"
    rb"|[\xc2-\xf4][\x80-\xbf]{0,2}"
)
_STRING: Final = re.compile(rb"[^\x07\x18\x1a\x1b]*(?:(\x07|\x18|\x1a|\x1b\\|\x1b(?=[^\\]))|\x1b?)")

_KEYS: Final = tuple(
    [Happened(decoding.character(chr(code)), bytes([code])) for code in range(0x80)]
)
"""For what each byte types: made once, as there may be many."""


class Typed:
    """The stream of one terminal."""

    def __init__(self) -> None:
        self.cell: tuple[int, int] | None = None
        """The width and height of a cell, while the mouse is told of in pixels (mode 1016)."""
        self.deadline: float | None = None
        """When to feed nothing, to learn what was held back."""
        self._held = b""
        self._string = False
        """Within an answer, such as an OSC: none of it is a key."""
        self._paste: bytearray | None = None
        self._opened = b""
        """What the first event of a paste has before its text."""

    def feed(self, data: bytes, now: float) -> list[Happened | bytes]:
        """What happened; what is not understood, as bytes."""
        found: list[Happened | bytes] = []
        if self.deadline is not None and now >= self.deadline:
            self._give_up(found)
        if data:
            self._read(self._held + data, found)
            self.deadline = self._next_look(now)
        return _joined(found)

    def _next_look(self, now: float) -> float | None:
        if self._string or self._paste is not None or len(self._held) > 2:
            return now + UNFINISHED_SECONDS
        return now + LONE_ESCAPE_SECONDS if self._held else None

    def _give_up(self, found: list[Happened | bytes]) -> None:
        """It will not be finished: a lone ESC was a key, and so was one with alt."""
        held, string = self._held, self._string
        self._held, self._string, self.deadline = b"", False, None
        if self._paste is not None:
            held, self._paste = self._opened + bytes(self._paste), None
        if string or not held:
            found.append(held)
        elif held == b"\x1b":
            found.append(_KEYS[_ESC])
        elif len(held) == 2 and held.isascii():
            found.append(Happened(decoding.character(chr(held[1]), ("alt",)), held))
        else:
            found.append(held)

    def _read(self, data: bytes, found: list[Happened | bytes]) -> None:
        """All of it, but for what may go on: that is held."""
        at, size, self._held = 0, len(data), b""
        while at < size:
            if self._paste is not None:
                at = self._read_paste(data, at, found)
            elif self._string:
                at = self._read_string(data, at, found)
            elif token := _TOKEN.match(data, at):
                at = token.end()
                self._take(str(token.lastgroup), token[0], found)
            elif _UNFINISHED.fullmatch(data, at):
                self._held = data[at:]
                return
            else:
                found.append(data[at : at + 1])
                at += 1

    def _take(self, kind: str, raw: bytes, found: list[Happened | bytes]) -> None:
        payload: Payload | None = None
        match kind:
            case "keys":
                found += [_KEYS[byte] for byte in raw]
                return
            case "csi" if raw == PASTE_BEGINS:
                self._paste, self._opened = bytearray(), raw
                return
            case "csi":
                payload = decoding.csi(raw[2:].decode("ascii"), self.cell)
            case "ss3":
                payload = decoding.ss3(chr(raw[2]))
            case "char":
                payload = decoding.character(raw.decode("utf-8"))
            case "alt":
                payload = decoding.character(raw[1:].decode("utf-8"), ("alt",))
            case "escape":
                payload = _KEYS[_ESC].payload
            case "notice":
                payload = decoding.notice(raw[5:].rstrip(b"\x07\x1b\\").decode("ascii"))
            case "string":
                self._string = True
        found.append(raw if payload is None else Happened(payload, raw))

    def _read_string(self, data: bytes, at: int, found: list[Happened | bytes]) -> int:
        body = _STRING.match(data, at)
        assert body is not None  # it matches nothing, too
        end = body.end()
        if body[1] is not None:
            self._string = False
            end -= body[1] == b"\x1b"  # which begins what follows
        elif body[0].endswith(b"\x1b"):
            end -= 1
            self._held = b"\x1b"
        found.append(data[at:end])
        return end + len(self._held)

    def _read_paste(self, data: bytes, at: int, found: list[Happened | bytes]) -> int:
        """Up to its end, or all; told in pieces where it is long."""
        paste = self._paste
        assert paste is not None
        searched = max(len(paste) - len(PASTE_ENDS), 0)
        before = len(paste)
        paste += data[at:]
        end = paste.find(PASTE_ENDS, searched)
        whole = end >= 0
        used = len(data) - at
        if whole:
            used = end + len(PASTE_ENDS) - before
            del paste[end:]
        while len(paste) > limits.PASTED_BYTES + (0 if whole else len(PASTE_ENDS)):
            self._tell_paste(paste, _cut(paste, limits.PASTED_BYTES), b"", found)
        if whole:
            self._tell_paste(paste, len(paste), PASTE_ENDS, found)
            self._paste = None
        return at + used

    def _tell_paste(
        self, paste: bytearray, size: int, after: bytes, found: list[Happened | bytes]
    ) -> None:
        text = bytes(paste[:size])
        del paste[:size]
        found.append(
            Happened(PasteEvent(text.decode("utf-8", "replace")), self._opened + text + after)
        )
        self._opened = b""


def _cut(paste: bytearray, size: int) -> int:
    """The size, or a little less, so that no character is cut."""
    end = size
    while end > size - 4 and paste[end] & 0xC0 == 0x80:
        end -= 1
    return end if end > size - 4 else size


def _joined(parts: Iterable[T | bytes]) -> list[T | bytes]:
    """With bytes that stand next to each other in one."""
    joined: list[T | bytes] = []
    for kind, group in groupby(parts, key=type):
        if kind is bytes:
            joined += filter(None, [b"".join(cast("Iterable[bytes]", group))])
        else:
            joined += group
    return joined


# For those who subscribed.


def translate(
    events: Iterable[Happened | bytes],
    subscribed: frozenset[str],
    own: frozenset[int] | None = None,
    room: int = limits.SENT_CONTROL_STRING_BYTES,
) -> list[Notification | bytes]:
    """What the program gets: a notification in place of what it subscribed to, the bytes of the
    rest. With the modes that it has set itself, no bytes that come only because of ours.

    A paste too long for a frame (`room`, in bytes) is told in several.
    """
    told: list[Notification | bytes] = []
    for event in events:
        if isinstance(event, bytes):
            told.append(event)
        elif name := _name(event.payload, subscribed):
            told += [Notification(name, payload) for payload in _fitting(event.payload, room)]
        elif own is None or not (causes := _CAUSES.get(type(event.payload))) or causes & own:
            told.append(event.raw)
    return _joined(told)


def _name(payload: Payload, subscribed: frozenset[str]) -> str | None:
    name = NAMES[type(payload)]
    if name in subscribed:
        return name
    clicked = isinstance(payload, MouseEvent) and payload.kind == "press"
    return CLICK if clicked and CLICK in subscribed else None


_BESIDE: Final = 96
"""Bytes of a frame with a paste, beside its text."""


def _fitting(payload: Payload, room: int) -> Iterator[Payload]:
    if not isinstance(payload, PasteEvent):
        yield payload
        return
    text, most = payload.text, max((room - _BESIDE) // 12, 1)
    if not text:
        yield payload
    while text:
        # Twelve bytes are the most that a character can take, spelt out; mostly it takes one.
        size = most
        while size < len(text) and _spelt(text[: size * 2]) <= room - _BESIDE:
            size *= 2
        yield PasteEvent(text[:size])
        text = text[size:]


def _spelt(text: str) -> int:
    return len(json_escape.encode(msgspec.json.encode(text)))
