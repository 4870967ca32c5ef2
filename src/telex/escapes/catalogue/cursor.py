"""Where the cursor goes, and what it looks like. VT100; only the shape is younger."""

from __future__ import annotations

from typing import Final

from telex.escapes.ansi import Lift, Made, NotLifted, counting, csi, numbers, plain
from telex.escapes.command import Command
from telex.protocols import json_escapes as spec

_SHAPES: Final = {"default": 0, "block": 2, "underline": 4, "bar": 6}
"""DECSCUSR, steady. One less blinks."""


def _move(asked: spec.CursorMove) -> bytes:
    down = csi("B" if asked.y > 0 else "A", abs(asked.y)) if asked.y else b""
    right = csi("C" if asked.x > 0 else "D", abs(asked.x)) if asked.x else b""
    return down + right


def _set(asked: spec.CursorSet) -> bytes:
    match asked.row, asked.col:
        case None, None:
            return csi("H")
        case int(row), None:
            return csi("d", row)
        case None, int(col):
            return csi("G", col)
        case row, col:
            return csi("H", row or 1, col or 1)


def _line(asked: spec.CursorLine) -> bytes:
    if asked.n == 0:
        return csi("G", 1)
    return csi("E" if asked.n > 0 else "F", abs(asked.n))


def _style(asked: spec.CursorStyle) -> bytes:
    steady = _SHAPES[asked.shape]
    return csi(" q", steady - 1 if asked.blink and steady else steady)


COMMANDS: Final = (
    Command("term:cursormove", "Move the cursor from where it is.", spec.CursorMove, 1, _move),
    Command("term:cursorset", "Move the cursor to a place.", spec.CursorSet, 1, _set),
    Command(
        "term:cursorline", "Move the cursor to the start of a line.", spec.CursorLine, 1, _line
    ),
    Command(
        "term:cursorhome", "Move the cursor to the top left.", spec.Nothing, 1, lambda _: csi("H")
    ),
    Command(
        "term:cursorsave",
        "Remember the cursor's place and style (DECSC).",
        spec.Nothing,
        1,
        lambda _: b"\x1b7",
    ),
    Command(
        "term:cursorrestore",
        "Go back to what was remembered (DECRC).",
        spec.Nothing,
        1,
        lambda _: b"\x1b8",
    ),
    Command(
        "term:cursorvisible",
        "Show or hide the cursor.",
        spec.Visible,
        1,
        lambda asked: csi("?h" if asked.visible else "?l", 25),
    ),
    Command("term:cursorstyle", "Change the cursor's shape.", spec.CursorStyle, 2, _style),
)


def _lift_place(parameters: list[str]) -> Made:
    if parameters == [""]:
        return [("term:cursorhome", {})]
    row, col = numbers(parameters, 1, 1)
    return [("term:cursorset", {"row": max(row, 1), "col": max(col, 1)})]


def _lift_style(parameters: list[str]) -> Made:
    number = numbers(parameters, 0)[0]
    if number > 6:
        raise NotLifted
    steady = number + number % 2
    shape = next(name for name, value in _SHAPES.items() if value == steady)
    return [("term:cursorstyle", {"shape": shape, "blink": number % 2 == 1})]


LIFTS: Final[dict[bytes, Lift]] = {
    b"\x1b[A": counting("term:cursormove", -1, "y"),
    b"\x1b[B": counting("term:cursormove", 1, "y"),
    b"\x1b[C": counting("term:cursormove", 1, "x"),
    b"\x1b[D": counting("term:cursormove", -1, "x"),
    b"\x1b[E": counting("term:cursorline"),
    b"\x1b[F": counting("term:cursorline", -1),
    b"\x1b[G": counting("term:cursorset", 1, "col"),
    b"\x1b[d": counting("term:cursorset", 1, "row"),
    b"\x1b[H": _lift_place,
    b"\x1b[f": _lift_place,
    b"\x1b7": plain("term:cursorsave"),
    b"\x1b8": plain("term:cursorrestore"),
    b"\x1b[ q": _lift_style,
}
