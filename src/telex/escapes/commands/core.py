"""Core commands: `detect`, `ping`, subscriptions; and the structs of batches and reports.

`cancel` is not a command but a member of a packet. `term:report` and `term:querymode` are sent to a
terminal as ANSI queries (`report_question`), and the reply is parsed into data (`report_answer`):
numbers, colours and a name in printable ASCII, never text that a program could have chosen. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from telex.escapes import limits
from telex.escapes.commands.ansi import NotLifted
from telex.escapes.commands.cursor import CursorStyle
from telex.escapes.commands.dec_modes import ModeState, QueryMode, mode_number
from telex.escapes.commands.style import LIFTS, SetStyle
from telex.escapes.protocol import (
    END,
    Byte,
    Col,
    EscapeCommand,
    EscapeEvent,
    Guard,
    Hex,
    NoData,
    Payload,
    Row,
    Token,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Capability(Payload, frozen=True):
    """The supported part of a system."""

    level: int | UnsetType = UNSET
    """All commands of this level and of lower levels are supported."""
    include: tuple[str, ...] = ()
    """Supported commands; `*` matches any run of characters, colons too."""
    exclude: tuple[str, ...] = ()
    """Commands that are not supported. It overrides the other members."""
    unverified: tuple[str, ...] = ()
    """Commands and events that are passed on to a terminal that cannot be asked whether it supports
    them. An extension of telex."""


class Detected(Payload, frozen=True):
    """The supported systems, and the size of frames."""

    capabilities: dict[str, Capability]
    """By system."""
    capabilties: dict[str, Capability]
    """The same, in the spelling of the spec."""
    maxframe: int
    """The most bytes of JSON that the terminal reads in one frame."""


class Subscribe(Payload, frozen=True):
    """The events of a subscription, to begin or to end it."""

    events: Annotated[
        tuple[
            Annotated[str, Meta(pattern=rf"^event:[a-z]{{1,32}}{END}", description="An event.")],
            ...,
        ],
        Meta(max_length=32),
    ] = ()
    """In `term:unsubscribe`, an empty list stands for all."""


class Subscribed(Payload, frozen=True):
    """All subscriptions of the program. Unknown events are not in it."""

    events: tuple[str, ...]


class BatchItem(Payload, frozen=True):
    """One command of a batch."""

    command: Annotated[str, Meta(max_length=64)]
    data: Any = None
    """The data of that command. The schema allows any JSON, because the type depends on the
    command."""


class CommandBatch(Payload, frozen=True):
    """Commands to execute in this order, all or none."""

    commands: Annotated[tuple[BatchItem, ...], Meta(max_length=limits.BATCH_COMMANDS)]


What = Literal[
    "cursor", "status", "attributes", "secondary", "version", "size-cells", "size-pixels",
    "cell-pixels", "colors", "palette", "sgr", "cursorstyle", "terminfo",
]  # fmt: skip


class TermReport(Payload, frozen=True):
    """The property of the terminal to report."""

    what: What
    index: Byte = 0
    """The number of the colour, for `palette`."""
    name: Annotated[str, Meta(pattern=rf"^[A-Za-z0-9]{{1,32}}{END}")] | None = None
    """The name of the capability, for `terminfo`."""

    def __post_init__(self) -> None:
        if (self.what == "terminfo") != (self.name is not None):
            raise ValueError("`terminfo` requires a name, and nothing else has one")


class TermReported(Payload, frozen=True):
    """The requested property, and no other: numbers, colours and the terminal's own name."""

    row: int | UnsetType = UNSET
    """`cursor`, with `col`."""
    col: int | UnsetType = UNSET
    ok: bool | UnsetType = UNSET
    """`status`."""
    attributes: tuple[int, ...] | UnsetType = UNSET
    """`attributes` and `secondary`."""
    version: str | UnsetType = UNSET
    """`version`."""
    rows: int | UnsetType = UNSET
    """`size-cells`, with `cols`."""
    cols: int | UnsetType = UNSET
    width: int | UnsetType = UNSET
    """`size-pixels` and `cell-pixels`, with `height`."""
    height: int | UnsetType = UNSET
    fg: Hex | UnsetType = UNSET
    """`colors`, with `bg` and, if known, `cursor`."""
    bg: Hex | UnsetType = UNSET
    cursor: Hex | UnsetType = UNSET
    color: Hex | UnsetType = UNSET
    """`palette`."""
    style: SetStyle | UnsetType = UNSET
    """`sgr`."""
    cursorstyle: CursorStyle | UnsetType = UNSET
    """`cursorstyle`."""
    value: str | UnsetType | None = UNSET
    """`terminfo`; null if the terminal does not have the capability."""


COMMANDS: Final = (
    EscapeCommand("detect", "Report supported commands and events.", NoData, 1, returns=Detected),
    EscapeCommand("ping", "Send an empty response.", NoData, 1, returns=NoData),
    # Behind ssh or tmux the terminal cannot see the requester, so the person is asked. For keys and
    # pastes the person is always asked (`server`), since a subscriber gets all of the keyboard.
    EscapeCommand(
        "term:subscribe",
        "Subscribe to events.",
        Subscribe,
        1,
        returns=Subscribed,
        guard=Guard.REMOTE,
        deed="receive the events of this terminal",
    ),
    EscapeCommand(
        "term:unsubscribe",
        "End subscriptions.",
        Subscribe,
        1,
        returns=Subscribed,
    ),
)


_STATES: Final = ("unknown", "set", "reset", "perm-set", "perm-reset")
_SHAPES: Final = ("default", "block", "underline", "bar")

_QUESTIONS: Final = {
    "cursor": b"\x1b[6n",
    "status": b"\x1b[5n",
    "attributes": b"\x1b[c",
    "secondary": b"\x1b[>c",
    "version": b"\x1b[>q",
    "size-cells": b"\x1b[18t",
    "size-pixels": b"\x1b[14t",
    "cell-pixels": b"\x1b[16t",
    "colors": b"\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b]12;?\x1b\\",
    "sgr": b"\x1bP$qm\x1b\\",
    "cursorstyle": b"\x1bP$q q\x1b\\",
}


def report_question(asked: TermReport | QueryMode) -> bytes:
    """Return the ANSI query for a report."""
    if isinstance(asked, QueryMode):
        number, private = mode_number(asked.mode, asked.private)
        return b"\x1b[%b%d$p" % (b"?" if private else b"", number)
    if asked.what == "palette":
        return b"\x1b]4;%d;?\x1b\\" % asked.index
    if asked.what == "terminfo":
        return b"\x1bP+q%b\x1b\\" % str(asked.name).encode().hex().encode()
    return _QUESTIONS[asked.what]


def report_answer(asked: TermReport | QueryMode, reply: bytes) -> TermReported | ModeState | None:
    """Parse the terminal's reply; None if it does not have the requested property."""
    if isinstance(asked, QueryMode):
        found = re.search(rb"\x1b\[\??\d+;([0-4])\$y", reply)
        return ModeState(_STATES[int(found[1])]) if found else None
    if asked.what == "colors":
        return _colours(reply)
    form, read = _ANSWERS[asked.what]
    found = re.search(form, reply)
    return read(found) if found else None


def _colours(reply: bytes) -> TermReported | None:
    colours = {found[1]: _hex(found, 2) for found in re.finditer(rb"\x1b\]1([0-2]);" + _RGB, reply)}
    if b"0" not in colours or b"1" not in colours:
        return None
    return TermReported(fg=colours[b"0"], bg=colours[b"1"], cursor=colours.get(b"2", msgspec.UNSET))


_RGB: Final = rb"rgb:([0-9a-fA-F]{2})[0-9a-fA-F]*/([0-9a-fA-F]{2})[0-9a-fA-F]*/([0-9a-fA-F]{2})"


def _hex(found: re.Match[bytes], first: int) -> str:
    """Return a colour. The terminal sends up to four digits for each component; two are enough."""
    return "#" + b"".join(found.group(first, first + 1, first + 2)).decode().lower()


def _numbers(found: re.Match[bytes]) -> tuple[int, ...]:
    return tuple([int(digits) for digits in found[1].split(b";") if digits])


def _style(found: re.Match[bytes]) -> TermReported | None:
    """Return the current style as data of `term:setstyle`, without plain attributes."""
    style: dict[str, object] = {}
    try:
        for name, data in LIFTS[b"\x1b[m"](found[1].decode().split(";")):
            style = {} if name == "term:resetstyle" else {**style, **data}
        return TermReported(style=msgspec.convert(style, SetStyle))
    except (NotLifted, msgspec.ValidationError):
        return None


def _cursor_style(found: re.Match[bytes]) -> TermReported:
    number = int(found[1] or 0)
    blink = number % 2 == 1
    return TermReported(cursorstyle=CursorStyle(_SHAPES[(number + 1) // 2], blink))


def _capability(found: re.Match[bytes]) -> TermReported:
    if found[1] == b"0" or not found[2]:
        return TermReported(value=None)
    return TermReported(value=bytes.fromhex(found[2].decode()).decode("ascii", "backslashreplace"))


_ANSWERS: Final[dict[str, tuple[bytes, Callable[[re.Match[bytes]], TermReported | None]]]] = {
    "cursor": (
        rb"\x1b\[\??(\d+);(\d+)R",
        lambda found: TermReported(row=int(found[1]), col=int(found[2])),
    ),
    "status": (rb"\x1b\[([03])n", lambda found: TermReported(ok=found[1] == b"0")),
    "attributes": (rb"\x1b\[\?([\d;]+)c", lambda found: TermReported(attributes=_numbers(found))),
    "secondary": (rb"\x1b\[>([\d;]+)c", lambda found: TermReported(attributes=_numbers(found))),
    "version": (rb"\x1bP>\|([ -~]{1,64})", lambda found: TermReported(version=found[1].decode())),
    "size-cells": (
        rb"\x1b\[8;(\d+);(\d+)t",
        lambda found: TermReported(rows=int(found[1]), cols=int(found[2])),
    ),
    "size-pixels": (
        rb"\x1b\[4;(\d+);(\d+)t",
        lambda found: TermReported(height=int(found[1]), width=int(found[2])),
    ),
    "cell-pixels": (
        rb"\x1b\[6;(\d+);(\d+)t",
        lambda found: TermReported(height=int(found[1]), width=int(found[2])),
    ),
    "palette": (rb"\x1b\]4;\d+;" + _RGB, lambda found: TermReported(color=_hex(found, 1))),
    "sgr": (rb"\x1bP1\$r([\d;:]*)m", _style),
    "cursorstyle": (rb"\x1bP1\$r([0-6]?) q", _cursor_style),
    "terminfo": (rb"\x1bP([01])\+r(?:[0-9a-fA-F]+=((?:[0-9a-fA-F]{2})*))?", _capability),
}


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
