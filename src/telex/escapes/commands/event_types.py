"""The events that a terminal sends to a program that subscribed to them: structs and table."""

from __future__ import annotations

from typing import Final, Literal

from telex.escapes.protocol import (
    Col,
    EscapeEvent,
    Payload,
    Row,
    Token,
)

Mod = Literal["shift", "alt", "ctrl", "super", "hyper", "meta", "caps", "num"]


Button = Literal[
    "none", "left", "middle", "right", "wheelup", "wheeldown", "wheelleft", "wheelright", "back",
    "forward", "button10", "button11",
]  # fmt: skip


class KeyEvent(Payload, frozen=True):
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


class MouseInput(Payload, frozen=True):
    """The mouse, at a cell."""

    row: Row
    col: Col
    button: Button = "left"
    kind: Literal["press", "release", "move", "scroll"] = "press"
    mods: tuple[Mod, ...] = ()
    px: int | None = None
    """In pixels, where the terminal told; with `py`."""
    py: int | None = None


class PasteEvent(Payload, frozen=True):
    """What was pasted."""

    text: str


class FocusEvent(Payload, frozen=True):
    """Whether the terminal has the keyboard."""

    focused: bool


class TerminalResizeEvent(Payload, frozen=True):
    """The size that the terminal has now."""

    rows: int
    cols: int
    width: int = 0
    """In pixels; 0 where unknown."""
    height: int = 0


class ColorScheme(Payload, frozen=True):
    """Whether the terminal is dark or light."""

    dark: bool


class NotificationEvent(Payload, frozen=True):
    """What became of a notification."""

    id: Token
    action: Literal["activated", "closed"]
    button: int | None = None


class RevokedEvent(Payload, frozen=True):
    """Something that was allowed is so no more."""

    capability: str
    """The command or event."""
    reason: str = ""


EVENTS: Final = (
    # The keyboard protocol that tells more than bytes is no private mode; whoever wants a release
    # told must have the terminal say it, and `escapes.events` reads both.
    EscapeEvent(
        "event:key", "A key was pressed, or released where the terminal says so.", KeyEvent
    ),
    EscapeEvent("event:mouse", "The mouse was moved, clicked or turned.", MouseInput, (1003, 1006)),
    EscapeEvent(
        "event:mouseclick",
        "A button of the mouse was pressed: only that.",
        MouseInput,
        (1000, 1006),
    ),
    EscapeEvent("event:paste", "Text was pasted.", PasteEvent, (2004,)),
    EscapeEvent("event:focus", "The terminal got the keyboard, or lost it.", FocusEvent, (1004,)),
    EscapeEvent("event:resize", "The terminal has another size.", TerminalResizeEvent),
    EscapeEvent("event:colorscheme", "The terminal became dark, or light.", ColorScheme, (2031,)),
    EscapeEvent(
        "event:notification",
        "A notification with `report` was clicked, or is gone.",
        NotificationEvent,
    ),
    EscapeEvent("event:revoked", "Something allowed before is so no more.", RevokedEvent),
)
