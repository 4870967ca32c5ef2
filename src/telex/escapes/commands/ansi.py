"""Building and reading the ANSI sequences that commands are lowered to and lifted from. Pure.

Functions that put text into a sequence refuse control characters once more, although the payload
types have done so: a payload made in Python was not validated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from telex.wire.escape import BEL

LiftedCommands = Iterable[tuple[str, Mapping[str, object]]]
"""Commands by their names, with their data."""
Lift = Callable[[list[str]], LiftedCommands]
"""Given the parameters of a sequence, the commands that do the same. For a CSI they are what stands
between its semicolons; for an OSC all that follows its number, as one."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NUMBER: Final = re.compile(r"[0-9]{0,5}")


PARAMETERS: Final = 16
"""The most numbers in one sequence. Terminals drop sequences that have more than they keep room
for, and 16 is what all of them do; beyond it they differ."""


class NotLifted(Exception):
    """Inside `escapes` only: this sequence has no command that does exactly the same."""


def csi(final: str, *parameters: int) -> bytes:
    """`CSI 1;2 H`. What stands before the final byte (`?`, a blank) comes with it: `?h`, ` q`."""
    private = "?" if final[0] == "?" else ""
    numbers = ";".join(map(str, parameters))
    return f"\x1b[{private}{numbers}{final.removeprefix('?')}".encode("ascii")


def osc(number: int, *fields: str) -> bytes:
    """`OSC 8 ; a ; b`. BEL ends it: what every terminal takes."""
    return f"\x1b]{number}".encode("ascii") + b"".join(b";" + text(one) for one in fields) + BEL


def text(value: str) -> bytes:
    """The bytes of a text that is only that."""
    if _CONTROL.search(value):
        raise msgspec.ValidationError("The text has a control character: leave it out.")
    return encoded(value)


def encoded(value: str) -> bytes:
    """The bytes of any text. Python can hold half a character; nothing that writes it can."""
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise msgspec.ValidationError("The text has half a character: leave it out.") from None


def numbers(parameters: list[str], *defaults: int) -> list[int]:
    """The parameters as numbers, each with what it is when it is left out."""
    if len(parameters) > len(defaults) or not all(map(_NUMBER.fullmatch, parameters)):
        raise NotLifted
    given = [
        int(one) if one else default for one, default in zip(parameters, defaults, strict=False)
    ]
    return [*given, *defaults[len(given) :]]


def count(parameters: list[str]) -> int:
    """The one parameter of a sequence that does something so many times; 0 means 1."""
    return max(1, *numbers(parameters, 1))


def counting(name: str, sign: int = 1, member: str = "n") -> Lift:
    """A lift of such a sequence to a command that takes the same number."""
    return lambda parameters: [(name, {member: sign * count(parameters)})]


def plain(name: str, **data: object) -> Lift:
    """A lift of a sequence without parameters."""

    def lift(parameters: list[str]) -> LiftedCommands:
        if parameters not in ([], [""]):
            raise NotLifted
        return [(name, data)]

    return lift
