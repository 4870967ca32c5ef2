"""Commands for the window and around the text: title, directory, links, colours, reports."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from telex.escapes.commands import core
from telex.escapes.commands.ansi import (
    Lift,
    LiftedCommands,
    NotLifted,
    csi,
    numbers,
    osc,
    plain,
    text,
)
from telex.escapes.protocol import (
    Byte,
    EscapeCommand,
    Extent,
    Guard,
    Hex,
    Payload,
    Text,
    Title,
    Token,
    Uri,
)


class SetTitle(Payload, frozen=True):
    """The titles of the window and its icon; at least one of them."""

    title: Title | None = None
    icon: Title | None = None

    def __post_init__(self) -> None:
        if self.title is None and self.icon is None:
            raise ValueError("give a title, an icon, or both")


class TitleStack(Payload, frozen=True):
    """The title of the window, of its icon, or both."""

    which: Literal["both", "icon", "title"] = "both"


class Cwd(Payload, frozen=True):
    """A directory, as `file://host/path`."""

    uri: Uri


class WindowResize(Payload, frozen=True):
    """The new size of the window, in cells."""

    rows: Extent
    cols: Extent


class WindowOp(Payload, frozen=True):
    """An operation of the window."""

    op: Literal[
        "iconify", "deiconify", "raise", "lower", "refresh", "maximize", "unmaximize",
        "fullscreen", "unfullscreen",
    ]  # fmt: skip


class Palette(Payload, frozen=True):
    """Colours to change. Resets are done first."""

    set: Annotated[dict[Byte, Hex], Meta(max_length=256)] = field(default_factory=dict)
    """Colours by their number in the palette."""
    fg: Hex | None = None
    bg: Hex | None = None
    cursor: Hex | None = None
    reset: Annotated[
        tuple[Literal["palette", "fg", "bg", "cursor"] | Byte, ...], Meta(max_length=260)
    ] = ()


class Hyperlink(Payload, frozen=True):
    """The beginning or the end of a link; with a text, the whole link."""

    uri: Uri | None = None
    id: Token | None = None
    """Parts of a link with the same id belong together."""
    text: Text | None = None
    end: bool = False

    def __post_init__(self) -> None:
        if self.end == (self.uri is not None) or (self.end and (self.id or self.text is not None)):
            raise ValueError("give a uri to begin a link, or only end: true")


_WHICH: Final = ("both", "icon", "title")
_OPS: Final = {
    "deiconify": (1,),
    "iconify": (2,),
    "raise": (5,),
    "lower": (6,),
    "refresh": (7,),
    "unmaximize": (9, 0),
    "maximize": (9, 1),
    "unfullscreen": (10, 0),
    "fullscreen": (10, 1),
}
_DYNAMIC: Final = {"fg": 10, "bg": 11, "cursor": 12}


def _title(asked: SetTitle) -> bytes:
    if asked.title == asked.icon:
        return osc(0, asked.title or "")
    icon = b"" if asked.icon is None else osc(1, asked.icon)
    return icon if asked.title is None else icon + osc(2, asked.title)


def _link(asked: Hyperlink) -> bytes:
    if asked.uri is None:
        return osc(8, "", "")
    begin = osc(8, "" if asked.id is None else f"id={asked.id}", asked.uri)
    return begin if asked.text is None else begin + text(asked.text) + osc(8, "", "")


def _palette(asked: Palette) -> bytes:
    parts = [_reset(one) for one in asked.reset]
    parts += [osc(4, str(index), _rgb(color)) for index, color in asked.set.items()]
    for name, number in _DYNAMIC.items():
        if (color := getattr(asked, name)) is not None:
            parts.append(osc(number, _rgb(color)))
    return b"".join(parts)


def _reset(what: str | int) -> bytes:
    match what:
        case int():
            return osc(104, str(what))
        case "palette":
            return osc(104)
        case _:
            return osc(100 + _DYNAMIC[what])


def _rgb(color: str) -> str:
    return f"rgb:{color[1:3]}/{color[3:5]}/{color[5:7]}".lower()


COMMANDS: Final = (
    EscapeCommand("term:title", "Set the title of the window or its icon.", SetTitle, 2, _title),
    EscapeCommand(
        "term:titlepush",
        "Save the titles of window and icon.",
        TitleStack,
        2,
        lambda asked: csi("t", 22, _WHICH.index(asked.which)),
    ),
    EscapeCommand(
        "term:titlepop",
        "Restore the titles that were saved last.",
        TitleStack,
        2,
        lambda asked: csi("t", 23, _WHICH.index(asked.which)),
    ),
    EscapeCommand(
        "term:cwd", "Report the program's working directory.", Cwd, 2, lambda a: osc(7, a.uri)
    ),
    EscapeCommand("term:hyperlink", "Begin, end, or write a link.", Hyperlink, 2, _link),
    EscapeCommand("term:palette", "Change colours, or reset them.", Palette, 2, _palette),
    EscapeCommand(
        "term:resize",
        "Resize the window.",
        WindowResize,
        2,
        lambda asked: csi("t", 8, asked.rows, asked.cols),
        # It moves everything that the person sees in the terminal.
        guard=Guard.PERSON,
        deed="resize your window",
    ),
    EscapeCommand(
        "term:window",
        "Iconify, raise or maximize the window, and so on.",
        WindowOp,
        2,
        lambda asked: csi("t", *_OPS[asked.op]),
        # A window that is raised receives keys that were meant for another window.
        guard=Guard.PERSON,
        deed="move, raise or hide your window",
    ),
    EscapeCommand(
        "term:report",
        "Report a property of the terminal.",
        core.TermReport,
        1,
        returns=core.TermReported,
    ),
)

_LINK: Final = re.compile(r"(?:id=([^:;]+))?;(.*)", re.DOTALL)
_COLOR: Final = re.compile(
    r"rgb:([0-9A-Fa-f]{2})/([0-9A-Fa-f]{2})/([0-9A-Fa-f]{2})|#([0-9A-Fa-f]{6})"
)


def _lift_title(*members: str) -> Lift:
    return lambda rest: [("term:title", dict.fromkeys(members, rest[0]))]


def _lift_link(rest: list[str]) -> LiftedCommands:
    found = _LINK.fullmatch(rest[0])
    if found is None or (found[1] and not found[2]):
        raise NotLifted
    data = {"id": found[1], "uri": found[2]} if found[2] else {"end": True}
    return [("term:hyperlink", data)]


def _hex(color: str) -> str:
    found = _COLOR.fullmatch(color)
    if found is None:
        raise NotLifted
    return "#" + "".join(part for part in found.groups() if part).lower()


def _lift_colors(rest: list[str]) -> LiftedCommands:
    fields = rest[0].split(";")
    if len(fields) % 2:
        raise NotLifted
    indexes = [_index(one) for one in fields[::2]]
    return [("term:palette", {"set": dict(zip(indexes, map(_hex, fields[1::2]), strict=True))})]


def _index(digits: str) -> int:
    if not digits:
        raise NotLifted
    return numbers([digits], 0)[0]


def _lift_dynamic(name: str) -> Lift:
    return lambda rest: [("term:palette", {name: _hex(rest[0])})]


def _lift_reset(rest: list[str]) -> LiftedCommands:
    for one in rest[0].split(";") if rest else ():
        yield "term:palette", {"reset": [_index(one)]}
    if not rest:
        yield "term:palette", {"reset": ["palette"]}


def _lift_window(parameters: list[str]) -> LiftedCommands:
    asked = tuple(_index(one) for one in parameters)
    match asked:
        case (22 | 23 as number, which) if which < len(_WHICH):
            name = "term:titlepush" if number == 22 else "term:titlepop"
            return [(name, {"which": _WHICH[which]})]
        case (8, rows, cols):
            return [("term:resize", {"rows": rows, "cols": cols})]
    for op, known in _OPS.items():
        if known == asked:
            return [("term:window", {"op": op})]
    raise NotLifted


LIFTS: Final[dict[bytes, Lift]] = {
    b"\x1b]0;": _lift_title("title", "icon"),
    b"\x1b]1;": _lift_title("icon"),
    b"\x1b]2;": _lift_title("title"),
    b"\x1b]7;": lambda rest: [("term:cwd", {"uri": rest[0]})],
    b"\x1b]8;": _lift_link,
    b"\x1b]4;": _lift_colors,
    **{f"\x1b]{number};".encode(): _lift_dynamic(name) for name, number in _DYNAMIC.items()},
    b"\x1b]104;": _lift_reset,
    b"\x1b]104": _lift_reset,
    **{
        f"\x1b]{100 + number}".encode(): plain("term:palette", reset=[name])
        for name, number in _DYNAMIC.items()
    },
    b"\x1b[t": _lift_window,
}
