"""The wire types of JSON terminal escapes: error codes, field types, commands and events as values.

The spec defines packets and leaves the commands open. Our commands are in `commands/`, one file for
each topic, with their payload structs. Rows and columns count from 1, as in ANSI; an omitted count
is 1. Unknown members are ignored.

A text that is passed unchanged to the terminal must not contain a control character, since a title
could otherwise contain a command. Such a text is refused when it is decoded (ECARGS). The patterns
are used by JSON Schema and by Python, so they end in a lookahead: Python's `$` lets a newline pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from telex.escapes import limits
from telex.rpc.errors import Problem
from telex.terminal import limits as terminal_limits

ATTRIBUTE: Final = 23198
"""The number in the reply to `CSI c` (DA1) of a terminal with JSON escapes."""

ECPARSE: Final = "ECPARSE"
"""Not JSON, or not strict JSON."""
ECPROTO: Final = "ECPROTO"
"""JSON that is not a valid packet."""
ECNOCMD: Final = "ECNOCMD"
"""Unknown command."""
ECARGS: Final = "ECARGS"
"""The data is not valid for the command."""
ECTIMEOUT: Final = "ECTIMEOUT"
"""The deadline passed."""
ECCANCEL: Final = "ECCANCEL"
"""The requester cancelled the request."""
ECDENIED: Final = "ECDENIED"
"""The person or their policy denied the command."""
ECLIMIT: Final = "ECLIMIT"
"""A limit of size or number was exceeded."""
ECBUSY: Final = "ECBUSY"
"""A needed resource is in use, or there are too many requests."""
ECROUTE: Final = "ECROUTE"
"""The destination cannot be reached."""
ECINTERNAL: Final = "ECINTERNAL"
"""An internal error of the terminal's side."""
ECUNSUP: Final = "ECUNSUP"
"""A known command that this terminal does not support."""
ECCLOSED: Final = "ECCLOSED"
"""The peer has disconnected, or is about to."""

TOO_LARGE: Final = Problem(ECLIMIT, "The response is too large for a frame.")


END: Final = r"(?![\s\S])"
NO_CONTROLS: Final = r"^(?![\s\S]*[\x00-\x1f\x7f-\x9f])"

Text = Annotated[str, Meta(pattern=NO_CONTROLS, description="Text without control characters.")]
Title = Annotated[
    str,
    Meta(
        pattern=NO_CONTROLS,
        max_length=terminal_limits.TITLE_CHARS,
        description="A line of text without control characters.",
    ),
]
Uri = Annotated[
    str,
    Meta(
        pattern=rf"^[!-~]+{END}",
        max_length=limits.URI_BYTES,
        description="A URI: printable ASCII, anything else percent-encoded.",
    ),
]
Token = Annotated[
    str,
    Meta(pattern=rf"^[A-Za-z0-9_+.-]{{1,64}}{END}", description="Letters, digits and `_+.-`."),
]
FileName = Annotated[
    str,
    Meta(
        pattern=rf"^(?!\.)[^/\\\x00-\x1f\x7f-\x9f]{{1,255}}{END}",
        description="A file name: no directory, no control characters, no dot at the beginning.",
    ),
]
Row = Annotated[int, Meta(ge=1, le=65535, description="A row, counted from 1.")]
Col = Annotated[int, Meta(ge=1, le=65535, description="A column, counted from 1.")]
Times = Annotated[int, Meta(ge=1, le=65535, description="A count.")]
Signed = Annotated[int, Meta(ge=-65535, le=65535, description="A count; its sign is a direction.")]
Extent = Annotated[int, Meta(ge=1, le=1000, description="Rows or columns of a whole terminal.")]
Byte = Annotated[int, Meta(ge=0, le=255, description="0 to 255.")]
Pixels = Annotated[int, Meta(ge=0, le=65535, description="Pixels.")]
Hex = Annotated[str, Meta(pattern=rf"^#[0-9A-Fa-f]{{6}}{END}", description="`#rrggbb`.")]


class Payload(Struct, frozen=True, omit_defaults=True):
    """The base of every payload: frozen, and members with default values are omitted in JSON."""


class NoData(Payload, frozen=True):
    """An empty payload, without any member."""


class Guard(Enum):
    """The default permission of a command: when the person is asked."""

    FREE = "free"
    """Never: any program may do this to its terminal by ANSI."""
    REMOTE = "remote"
    """If the program is not on this machine."""
    PERSON = "person"
    """Always: the command reads the person's data, or has an effect outside the terminal."""


@dataclass(frozen=True, slots=True)
class EscapeCommand:
    """A command that a program may send to its terminal."""

    name: str
    about: str
    """A description in one sentence."""
    payload: type[Struct]
    """The type of its data, with defaults for optional members."""
    level: int | None
    """1 is the VT100 core, 2 is common since xterm; None is an extension with its own namespace."""
    lower: Callable[[Any], bytes] | None = None
    """Returns the ANSI bytes for a payload. None if the command is not output: queries, streams."""
    returns: type[Struct] | None = None
    """The type of its result; None for a command without a result."""
    guard: Guard = Guard.FREE
    each_time: bool = False
    """Whether the person is asked each time, because a yes is for one request: one file."""
    streamed: bool = False
    """Whether its request may have parts. Parts of any other command are an error."""
    deed: str = ""
    """The action in the question to the person, after "wants to": `read your clipboard`."""
    wants: str = ""
    """A whole question instead: `wants to …. Do it?`"""

    @property
    def system(self) -> str:
        """The part of the name before the first colon: `term` of `term:cursormove`."""
        return self.name.partition(":")[0]


@dataclass(frozen=True, slots=True)
class EscapeEvent:
    """An event that a terminal sends to programs that subscribed to it."""

    name: str
    about: str
    payload: type[Struct]
    modes: tuple[int, ...] = ()
    """The private modes in which a terminal reports the event."""
