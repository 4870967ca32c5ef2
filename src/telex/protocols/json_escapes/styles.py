"""How text looks."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from telex.protocols.json_escapes.values import END, Byte, Data


class Indexed(Data, frozen=True):
    """A colour of the palette."""

    index: Byte


_FOREGROUND = Literal[30, 31, 32, 33, 34, 35, 36, 37, 90, 91, 92, 93, 94, 95, 96, 97]
_BACKGROUND = Literal[
    30, 31, 32, 33, 34, 35, 36, 37, 90, 91, 92, 93, 94, 95, 96, 97,
    40, 41, 42, 43, 44, 45, 46, 47, 100, 101, 102, 103, 104, 105, 106, 107,
]  # fmt: skip
_Written = Annotated[
    str, Meta(pattern=rf"^(?:default|#[0-9A-Fa-f]{{6}}){END}", description="`#rrggbb`, `default`.")
]
Color = _FOREGROUND | Indexed | _Written
"""An SGR number, a colour of the palette, `#rrggbb`, or `default`."""
Background = _BACKGROUND | Indexed | _Written
"""The same. As a number, both 31 and 41 are a red background."""
Underline = Literal["single", "double", "curly", "dotted", "dashed"]
StyleKey = Literal[
    "color", "bgcolor", "ulcolor", "bold", "faint", "italic", "underline", "blink", "inverse",
    "hidden", "strike", "overline",
]  # fmt: skip


class SetStyle(Data, frozen=True):
    """How what is written next looks. What is left out stays as it is."""

    color: Color | None = None
    bgcolor: Background | None = None
    ulcolor: Color | None = None
    """Of the underline."""
    bold: bool | None = None
    """False also ends `faint`, unless that is true here: ANSI has one end for both."""
    faint: bool | None = None
    """False also ends `bold`, unless that is true here."""
    italic: bool | None = None
    underline: bool | Underline | None = None
    """True is `single`."""
    blink: bool | Literal["slow", "rapid"] | None = None
    """True is `slow`."""
    inverse: bool | None = None
    hidden: bool | None = None
    strike: bool | None = None
    overline: bool | None = None


class StyleKeys(Data, frozen=True):
    """Which parts of a style."""

    keys: Annotated[tuple[StyleKey, ...], Meta(max_length=12)] = ()
    """None is all."""


class PushStyle(Data, frozen=True):
    """Which parts of a style to remember. There is no way to say so of the others."""

    keys: Annotated[
        tuple[
            Literal[
                "color", "bgcolor", "bold", "faint", "italic", "underline", "blink", "inverse",
                "hidden", "strike",
            ],
            ...,
        ],
        Meta(max_length=10),
    ] = ()  # fmt: skip
    """None is all."""
