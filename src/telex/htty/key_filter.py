"""Finds the keys that a person typed, among terminal responses and pasted text.

A program with a key of its own must not take it from a response of the terminal: the usual response
to DECRQSS contains a `q`, and so may a clipboard or a paste. So only bytes outside of control
strings (DCS, OSC, APC, PM, SOS), of CSI and SS3 sequences, and of bracketed pastes count as keys,
wherever the reads cut them. A key held with Alt is a sequence too.

An ESC may also be a key, and Alt+P begins like a DCS. Time distinguishes them: a sequence that does
not continue within `SEQUENCE_SECONDS` was a key, and a string or a paste that does not continue
within `STRING_SECONDS` will not end. Sans-IO: bytes and the time are arguments. Used by
`telex htty serve`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from telex.terminal.keys import PASTE_BEGINS, PASTE_ENDS

SEQUENCE_SECONDS: Final = 0.5
"""How long the rest of a sequence may take on a slow line; short, because ESC is a key."""
STRING_SECONDS: Final = 10.0
"""Strings are long, and no person types one."""

_ESC, _BEL, _CAN, _SUB = 0x1B, 0x07, 0x18, 0x1A
_STRINGS: Final = b"PX^_"
"""DCS, SOS, PM, APC. An OSC differs: BEL ends it too."""
_OLD_MOUSE: Final = b"\x1b[M"
_OLD_MOUSE_BYTES: Final = 3


class _State(Enum):
    GROUND = auto()
    ESCAPE = auto()
    CSI = auto()
    SS3 = auto()
    STRING = auto()
    OSC = auto()
    ENDING = auto()
    """An ESC inside a string: `ESC \\` ends it, and any other ESC begins a sequence."""
    MOUSE = auto()
    PASTE = auto()


_LONG: Final = frozenset({_State.STRING, _State.OSC, _State.ENDING, _State.PASTE})


class KeyFilter:
    """Extracts the keys from the input of one terminal."""

    def __init__(self) -> None:
        self._state = _State.GROUND
        self._sequence = bytearray()
        """The CSI so far, or the last bytes of the paste so far."""
        self._left = 0
        """How many bytes of an old mouse report are still missing."""
        self._last = 0.0

    def feed(self, data: bytes, now: float) -> bytes:
        """Return the bytes that are keys by themselves."""
        limit = STRING_SECONDS if self._state in _LONG else SEQUENCE_SECONDS
        if now - self._last > limit:
            self._state = _State.GROUND
        self._last = now
        return bytes([byte for byte in data if self._is_key(byte)])

    def _is_key(self, byte: int) -> bool:
        match self._state:
            case _State.GROUND:
                if byte != _ESC:
                    return True
                self._state = _State.ESCAPE
            case _State.ESCAPE:
                self._begin(byte)
            case _State.PASTE:
                self._pasted(byte)
            case _State.MOUSE:
                self._left -= 1
                if not self._left:
                    self._state = _State.GROUND
            case _ if byte in (_CAN, _SUB):
                self._state = _State.GROUND
            case _State.CSI:
                self._in_csi(byte)
            case _State.SS3:
                self._state = _State.ESCAPE if byte == _ESC else _State.GROUND
            case _State.STRING | _State.OSC:
                if byte == _ESC:
                    self._state = _State.ENDING
                elif byte == _BEL and self._state is _State.OSC:
                    self._state = _State.GROUND
            case _State.ENDING:
                self._begin(byte)
        return False

    def _begin(self, byte: int) -> None:
        """Handle the byte after an ESC."""
        if byte == _ESC:
            self._state = _State.ESCAPE
        elif byte == ord("["):
            self._state, self._sequence = _State.CSI, bytearray(b"\x1b[")
        elif byte == ord("]"):
            self._state = _State.OSC
        elif byte == ord("O"):
            self._state = _State.SS3
        else:
            self._state = _State.STRING if byte in _STRINGS else _State.GROUND

    def _in_csi(self, byte: int) -> None:
        if byte == _ESC:
            self._state = _State.ESCAPE
            return
        if len(self._sequence) < len(PASTE_BEGINS):
            self._sequence.append(byte)
        if not 0x40 <= byte <= 0x7E:
            return
        self._state = _State.GROUND
        if self._sequence == PASTE_BEGINS:
            self._state, self._sequence = _State.PASTE, bytearray()
        elif self._sequence == _OLD_MOUSE:
            self._state, self._left = _State.MOUSE, _OLD_MOUSE_BYTES

    def _pasted(self, byte: int) -> None:
        self._sequence.append(byte)
        del self._sequence[: -len(PASTE_ENDS)]
        if self._sequence == PASTE_ENDS:
            self._state = _State.GROUND
