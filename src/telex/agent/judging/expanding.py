"""The words of a simple command as its program gets them. Pure, but for `Files`.

A pattern stands for names, and a name that looks like an option is one: so it is looked up, and
what it stands for is judged. Where it may stand for others by the time the command is run, or in
another shell, nobody knows. Used by `commands`.
"""

from __future__ import annotations

import fnmatch
import posixpath
from typing import TYPE_CHECKING

from telex.agent.judging.programs import reading
from telex.agent.judging.script import Direction, Script, Word

if TYPE_CHECKING:
    from telex.agent.judging.paths import Paths


def changes_files(script: Script) -> bool:
    """Whether a pattern may stand for other names by the time it is its turn."""
    commands = list(script.commands())
    writes = any(
        redirect.direction is not Direction.READ and redirect.target.text != "/dev/null"
        for command in commands
        for redirect in command.redirects
    )
    programs = [[word.text for word in command.words] for command in commands if command.words]
    return writes or (len(programs) > 1 and any(_may_change(argv) for argv in programs))


def expanded(
    words: tuple[Word, ...], cwd: str, paths: Paths, *, changing: bool
) -> tuple[str, ...] | None:
    """With names in place of patterns; None if not all of them are known."""
    if any(word.scripts for word in words):
        return None
    argv: list[str] = []
    for word in words:
        text = as_text(word, paths)
        if not word.is_pattern:
            argv.append(text)
            continue
        names = paths.files.names(paths.absolute(text, cwd))
        if changing or names is None or word is words[0] or _is_odd(text, cwd):
            return None
        argv += [_as_written(name, text) for name in names] or [text]
    return tuple(argv)


def listed(words: tuple[Word, ...], cwd: str, paths: Paths) -> dict[str, tuple[str, ...]] | None:
    """The directories that a shell looks into for the patterns among the words, each with the names
    that it finds there: also a program that reads nothing prints what a pattern stands for. None if
    not all of them are known."""
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        if not word.is_pattern:
            continue
        pattern = paths.absolute(as_text(word, paths), cwd)
        found.setdefault(posixpath.dirname(pattern[: _first_unknown(pattern)]), ())
        names = paths.files.names(pattern)
        if names is None:
            return None
        for name in names:
            above = posixpath.dirname(name)
            found[above] = (*found.get(above, ()), name)
    return found


def _first_unknown(pattern: str) -> int:
    return min(at for at in (pattern.find("*"), pattern.find("?")) if at >= 0)


def as_text(word: Word, paths: Paths) -> str:
    return paths.home + word.text[1:] if word.is_home else word.text


def _may_change(argv: list[str]) -> bool:
    found = reading(argv)
    return argv[0] != "cd" and (found is None or found[1].refused != "")


def _as_written(name: str, pattern: str) -> str:
    """As the shell gives it: relative where the pattern is, with as many parts as that has."""
    if pattern.startswith("/"):
        return name
    parts = [part for part in pattern.split("/") if part]
    return "/".join(name.split("/")[-len(parts) :])


def _is_odd(pattern: str, cwd: str) -> bool:
    """Where a pattern's own directory is one, or after a link `..` would be another. To some shells
    `.*` is `..` too."""
    leads_up = any(
        fnmatch.fnmatchcase("..", part) for part in pattern.split("/") if part[:1] == "."
    )
    return leads_up or "*" in cwd or "?" in cwd
