"""A shell command as values: what `shell_reading` makes of a text and everybody else looks at.

A `Script` holds only what the reader is sure of. There is no value here for a loop, a function or a
variable: a text with one in it is a `NotUnderstood`, and nobody has to remember to look for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Joint(StrEnum):
    """What stands before a pipeline."""

    START = ""
    THEN = ";"
    """Also a new line."""
    IF_GOOD = "&&"
    IF_BAD = "||"


class Direction(StrEnum):
    """Of a redirect."""

    READ = "<"
    WRITE = ">"
    APPEND = ">>"


@dataclass(frozen=True, slots=True)
class Word:
    """One word, after quotes were taken off."""

    source: str
    """As it is written."""
    text: str
    """What the program gets, unless one of the next three says otherwise."""
    is_home: bool = False
    """It begins with an unquoted `~`, which `text` still has."""
    is_pattern: bool = False
    """`*` and `?` in `text` stand for names; none of them was quoted."""
    scripts: tuple[Script, ...] = ()
    """What is in its `$(…)`. What they print is in the word, so that nobody knows `text`."""

    @property
    def is_plain(self) -> bool:
        return not (self.is_home or self.is_pattern or self.scripts)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A file in place of standard input, output or error. `2>&1` opens no file and is not kept."""

    source: str
    direction: Direction
    target: Word


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command. No words: only its redirects happen."""

    source: str
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]

    @property
    def scripts(self) -> Iterator[Script]:
        """Whatever runs before it does."""
        for word in (*self.words, *(redirect.target for redirect in self.redirects)):
            yield from word.scripts


@dataclass(frozen=True, slots=True)
class Pipeline:
    joint: Joint
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Script:
    pipelines: tuple[Pipeline, ...]

    def commands(self) -> Iterator[Command]:
        """Every simple command, those in substitutions first, as they run."""
        for pipeline in self.pipelines:
            for command in pipeline.commands:
                for script in command.scripts:
                    yield from script.commands()
                yield command


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """Why a text was not read, and where. Whoever gets one asks the person."""

    why: str
    at: int
    """The character's offset."""
