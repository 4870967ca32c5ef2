"""Commands that move the cursor or change its shape. From the VT100, except the shape."""

from __future__ import annotations

from typing import Final, Literal

from telex.escapes.commands.ansi import (
    Lift,
    LiftedCommands,
    NotLifted,
    counting,
    csi,
    numbers,
    plain,
)
from telex.escapes.protocol import (
    Col,
    EscapeCommand,
    NoData,
    Payload,
    Row,
    Signed,
)


class CursorMove(Payload, frozen=True):
    """A movement relative to the cursor."""

    x: Signed = 0
    """Columns to the right; negative to the left."""
    y: Signed = 0
    """Rows down; negative up."""


class CursorSet(Payload, frozen=True):
    """A position, or only a row or a column."""

    row: Row | None = None
    col: Col | None = None


class CursorLine(Payload, frozen=True):
    """A movement by lines, to the first column."""

    n: Signed = 1
    """Lines down; negative up."""


class CursorStyle(Payload, frozen=True):
    """The shape of the cursor."""

    shape: Literal["default", "block", "underline", "bar"] = "default"
    blink: bool = False
    """Not for `default`, which is the person's own setting."""


class CursorVisible(Payload, frozen=True):
    """Whether the cursor is shown."""

    visible: bool = True


_SHAPES: Final = {"default": 0, "block": 2, "underline": 4, "bar": 6}
"""The numbers of DECSCUSR for a steady cursor. One less stands for a blinking cursor."""


def _move(asked: CursorMove) -> bytes:
    down = csi("B" if asked.y > 0 else "A", abs(asked.y)) if asked.y else b""
    right = csi("C" if asked.x > 0 else "D", abs(asked.x)) if asked.x else b""
    return down + right


def _set(asked: CursorSet) -> bytes:
    match asked.row, asked.col:
        case None, None:
            return csi("H")
        case int(row), None:
            return csi("d", row)
        case None, int(col):
            return csi("G", col)
        case row, col:
            return csi("H", row or 1, col or 1)


def _line(asked: CursorLine) -> bytes:
    if asked.n == 0:
        return csi("G", 1)
    return csi("E" if asked.n > 0 else "F", abs(asked.n))


def _style(asked: CursorStyle) -> bytes:
    steady = _SHAPES[asked.shape]
    return csi(" q", steady - 1 if asked.blink and steady else steady)


COMMANDS: Final = (
    EscapeCommand("term:cursormove", "Move the cursor by a distance.", CursorMove, 1, _move),
    EscapeCommand("term:cursorset", "Move the cursor to a position.", CursorSet, 1, _set),
    EscapeCommand(
        "term:cursorline", "Move the cursor to the start of a line.", CursorLine, 1, _line
    ),
    EscapeCommand(
        "term:cursorhome", "Move the cursor to the top left.", NoData, 1, lambda _: csi("H")
    ),
    EscapeCommand(
        "term:cursorsave",
        "Save the cursor's position and style (DECSC).",
        NoData,
        1,
        lambda _: b"\x1b7",
    ),
    EscapeCommand(
        "term:cursorrestore",
        "Restore the saved position and style (DECRC).",
        NoData,
        1,
        lambda _: b"\x1b8",
    ),
    EscapeCommand(
        "term:cursorvisible",
        "Show or hide the cursor.",
        CursorVisible,
        1,
        lambda asked: csi("?h" if asked.visible else "?l", 25),
    ),
    EscapeCommand("term:cursorstyle", "Change the cursor's shape.", CursorStyle, 2, _style),
)


def _lift_place(parameters: list[str]) -> LiftedCommands:
    if parameters == [""]:
        return [("term:cursorhome", {})]
    row, col = numbers(parameters, 1, 1)
    return [("term:cursorset", {"row": max(row, 1), "col": max(col, 1)})]


def _lift_style(parameters: list[str]) -> LiftedCommands:
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
