"""The files that `telex adapter new` writes: the files beside this one, with the plugin's name.

They are a working plugin, so that an author changes running code instead of filling in a form. A
test loads the plugin and runs its fixtures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_FILES: Final = (
    "manifest.toml",
    "main.lua",
    "README.md",
    "fixtures/screens.toml",
)
_PLACE: Final = "@NAME@"


class DirectoryTaken(Exception):
    """The directory exists already and is not replaced."""


def write_skeleton(directory: Path, name: str) -> list[Path]:
    """Create the directory with its files, and return their paths. Raises DirectoryTaken."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise DirectoryTaken(f"{directory} exists already; choose another name or --dir") from None
    written = []
    for file in _FILES:
        path = directory / file
        path.parent.mkdir(exist_ok=True)
        text = (_HERE / file).read_text(encoding="utf-8")
        path.write_text(text.replace(_PLACE, name), encoding="utf-8")
        written.append(path)
    return written
