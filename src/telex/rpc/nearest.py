"""Finds the known names that are nearest to an unknown one, for the error of a misspelt method.

Three readings of the names are compared, and the first reading with a match is used: the whole
name, its words in another order (`list_sessions`), and its last word alone (`snapshot`). Case and
separators are ignored. The result holds names of our own table and no text of the request, so it is
safe to type into a program. Below is the same for members of a message: `unknown_members`. Pure;
used by `methods`, and wherever else a table of names is searched.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Struct

from telex.rpc import limits
from telex.rpc.errors import Condition, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SHOWN: Final = 3
"""Names in one error message: longer lists belong in the reference."""
_ALIKE: Final = 0.7
"""A lower similarity is chance: `session.` alone makes names of one namespace half alike."""
_AS_GOOD: Final = 0.05
"""Names that are less similar than the best by more than this are left out."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD: Final = re.compile(r"[a-z0-9]+")


class Nearest(Struct, frozen=True):
    """The `data` member of the error."""

    nearest: tuple[str, ...]


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three known names, the nearest first; none for a name that is too long."""
    if len(name) > limits.MISSPELT_NAME_CHARS:
        return ()
    wanted = _words(name)
    table = {other: _words(other) for other in known}
    for reading in (".".join, _reordered, _last):
        if found := _closest(reading(wanted), table, reading):
            return found
    return ()


def unknown_method(name: str, known: Iterable[str], detail: str = "") -> Problem:
    """Return the error for a method that is not in the table."""
    near = nearest_names(name, known)
    hint = f"{detail} {did_you_mean(near)}".strip()
    data = Nearest(near) if near else UNSET
    return Problem.of(Condition.METHOD, hint, data)


def did_you_mean(names: tuple[str, ...]) -> str:
    """Return a question with the names in it; empty if there are none."""
    if not names:
        return ""
    *others, last = names
    return f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"


def _closest(
    wanted: str, table: dict[str, list[str]], reading: Callable[[list[str]], str]
) -> tuple[str, ...]:
    matcher = SequenceMatcher(None, b=wanted, autojunk=False)
    scored = [(_likeness(matcher, reading(words)), name) for name, words in table.items()]
    best = max((score for score, _ in scored), default=0.0)
    good = [(-score, name) for score, name in scored if score >= max(_ALIKE, best - _AS_GOOD)]
    return tuple(name for _, name in sorted(good)[:_SHOWN])


def _likeness(matcher: SequenceMatcher[str], text: str) -> float:
    """Return the similarity, testing the cheap upper bounds first: most names are not alike."""
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
        return 0.0
    return matcher.ratio()


def _words(name: str) -> list[str]:
    return _WORD.findall(_HUMP.sub(".", name).lower())


def _reordered(words: list[str]) -> str:
    return ".".join(sorted(words))


def _last(words: list[str]) -> str:
    return words[-1] if words else ""
