"""One sequence that a person's terminal sent, as what it tells: a key, the mouse, focus, a size.

Pure, and without memory: `events` cuts the stream into sequences, and asks here what each means.
None is "not understood". `CSI 1;5R` is one of these: with that, some terminals tell of F3 and all
of them of the cursor's place, and a program that asked for the place must get the bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, get_args

from telex.protocols.json_escapes import (
    Button,
    ColorScheme,
    FocusEvent,
    KeyEvent,
    Mod,
    MouseEvent,
    NotificationEvent,
    ResizeEvent,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Payload = KeyEvent | MouseEvent | FocusEvent | ResizeEvent | ColorScheme | NotificationEvent
Kind = Literal["press", "repeat", "release"]
Params = list[list[int | None]]
"""Between semicolons, and within these between colons. None where nothing was written."""

_MODS: Final[tuple[Mod, ...]] = get_args(Mod)
_KINDS: Final[Mapping[int | None, Kind]] = {1: "press", 2: "repeat", 3: "release", None: "press"}

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


def character(char: str, mods: tuple[Mod, ...] = ()) -> KeyEvent:
    """A key that typed a character. What a control character is typed with is told, not itself."""
    code = ord(char)
    if char == " " or not (code < 0x20 or code == 0x7F):
        return KeyEvent("space" if char == " " else char, "" if mods else char, mods)
    if char in "\t\r\x1b\x7f":
        return KeyEvent(_KITTY[code], mods=mods)
    held: tuple[Mod, ...] = (*mods, "ctrl")
    return KeyEvent("space" if not code else chr(code + 0x40).lower(), mods=held)


def ss3(final: str) -> KeyEvent | None:
    """`ESC O x`."""
    name = _SS3.get(final)
    return KeyEvent(name, _KP_TEXT.get(name, "")) if name else None


def csi(sequence: str, cell: tuple[int, int] | None = None) -> Payload | None:
    """`CSI … x`, without the `CSI`. With the size of a cell, the mouse tells pixels."""
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


def notice(body: str) -> NotificationEvent | None:
    """`OSC 99 ; …`, kitty's: what became of a notification that wanted this told."""
    about, _, said = body.partition(";")
    told = dict([part.partition("=")[::2] for part in about.split(":")])
    id, kind = told.pop("i", ""), told.pop("p", "")
    if told or not _ID.fullmatch(id):
        return None
    match kind, said:
        case "close", "" | "untracked":  # which says that no more will be heard of it
            return NotificationEvent(id, "closed")
        case "", "" | "0":
            return NotificationEvent(id, "activated")
        case "", _ if said.isdecimal() and len(said) < 4:
            return NotificationEvent(id, "activated", int(said))
    return None


def _params(text: str) -> Params | None:
    """None where something stands there that is no number."""
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
    """What a key types, where the terminal left it to us to know."""
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


def _mouse(params: Params, final: str, cell: tuple[int, int] | None) -> MouseEvent | None:
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
        return MouseEvent(max(y, 1), max(x, 1), button, kind, mods)
    row, col = max(y - 1, 0) // cell[1] + 1, max(x - 1, 0) // cell[0] + 1
    return MouseEvent(row, col, button, kind, mods, x, y)


def _mouse_kind(bits: int, final: str) -> Literal["press", "release", "move", "scroll"]:
    if bits & _WHEEL:
        return "scroll"
    if bits & _MOVED:
        return "move"
    return "release" if final == "m" else "press"


def _resize(params: Params) -> ResizeEvent | None:
    match params:
        case [[48], [int(rows)], [int(cols)]]:
            return ResizeEvent(rows, cols)
        case [[48], [int(rows)], [int(cols)], [int(height)], [int(width)]]:
            return ResizeEvent(rows, cols, width, height)
    return None
