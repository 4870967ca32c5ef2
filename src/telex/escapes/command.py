"""What a command of JSON terminal escapes is, as a value; and what an event is.

`catalogue` has all of them. Everything else is made from these: the schema, the reference page,
what `detect` answers, the typed helpers, the bytes. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msgspec import Struct


class Guard(Enum):
    """What stands between a command and its effect."""

    FREE = "free"
    """Nothing: any program may do this to its terminal anyway."""
    REMOTE = "remote"
    """The person, where the program is not on this machine."""
    PERSON = "person"
    """The person, always: it reads what is theirs, or leaves the terminal."""


@dataclass(frozen=True, slots=True)
class Command:
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
class Event:
    """Something a terminal may tell a program that subscribed to it."""

    name: str
    about: str
    payload: type[Struct]
    modes: tuple[int, ...] = ()
    """The private modes that the person's terminal needs, for it to be told of this at all."""
