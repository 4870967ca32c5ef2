"""The plugin that `telex plugin new` writes: one of the files beside this one, with the plugin's
name.

Each is a working plugin that passes `telex plugin check`, so that an author changes running code.
The plugins in shell and for Node are also the examples in `examples/plugins`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

LANGUAGES: Final = {"python": "greet.py", "shell": "greet.sh", "node": "greet.mjs"}
_HERE: Final = Path(__file__).parent
_NAME: Final = "greet"
_PLACES: Final = ("NAME={}\n", 'NAME = "{}"', 'Plugin("{}"', "./{}\n")
"""The places of the name."""


class FileTaken(Exception):
    """The file exists already and is not replaced."""


def write_skeleton(path: Path, name: str, language: str) -> None:
    """Write an executable. Raises FileTaken."""
    text = skeleton(name, language)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o755)
    except FileExistsError:
        raise FileTaken(f"{path} exists already; choose another name or --dir") from None


def skeleton(name: str, language: str) -> str:
    text = (_HERE / LANGUAGES[language]).read_text(encoding="utf-8")
    for place in _PLACES:
        text = text.replace(place.format(_NAME), place.format(name))
    if language == "python":  # this interpreter has telex
        text = text.replace("#!/usr/bin/env python3\n", f"#!{sys.executable}\n", 1)
    return text
