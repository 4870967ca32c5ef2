"""The only file of `judging` that looks at the disk: where links lead and what `*` stands for."""

from __future__ import annotations

import os
from typing import Final

from telex.wire.limits import AGENT_GLOB_NAMES

_ENTRIES: Final = 50 * AGENT_GLOB_NAMES


class Disk:
    """`paths.Files` for real."""

    def real(self, path: str) -> str:
        # Not strict: a file that is about to be written is not there yet, and in a loop of links
        # the rest stays as it is written; nobody can open that.
        return os.path.realpath(path)

    def names(self, pattern: str) -> tuple[str, ...] | None:
        """As a shell does, or more than it: hidden names by a written dot, and `?` for one byte or
        one character, since shells go by the locale."""
        found = ["/"]
        seen = 0
        for part in (part for part in pattern.split("/") if part):
            reached: list[str] = []
            for directory in found:
                entries = self._entries(directory, part)
                seen += len(entries)
                reached += entries
            found = reached
            if len(found) > AGENT_GLOB_NAMES or seen > _ENTRIES:
                return None
        return tuple(found)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def _entries(self, directory: str, part: str) -> list[str]:
        if "*" not in part and "?" not in part:
            path = os.path.join(directory, part)
            return [path] if os.path.lexists(path) else []
        try:
            names = os.listdir(directory)
        except OSError:
            return []  # a shell cannot look into it either
        return [
            os.path.join(directory, name)
            for name in names
            if (part.startswith(".") or not name.startswith("."))
            and (_fits(part, name) or _fits(_raw(part), _raw(name)))
        ]


def _raw(name: str) -> str:
    """A character for each byte."""
    return os.fsencode(name).decode("latin-1")


def _fits(pattern: str, name: str) -> bool:
    """`*` and `?` alone. No regular expression: the pattern is an agent's, and time is ours.

    The last `*` takes one more character whenever what follows it does not fit; no earlier one has
    to be tried again.
    """
    at = here = 0
    star = taken = -1
    while here < len(name):
        if pattern[at : at + 1] == "*":
            star, taken, at = at, here, at + 1
        elif pattern[at : at + 1] in ("?", name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            taken += 1
            at, here = star + 1, taken
        else:
            return False
    return pattern[at:].strip("*") == ""
