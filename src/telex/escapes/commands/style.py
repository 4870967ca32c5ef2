"""Commands for the style of text: SGR, lowered and lifted.

Colours are written as the numbers of the VT100, by index (`38;5;n`), or as 24 bits (`38;2;r;g;b`:
with semicolons, which older terminals accept too). The colour of the underline is written with
colons only, because a terminal that does not know 58 would take the following numbers for styles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import Meta

from telex.escapes.commands.ansi import PARAMETERS, Lift, LiftedCommands, NotLifted, csi, plain
from telex.escapes.protocol import (
    END,
    Byte,
    EscapeCommand,
    NoData,
    Payload,
)


class Indexed(Payload, frozen=True):
    """A colour of the palette, by its number."""

    index: Byte


_FOREGROUND = Literal[30, 31, 32, 33, 34, 35, 36, 37, 90, 91, 92, 93, 94, 95, 96, 97]


_BACKGROUND = Literal[
    30, 31, 32, 33, 34, 35, 36, 37, 90, 91, 92, 93, 94, 95, 96, 97,
    40, 41, 42, 43, 44, 45, 46, 47, 100, 101, 102, 103, 104, 105, 106, 107,
]  # fmt: skip


_ColorText = Annotated[
    str, Meta(pattern=rf"^(?:default|#[0-9A-Fa-f]{{6}}){END}", description="`#rrggbb`, `default`.")
]


Color = _FOREGROUND | Indexed | _ColorText
"""An SGR number, a colour of the palette, `#rrggbb`, or `default`."""


Background = _BACKGROUND | Indexed | _ColorText
"""The same. As an SGR number, both 31 and 41 stand for a red background."""


Underline = Literal["single", "double", "curly", "dotted", "dashed"]


StyleKey = Literal[
    "color", "bgcolor", "ulcolor", "bold", "faint", "italic", "underline", "blink", "inverse",
    "hidden", "strike", "overline",
]  # fmt: skip


class SetStyle(Payload, frozen=True):
    """The style of the following text. Omitted attributes do not change."""

    color: Color | None = None
    bgcolor: Background | None = None
    ulcolor: Color | None = None
    """The colour of the underline."""
    bold: bool | None = None
    """False also ends `faint`, unless `faint` is true: ANSI has one code to end both."""
    faint: bool | None = None
    """False also ends `bold`, unless `bold` is true."""
    italic: bool | None = None
    underline: bool | Underline | None = None
    """True stands for `single`."""
    blink: bool | Literal["slow", "rapid"] | None = None
    """True stands for `slow`."""
    inverse: bool | None = None
    hidden: bool | None = None
    strike: bool | None = None
    overline: bool | None = None


class StyleKeys(Payload, frozen=True):
    """Attributes of the style to reset."""

    keys: Annotated[tuple[StyleKey, ...], Meta(max_length=12)] = ()
    """An empty list stands for all."""


class PushStyle(Payload, frozen=True):
    """The attributes of the style to save. ANSI has no numbers for the other attributes."""

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
    """An empty list stands for all."""


_OFF: Final = {
    "bold": "22",
    "faint": "22",
    "italic": "23",
    "underline": "24",
    "blink": "25",
    "inverse": "27",
    "hidden": "28",
    "strike": "29",
    "overline": "55",
    "color": "39",
    "bgcolor": "49",
    "ulcolor": "59",
}
_ON: Final = {
    "bold": "1",
    "faint": "2",
    "italic": "3",
    "inverse": "7",
    "hidden": "8",
    "strike": "9",
    "overline": "53",
}
_UNDERLINES: Final = {
    "single": "4",
    "double": "4:2",
    "curly": "4:3",
    "dotted": "4:4",
    "dashed": "4:5",
}
_BLINKS: Final = {"slow": "5", "rapid": "6"}
_COLORS: Final = {"color": 30, "bgcolor": 40}
_PUSHED: Final = {
    "bold": 1,
    "faint": 2,
    "italic": 3,
    "underline": 4,
    "blink": 5,
    "inverse": 7,
    "hidden": 8,
    "strike": 9,
    "color": 30,
    "bgcolor": 31,
}
"""The numbers of XTPUSHSGR. It has none for the other attributes."""


def _sgr(codes: list[str]) -> bytes:
    """Write the codes in as few sequences as terminals accept."""
    sequences: list[list[str]] = []
    room = 0
    for code in codes:
        takes = 1 + code.count(";") + code.count(":")
        if takes > room:
            sequences.append([])
            room = PARAMETERS
        sequences[-1].append(code)
        room -= takes
    return b"".join(f"\x1b[{';'.join(one)}m".encode("ascii") for one in sequences)


def _set(asked: SetStyle) -> bytes:
    """Codes that end an attribute come first: 22 ends bold and faint, and one of them may begin."""
    given = {key: value for key in _OFF if (value := getattr(asked, key)) is not None}
    ends = dict.fromkeys(_OFF[key] for key, value in given.items() if value in (False, "default"))
    begins = [_on(key, value) for key, value in given.items() if value not in (False, "default")]
    return _sgr([*ends, *begins])


def _on(key: str, value: object) -> str:
    if key in _ON:
        return _ON[key]
    if key == "underline":
        return _UNDERLINES["single" if value is True else str(value)]
    if key == "blink":
        return _BLINKS["slow" if value is True else str(value)]
    return _color(key, value)


def _color(key: str, value: object) -> str:
    match value:
        case Indexed(index=index):
            return f"58:5:{index}" if key == "ulcolor" else f"{_COLORS[key] + 8};5;{index}"
        case int():
            bright, index = divmod(value - (40 if value in _BACKGROUNDS else 30), 60)
            if key == "ulcolor":
                return f"58:5:{index + 8 * bright}"
            return str(_COLORS[key] + 60 * bright + index)
        case _:
            red, green, blue = bytes.fromhex(str(value)[1:])
            if key == "ulcolor":
                return f"58:2::{red}:{green}:{blue}"
            return f"{_COLORS[key] + 8};2;{red};{green};{blue}"


_BACKGROUNDS: Final = {*range(40, 48), *range(100, 108)}


def _reset(asked: StyleKeys) -> bytes:
    return _sgr([*dict.fromkeys(end for key, end in _OFF.items() if key in asked.keys)] or ["0"])


def _push(asked: PushStyle) -> bytes:
    return csi("#{", *(_PUSHED[key] for key in asked.keys))


COMMANDS: Final = (
    EscapeCommand("term:setstyle", "Set the style of the following text.", SetStyle, 1, _set),
    EscapeCommand(
        "term:resetstyle", "Reset attributes of the style, or all of them.", StyleKeys, 1, _reset
    ),
    EscapeCommand("term:pushstyle", "Save the style (XTPUSHSGR).", PushStyle, 2, _push),
    EscapeCommand(
        "term:popstyle",
        "Restore the style that was saved last (XTPOPSGR).",
        NoData,
        2,
        lambda _: csi("#}"),
    ),
)

_Style = dict[str, object]
_SIMPLE: Final[dict[str, _Style]] = {
    **{code: {key: True} for key, code in _ON.items()},
    **{code: {"underline": kind} for kind, code in _UNDERLINES.items()},
    **{code: {"blink": kind} for kind, code in _BLINKS.items()},
    **{code: {key: False} for key, code in _OFF.items()},
    **{str(n): {"color": n} for n in (*range(30, 38), *range(90, 98))},
    **{str(n): {"bgcolor": n} for n in (*range(40, 48), *range(100, 108))},
    "21": {"underline": "double"},
    "22": {"bold": False, "faint": False},
    "4:0": {"underline": False},
    "4:1": {"underline": "single"},
    "39": {"color": "default"},
    "49": {"bgcolor": "default"},
    "59": {"ulcolor": "default"},
}
_COLORED: Final = {"38": "color", "48": "bgcolor", "58": "ulcolor"}


def _lift(parameters: list[str]) -> LiftedCommands:
    """Lift all codes to one `term:setstyle`, divided where everything is reset."""
    style: _Style = {}
    codes = iter(parameters)
    for code in codes:
        if code in ("", "0"):
            if style:
                yield "term:setstyle", style
            yield "term:resetstyle", {}
            style = {}
        else:
            style |= _SIMPLE.get(code) or _lift_color(code, codes)
    if style:
        yield "term:setstyle", style


def _lift_color(code: str, rest: Iterator[str]) -> _Style:
    kind, *parts = code.split(":")
    if kind not in _COLORED:
        raise NotLifted
    if not parts:  # the form with semicolons: the next parameters belong to it
        form = next(rest, "")
        parts = [form, *(next(rest, "") for _ in range({"5": 1, "2": 3}.get(form, 0)))]
    elif parts[0] == "2" and len(parts) == 5 and not parts[1]:
        del parts[1]  # in 38:2::r:g:b, the empty field is the colour space
    match parts:
        case ["5", index]:
            return {_COLORED[kind]: {"index": _byte(index)}}
        case ["2", red, green, blue]:
            return {_COLORED[kind]: f"#{bytes(map(_byte, (red, green, blue))).hex()}"}
    raise NotLifted


def _byte(digits: str) -> int:
    if not digits.isdecimal() or len(digits) > 3 or int(digits) > 255:
        raise NotLifted
    return int(digits)


def _lift_push(parameters: list[str]) -> LiftedCommands:
    names = {str(number): key for key, number in _PUSHED.items()}
    if parameters == [""]:
        return [("term:pushstyle", {})]
    if not all(one in names for one in parameters):
        raise NotLifted
    return [("term:pushstyle", {"keys": [names[one] for one in parameters]})]


LIFTS: Final[dict[bytes, Lift]] = {
    b"\x1b[m": _lift,
    b"\x1b[#{": _lift_push,
    b"\x1b[#}": plain("term:popstyle"),
}
