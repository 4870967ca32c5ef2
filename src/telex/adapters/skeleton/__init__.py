"""What `telex adapter new` writes: the files beside this one, with the plugin's name in them.

They are a plugin that works, so that an author changes something that runs instead of filling a
form. A test loads it and runs its fixture.
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
    """Something is there already, and it is not replaced."""


def write_skeleton(directory: Path, name: str) -> list[Path]:
    """Make the directory and what belongs in it; the files, in order. Raises DirectoryTaken."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise DirectoryTaken(
            f"{directory} is there already; choose another name or --dir"
        ) from None
    written = []
    for file in _FILES:
        path = directory / file
        path.parent.mkdir(exist_ok=True)
        text = (_HERE / file).read_text(encoding="utf-8")
        path.write_text(text.replace(_PLACE, name), encoding="utf-8")
        written.append(path)
    return written
