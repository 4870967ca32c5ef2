"""The files that git ignores: the rules of `.gitignore` files, without running git.

A rule of a deeper directory wins over one of a directory above it, and what is below an ignored
directory is ignored, whatever its own rules say, as in git. The rules are read from the sandbox on
demand, each file once; `.git/info/exclude` of the root counts, the person's own excludes file does
not. Blocks.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from pathspec import PathSpec

from telex.agent.sandbox_files import FileRefused, OutsideSandbox, read_text

if TYPE_CHECKING:
    from pathspec.pattern import Pattern

    from telex.agent.sandbox_files import Sandbox

_NAME: Final = ".gitignore"
_EXCLUDES: Final = ".git/info/exclude"
_SYNTAX: Final = "gitignore"


class IgnoreRules:
    """The rules of one sandbox, for one request."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._specs: dict[str, PathSpec[Pattern] | None] = {}
        self._ignored_directories: dict[str, bool] = {"": False}

    def ignores(self, place: str, *, is_directory: bool) -> bool:
        """Return whether git ignores a path, which is relative to the root."""
        place = "" if place == os.curdir else place
        if not is_directory:
            return self.ignores(os.path.dirname(place), is_directory=True) or self._matches(place)
        if place not in self._ignored_directories:
            above = self.ignores(os.path.dirname(place), is_directory=True)
            self._ignored_directories[place] = above or self._matches(f"{place}/")
        return self._ignored_directories[place]

    def _matches(self, path: str) -> bool:
        """Apply the rules of each directory above a path, the deepest first."""
        directory = os.path.dirname(path.rstrip("/"))
        while True:
            for file in self._files(directory):
                spec = self._spec(file)
                inner = os.path.relpath(path, directory or os.curdir) + _end(path)
                found = spec and spec.check_file(inner)
                if found and found.include is not None:
                    return found.include
            if not directory:
                return False
            directory = os.path.dirname(directory)

    @staticmethod
    def _files(directory: str) -> tuple[str, ...]:
        return (os.path.join(directory, _NAME), *([] if directory else [_EXCLUDES]))

    def _spec(self, file: str) -> PathSpec[Pattern] | None:
        if file not in self._specs:
            self._specs[file] = self._read(file)
        return self._specs[file]

    def _read(self, file: str) -> PathSpec[Pattern] | None:
        try:
            lines = read_text(self._sandbox, file).decode("utf-8", "replace").splitlines()
        except (OSError, FileRefused, OutsideSandbox):  # most directories have none
            return None
        return PathSpec.from_lines(_SYNTAX, filter(_is_valid, lines), backend="re2")


def _is_valid(line: str) -> bool:
    """Return whether a line is a pattern or a comment. git passes over an invalid one too."""
    try:
        PathSpec.from_lines(_SYNTAX, [line], backend="re2")
    except (ValueError, re.error):
        return False
    return True


def _end(path: str) -> str:
    return "/" if path.endswith("/") else ""
