"""What is supported, who hears what, commands together; and what a terminal is asked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from telex.protocols.json_escapes.screen import CursorStyle
from telex.protocols.json_escapes.styles import SetStyle
from telex.protocols.json_escapes.values import END, Byte, Data, Hex
from telex.wire import limits


class Capability(Data, frozen=True):
    """How much of a system is there."""

    level: int | UnsetType = UNSET
    """Everything of this level, and of those below."""
    include: tuple[str, ...] = ()
    """Commands; `*` stands for any run of characters, colons too."""
    exclude: tuple[str, ...] = ()
    """Commands that are not there after all. It wins over the others."""
    unverified: tuple[str, ...] = ()
    """Commands and events that are there, and passed on to a terminal that cannot be asked whether
    it does them. Ours."""


class Detected(Data, frozen=True):
    """What is supported."""

    capabilities: dict[str, Capability]
    """By system."""
    capabilties: dict[str, Capability]
    """The same, as the spec spells it."""
    maxframe: int
    """The most bytes of JSON in one frame that are read here."""


class Subscribe(Data, frozen=True):
    """Which events."""

    events: Annotated[
        tuple[
            Annotated[str, Meta(pattern=rf"^event:[a-z]{{1,32}}{END}", description="An event.")],
            ...,
        ],
        Meta(max_length=32),
    ] = ()
    """To unsubscribe, none is all."""


class Subscribed(Data, frozen=True):
    """What is subscribed to now. An event that is not known here is not in it."""

    events: tuple[str, ...]


class BatchItem(Data, frozen=True):
    """One command of several."""

    command: Annotated[str, Meta(max_length=64)]
    data: Any = None
    """What that command takes. Any JSON here, because its type is that of the command."""


class Batch(Data, frozen=True):
    """Commands to be done in this order, or not at all."""

    commands: Annotated[tuple[BatchItem, ...], Meta(max_length=limits.BATCH_COMMANDS)]


What = Literal[
    "cursor", "status", "attributes", "secondary", "version", "size-cells", "size-pixels",
    "cell-pixels", "colors", "palette", "sgr", "cursorstyle", "terminfo",
]  # fmt: skip


class Report(Data, frozen=True):
    """What to tell."""

    what: What
    index: Byte = 0
    """For `palette`: which colour."""
    name: Annotated[str, Meta(pattern=rf"^[A-Za-z0-9]{{1,32}}{END}")] | None = None
    """For `terminfo`: which capability."""

    def __post_init__(self) -> None:
        if (self.what == "terminfo") != (self.name is not None):
            raise ValueError("a name is given for terminfo, and for nothing else")


class Reported(Data, frozen=True):
    """What was asked for, and only that: numbers, colours and the terminal's own name."""

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
    """`colors`, with `bg` and, if it is known, `cursor`."""
    bg: Hex | UnsetType = UNSET
    cursor: Hex | UnsetType = UNSET
    color: Hex | UnsetType = UNSET
    """`palette`."""
    style: SetStyle | UnsetType = UNSET
    """`sgr`."""
    cursorstyle: CursorStyle | UnsetType = UNSET
    """`cursorstyle`."""
    value: str | UnsetType | None = UNSET
    """`terminfo`; null where the terminal has no such capability."""
