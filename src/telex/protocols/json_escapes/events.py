"""What a program is told of."""

from __future__ import annotations

from typing import Literal

from telex.protocols.json_escapes.values import Col, Data, Row, Token

Mod = Literal["shift", "alt", "ctrl", "super", "hyper", "meta", "caps", "num"]
Button = Literal[
    "none", "left", "middle", "right", "wheelup", "wheeldown", "wheelleft", "wheelright", "back",
    "forward", "button10", "button11",
]  # fmt: skip


class KeyEvent(Data, frozen=True):
    """A key."""

    key: str
    """Its name, as `docs/reference/keys.md` has it, or the character."""
    text: str = ""
    """What it types."""
    mods: tuple[Mod, ...] = ()
    kind: Literal["press", "repeat", "release"] = "press"
    code: int | None = None
    """The number that the terminal gave, where it gave one."""
    shifted: str | None = None
    """The character with shift, where the terminal told."""
    base: str | None = None
    """The character in the standard layout, where the terminal told."""


class MouseEvent(Data, frozen=True):
    """The mouse, at a cell."""

    row: Row
    col: Col
    button: Button = "left"
    kind: Literal["press", "release", "move", "scroll"] = "press"
    mods: tuple[Mod, ...] = ()
    px: int | None = None
    """In pixels, where the terminal told; with `py`."""
    py: int | None = None


class PasteEvent(Data, frozen=True):
    """What was pasted."""

    text: str


class FocusEvent(Data, frozen=True):
    """Whether the terminal has the keyboard."""

    focused: bool


class ResizeEvent(Data, frozen=True):
    """The size that the terminal has now."""

    rows: int
    cols: int
    width: int = 0
    """In pixels; 0 where unknown."""
    height: int = 0


class ColorScheme(Data, frozen=True):
    """Whether the terminal is dark or light."""

    dark: bool


class NotificationEvent(Data, frozen=True):
    """What became of a notification."""

    id: Token
    action: Literal["activated", "closed"]
    button: int | None = None


class RevokedEvent(Data, frozen=True):
    """Something that was allowed is so no more."""

    capability: str
    """The command or event."""
    reason: str = ""
