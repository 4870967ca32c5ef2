"""The wire types of JSON terminal escapes: error codes, field types, commands and events as values.

The spec names the packet and leaves the commands open; ours are in `commands/`, one file a theme,
each with its payload structs. Rows and columns count from 1, as in ANSI; an integer that is left
out is 1 where it counts something. Unknown members are ignored.

A text that reaches the terminal as it is cannot hold a control character: a title here must not be
a command there. Such a text is refused when it is decoded (ECARGS). The patterns serve JSON Schema
as well as Python, so they end in a lookahead: Python's `$` lets a newline pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from telex.escapes import limits
from telex.terminal import limits as terminal_limits

ATTRIBUTE: Final = 23198
"""What the answer to `CSI c` (DA1) also holds, where JSON escapes are understood."""

ECPARSE: Final = "ECPARSE"
"""Not JSON, or not strict JSON."""
ECPROTO: Final = "ECPROTO"
"""JSON that breaks a rule of packets."""
ECNOCMD: Final = "ECNOCMD"
"""No such command here."""
ECARGS: Final = "ECARGS"
"""The data is not what the command takes."""
ECTIMEOUT: Final = "ECTIMEOUT"
"""It took longer than the timeout."""
ECCANCEL: Final = "ECCANCEL"
"""The one who asked no longer wants it."""
ECDENIED: Final = "ECDENIED"
"""The person, or their policy, said no."""
ECLIMIT: Final = "ECLIMIT"
"""Larger, or more, than what is taken."""
ECBUSY: Final = "ECBUSY"
"""Something else has the only one of what it needs."""
ECROUTE: Final = "ECROUTE"
"""What it should go to cannot be reached."""
ECINTERNAL: Final = "ECINTERNAL"
"""A mistake on this side."""
ECUNSUP: Final = "ECUNSUP"
"""A known command that cannot be done here: the terminal lacks what it needs."""
ECCLOSED: Final = "ECCLOSED"
"""The other side is gone, or going."""


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
        description="A file's name: no directory, no control characters, no dot at its beginning.",
    ),
]
Row = Annotated[int, Meta(ge=1, le=65535, description="A row, counted from 1.")]
Col = Annotated[int, Meta(ge=1, le=65535, description="A column, counted from 1.")]
Times = Annotated[int, Meta(ge=1, le=65535, description="How many.")]
Signed = Annotated[int, Meta(ge=-65535, le=65535, description="How many, and which way.")]
Extent = Annotated[int, Meta(ge=1, le=1000, description="Rows or columns of a whole terminal.")]
Byte = Annotated[int, Meta(ge=0, le=255, description="0 to 255.")]
Pixels = Annotated[int, Meta(ge=0, le=65535, description="Pixels.")]
Hex = Annotated[str, Meta(pattern=rf"^#[0-9A-Fa-f]{{6}}{END}", description="`#rrggbb`.")]


class Payload(Struct, frozen=True, omit_defaults=True):
    """The base of every payload: frozen, and members with their default are left out."""


class NoData(Payload, frozen=True):
    """No data."""


class Guard(Enum):
    """What stands between a command and its effect."""

    FREE = "free"
    """Nothing: any program may do this to its terminal anyway."""
    REMOTE = "remote"
    """The person, where the program is not on this machine."""
    PERSON = "person"
    """The person, always: it reads what is theirs, or leaves the terminal."""


@dataclass(frozen=True, slots=True)
class EscapeCommand:
    """Something a program may ask of its terminal."""

    name: str
    about: str
    """One sentence."""
    payload: type[Struct]
    """What its data is. With defaults for all that may be left out."""
    level: int | None
    """1 is the VT100 core, 2 what xterm made common; None is an extension, by its namespace."""
    lower: Callable[[Any], bytes] | None = None
    """The ANSI bytes that do it, given the payload. None if it is no output: queries, streams."""
    returns: type[Struct] | None = None
    """What it answers; None for a command that needs no answer."""
    guard: Guard = Guard.FREE
    each_time: bool = False
    """Whether a person's yes is to this once, and never to the next: each file is another."""
    streamed: bool = False
    """Whether its request may come in parts. Of any other that is an error, and nothing is done."""
    deed: str = ""
    """What a person is asked to allow, after "wants to": `read your clipboard`."""
    wants: str = ""
    """What a person is told of it, if not that it is asked for: `wants to …. Do it?`"""

    @property
    def system(self) -> str:
        """What stands before the first colon: `term` of `term:cursormove`."""
        return self.name.partition(":")[0]


@dataclass(frozen=True, slots=True)
class EscapeEvent:
    """Something a terminal may tell a program that subscribed to it."""

    name: str
    about: str
    payload: type[Struct]
    modes: tuple[int, ...] = ()
    """The private modes that the person's terminal needs, for it to be told of this at all."""
