"""What a terminal's line discipline is told to do, as values.

Pure: `own_terminal` reads and sets the person's, `leader` sets the child's. A mode is what
`termios.tcgetattr` returns, and never changed in place.
"""

from __future__ import annotations

import termios
from typing import Any, Final

Modes = list[Any]
"""iflag, oflag, cflag, lflag, two speeds, and the list of control characters."""

IFLAG, OFLAG, CFLAG, LFLAG, CC = 0, 1, 2, 3, 6

_INPUT: Final = (
    termios.IGNBRK
    | termios.BRKINT
    | termios.PARMRK
    | termios.ISTRIP
    | termios.INLCR
    | termios.IGNCR
    | termios.ICRNL
    | termios.IXON
)
_LOCAL: Final = termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN


def raw(modes: Modes, *, output: bool) -> Modes:
    """Every key as it is typed, none of them special: that is for the child's terminal to say.

    With `output`, what is written is not touched either. Without it (our output goes elsewhere, and
    whoever shares the terminal still writes plain lines) a newline keeps its carriage return.
    """
    wanted = _copied(modes)
    wanted[IFLAG] &= ~_INPUT
    wanted[LFLAG] &= ~_LOCAL
    if output:
        wanted[OFLAG] &= ~termios.OPOST
    wanted[CFLAG] = wanted[CFLAG] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    wanted[CC][termios.VMIN], wanted[CC][termios.VTIME] = 1, 0
    return wanted


def inner(modes: Modes, *, typed: bool, shown: bool) -> Modes:
    """What the child's terminal does, given what the person's did before it was raw.

    Input that nobody typed is not echoed, and output that no raw terminal shows gets no carriage
    returns: a filter gives out what the program wrote.
    """
    wanted = _copied(modes)
    if not typed:
        wanted[LFLAG] &= ~termios.ECHO
    if not shown:
        wanted[OFLAG] &= ~termios.ONLCR
    return wanted


def _copied(modes: Modes) -> Modes:
    return [*modes[:CC], list(modes[CC])]
