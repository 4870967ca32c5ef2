"""Encoding of keys and mouse events as bytes, by the modes of the program, with the library.

Like `emulator`, this module makes no decisions about input. An encoder is created for each call (2
us) and freed after it, so it holds no state that could be shared or become stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from telex.terminal.emulator import cell_pixels
from telex.terminal.keys import NAMED, KeyPress
from telex.terminal.libghostty import check, ffi, lib, sized

if TYPE_CHECKING:
    from telex.terminal.actions import MouseEvent
    from telex.terminal.cells import Size

_SHIFT, _CTRL, _ALT = 1, 2, 4
_LONGEST: Final = 128
"""The maximum length of a key or mouse report in bytes; the longest known are under 40."""
_ARROWS: Final = ("up", "down", "left", "right")
_OTHERS: Final = (*_ARROWS, "space")
_MOUSE_BUTTONS: Final = ("left", "middle", "right")
_LEGACY: Final = {"enter": b"\r", "tab": b"\t", "backspace": b"\x7f", "escape": b"\x1b"}


def key_bytes(terminal: Any, press: KeyPress) -> bytes:
    """Return the bytes of a press and a release. Only programs that asked for releases get them."""
    data = _key(terminal, press, lib.GHOSTTY_KEY_ACTION_PRESS)
    if _is_modern(data) and _key(terminal, _PROBE, lib.GHOSTTY_KEY_ACTION_PRESS) == b"\x01":
        return _legacy(press)
    return data + _key(terminal, press, lib.GHOSTTY_KEY_ACTION_RELEASE)


def _is_modern(data: bytes) -> bool:
    return data.startswith(b"\x1b[27;") or (data.startswith(b"\x1b[") and data.endswith(b"u"))


def _legacy(press: KeyPress) -> bytes:
    """Return the bytes that xterm sends to a program that asked for no keyboard protocol.

    The library returns `CSI 105;5u` for ctrl_i and `CSI 27;5;13~` for ctrl_enter even then; bash
    and most programs would show these as garbage. The library does not report whether a program
    asked for a protocol, so ctrl_a is encoded as a probe: it is 0x01 only if the program did not
    ask.
    """
    if press.key == "tab" and press.shift:
        data = b"\x1b[Z"
    elif press.key in _LEGACY:
        data = _LEGACY[press.key]
    else:
        data = _control(_character(press)) if press.ctrl else _character(press).encode()
    return b"\x1b" * press.alt + data


def _control(character: str) -> bytes:
    if "@" <= character.upper() <= "_":
        return bytes([ord(character.upper()) & 0x1F])
    return character.encode()


def _character(press: KeyPress) -> str:
    if press.key == "space":
        return " "
    shifted = press.key.upper()
    return shifted if press.shift and len(shifted) == 1 else press.key


def _key(terminal: Any, press: KeyPress, action: int) -> bytes:
    encoder = _Made("key_encoder", "GhosttyKeyEncoder")
    event = _Made("key_event", "GhosttyKeyEvent")
    lib.ghostty_key_encoder_setopt_from_terminal(encoder.handle, terminal)
    lib.ghostty_key_event_set_action(event.handle, action)
    text = ffi.new("char[]", _describe(event.handle, press))
    lib.ghostty_key_event_set_utf8(event.handle, text, len(text) - 1)
    return _encoded(lib.ghostty_key_encoder_encode, encoder.handle, event.handle)


def _describe(event: Any, press: KeyPress) -> bytes:
    """Fill in the key of an event, and return the text it types. A character needs no key code."""
    mods = _mods(press)
    if press.key in _CODES:
        lib.ghostty_key_event_set_mods(event, mods)
        lib.ghostty_key_event_set_key(event, _CODES[press.key])
        return b""
    character = _character(press)
    unshifted = character.lower() if len(character.lower()) == 1 else character
    if unshifted != character:  # a capital is typed with shift, also when the caller omits it
        mods |= _SHIFT
        lib.ghostty_key_event_set_consumed_mods(event, _SHIFT)
    lib.ghostty_key_event_set_mods(event, mods)
    lib.ghostty_key_event_set_unshifted_codepoint(event, ord(unshifted))
    return character.encode("utf-8", "replace")


def mouse_bytes(terminal: Any, size: Size, event: MouseEvent, held: str | None) -> bytes:
    """Return a mouse event in the protocol that the program asked for; b"" if it asked for none.

    `held` is the button that an earlier press left down: it turns a move into a drag.
    """
    encoder = _mouse_encoder(terminal, size, held is not None)
    steps, repeats = _steps(event, held)
    reports = [_mouse(encoder, size, event, action, button) for action, button in steps]
    return b"".join(reports) * repeats


def _steps(event: MouseEvent, held: str | None) -> tuple[list[tuple[int, str | None]], int]:
    """Return the reports (action and button) that make up the event, and how often to send them."""
    press, release = lib.GHOSTTY_MOUSE_ACTION_PRESS, lib.GHOSTTY_MOUSE_ACTION_RELEASE
    match event.event:
        case "click":
            return [(press, event.button), (release, event.button)], event.count
        case "scroll_up" | "scroll_down":
            return [(press, event.event)], event.count
        case "move":
            return [(lib.GHOSTTY_MOUSE_ACTION_MOTION, held)], 1
        case "press" | "release":
            return [(press if event.event == "press" else release, event.button)], 1


def _mouse_encoder(terminal: Any, size: Size, held: bool) -> _Made:
    encoder = _Made("mouse_encoder", "GhosttyMouseEncoder")
    lib.ghostty_mouse_encoder_setopt_from_terminal(encoder.handle, terminal)
    area = sized("GhosttyMouseEncoderSize")
    area.cell_width, area.cell_height = cell_pixels(size)
    area.screen_width = area.cell_width * size.cols
    area.screen_height = area.cell_height * size.rows
    set_option = lib.ghostty_mouse_encoder_setopt
    set_option(encoder.handle, lib.GHOSTTY_MOUSE_ENCODER_OPT_SIZE, area)
    down = ffi.new("bool*", held)
    set_option(encoder.handle, lib.GHOSTTY_MOUSE_ENCODER_OPT_ANY_BUTTON_PRESSED, down)
    return encoder


def _mouse(encoder: _Made, size: Size, mouse: MouseEvent, action: int, button: str | None) -> bytes:
    event = _Made("mouse_event", "GhosttyMouseEvent")
    lib.ghostty_mouse_event_set_action(event.handle, action)
    if button is not None:
        lib.ghostty_mouse_event_set_button(event.handle, _BUTTONS[button])
    lib.ghostty_mouse_event_set_mods(event.handle, _mods(mouse))
    wide, high = cell_pixels(size)
    col, row = min(mouse.col, size.cols - 1), min(mouse.row, size.rows - 1)
    middle = ffi.new("GhosttyMousePosition*", {"x": (col + 0.5) * wide, "y": (row + 0.5) * high})
    lib.ghostty_mouse_event_set_position(event.handle, middle[0])
    return _encoded(lib.ghostty_mouse_encoder_encode, encoder.handle, event.handle)


def _mods(held: KeyPress | MouseEvent) -> int:
    return held.shift * _SHIFT | held.ctrl * _CTRL | held.alt * _ALT


class _Made:
    """An object of the library, freed together with this one."""

    def __init__(self, name: str, kind: str) -> None:
        out = ffi.new(f"{kind}*")
        check(getattr(lib, f"ghostty_{name}_new")(ffi.NULL, out), name)
        self.handle: Any = out[0]
        self._free: Any = getattr(lib, f"ghostty_{name}_free")

    def __del__(self) -> None:
        self._free(self.handle)


def _encoded(encode: Any, encoder: Any, event: Any) -> bytes:
    buffer, length = ffi.new("char[]", _LONGEST), ffi.new("size_t*")
    check(encode(encoder, event, buffer, _LONGEST, length), "encode")
    return bytes(ffi.buffer(buffer, length[0]))


_CODES: Final[dict[str, int]] = {
    **{name: getattr(lib, f"GHOSTTY_KEY_{name.upper()}") for name in NAMED if name not in _OTHERS},
    **{name: getattr(lib, f"GHOSTTY_KEY_ARROW_{name.upper()}") for name in _ARROWS},
}
_BUTTONS: Final[dict[str, int]] = {
    **{name: getattr(lib, f"GHOSTTY_MOUSE_BUTTON_{name.upper()}") for name in _MOUSE_BUTTONS},
    "scroll_up": lib.GHOSTTY_MOUSE_BUTTON_FOUR,
    "scroll_down": lib.GHOSTTY_MOUSE_BUTTON_FIVE,
}
_PROBE: Final = KeyPress("a", ctrl=True)
