"""Commands that write, erase, insert, delete and scroll the content of the screen."""

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
    text,
)
from telex.escapes.protocol import (
    Col,
    EscapeCommand,
    NoData,
    Payload,
    Row,
    Signed,
    Text,
    Times,
)


class Count(Payload, frozen=True):
    """The number of cells, lines or repetitions."""

    n: Times = 1


class Erase(Payload, frozen=True):
    """The part to erase, relative to the cursor."""

    target: Literal["line", "screen"]
    part: Literal["after", "before", "all", "scrollback"] = "all"
    """`after` and `before` include the cell of the cursor; only a screen has `scrollback`."""
    selective: bool = False
    """Do not erase protected cells."""

    def __post_init__(self) -> None:
        if self.part == "scrollback" and (self.target == "line" or self.selective):
            raise ValueError("only a screen has a scrollback, and it is erased as a whole")


class Scroll(Payload, frozen=True):
    """A number of lines to scroll."""

    n: Signed = 1
    """Lines up, as when text is added below; negative down."""


class ScrollRegion(Payload, frozen=True):
    """The part of the screen that scrolls. Without members, the whole screen."""

    top: Row | None = None
    bottom: Row | None = None
    left: Col | None = None
    right: Col | None = None


class WriteText(Payload, frozen=True):
    """A text to write at the cursor."""

    text: Text


class LineAttr(Payload, frozen=True):
    """The width and height of the cursor's line."""

    kind: Literal["normal", "dwl", "dhl-top", "dhl-bottom"] = "normal"


_PARTS: Final = ("after", "before", "all", "scrollback")
_LINES: Final = {"normal": "5", "dwl": "6", "dhl-top": "3", "dhl-bottom": "4"}


def _erase(asked: Erase) -> bytes:
    final = "K" if asked.target == "line" else "J"
    return csi(f"?{final}" if asked.selective else final, _PARTS.index(asked.part))


def _scroll(asked: Scroll) -> bytes:
    return csi("S" if asked.n > 0 else "T", abs(asked.n)) if asked.n else b""


def _region(asked: ScrollRegion) -> bytes:
    """Left and right margins need mode 69: without it, `CSI s` has another meaning."""
    if asked == ScrollRegion():
        return csi("r", 1) + csi("?l", 69)
    rows = columns = b""
    if asked.top is not None or asked.bottom is not None:
        rows = csi("r", asked.top or 1, *_given(asked.bottom))
    if asked.left is not None or asked.right is not None:
        columns = csi("?h", 69) + csi("s", asked.left or 1, *_given(asked.right))
    return rows + columns


def _given(number: int | None) -> list[int]:
    return [] if number is None else [number]


def _counted(name: str, about: str, final: str, level: int = 1) -> EscapeCommand:
    return EscapeCommand(name, about, Count, level, lambda asked: csi(final, asked.n))


def _plain(name: str, about: str, bytes_: bytes, level: int = 1) -> EscapeCommand:
    return EscapeCommand(name, about, NoData, level, lambda _: bytes_)


COMMANDS: Final = (
    EscapeCommand(
        "term:write",
        "Write plain text at the cursor.",
        WriteText,
        1,
        lambda asked: text(asked.text),
    ),
    EscapeCommand("term:erase", "Erase a part of the line or the screen.", Erase, 1, _erase),
    _counted("term:erasechars", "Erase cells from the cursor on.", "X"),
    _counted("term:insertchars", "Insert blank cells at the cursor.", "@"),
    _counted("term:deletechars", "Delete cells at the cursor; the rest of the line moves.", "P"),
    _counted("term:insertlines", "Insert blank lines at the line of the cursor.", "L"),
    _counted("term:deletelines", "Delete lines from the line of the cursor on.", "M"),
    _counted("term:repeat", "Write the last character again.", "b", 2),
    EscapeCommand("term:scroll", "Scroll the content of the scroll region.", Scroll, 1, _scroll),
    EscapeCommand(
        "term:scrollregion",
        "Set the part of the screen that scrolls. The cursor moves to the top left.",
        ScrollRegion,
        1,
        _region,
    ),
    _plain("term:index", "Move down a line; scroll at the end of the region.", b"\x1bD"),
    _plain("term:reverseindex", "Move up a line; scroll at the top of the region.", b"\x1bM"),
    _plain("term:nextline", "Move to the start of the next line; scroll at the end.", b"\x1bE"),
    EscapeCommand(
        "term:lineattr",
        "Make the line of the cursor double width or height, or normal.",
        LineAttr,
        1,
        lambda asked: f"\x1b#{_LINES[asked.kind]}".encode(),
    ),
    _plain("term:bell", "Ring the bell.", b"\x07"),
)


def _lift_erase(target: str, selective: bool) -> Lift:
    def lift(parameters: list[str]) -> LiftedCommands:
        number = numbers(parameters, 0)[0]
        if number >= len(_PARTS):
            raise NotLifted
        data = {"target": target, "part": _PARTS[number], "selective": selective}
        return [("term:erase", data)]

    return lift


def _lift_rows(parameters: list[str]) -> LiftedCommands:
    top, bottom = numbers(parameters, 1, 0)
    return [("term:scrollregion", {"top": max(top, 1), "bottom": bottom or None})]


LIFTS: Final[dict[bytes, Lift]] = {
    b"\x1b[K": _lift_erase("line", False),
    b"\x1b[J": _lift_erase("screen", False),
    b"\x1b[?K": _lift_erase("line", True),
    b"\x1b[?J": _lift_erase("screen", True),
    b"\x1b[X": counting("term:erasechars"),
    b"\x1b[@": counting("term:insertchars"),
    b"\x1b[P": counting("term:deletechars"),
    b"\x1b[L": counting("term:insertlines"),
    b"\x1b[M": counting("term:deletelines"),
    b"\x1b[b": counting("term:repeat"),
    b"\x1b[S": counting("term:scroll"),
    b"\x1b[T": counting("term:scroll", -1),
    b"\x1b[r": _lift_rows,
    b"\x1bD": plain("term:index"),
    b"\x1bM": plain("term:reverseindex"),
    b"\x1bE": plain("term:nextline"),
    b"\x07": plain("term:bell"),
    **{
        f"\x1b#{number}".encode(): plain("term:lineattr", kind=kind)
        for kind, number in _LINES.items()
    },
}
"""Without `CSI 1;5 s`, which `lifter` recognizes by the mode before it."""
