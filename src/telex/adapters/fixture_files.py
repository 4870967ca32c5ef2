"""Fixtures on the disk: read for `telex adapter test`, written by `telex adapter record`.

Nothing here replaces a file. What is written is meant to be shared, so whoever writes it has taken
the secrets out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.adapters.fixtures import EXPECTED, SCREEN, Expected, collect, written

if TYPE_CHECKING:
    from pathlib import Path

    from telex.adapters.fixtures import Fixture

DIRECTORY: Final = "fixtures"
"""Beside the manifest."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class FixtureTaken(Exception):
    """A fixture of that name is there already."""


def read_fixtures(directory: Path) -> tuple[list[Fixture], list[str]]:
    """Those in a directory, by name, and a sentence for each file that is not one of a pair."""
    if not directory.is_dir():
        return [], []
    return collect(
        {
            path.name: path.read_text(encoding="utf-8", errors="replace")
            for path in sorted(directory.iterdir())
            if path.name.endswith((SCREEN, EXPECTED))
        }
    )


def free_name(directory: Path) -> str:
    """The next number that nobody has."""
    taken = [path.name.partition(".")[0] for path in directory.glob("*.*")]
    return f"{max([int(name) for name in taken if name.isdecimal()], default=0) + 1:03}"


def save_fixture(directory: Path, name: str, text: str, expected: Expected) -> Path:
    """Write a pair; the path of its screen. Raises FixtureTaken."""
    directory.mkdir(parents=True, exist_ok=True)
    screen, told = directory / f"{name}{SCREEN}", directory / f"{name}{EXPECTED}"
    if told.exists():
        raise FixtureTaken(f"{told.name} is there already; choose another name")
    try:
        with screen.open("x", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")
    except FileExistsError:
        raise FixtureTaken(f"{screen.name} is there already; choose another name") from None
    with told.open("x", encoding="utf-8") as file:
        file.write(written(expected))
    return screen
