"""What a file between a program and the person may be called, and how a person is told of it. Pure.

A name comes from a program that may mean harm, and is read by a person in a question, and later by
whatever lists a directory. So it is one part of a path, not hidden, no option, and nothing in it
acts on who reads it. `spec.FileName` refuses most of that already; what is left to refuse is what
a regular expression cannot say. Used by `files`.
"""

from __future__ import annotations

import unicodedata
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME_BYTES: Final = 240
"""File systems take 255; a number may have to fit beside it."""
NUMBERS: Final = 999
"""So many files of one name; whoever sends more does not do it for the person."""
_ACTING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, what turns the direction of writing or is not seen, and what is no character."""


def acceptable(name: str) -> bool:
    """Whether a file may be called this, wherever the name is from."""
    return (
        name != ""
        and name[0] not in ".-"
        and name == name.strip()
        and not set(name) & {"/", "\\"}
        and not any(unicodedata.category(char) in _ACTING for char in name)
        and len(name.encode("utf-8")) <= NAME_BYTES
    )


def numbered(name: str) -> Iterator[str]:
    """The name, and what to call the file where there is one of that name."""
    yield name
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    for number in range(1, NUMBERS + 1):
        yield f"{stem}-{number}{suffix}"


def to_keep(path: str, size: int | None) -> str:
    """For the question. Our words stand first: nothing in a name can change what they say."""
    return f"keep {_bytes(size)} as {_shown(path)}"


def to_send(path: str, size: int) -> str:
    return f"send the {_bytes(size)} of {_shown(path)}"


def missing(path: str) -> str:
    return f"send what is not there as a file: {_shown(path)}"


def _bytes(size: int | None) -> str:
    return "a file of unknown size" if size is None else f"{size} bytes"


def _shown(path: str) -> str:
    """Directories need not be text; the audit, and a terminal, take nothing else."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
