"""What a terminal tells those who subscribed. Nothing is ever told to anybody else."""

from __future__ import annotations

from typing import Final

from telex.escapes.command import Event
from telex.protocols import json_escapes as spec

EVENTS: Final = (
    # The keyboard protocol that tells more than bytes is no private mode; whoever wants a release
    # told must have the terminal say it, and `escapes.events` reads both.
    Event("event:key", "A key was pressed, or released where the terminal says so.", spec.KeyEvent),
    Event("event:mouse", "The mouse was moved, clicked or turned.", spec.MouseEvent, (1003, 1006)),
    Event(
        "event:mouseclick",
        "A button of the mouse was pressed: only that.",
        spec.MouseEvent,
        (1000, 1006),
    ),
    Event("event:paste", "Text was pasted.", spec.PasteEvent, (2004,)),
    Event("event:focus", "The terminal got the keyboard, or lost it.", spec.FocusEvent, (1004,)),
    Event("event:resize", "The terminal has another size.", spec.ResizeEvent),
    Event("event:colorscheme", "The terminal became dark, or light.", spec.ColorScheme, (2031,)),
    Event(
        "event:notification",
        "A notification with `report` was clicked, or is gone.",
        spec.NotificationEvent,
    ),
    Event("event:revoked", "Something allowed before is so no more.", spec.RevokedEvent),
)
