"""What runs a script: the program of its `#!` line, as the kernel and `env` find it. Reads files.

Used by `finding`, which judges it, and by `restricting`, which lets a plugin read it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_LINE_BYTES: Final = 256
"""As much as Linux looks at."""
_DEEP: Final = 4
"""As often as Linux takes a script for the interpreter of a script."""


def interpreters(executable: Path, path: Sequence[str]) -> list[str]:
    """All that run it, the innermost last; none for what is no script. `path` is PATH's."""
    found: list[str] = []
    program: str | None = str(executable)
    while program is not None and len(found) < 2 * _DEEP:
        programs = list(_named(program, path))
        found += programs
        program = programs[-1] if programs else None
    return found


def _named(script: str, path: Sequence[str]) -> Iterator[str]:
    words = _first_line(script)
    if not words or not os.access(words[0], os.X_OK):
        return
    yield words[0]
    if os.path.basename(words[0]) == "env":
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        programs = (os.path.join(place, name) for name in rest[:1] for place in path)
        yield from [next((one for one in programs if os.access(one, os.X_OK)), words[0])]


def _first_line(script: str) -> list[str]:
    try:
        with open(script, "rb") as file:
            first = file.read(_LINE_BYTES).partition(b"\n")[0]
    except OSError:
        return []
    return os.fsdecode(first.removeprefix(b"#!")).split() if first.startswith(b"#!") else []
