"""Tracks the modes that a program has set on a terminal, and makes the bytes that undo them.

It keeps no screen: output costs one search for escape sequences. The guardian writes these bytes if
telex is killed. When telex is not killed, the program resets its modes itself, or leaves them set
on purpose. Sans-IO; used by `person_terminal`.
"""

from __future__ import annotations

import re
from typing import Final

_SEQUENCE: Final = re.compile(
    rb"\x1b(?!\[[0-9;:]*+[mHKJABCDGd])(?:\[(?:"  # colours and moves, by far the most, set no mode
    rb"\?(?P<private>[0-9;]*+)(?P<switch>[hl])"
    rb"|(?P<keyboard>[<>=])(?P<flags>[0-9;:]*)(?P<kind>[um])"
    rb"|(?P<shape>[0-9]*) q"
    rb"|(?P<title>2[23])(?P<which>(?:;[0-9]*)*)t"
    rb"|(?P<margins>[0-9;]*+)r"
    rb"|(?P<ansi>[0-9;]*+)(?P<set>[hl])"
    rb")|(?P<short>[=>c])|\](?P<colour>4|1[0-9]|8);)"
)
_CUT: Final = re.compile(rb"\x1b(?:\[[0-9;:?<=>]*[ !]?|\][0-9]*)?\Z")
"""A sequence that continues in the next bytes."""
_LONGEST: Final = 64
_ALTERNATE: Final = (47, 1047, 1049)
_USUALLY_ON: Final = frozenset((7, 8, 25))
"""Autowrap, autorepeat, the cursor."""
_KEPT: Final = frozenset((3, 12, 40, 1048))
"""Not undone: the width, which would clear the screen; the blinking cursor; the saved cursor."""
_MODES: Final = 64
"""The most modes and titles to remember."""
_RESETS: Final = {
    4: b"104",
    8: b"8;;",
    **{number: b"%d" % (100 + number) for number in range(10, 20)},
}
"""The OSC that undoes each OSC; an open hyperlink is closed."""
_CANCEL: Final = b"\x18"
"""Ends a sequence that was cut when telex was killed."""


class ModeTracker:
    """Tracks the modes of one terminal. `feed` it all output; `undo` returns the bytes."""

    def __init__(self) -> None:
        self._cut = b""
        self._begin()

    def _begin(self) -> None:
        self._private: dict[int, bool] = {}
        self._ansi: set[int] = set()
        self._pushed = {False: 0, True: 0}
        """Pushed keyboard flags, on the primary and on the alternate screen: each has its stack."""
        self._flags = self._other_keys = self._shaped = self._keypad = self._margins = False
        self._titles: list[bytes] = []
        self._changed: set[int] = set()

    def feed(self, data: bytes) -> bool:
        """Read output. Return whether the result of `undo` may have changed."""
        if self._cut:
            data, self._cut = self._cut + data, b""
        if b"\x1b" not in data:
            return False
        if (cut := _CUT.search(data, max(0, len(data) - _LONGEST))) is not None:
            self._cut = cut[0]
        seen = False
        for found in _SEQUENCE.finditer(data):
            seen = True
            self._take(found)
        return seen

    def undo(self) -> bytes:
        """Return the bytes that reset all set modes; empty if none is set."""
        alternate = self._alternate
        parts = [self._keyboard(alternate)]
        parts += [b"\x1b[?%dl" % mode for mode in _ALTERNATE if self._private.get(mode)]
        parts += [self._keyboard(False)] if alternate else []
        parts += [
            b"\x1b[?%d%c" % (mode, b"h" if mode in _USUALLY_ON else b"l")
            for mode, on in self._private.items()
            if on != (mode in _USUALLY_ON) and mode not in _ALTERNATE
        ]
        parts += [b"\x1b[%dl" % mode for mode in sorted(self._ansi)]
        parts += [b"\x1b[>4m"] if self._other_keys else []
        parts += [b"\x1b[0 q"] if self._shaped else []
        parts += [b"\x1b>"] if self._keypad else []
        parts += [b"\x1b7\x1b[r\x1b8"] if self._margins else []
        parts += [b"\x1b]%b\x1b\\" % _RESETS[number] for number in sorted(self._changed)]
        parts += [b"\x1b[23%bt" % which for which in reversed(self._titles)]
        undo = b"".join(parts)
        return _CANCEL + undo + b"\x1b(B\x0f\x1b[m" if undo else b""

    @property
    def _alternate(self) -> bool:
        return any(self._private.get(mode) for mode in _ALTERNATE)

    def _keyboard(self, alternate: bool) -> bytes:
        count = self._pushed[alternate]
        return (b"\x1b[<%du" % count if count else b"") + (b"\x1b[=0u" if self._flags else b"")

    def _take(self, found: re.Match[bytes]) -> None:
        match found.lastgroup:
            case "switch":
                for mode in _numbers(found["private"]):
                    if mode not in _KEPT and (mode in self._private or len(self._private) < _MODES):
                        self._private[mode] = found["switch"] == b"h"
            case "kind":
                self._take_keyboard(found)
            case "shape":
                self._shaped = found["shape"] not in (b"", b"0")
            case "which":
                self._take_title(found["title"], found["which"])
            case "margins":
                self._margins = found["margins"] != b""
            case "set":
                self._ansi |= {mode for mode in _numbers(found["ansi"]) if mode in (4, 20)}
                if found["set"] == b"l":
                    self._ansi -= set(_numbers(found["ansi"]))
            case "short":
                self._take_short(found["short"])
            case _:
                self._changed.add(int(found["colour"]))

    def _take_keyboard(self, found: re.Match[bytes]) -> None:
        first, *_ = [*_numbers(found["flags"]), 0]
        match found["keyboard"], found["kind"]:
            case b">", b"u":
                self._pushed[self._alternate] += 1
            case b"<", b"u":
                left = self._pushed[self._alternate] - max(1, first)
                self._pushed[self._alternate] = max(0, left)
            case b"=", b"u":
                self._flags = first != 0
            case b">", b"m" if first == 4:
                self._other_keys = len(_numbers(found["flags"])) > 1
            case _:
                pass

    def _take_title(self, action: bytes, which: bytes) -> None:
        if action == b"22":
            self._titles = [*self._titles, which][-_MODES:]
        elif self._titles:
            self._titles.pop()

    def _take_short(self, letter: bytes) -> None:
        if letter == b"c":
            self._begin()  # RIS resets everything
        else:
            self._keypad = letter == b"="


def _numbers(parameters: bytes) -> list[int]:
    return [int(one) for one in re.split(rb"[;:]", parameters) if one and len(one) < 6]
