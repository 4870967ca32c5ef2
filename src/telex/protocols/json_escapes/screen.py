"""The cursor, what is on the screen, and where it scrolls."""

from __future__ import annotations

from typing import Literal

from telex.protocols.json_escapes.values import Col, Data, Row, Signed, Times


class CursorMove(Data, frozen=True):
    """Relative to where the cursor is."""

    x: Signed = 0
    """To the right; negative to the left."""
    y: Signed = 0
    """Down; negative up."""


class CursorSet(Data, frozen=True):
    """A place, or only a row or column to go to."""

    row: Row | None = None
    col: Col | None = None


class CursorLine(Data, frozen=True):
    """Lines to go, to their first column."""

    n: Signed = 1
    """Down; negative up."""


class CursorStyle(Data, frozen=True):
    """What the cursor looks like."""

    shape: Literal["default", "block", "underline", "bar"] = "default"
    blink: bool = False
    """Not for `default`, which is as the person has set it."""


class Visible(Data, frozen=True):
    """Whether it is shown."""

    visible: bool = True


class Count(Data, frozen=True):
    """How often, or how many."""

    n: Times = 1


class Erase(Data, frozen=True):
    """What is erased, seen from the cursor."""

    target: Literal["line", "screen"]
    part: Literal["after", "before", "all", "scrollback"] = "all"
    """`after` and `before` include the cursor's own cell; `scrollback` is of a screen only."""
    selective: bool = False
    """Leave what is protected."""

    def __post_init__(self) -> None:
        if self.part == "scrollback" and (self.target == "line" or self.selective):
            raise ValueError("only a screen has a scrollback, and it is erased as a whole")


class Scroll(Data, frozen=True):
    """Lines to scroll by."""

    n: Signed = 1
    """Up, as when text is added below; negative down."""


class ScrollRegion(Data, frozen=True):
    """The part of the screen that scrolls. Nothing at all is the whole screen again."""

    top: Row | None = None
    bottom: Row | None = None
    left: Col | None = None
    right: Col | None = None
