"""Builds and reads ANSI sequences, for the functions that lower and lift commands. Pure.

Functions that put text into a sequence refuse control characters again, although the payload types
refuse them too: a payload made in Python was not validated.
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
"""Returns the commands that are equivalent to a sequence, from its parameters. For a CSI these are
the texts between its semicolons; for an OSC, all text after its number as one parameter."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NUMBER: Final = re.compile(r"[0-9]{0,5}")


PARAMETERS: Final = 16
"""The most numbers in one sequence. Terminals drop sequences with more numbers than they can store,
and all of them can store 16."""


class NotLifted(Exception):
    """A sequence has no command with exactly the same effect. Used inside `escapes` only."""


def csi(final: str, *parameters: int) -> bytes:
    """Build `CSI 1;2 H`. `final` includes a prefix or intermediate byte: `?h`, ` q`."""
    private = "?" if final[0] == "?" else ""
    numbers = ";".join(map(str, parameters))
    return f"\x1b[{private}{numbers}{final.removeprefix('?')}".encode("ascii")


def osc(number: int, *fields: str) -> bytes:
    """Build `OSC 8 ; a ; b`, ended by BEL, which every terminal accepts."""
    return f"\x1b]{number}".encode("ascii") + b"".join(b";" + text(one) for one in fields) + BEL


def text(value: str) -> bytes:
    """Encode a text. Raises `msgspec.ValidationError` for control characters."""
    if _CONTROL.search(value):
        raise msgspec.ValidationError("The text has a control character: remove it.")
    return encoded(value)


def encoded(value: str) -> bytes:
    """Encode any text. Raises `msgspec.ValidationError` for a lone surrogate, which a Python string
    can contain and UTF-8 cannot.
    """
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise msgspec.ValidationError("The text has a lone surrogate: remove it.") from None


def numbers(parameters: list[str], *defaults: int) -> list[int]:
    """Parse parameters as numbers, with defaults for omitted ones."""
    if len(parameters) > len(defaults) or not all(map(_NUMBER.fullmatch, parameters)):
        raise NotLifted
    given = [
        int(one) if one else default for one, default in zip(parameters, defaults, strict=False)
    ]
    return [*given, *defaults[len(given) :]]


def count(parameters: list[str]) -> int:
    """Parse the single parameter of a sequence with a repeat count; 0 means 1."""
    return max(1, *numbers(parameters, 1))


def counting(name: str, sign: int = 1, member: str = "n") -> Lift:
    """Return a lift of such a sequence to a command with the same number."""
    return lambda parameters: [(name, {member: sign * count(parameters)})]


def plain(name: str, **data: object) -> Lift:
    """Return a lift of a sequence without parameters."""

    def lift(parameters: list[str]) -> LiftedCommands:
        if parameters not in ([], [""]):
            raise NotLifted
        return [(name, data)]

    return lift
