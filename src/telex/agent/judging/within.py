"""Paths that may be within a word, besides the word itself. Pure.

Programs have paths after an option's letter or `=`, between `:`, `@`, `,`, `;` and `)`, and git on
both sides of `..`: `-F f=@.env;type=x`, `:(top).env`, `HEAD:.env..HEAD`. Nobody knows which
program reads which of them as a path, so what restricts looks at all; nothing is allowed by this.
Used by `commands` and, for git, by `programs`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKS: Final = "=:@,;)"
_BETWEEN: Final = re.compile(r"[=:@,;)]|(?<=[^/])\.\.\.?(?=[^/])")
"""The dots of `a..b`, not those of `a/../b`."""
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
