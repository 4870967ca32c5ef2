"""Parses the input of a terminal into events: keys, the mouse, pastes, focus, size, colours.

Input is bytes and the time; output is events, each with its bytes. Unknown bytes are returned as
bytes, so the output has all bytes of the input, wherever the reads were cut. `CSI 1;5R` is not
decoded: some terminals send it for F3, and all of them for the position of the cursor, and a
program that asked for the position must get the bytes.

The clock is needed because a lone ESC is a key or the beginning of a sequence, and counts as a key
after 25 ms: `deadline` is the time for the next `feed`, without bytes. Pure. Used by `passthrough`
and in sessions, for subscribed events and for the keys that answer a question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast, get_args

import msgspec

from telex.escapes import limits
from telex.escapes.commands.core import (
    Button,
    ColorScheme,
    FocusEvent,
    KeyEvent,
    Mod,
    MouseInput,
    NotificationEvent,
    PasteEvent,
    TerminalResizeEvent,
)
from telex.rpc.messages import Notification
from telex.terminal.keys import PASTE_BEGINS, PASTE_ENDS
from telex.wire import json_escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


SequencePayload = (
    KeyEvent | MouseInput | FocusEvent | TerminalResizeEvent | ColorScheme | NotificationEvent
)
KeyKind = Literal["press", "repeat", "release"]
Params = list[list[int | None]]
"""The numbers between semicolons, and within these between colons; None where one is missing."""

_MODS: Final[tuple[Mod, ...]] = get_args(Mod)
_KINDS: Final[Mapping[int | None, KeyKind]] = {1: "press", 2: "repeat", 3: "release", None: "press"}

_FINAL: Final = {
    "A": "up", "B": "down", "C": "right", "D": "left", "E": "kp_begin", "F": "end", "H": "home",
    "P": "f1", "Q": "f2", "S": "f4",
}  # fmt: skip
_TILDE: Final = {
    1: "home", 2: "insert", 3: "delete", 4: "end", 5: "page_up", 6: "page_down", 7: "home",
    8: "end", 11: "f1", 12: "f2", 13: "f3", 14: "f4", 15: "f5", 17: "f6", 18: "f7", 19: "f8",
    20: "f9", 21: "f10", 23: "f11", 24: "f12", 25: "f13", 26: "f14", 28: "f15", 29: "menu",
    31: "f17", 32: "f18", 33: "f19", 34: "f20", 57427: "kp_begin",
}  # fmt: skip
_SS3: Final = {
    **_FINAL, "R": "f3", "M": "kp_enter", "X": "kp_equal", "j": "kp_multiply", "k": "kp_add",
    "l": "kp_separator", "m": "kp_subtract", "n": "kp_decimal", "o": "kp_divide",
    **{chr(ord("p") + digit): f"kp_{digit}" for digit in range(10)},
}  # fmt: skip
_KP_TEXT: Final = {
    "kp_equal": "=", "kp_multiply": "*", "kp_add": "+", "kp_separator": ",", "kp_subtract": "-",
    "kp_decimal": ".", "kp_divide": "/", **{f"kp_{digit}": str(digit) for digit in range(10)},
}  # fmt: skip
_KITTY: Final = {
    9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace",
    **dict(enumerate((
        "caps_lock", "scroll_lock", "num_lock", "print_screen", "pause", "menu",
    ), 57358)),
    **{57376 + n: f"f{13 + n}" for n in range(23)},
    **{57399 + n: f"kp_{n}" for n in range(10)},
    **dict(enumerate((
        "kp_decimal", "kp_divide", "kp_multiply", "kp_subtract", "kp_add", "kp_enter", "kp_equal",
        "kp_separator", "kp_left", "kp_right", "kp_up", "kp_down", "kp_page_up", "kp_page_down",
        "kp_home", "kp_end", "kp_insert", "kp_delete", "kp_begin", "media_play", "media_pause",
        "media_play_pause", "media_reverse", "media_stop", "media_fast_forward", "media_rewind",
        "media_track_next", "media_track_previous", "media_record", "lower_volume", "raise_volume",
        "mute_volume", "left_shift", "left_control", "left_alt", "left_super", "left_hyper",
        "left_meta", "right_shift", "right_control", "right_alt", "right_super", "right_hyper",
        "right_meta", "iso_level3_shift", "iso_level5_shift",
    ), 57409)),
}  # fmt: skip
"""Numbers of kitty's keyboard protocol that are not the key's own character."""

_BUTTONS: Final[dict[int, Button]] = {
    0: "left", 1: "middle", 2: "right", 3: "none", 64: "wheelup", 65: "wheeldown",
    66: "wheelleft", 67: "wheelright", 128: "back", 129: "forward", 130: "button10",
    131: "button11",
}  # fmt: skip
_SHIFT, _ALT, _CTRL, _MOVED, _WHEEL = 4, 8, 16, 32, 64


_ID: Final = re.compile(r"[A-Za-z0-9_.+-]{1,64}")


def decode_character(char: str, mods: tuple[Mod, ...] = ()) -> KeyEvent:
    """Return the key of a character; for a control character, the key with ctrl."""
    code = ord(char)
    if char == " " or not (code < 0x20 or code == 0x7F):
        return KeyEvent("space" if char == " " else char, "" if mods else char, mods)
    if char in "\t\r\x1b\x7f":
        return KeyEvent(_KITTY[code], mods=mods)
    held: tuple[Mod, ...] = (*mods, "ctrl")
    return KeyEvent("space" if not code else chr(code + 0x40).lower(), mods=held)


def decode_ss3(final: str) -> KeyEvent | None:
    """Decode `ESC O x`."""
    name = _SS3.get(final)
    return KeyEvent(name, _KP_TEXT.get(name, "")) if name else None


def decode_csi(sequence: str, cell: tuple[int, int] | None = None) -> SequencePayload | None:
    """Decode `CSI … x`, without the `CSI`. With the size of a cell, mouse reports are in pixels."""
    final, mark = sequence[-1], sequence[0] if sequence[0] in "<=>?" else ""
    params = _params(sequence[len(mark) : -1])
    if params is None:
        return None
    match mark, final:
        case "", "I" | "O" if len(sequence) == 1:
            return FocusEvent(final == "I")
        case "", "u":
            return _kitty(params)
        case "", "~":
            return _tilde(params)
        case "", "Z" if len(sequence) == 1:
            return KeyEvent("tab", mods=("shift",))
        case "", _ if final in _FINAL and _number(params, 0) in (None, 1):
            return _key(_FINAL[final], params)
        case "<", "M" | "m":
            return _mouse(params, final, cell)
        case "", "t" if _number(params, 0) == 48:
            return _resize(params)
        case "?", "n" if params in ([[997], [1]], [[997], [2]]):
            return ColorScheme(dark=params[1] == [1])
    return None


def decode_notice(body: str) -> NotificationEvent | None:
    """Decode kitty's `OSC 99 ; …`: the report that a notification was activated or closed."""
    about, _, value = body.partition(";")
    members = dict([part.partition("=")[::2] for part in about.split(":")])
    id, kind = members.pop("i", ""), members.pop("p", "")
    if members or not _ID.fullmatch(id):
        return None
    match kind, value:
        case "close", "" | "untracked":  # no further report will come
            return NotificationEvent(id, "closed")
        case "", "" | "0":
            return NotificationEvent(id, "activated")
        case "", _ if value.isdecimal() and len(value) < 4:
            return NotificationEvent(id, "activated", int(value))
    return None


def _params(text: str) -> Params | None:
    """Parse parameters; None if one of them is not a number."""
    groups = [group.split(":") for group in text.split(";")]
    numbers = [number for group in groups for number in group]
    if any(number and not (number.isdecimal() and len(number) < 10) for number in numbers):
        return None
    return [[int(number) if number else None for number in group] for group in groups]


def _number(params: Params, group: int, part: int = 0) -> int | None:
    return params[group][part] if group < len(params) and part < len(params[group]) else None


def _held(number: int | None) -> tuple[Mod, ...]:
    bits = (number or 1) - 1
    return tuple([mod for bit, mod in enumerate(_MODS) if bits >> bit & 1])


def _key(name: str, params: Params) -> KeyEvent | None:
    kind = _KINDS.get(_number(params, 1, 1))
    if kind is None or len(params) > 2:
        return None
    return KeyEvent(name, _KP_TEXT.get(name, ""), _held(_number(params, 1)), kind)


def _tilde(params: Params) -> KeyEvent | None:
    match params:
        case [[27], [held], [int(code)]] if char := _char(code):  # xterm's modifyOtherKeys
            return KeyEvent(_KITTY.get(code, char), mods=_held(held), code=code)
        case [[int(code)], *_] if code in _TILDE:
            return _key(_TILDE[code], params)
    return None


def _kitty(params: Params) -> KeyEvent | None:
    code, kind = _number(params, 0), _KINDS.get(_number(params, 1, 1))
    text = "".join([_char(one) for one in params[2]]) if len(params) == 3 else ""
    if code is None or kind is None or len(params) > 3 or not _char(code):
        return None
    name = _KITTY.get(code) or _char(code)
    shifted, base = _char(_number(params, 0, 1)), _char(_number(params, 0, 2))
    held = _held(_number(params, 1))
    if not text and kind != "release" and not {*held} - {"shift", "caps", "num"}:
        text = _typed(name, shifted, held)
    return KeyEvent(name, text, held, kind, code, shifted or None, base or None)


def _typed(name: str, shifted: str, held: tuple[Mod, ...]) -> str:
    """Return the text of a key for which the terminal reported none."""
    if name == "space":
        return " "
    if len(name) > 1:
        return _KP_TEXT.get(name, "")
    if ("shift" in held) == ("caps" in held):
        return name
    return shifted or name.upper()


def _char(code: int | None) -> str:
    valid = code is not None and 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if valid and code is not None else ""


def _mouse(params: Params, final: str, cell: tuple[int, int] | None) -> MouseInput | None:
    match params:
        case [[int(bits)], [int(x)], [int(y)]]:
            button = _BUTTONS.get(bits & ~(_SHIFT | _ALT | _CTRL | _MOVED))
        case _:
            return None
    if button is None:
        return None
    held: tuple[tuple[int, Mod], ...] = ((_SHIFT, "shift"), (_ALT, "alt"), (_CTRL, "ctrl"))
    mods = tuple([mod for bit, mod in held if bits & bit])
    kind = _mouse_kind(bits, final)
    if cell is None:
        return MouseInput(max(y, 1), max(x, 1), button, kind, mods)
    row, col = max(y - 1, 0) // cell[1] + 1, max(x - 1, 0) // cell[0] + 1
    return MouseInput(row, col, button, kind, mods, x, y)


def _mouse_kind(bits: int, final: str) -> Literal["press", "release", "move", "scroll"]:
    if bits & _WHEEL:
        return "scroll"
    if bits & _MOVED:
        return "move"
    return "release" if final == "m" else "press"


def _resize(params: Params) -> TerminalResizeEvent | None:
    match params:
        case [[48], [int(rows)], [int(cols)]]:
            return TerminalResizeEvent(rows, cols)
        case [[48], [int(rows)], [int(cols)], [int(height)], [int(width)]]:
            return TerminalResizeEvent(rows, cols, width, height)
    return None


LONE_ESCAPE_SECONDS: Final = 0.025
"""Longer than a terminal needs for the rest of a key, and shorter than a person notices."""
UNFINISHED_SECONDS: Final = 1.0
"""How long to wait on a slow line for the rest of a longer sequence or a paste, which no person
types by hand."""

T = TypeVar("T")
InputPayload = SequencePayload | PasteEvent

EVENT_NAMES: Final[dict[type[InputPayload], str]] = {
    KeyEvent: "event:key",
    MouseInput: "event:mouse",
    PasteEvent: "event:paste",
    FocusEvent: "event:focus",
    TerminalResizeEvent: "event:resize",
    ColorScheme: "event:colorscheme",
    NotificationEvent: "event:notification",
}
MOUSE_CLICK: Final = "event:mouseclick"
"""The spec's own name for the press of a button, for programs without `event:mouse`."""

_CAUSES: Final[dict[type[InputPayload], frozenset[int]]] = {
    MouseInput: frozenset({9, 1000, 1002, 1003}),
    FocusEvent: frozenset({1004}),
    PasteEvent: frozenset({2004}),
    TerminalResizeEvent: frozenset({2048}),
    ColorScheme: frozenset({2031}),
}
"""Private modes; a terminal sends the event only if one of them is set."""


@dataclass(frozen=True, slots=True)
class ParsedInput:
    """An event, and its bytes."""

    payload: InputPayload
    raw: bytes


_ESC: Final = 0x1B
_UTF8: Final = (
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
_BODY: Final = rb"[ -?]{0,%d}+" % (limits.TYPED_SEQUENCE_BYTES - 3)
_NOTICE: Final = rb"[ -~]{0,%d}+" % limits.TYPED_SEQUENCE_BYTES
"""The rest of a report about a notification, after the number 99. It is short, so that it can be
held until its end; a longer one is an ordinary string."""
_TOKEN: Final = re.compile(
    rb"(?P<keys>[\x00-\x1a\x1c-\x7f]+)"
    rb"|(?P<char>" + _UTF8 + rb")"
    rb"|(?P<csi>\x1b\[(?!M)" + _BODY + rb"[@-~])"
    rb"|(?P<ss3>\x1bO[!-~])"
    rb"|(?P<notice>\x1b\]99;" + _NOTICE + rb"(?:\x07|\x1b\\))"
    # The beginning of a reply, not a key with alt.
    rb"|(?P<string>\x1b(?:\](?!9(?:9(?:;" + _NOTICE + rb"\x1b?)?)?\Z)[0-9]|P[01>!]|_[A-Z]))"
    rb"|(?P<alt>\x1b(?:[\x00-\x1a\x1c-NQ-Z\\^`-\x7f]|" + _UTF8 + rb"|\[(?=[^ -~])|O(?=[^!-~])"
    rb"|\](?=[^0-9])|P(?=[^01>!])|_(?=[^A-Z])))"
    rb"|(?P<escape>\x1b(?=\x1b))"
    # A mouse report of X10, in any three bytes; and a sequence that breaks off.
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
    [ParsedInput(decode_character(chr(code)), bytes([code])) for code in range(0x80)]
)
"""The event of each byte, made once, since there may be many."""


class InputParser:
    """Parses the input of one terminal. Call `feed` with each read, and at `deadline`."""

    def __init__(self) -> None:
        self.cell: tuple[int, int] | None = None
        """The width and height of a cell, if mouse reports are in pixels (mode 1016)."""
        self.deadline: float | None = None
        """When to feed no bytes, to get held input."""
        self._held = b""
        self._string = False
        """Whether the input is within a reply, such as an OSC, whose bytes are not keys."""
        self._paste: bytearray | None = None
        self._opened = b""
        """The bytes of a paste before its text, for its first event."""

    def feed(self, data: bytes, now: float) -> list[ParsedInput | bytes]:
        """Parse input. Return events, and unknown bytes as bytes."""
        found: list[ParsedInput | bytes] = []
        if self.deadline is not None and now >= self.deadline:
            self._release(found)
        if data:
            self._read(self._held + data, found)
            self.deadline = self._next_deadline(now)
        return _joined(found)

    def _next_deadline(self, now: float) -> float | None:
        if self._string or self._paste is not None or len(self._held) > 2:
            return now + UNFINISHED_SECONDS
        return now + LONE_ESCAPE_SECONDS if self._held else None

    def _release(self, found: list[ParsedInput | bytes]) -> None:
        """Return held input at the deadline: a lone ESC was a key, and ESC with a byte one with
        alt.
        """
        held, string = self._held, self._string
        self._held, self._string, self.deadline = b"", False, None
        if self._paste is not None:
            held, self._paste = self._opened + bytes(self._paste), None
        if string or not held:
            found.append(held)
        elif held == b"\x1b":
            found.append(_KEYS[_ESC])
        elif len(held) == 2 and held.isascii():
            found.append(ParsedInput(decode_character(chr(held[1]), ("alt",)), held))
        else:
            found.append(held)

    def _read(self, data: bytes, found: list[ParsedInput | bytes]) -> None:
        """Parse all input, and hold an incomplete sequence at its end."""
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

    def _take(self, kind: str, raw: bytes, found: list[ParsedInput | bytes]) -> None:
        payload: InputPayload | None = None
        match kind:
            case "keys":
                found += [_KEYS[byte] for byte in raw]
                return
            case "csi" if raw == PASTE_BEGINS:
                self._paste, self._opened = bytearray(), raw
                return
            case "csi":
                payload = decode_csi(raw[2:].decode("ascii"), self.cell)
            case "ss3":
                payload = decode_ss3(chr(raw[2]))
            case "char":
                payload = decode_character(raw.decode("utf-8"))
            case "alt":
                payload = decode_character(raw[1:].decode("utf-8"), ("alt",))
            case "escape":
                payload = _KEYS[_ESC].payload
            case "notice":
                payload = decode_notice(raw[5:].rstrip(b"\x07\x1b\\").decode("ascii"))
            case "string":
                self._string = True
        found.append(raw if payload is None else ParsedInput(payload, raw))

    def _read_string(self, data: bytes, at: int, found: list[ParsedInput | bytes]) -> int:
        body = _STRING.match(data, at)
        assert body is not None  # it also matches the empty string
        end = body.end()
        if body[1] is not None:
            self._string = False
            end -= body[1] == b"\x1b"  # this ESC begins the next sequence
        elif body[0].endswith(b"\x1b"):
            end -= 1
            self._held = b"\x1b"
        found.append(data[at:end])
        return end + len(self._held)

    def _read_paste(self, data: bytes, at: int, found: list[ParsedInput | bytes]) -> int:
        """Read a paste up to its end, or all input. A long paste becomes several events."""
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
            self._add_paste(paste, _cut(paste, limits.PASTED_BYTES), b"", found)
        if whole:
            self._add_paste(paste, len(paste), PASTE_ENDS, found)
            self._paste = None
        return at + used

    def _add_paste(
        self, paste: bytearray, size: int, after: bytes, found: list[ParsedInput | bytes]
    ) -> None:
        text = bytes(paste[:size])
        del paste[:size]
        found.append(
            ParsedInput(PasteEvent(text.decode("utf-8", "replace")), self._opened + text + after)
        )
        self._opened = b""


def _cut(paste: bytearray, size: int) -> int:
    """Return the size, or a little less, so that no character is cut."""
    end = size
    while end > size - 4 and paste[end] & 0xC0 == 0x80:
        end -= 1
    return end if end > size - 4 else size


def _joined(parts: Iterable[T | bytes]) -> list[T | bytes]:
    """Join neighbouring bytes, and drop empty ones."""
    joined: list[T | bytes] = []
    for kind, group in groupby(parts, key=type):
        if kind is bytes:
            joined += filter(None, [b"".join(cast("Iterable[bytes]", group))])
        else:
            joined += group
    return joined


# For subscribers.


def to_notifications(
    events: Iterable[ParsedInput | bytes],
    subscribed: frozenset[str],
    own: frozenset[int] | None = None,
    room: int = limits.SENT_CONTROL_STRING_BYTES,
) -> list[Notification | bytes]:
    """Replace subscribed events by notifications, and other events by their bytes.

    Args:
        events: The parsed input.
        subscribed: The events to which the program is subscribed.
        own: The modes that the program has set itself. Bytes that the terminal only sends because
            of our modes are dropped. None drops nothing.
        room: The bytes of a frame. A longer paste becomes several notifications.
    """
    result: list[Notification | bytes] = []
    for event in events:
        if isinstance(event, bytes):
            result.append(event)
        elif name := _name(event.payload, subscribed):
            result += [Notification(name, payload) for payload in _fitting(event.payload, room)]
        elif own is None or not (causes := _CAUSES.get(type(event.payload))) or causes & own:
            result.append(event.raw)
    return _joined(result)


def _name(payload: InputPayload, subscribed: frozenset[str]) -> str | None:
    name = EVENT_NAMES[type(payload)]
    if name in subscribed:
        return name
    clicked = isinstance(payload, MouseInput) and payload.kind == "press"
    return MOUSE_CLICK if clicked and MOUSE_CLICK in subscribed else None


_BESIDE: Final = 96
"""The bytes of a frame with a paste, without its text."""


def _fitting(payload: InputPayload, room: int) -> Iterator[InputPayload]:
    if not isinstance(payload, PasteEvent):
        yield payload
        return
    text, most = payload.text, max((room - _BESIDE) // 12, 1)
    if not text:
        yield payload
    while text:
        # A character takes at most twelve bytes when it is escaped; mostly it takes one.
        size = most
        while size < len(text) and _escaped_bytes(text[: size * 2]) <= room - _BESIDE:
            size *= 2
        yield PasteEvent(text[:size])
        text = text[size:]


def _escaped_bytes(text: str) -> int:
    return len(json_escape.encode(msgspec.json.encode(text)))
