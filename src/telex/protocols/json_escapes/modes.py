"""Modes, tabs, character sets, resets."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from telex.protocols.json_escapes.values import Data, Signed

ModeName = Literal[
    "wrap", "origin", "insert", "newline", "appcursor", "appkeypad", "reverse", "altscreen",
    "bracketedpaste", "focus", "sync", "grapheme", "colorscheme", "inbandresize", "mousex10",
    "mouse", "mousedrag", "mousemove", "mousesgr", "mousepixels", "cursorblink", "cursorvisible",
    "margins",
]  # fmt: skip
Mode = ModeName | Annotated[int, Meta(ge=0, le=65535)]
ANSI_MODES: Final = frozenset({"insert", "newline"})
"""The names that are no DEC private modes."""


class SetMode(Data, frozen=True):
    """A mode, and what becomes of it."""

    mode: Mode
    """Its name, or its number."""
    private: bool = False
    """Whether a number is that of a DEC private mode. A name knows this itself."""
    value: bool | Literal["save", "restore"] = True

    def __post_init__(self) -> None:
        private = self.mode not in ANSI_MODES if isinstance(self.mode, str) else self.private
        if not private and not isinstance(self.value, bool):
            raise ValueError("only private modes can be saved and restored")


class QueryMode(Data, frozen=True):
    """Which mode."""

    mode: Mode
    private: bool = False


class ModeState(Data, frozen=True):
    """What a mode is."""

    state: Literal["set", "reset", "perm-set", "perm-reset", "unknown"]


class Enabled(Data, frozen=True):
    """On or off."""

    enabled: bool = True


class AltScreen(Data, frozen=True):
    """The alternate screen, on or off."""

    enabled: bool = True
    clear: bool = True
    """With the cursor saved and the screen cleared, as full-screen programs do it."""


class TabClear(Data, frozen=True):
    """Which tab stops."""

    all: bool = False
    """Instead of only the one at the cursor."""


class Tab(Data, frozen=True):
    """How many tab stops to go."""

    n: Signed = 1
    """To the right; negative to the left."""


class Charset(Data, frozen=True):
    """A character set, and where to keep it."""

    slot: Annotated[int, Meta(ge=0, le=3)] = 0
    set: Literal["ascii", "dec-graphics", "uk"] = "ascii"


class Shift(Data, frozen=True):
    """Which of the four kept character sets is used."""

    slot: Annotated[int, Meta(ge=0, le=3)] = 0
    once: bool = False
    """For the next character only; slots 2 and 3."""

    def __post_init__(self) -> None:
        if self.once and self.slot < 2:
            raise ValueError("only slots 2 and 3 can be used for one character")


class LineAttr(Data, frozen=True):
    """The width and height of the cursor's line."""

    kind: Literal["normal", "dwl", "dhl-top", "dhl-bottom"] = "normal"


class Reset(Data, frozen=True):
    """How much."""

    kind: Literal["soft", "hard"] = "soft"
    """`soft` leaves what is on the screen."""
