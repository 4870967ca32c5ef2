"""What is around the text: title, directory, links, colours, the window itself, and questions."""

from __future__ import annotations

import re
from typing import Final

from telex.escapes.ansi import Lift, Made, NotLifted, csi, numbers, osc, plain, text
from telex.escapes.command import Command, Guard
from telex.protocols import json_escapes as spec

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


def _title(asked: spec.SetTitle) -> bytes:
    if asked.title == asked.icon:
        return osc(0, asked.title or "")
    icon = b"" if asked.icon is None else osc(1, asked.icon)
    return icon if asked.title is None else icon + osc(2, asked.title)


def _link(asked: spec.Hyperlink) -> bytes:
    if asked.uri is None:
        return osc(8, "", "")
    begin = osc(8, "" if asked.id is None else f"id={asked.id}", asked.uri)
    return begin if asked.text is None else begin + text(asked.text) + osc(8, "", "")


def _palette(asked: spec.Palette) -> bytes:
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
    Command("term:title", "Name the window, its icon, or both.", spec.SetTitle, 2, _title),
    Command(
        "term:titlepush",
        "Remember the names of window and icon.",
        spec.TitleStack,
        2,
        lambda asked: csi("t", 22, _WHICH.index(asked.which)),
    ),
    Command(
        "term:titlepop",
        "Go back to the names remembered last.",
        spec.TitleStack,
        2,
        lambda asked: csi("t", 23, _WHICH.index(asked.which)),
    ),
    Command(
        "term:cwd", "Tell the directory the program is in.", spec.Cwd, 2, lambda a: osc(7, a.uri)
    ),
    Command("term:hyperlink", "Begin, end, or write a link.", spec.Hyperlink, 2, _link),
    Command("term:palette", "Change colours, or reset them.", spec.Palette, 2, _palette),
    Command(
        "term:resize",
        "Make the window another size.",
        spec.Resize,
        2,
        lambda asked: csi("t", 8, asked.rows, asked.cols),
        # It moves what the person looks at, and everything else in the terminal with it.
        guard=Guard.PERSON,
        deed="resize your window",
    ),
    Command(
        "term:window",
        "Iconify, raise, maximise the window, and so on.",
        spec.Window,
        2,
        lambda asked: csi("t", *_OPS[asked.op]),
        # A window that comes to the front takes keys that were meant for another.
        guard=Guard.PERSON,
        deed="move, raise or hide your window",
    ),
    Command("term:report", "Ask the terminal about itself.", spec.Report, 1, returns=spec.Reported),
)

_LINK: Final = re.compile(r"(?:id=([^:;]+))?;(.*)", re.DOTALL)
_COLOR: Final = re.compile(
    r"rgb:([0-9A-Fa-f]{2})/([0-9A-Fa-f]{2})/([0-9A-Fa-f]{2})|#([0-9A-Fa-f]{6})"
)


def _lift_title(*members: str) -> Lift:
    return lambda rest: [("term:title", dict.fromkeys(members, rest[0]))]


def _lift_link(rest: list[str]) -> Made:
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


def _lift_colors(rest: list[str]) -> Made:
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


def _lift_reset(rest: list[str]) -> Made:
    for one in rest[0].split(";") if rest else ():
        yield "term:palette", {"reset": [_index(one)]}
    if not rest:
        yield "term:palette", {"reset": ["palette"]}


def _lift_window(parameters: list[str]) -> Made:
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
