"""`term:report` and `term:querymode` as the questions of ANSI, and their answers as data.

For a surface that has a terminal to ask: a screen model, or the person's. An answer is numbers,
colours and a name in plain letters, and nothing that a program could have put there. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from telex.escapes.ansi import NotLifted
from telex.escapes.catalogue.modes import mode_number
from telex.escapes.catalogue.style import LIFTS
from telex.protocols.json_escapes import (
    CursorStyle,
    ModeState,
    QueryMode,
    Report,
    Reported,
    SetStyle,
)

if TYPE_CHECKING:
    from collections.abc import Callable

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


def question(asked: Report | QueryMode) -> bytes:
    """What to ask a terminal."""
    if isinstance(asked, QueryMode):
        number, private = mode_number(asked.mode, asked.private)
        return b"\x1b[%b%d$p" % (b"?" if private else b"", number)
    if asked.what == "palette":
        return b"\x1b]4;%d;?\x1b\\" % asked.index
    if asked.what == "terminfo":
        return b"\x1bP+q%b\x1b\\" % str(asked.name).encode().hex().encode()
    return _QUESTIONS[asked.what]


def answer(asked: Report | QueryMode, said: bytes) -> Reported | ModeState | None:
    """What the terminal's answer says; None if it says nothing that was asked."""
    if isinstance(asked, QueryMode):
        found = re.search(rb"\x1b\[\??\d+;([0-4])\$y", said)
        return ModeState(_STATES[int(found[1])]) if found else None
    if asked.what == "colors":
        return _colours(said)
    form, read = _ANSWERS[asked.what]
    found = re.search(form, said)
    return read(found) if found else None


def _colours(said: bytes) -> Reported | None:
    told = {found[1]: _hex(found, 2) for found in re.finditer(rb"\x1b\]1([0-2]);" + _RGB, said)}
    if b"0" not in told or b"1" not in told:
        return None
    return Reported(fg=told[b"0"], bg=told[b"1"], cursor=told.get(b"2", msgspec.UNSET))


_RGB: Final = rb"rgb:([0-9a-fA-F]{2})[0-9a-fA-F]*/([0-9a-fA-F]{2})[0-9a-fA-F]*/([0-9a-fA-F]{2})"


def _hex(found: re.Match[bytes], first: int) -> str:
    """A colour of which the terminal told up to four digits each; two are enough."""
    return "#" + b"".join(found.group(first, first + 1, first + 2)).decode().lower()


def _numbers(found: re.Match[bytes]) -> tuple[int, ...]:
    return tuple([int(digits) for digits in found[1].split(b";") if digits])


def _style(found: re.Match[bytes]) -> Reported | None:
    """The pen, in the words of `term:setstyle`; what is plain is left out."""
    style: dict[str, object] = {}
    try:
        for name, data in LIFTS[b"\x1b[m"](found[1].decode().split(";")):
            style = {} if name == "term:resetstyle" else {**style, **data}
        return Reported(style=msgspec.convert(style, SetStyle))
    except (NotLifted, msgspec.ValidationError):
        return None


def _cursor_style(found: re.Match[bytes]) -> Reported:
    number = int(found[1] or 0)
    blink = number % 2 == 1
    return Reported(cursorstyle=CursorStyle(_SHAPES[(number + 1) // 2], blink))


def _capability(found: re.Match[bytes]) -> Reported:
    if found[1] == b"0" or not found[2]:
        return Reported(value=None)
    return Reported(value=bytes.fromhex(found[2].decode()).decode("ascii", "backslashreplace"))


_ANSWERS: Final[dict[str, tuple[bytes, Callable[[re.Match[bytes]], Reported | None]]]] = {
    "cursor": (
        rb"\x1b\[\??(\d+);(\d+)R",
        lambda found: Reported(row=int(found[1]), col=int(found[2])),
    ),
    "status": (rb"\x1b\[([03])n", lambda found: Reported(ok=found[1] == b"0")),
    "attributes": (rb"\x1b\[\?([\d;]+)c", lambda found: Reported(attributes=_numbers(found))),
    "secondary": (rb"\x1b\[>([\d;]+)c", lambda found: Reported(attributes=_numbers(found))),
    "version": (rb"\x1bP>\|([ -~]{1,64})", lambda found: Reported(version=found[1].decode())),
    "size-cells": (
        rb"\x1b\[8;(\d+);(\d+)t",
        lambda found: Reported(rows=int(found[1]), cols=int(found[2])),
    ),
    "size-pixels": (
        rb"\x1b\[4;(\d+);(\d+)t",
        lambda found: Reported(height=int(found[1]), width=int(found[2])),
    ),
    "cell-pixels": (
        rb"\x1b\[6;(\d+);(\d+)t",
        lambda found: Reported(height=int(found[1]), width=int(found[2])),
    ),
    "palette": (rb"\x1b\]4;\d+;" + _RGB, lambda found: Reported(color=_hex(found, 1))),
    "sgr": (rb"\x1bP1\$r([\d;:]*)m", _style),
    "cursorstyle": (rb"\x1bP1\$r([0-6]?) q", _cursor_style),
    "terminfo": (rb"\x1bP([01])\+r(?:[0-9a-fA-F]+=((?:[0-9a-fA-F]{2})*))?", _capability),
}
