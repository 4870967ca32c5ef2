"""What makes the person's terminal show the next picture: the rows that changed, and the modes.

Pure: `beside` writes what comes out of here. A picture is rows that are the same objects as long as
they look the same, a cursor, and what the keyboard and the mouse are to speak. Nothing a program
printed is passed on, so that what has to be undone afterwards is known: what is set here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.terminal.cells import Cursor
from telex.terminal.pictures.text import ansi_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from telex.terminal.cells import Row, Size

KEYPAD: Final = 66
MOUSE: Final = frozenset({9, 1000, 1002, 1003})
PIXELS: Final = 1016
MIRRORED: Final = frozenset({1, KEYPAD, *MOUSE, 1004, 1006, 1015, PIXELS, 2004})
"""Private modes by which a terminal says keys, the mouse, focus and pastes differently. Not 1005, a
way to tell of the mouse that cannot be told from text."""

ENTER: Final = b"\x1b[?1049h\x1b[?7l\x1b[>0u\x1b[2J"
LEAVE: Final = (
    "\x1b[?2026l"
    + "".join([f"\x1b[?{mode}l" for mode in sorted(MIRRORED - {KEYPAD})])
    + "\x1b>\x1b[>4m\x1b[<u\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
).encode()
"""Not `attach.PLAIN`, which is for whatever a program may have done and moves the cursor: leaving
the other screen puts it where the person's shell had it."""

_MODE: Final = re.compile(rb"\x1b\[\?(\d+)h")
_KITTY: Final = re.compile(rb"\x1b\[=(\d+);1u")
_OTHER_KEYS: Final = re.compile(rb"\x1b\[>4;(\d)m")
_REPORT: Final = re.compile(rb"\x1b\[(?:<\d+;\d+;(\d+)[Mm]|\d+;\d+;(\d+)M|M..(.))", re.DOTALL)
"""The mouse, in each of its three ways of telling a row: SGR, urxvt's, and the first one."""


@dataclass(frozen=True, slots=True)
class Speech:
    """How keyboard and mouse are to speak."""

    modes: frozenset[int] = frozenset()
    kitty: int = 0
    """Flags of kitty's keyboard protocol."""
    other_keys: int = 0
    """xterm's modifyOtherKeys."""


def speech(restoring: bytes) -> Speech:
    """What a program asked for, from the bytes that restore its screen. No text in them can be
    taken for a mode: it has no escapes."""
    kitty, other = _KITTY.findall(restoring), _OTHER_KEYS.findall(restoring)
    return Speech(
        MIRRORED & {int(number) for number in _MODE.findall(restoring)},
        int(kitty[-1]) if kitty else 0,
        int(other[-1]) if other else 0,
    )


def within(data: bytes, said: Speech, size: Size) -> bytes:
    """What was typed, without what the mouse did below the first rows of the terminal."""
    if not said.modes & MOUSE or b"\x1b[" not in data:
        return data
    last = size.pixel_height if PIXELS in said.modes and size.pixel_height else size.rows

    def kept(report: re.Match[bytes]) -> bytes:
        sgr, urxvt, byte = report.groups()
        row = byte[0] - 32 if byte else int(sgr or urxvt)
        return report[0] if row <= last else b""

    return _REPORT.sub(kept, data)


class Painter:
    """Knows what stands on a terminal, and what makes it the next picture."""

    def __init__(self) -> None:
        self._rows: tuple[Row, ...] = ()
        self._cursor = Cursor(-1, -1)
        self._said = Speech()

    def forget(self) -> None:
        """The terminal has another size, or somebody else drew on it: all is to be drawn again."""
        self._rows, self._cursor, self._said = (), Cursor(-1, -1), Speech()

    def paint(self, rows: Sequence[Row], cursor: Cursor, said: Speech) -> bytes:
        """The bytes; none where nothing changed."""
        changed = "".join(self._changed(rows))
        spoken = "".join(_spoken(self._said, said))
        if not changed and not spoken and cursor == self._cursor:
            return b""
        fresh = "" if self._rows else "\x1b[m\x1b[2J"
        self._rows, self._cursor, self._said = tuple(rows), cursor, said
        shown = f"\x1b[{cursor.row + 1};{cursor.col + 1}H" + ("\x1b[?25h" if cursor.visible else "")
        # Held, where the terminal can, until it is whole; and else the cursor does not run about.
        held = f"\x1b[?2026h\x1b[?25l{fresh}{changed}{spoken}{shown}\x1b[?2026l"
        return held.encode("utf-8", "replace")

    def _changed(self, rows: Sequence[Row]) -> Iterator[str]:
        before = self._rows
        for y, row in enumerate(rows):
            if y >= len(before) or before[y] is not row:
                runs = row.runs
                wide = runs[-1].col + runs[-1].width if runs else 0
                # In the last column the cursor stands on what it wrote: to erase would erase that.
                rest = "\x1b[K" if wide < row.cols else ""
                yield f"\x1b[{y + 1};1H{ansi_row(row)}{rest}"


def _spoken(old: Speech, new: Speech) -> Iterator[str]:
    for mode in sorted(old.modes - new.modes):
        yield "\x1b>" if mode == KEYPAD else f"\x1b[?{mode}l"
    for mode in sorted(new.modes - old.modes):
        yield "\x1b=" if mode == KEYPAD else f"\x1b[?{mode}h"
    if old.kitty != new.kitty:
        yield f"\x1b[={new.kitty};1u"
    if old.other_keys != new.other_keys:
        yield f"\x1b[>4;{new.other_keys}m"
