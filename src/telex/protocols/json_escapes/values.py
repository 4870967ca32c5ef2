"""What fields are made of: texts that hold no command, places, counts, colours.

No text that reaches a terminal as it is can hold a control character: what is a title here must not
be a command there. A text that has one is refused when it is decoded (ECARGS). The patterns are
those of JSON Schema as much as Python's, so they end in a lookahead: Python's `$` lets a newline
pass.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from telex.wire import limits

END: Final = r"(?![\s\S])"
NO_CONTROLS: Final = r"^(?![\s\S]*[\x00-\x1f\x7f-\x9f])"

Text = Annotated[str, Meta(pattern=NO_CONTROLS, description="Text without control characters.")]
Title = Annotated[
    str,
    Meta(
        pattern=NO_CONTROLS,
        max_length=limits.TITLE_CHARS,
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


class Data(Struct, frozen=True, omit_defaults=True):
    """What all have in common: they do not change, and what is left out stays out."""


class Nothing(Data, frozen=True):
    """No data."""
