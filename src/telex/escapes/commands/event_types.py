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
    """A key, with its text and modifiers."""

    key: str
    """Its name, as in `docs/reference/keys.md`, or its character."""
    text: str = ""
    """The text that the key produces."""
    mods: tuple[Mod, ...] = ()
    kind: Literal["press", "repeat", "release"] = "press"
    code: int | None = None
    """The number of the key, if the terminal sent it."""
    shifted: str | None = None
    """The character with shift, if the terminal sent it."""
    base: str | None = None
    """The character in the standard layout, if the terminal sent it."""


class MouseInput(Payload, frozen=True):
    """An action of the mouse, at a cell."""

    row: Row
    col: Col
    button: Button = "left"
    kind: Literal["press", "release", "move", "scroll"] = "press"
    mods: tuple[Mod, ...] = ()
    px: int | None = None
    """The position in pixels, if the terminal sent it; with `py`."""
    py: int | None = None


class PasteEvent(Payload, frozen=True):
    """Text that the person pasted."""

    text: str


class FocusEvent(Payload, frozen=True):
    """Whether the terminal has the keyboard focus."""

    focused: bool


class TerminalResizeEvent(Payload, frozen=True):
    """The new size of the terminal."""

    rows: int
    cols: int
    width: int = 0
    """In pixels; 0 if unknown."""
    height: int = 0


class ColorScheme(Payload, frozen=True):
    """Whether the terminal is dark or light."""

    dark: bool


class NotificationEvent(Payload, frozen=True):
    """The action of the person on a notification."""

    id: Token
    action: Literal["activated", "closed"]
    button: int | None = None


class RevokedEvent(Payload, frozen=True):
    """A permission or subscription that has ended."""

    capability: str
    """The command or event."""
    reason: str = ""


EVENTS: Final = (
    # Kitty's keyboard protocol is not a private mode. A program that wants releases must enable it
    # in the terminal itself; `input_events` parses both.
    EscapeEvent(
        "event:key", "A key was pressed, or released, if the terminal reports that.", KeyEvent
    ),
    EscapeEvent(
        "event:mouse", "The mouse was moved, clicked or scrolled.", MouseInput, (1003, 1006)
    ),
    EscapeEvent(
        "event:mouseclick",
        "A button of the mouse was pressed. No other action is reported.",
        MouseInput,
        (1000, 1006),
    ),
    EscapeEvent("event:paste", "Text was pasted.", PasteEvent, (2004,)),
    EscapeEvent("event:focus", "The terminal got or lost the keyboard focus.", FocusEvent, (1004,)),
    EscapeEvent("event:resize", "The size of the terminal changed.", TerminalResizeEvent),
    EscapeEvent(
        "event:colorscheme", "The terminal changed to dark or light colours.", ColorScheme, (2031,)
    ),
    EscapeEvent(
        "event:notification",
        "A notification with `report` was clicked, or has closed.",
        NotificationEvent,
    ),
    EscapeEvent("event:revoked", "A permission or subscription has ended.", RevokedEvent),
)
