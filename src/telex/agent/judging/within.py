"""Paths that may be within a word, besides the word itself. Pure.

Programs have paths after an option's letter or `=`, between `:`, `@`, `,`, `;` and `)`, and git on
both sides of `..`: `-F f=@.env;type=x`, `:(top).env`, `HEAD:.env..HEAD`; and addresses have letters
that are written as numbers: `file:///x/.e%6Ev`. Nobody knows which
program reads which of them as a path, so what restricts looks at all; nothing is allowed by this.
Used by `commands` and, for git, by `programs`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKS: Final = "=:@,;)"
_BETWEEN: Final = re.compile(r"[=:@,;)]|(?<=[^/])\.\.\.?(?=[^/])")
"""The dots of `a..b`, not those of `a/../b`."""
_FILE: Final = re.compile(r"file://[^/]*(/.*)", re.IGNORECASE | re.DOTALL)
_ONE_OF_ONE: Final = re.compile(r"\{([^{},\s]*)\}|\[(.)(?:-\2)?\]")
_LETTERS: Final = 3
"""Of short options that are written as one word, before a value: `-sSox`."""


def parts(word: str) -> tuple[str, ...]:
    """The word first. As many as it has marks, and no more: a word may be all marks."""
    return tuple(dict.fromkeys(part for part in _parts(word) if part))


def _parts(word: str) -> Iterator[str]:
    yield word
    if re.match(r"-[^-]", word):
        yield from (word[at:] for at in range(2, 2 + _LETTERS))
    for mark in _MARKS:
        # A path may itself have marks in it, so also all that follows one.
        yield from (word.partition(mark)[2], word.rpartition(mark)[2])
    yield from _BETWEEN.split(word)
    for decoded in _of_address(word):
        yield decoded
        yield decoded.partition(":")[2]
        if found := _FILE.search(decoded):
            yield found[1]


def _of_address(word: str) -> Iterator[str]:
    """As a program reads an address: `%41` is a letter, and to curl so are `{A}` and `[A-A]`."""
    plain = _ONE_OF_ONE.sub(lambda found: found[1] or found[2], word)
    for one in dict.fromkeys((word, plain)):
        if "%" in one:
            yield unquote(one, errors="surrogateescape")
        if one != word or "://" in one:
            yield one
