"""A reader's words, told apart: options that are known to do no harm, values, and paths. Pure.

What is not listed is refused, so that an option nobody here knows (of a newer version, of another
system, an abbreviation of `--output`) asks. So is a word that begins with `-` where a value or an
operand is due: if the program has it otherwise, it is an option. The lists are in readers.toml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from telex.agent.judging.showing import in_quotes

if TYPE_CHECKING:
    from collections.abc import Sequence


def names(text: str) -> frozenset[str]:
    """A list of words, as it is best read in code."""
    return frozenset(text.split())


class Operands(StrEnum):
    """What the words are that are no options."""

    PATHS = "paths"
    TEXT = "text"
    """Printed, counted, compared; never opened."""
    PATTERN_THEN_PATHS = "pattern_then_paths"
    """The first is a pattern, unless an option gave it."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Reader:
    """A program that writes nothing and runs nothing, as long as its options are these."""

    flags: str = ""
    """Letters of short options without a value."""
    values: str = ""
    """Letters of those with a value, which is looked at like a path."""
    texts: str = ""
    """And of those whose value is never opened: patterns, separators."""
    numbered: str = ""
    """And of those with or without a number, which is never a word of its own: `-U`, `-U5`."""
    long: frozenset[str] = frozenset()
    long_texts: frozenset[str] = frozenset()
    operands: Operands = Operands.PATHS
    most: int | None = None
    """So many operands; where one more would be written."""
    here: bool = False
    """Without an operand, it is about the working directory."""
    recursive: bool = False
    """So it is, and it goes below directories."""
    counts: bool = False
    """`-20` is an option."""
    needs_trust: bool = False
    """It runs what the workspace's own files tell it to run."""
    pattern_options: frozenset[str] = frozenset({"e", "regexp"})
    files_only: bool = False
    """Given a directory, it reads all that is in it, hidden files too."""
    skips_hidden: bool = False
    """It reads all that is below a directory but what is hidden, unless it begins there."""
    prints: bool = False
    """Of git: it prints what is in tracked files."""
    shows: frozenset[str] = frozenset()
    """Options by which it does, or says whether something is in them."""
    hides: frozenset[str] = frozenset()
    """Options by which it does not, without one of the others."""
    compares_files: bool = False
    """Of git: it prints files that are no part of the repository, where it finds two paths
    outside of its working tree, or no repository."""
    by_id: bool = False
    """It prints objects that are named by their ids, whatever paths follow."""
    enters_links: bool = False
    """It reads tracked files also where a directory on the way is a link by now."""


@dataclass(slots=True)
class Used:
    """What a command's words say."""

    paths: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    everywhere: bool = False
    """It goes through all of the root, whatever the directory and its words."""
    options: set[str] = field(default_factory=set)
    """Letters and long names."""
    operands: tuple[str, ...] = ()
    """Of git: the words that may be paths, as they are written."""
    refused: str = ""
    """Why this is not a reader's use; empty when it is."""


def prints_contents(reader: Reader, found: Used) -> bool:
    """Whether a git command, with these options, prints what is in tracked files."""
    if not found.options.isdisjoint(reader.shows):
        return True
    return reader.prints and found.options.isdisjoint(reader.hides)


def used(reader: Reader, arguments: Sequence[str]) -> Used:
    """`arguments` come after the reader's name."""
    return _Walk(reader, list(arguments)).walk()


class _Walk:
    def __init__(self, reader: Reader, rest: list[str]) -> None:
        self._reader, self._rest = reader, rest
        self._used = Used()
        self._operands: list[str] = []
        self._has_pattern = False

    def walk(self) -> Used:
        while self._rest and not self._used.refused:
            word = self._rest.pop(0)
            if word == "--":
                self._after_dashes()
                break
            if word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and word != "-":
                self._short(word)
            else:
                self._operands.append(word)
        if not self._used.refused:
            self._place_operands()
        return self._used

    def _after_dashes(self) -> None:
        # To git, `--` may be the value of an option before it, and what follows an option again.
        looks = [word for word in self._rest if word.startswith("-") and word != "-"]
        if looks and (self._reader.needs_trust or self._reader.operands is Operands.PATHS):
            self._used.refused = f"{in_quotes(looks[0])} may be an option"
        self._operands += self._rest

    def _long(self, word: str) -> None:
        name, equals, value = word[2:].partition("=")
        reader = self._reader
        self._used.options.add(name)
        if name in reader.long:
            self._has_pattern |= name in reader.pattern_options
            return
        if name in reader.long_texts:
            self._value(name, value if equals else None, text=True)
        else:
            self._used.refused = f"the option {in_quotes(f'--{name}')} is not known to be harmless"

    def _short(self, word: str) -> None:
        reader = self._reader
        if self._is_count(word):
            return
        for at, letter in enumerate(word[1:], start=2):
            self._used.options.add(letter)
            if letter in reader.flags:
                continue
            if letter in reader.numbered and re.fullmatch(r"[0-9]*", word[at:], re.ASCII):
                return
            if letter not in reader.values and letter not in reader.texts:
                told = in_quotes(f"-{letter}")
                self._used.refused = f"the option {told} is not known to be harmless"
            else:
                self._value(letter, word[at:] or None, text=letter in reader.texts)
            return

    def _is_count(self, word: str) -> bool:
        """`-20`; after `-n` it is harmless too, whichever of the two the program takes it for."""
        return self._reader.counts and re.fullmatch(r"-[0-9]+", word, re.ASCII) is not None

    def _value(self, option: str, value: str | None, *, text: bool) -> None:
        if value is None and not self._rest:
            self._used.refused = f"the option {in_quotes(option)} has no value"
            return
        if value is None:
            value = self._rest.pop(0)
            if value.startswith("-") and value != "-" and not self._is_count(value):
                self._used.refused = (
                    f"{in_quotes(value)} may be an option and not the value of {in_quotes(option)}"
                )
        (self._used.texts if text else self._used.paths).append(value)
        self._has_pattern |= option in self._reader.pattern_options

    def _place_operands(self) -> None:
        reader, operands = self._reader, self._operands
        if reader.most is not None and len(operands) > reader.most:
            self._used.refused = "with so many arguments, one of them may be written"
            return
        match reader.operands:
            case Operands.TEXT:
                self._used.texts += operands
            case Operands.NONE if operands:
                self._used.refused = "with an argument, it may change something"
            case Operands.PATTERN_THEN_PATHS if operands and not self._has_pattern:
                self._used.texts.append(operands.pop(0))
        if reader.operands in (Operands.PATHS, Operands.PATTERN_THEN_PATHS):
            self._used.paths += [path for path in operands if path != "-"]
            if (reader.here or reader.recursive) and not self._used.paths:
                self._used.paths.append(".")
