"""Recognise secrets and guarded files by their names. Pure.

The names, and the criteria for adding one, are in names.toml. Used by `path_policy` for all
spellings of a path: as it is written, with each link, and resolved.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

_COPIES_OF_COPIES: Final = 8
_KEPT: Final = 4096
"""Names whose result is cached: a judgement checks the same names many times."""


class NamePatterns:
    """Patterns for file names; `path in patterns` tests a path."""

    def __init__(
        self,
        patterns: Iterable[str],
        excepted: Iterable[str] = (),
        backups: tuple[Iterable[str], Iterable[str]] = ((), ()),
    ) -> None:
        """Compile the patterns.

        Args:
            patterns: names with `*`, and paths with `/` and `**/`.
            excepted: names that do not count although they match.
            backups: the suffixes of copies of a file, and the patterns around their names.
        """
        every = list(patterns)
        self._added: Final = re.compile(
            f"(?:{'|'.join(map(_numbered, backups[0])) or '(?!)'})\\Z", re.IGNORECASE
        )
        self._around: Final = tuple(map(_around, backups[1]))
        self.single: Final = tuple(pattern for pattern in every if "/" not in pattern)
        self._single: Final = _whole(self.single)
        self._excepted: Final = _whole(excepted)
        self.deep: Final = tuple(pattern for pattern in every if "/" in pattern)
        self._deep: Final = _within(self.deep)
        self._prefixes: Final = _first_names(self.deep)
        self._first: Final = _whole({pattern.strip("/").partition("/")[0] for pattern in self.deep})
        self._original: Final = lru_cache(_KEPT)(self._without_additions)
        self._has_name: Final = lru_cache(_KEPT)(self._looks_like)
        self._may_begin: Final = lru_cache(_KEPT)(self._is_first)

    def __contains__(self, path: str) -> bool:
        """Return whether any name in an absolute path matches, or names that follow each other."""
        names = path.split("/")
        if any(map(self._has_name, names)):
            return True
        originals = [*map(self._original, names)]
        if not any(map(self._may_begin, {*names, *originals})):
            return False
        spellings = (path, "/".join(originals))
        return any(self._deep.search(spelling) is not None for spelling in spellings)

    def begins_in(self, path: str) -> bool:
        """Return whether an absolute path ends with the first names of a pattern with several
        names. A program that starts there sees only the rest of the names."""
        spellings = (path, self.without_copies(path))
        return any(self._prefixes.search(spelling.rstrip("/")) for spelling in spellings)

    def without_copies(self, path: str) -> str:
        """Return the path with the name of a copy replaced by the name of its original."""
        return "/".join(map(self._original, path.split("/")))

    def _looks_like(self, name: str) -> bool:
        original = self._original(name)
        if self._excepted.fullmatch(name) or self._excepted.fullmatch(original):
            return False
        return any(self._single.fullmatch(spelling) is not None for spelling in {name, original})

    def _without_additions(self, name: str) -> str:
        """Return the name of the original of which a file of this name is a copy."""
        for _ in range(_COPIES_OF_COPIES):
            before = name
            for pattern in self._around:
                if found := pattern.fullmatch(name):
                    name = found[1]
            name = self._added.sub("", name) or name
            if name == before:
                break
        return name

    def _is_first(self, name: str) -> bool:
        return self._first.fullmatch(name) is not None


def is_secret(path: str) -> bool:
    """Return whether an absolute path is a secret by any name in it."""
    path = without_format_characters(path)
    if _SYSTEM.search(path):
        return True
    if any(_IN_SECRETS.search(spelling) for spelling in (path, SECRET_NAMES.without_copies(path))):
        return True
    return _PUBLIC.sub("", path) in SECRET_NAMES or _GIT_CONFIG.search(path) is not None


def is_secret_directory(path: str) -> bool:
    """Return whether files in the directory are secrets because of its name, or of names above it.
    The directory itself is no secret, because its name is also a common word."""
    return SECRET_NAMES.begins_in(without_format_characters(path))


def is_guarded_name(path: str) -> bool:
    """Return whether programs act on the file, by the names in this part of a path."""
    return without_format_characters(path) in GUARDED_NAMES


def without_format_characters(path: str) -> str:
    """Remove the characters that some file systems ignore when they compare names."""
    if path.isascii():
        return path
    return "".join(char for char in path if unicodedata.category(char) != "Cf")


def _whole(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_regex, patterns)) or "(?!)", re.IGNORECASE)


def _within(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile patterns that match anywhere in a path; those with a leading `/` match from the
    root of the file system."""
    starts = (("\\A" if pattern[0] == "/" else "/") + _regex(pattern) for pattern in patterns)
    return re.compile(f"(?:{'|'.join(starts) or '(?!)'})(?:/|\\Z)", re.IGNORECASE)


def _first_names(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile patterns that match the first names of each pattern at the end of a path."""
    found: dict[str, None] = {}
    for pattern in patterns:
        start = "\\A/" if pattern[0] == "/" else "/"
        names = pattern.strip("/").split("/")
        for count in range(1, len(names)):
            some = "/".join(names[:count])
            anywhere = some.endswith("/**")
            end = "(?:/[^/]+)*" if anywhere else ""
            found[f"{start}{_regex(some.removesuffix('/**'))}{end}"] = None
    return re.compile(f"(?:{'|'.join(found) or '(?!)'})\\Z", re.IGNORECASE)


def _regex(pattern: str) -> str:
    parts = ("[^/]*".join(map(re.escape, part.split("*"))) for part in pattern.split("**/"))
    return "(?:[^/]+/)*".join(parts)


def _numbered(added: str) -> str:
    return "[0-9]+".join(map(re.escape, added.split("[0-9]")))


def _around(pattern: str) -> re.Pattern[str]:
    before, _, after = pattern.partition("*")
    return re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.IGNORECASE)


def _read(table: dict[str, str]) -> tuple[str, ...]:
    return tuple(name for group in table.values() for name in group.split())


_TABLES: Final = msgspec.convert(
    tomllib.loads(files(__package__).joinpath("names.toml").read_text("utf-8")),
    dict[str, dict[str, str]],
)
BACKUP_NAMES: Final = {name: tuple(words.split()) for name, words in _TABLES["backup"].items()}
SECRET_NAMES: Final = NamePatterns(
    _read(_TABLES["secret"]),
    _read(_TABLES["not_secret"]),
    (BACKUP_NAMES["added"], BACKUP_NAMES["around"]),
)
GUARDED_NAMES: Final = NamePatterns(_read(_TABLES["guarded"]))
_SYSTEM: Final = re.compile(
    r"^/(?:proc|dev)/(?!(?:cpuinfo|meminfo|version|loadavg|null|zero|u?random|std(?:in|out|err))$)"
    r"|^/(?:proc|dev)$",
    re.IGNORECASE,
)
"""`/proc` and `/dev` reveal data of all processes. The excepted names reveal only facts about the
machine, or nothing."""
OF_SECRETS: Final = ("secrets", "passwords")
_IN_SECRETS: Final = re.compile(
    rf"/(?:{'|'.join(OF_SECRETS)})/(?:[^/]+/)*[^/.]+/?\Z", re.IGNORECASE
)
"""Files without a suffix in a directory of secrets, such as the password of a container."""
_PUBLIC: Final = re.compile(r"/\.ssh/[^/]*\.pub$", re.IGNORECASE)
_GIT_CONFIG: Final = re.compile(r"/\.git/(?:.*/)?config(?:\.worktree)?(?:/|$)", re.IGNORECASE)
"""Git configuration files: the URL of a remote may contain a password."""
