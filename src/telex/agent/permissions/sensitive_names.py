"""Files that are known by their names: secrets, and what programs obey. Pure. The names themselves,
and what makes a name one of them, are in names.toml.

Used by `path_policy`, for the path as it is written, as it ends, and with each link on the way.
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
"""Names whose answer is kept: a judgement asks for the same ones again and again."""


class NamePatterns:
    """Patterns of names, and those that are none after all."""

    def __init__(
        self,
        patterns: Iterable[str],
        excepted: Iterable[str] = (),
        backups: tuple[Iterable[str], Iterable[str]] = ((), ()),
    ) -> None:
        """`backups` are what is added to a name for a copy of it, and what is put around it."""
        every = list(patterns)
        self._added: Final = re.compile(
            f"(?:{'|'.join(map(_numbered, backups[0])) or '(?!)'})\\Z", re.IGNORECASE
        )
        self._around: Final = tuple(map(_around, backups[1]))
        self.single: Final = tuple(one for one in every if "/" not in one)
        self._single: Final = _whole(self.single)
        self._excepted: Final = _whole(excepted)
        self.deep: Final = tuple(one for one in every if "/" in one)
        self._deep: Final = _within(self.deep)
        self._begun: Final = _begun(self.deep)
        self._first: Final = _whole({one.strip("/").partition("/")[0] for one in self.deep})
        self._original: Final = lru_cache(_KEPT)(self._without_additions)
        self._has_name: Final = lru_cache(_KEPT)(self._looks_like)
        self._may_begin: Final = lru_cache(_KEPT)(self._is_first)

    def __contains__(self, path: str) -> bool:
        """Whether a name of an absolute path, anywhere in it, is one of these."""
        names = path.split("/")
        if any(map(self._has_name, names)):
            return True
        originals = [*map(self._original, names)]
        if not any(map(self._may_begin, {*names, *originals})):
            return False
        ways = (path, "/".join(originals))
        return any(self._deep.search(way) is not None for way in ways)

    def begins_in(self, path: str) -> bool:
        """Whether an absolute path is the beginning of one with several names, so that whoever goes
        on from there sees the rest of it alone."""
        return any(self._begun.search(way.rstrip("/")) for way in (path, self.without_copies(path)))

    def without_copies(self, path: str) -> str:
        """With the name of what each is a copy of."""
        return "/".join(map(self._original, path.split("/")))

    def _looks_like(self, name: str) -> bool:
        original = self._original(name)
        if self._excepted.fullmatch(name) or self._excepted.fullmatch(original):
            return False
        return any(self._single.fullmatch(one) is not None for one in {name, original})

    def _without_additions(self, name: str) -> str:
        """The name of the file of which one of this name is a copy."""
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
    """By its name alone, anywhere on the way. The path is absolute."""
    path = without_format_characters(path)
    if _SYSTEM.search(path):
        return True
    if any(_IN_SECRETS.search(way) for way in (path, SECRET_NAMES.without_copies(path))):
        return True
    return _PUBLIC.sub("", path) in SECRET_NAMES or _GIT_CONFIG.search(path) is not None


def is_secret_directory(path: str) -> bool:
    """Whether what is in it is a secret by this directory's name, or by names on the way to it. The
    name alone is none: it is also a word."""
    return SECRET_NAMES.begins_in(without_format_characters(path))


def is_guarded_name(path: str) -> bool:
    """Whether a program obeys what is there, by the names in this part of a path."""
    return without_format_characters(path) in GUARDED_NAMES


def without_format_characters(path: str) -> str:
    """Without what some file systems skip when they compare names."""
    if path.isascii():
        return path
    return "".join(char for char in path if unicodedata.category(char) != "Cf")


def _whole(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_regex, patterns)) or "(?!)", re.IGNORECASE)


def _within(patterns: Iterable[str]) -> re.Pattern[str]:
    """Those from the file system's root, and those that follow any directory."""
    begun = [f"\\A{_regex(one)}" if one[0] == "/" else f"/{_regex(one)}" for one in patterns]
    return re.compile(f"(?:{'|'.join(begun) or '(?!)'})(?:/|\\Z)", re.IGNORECASE)


def _begun(patterns: Iterable[str]) -> re.Pattern[str]:
    """The first names of each pattern, at the end of a path."""
    found: dict[str, None] = {}
    for one in patterns:
        start = "\\A/" if one[0] == "/" else "/"
        names = one.strip("/").split("/")
        for count in range(1, len(names)):
            some = "/".join(names[:count])
            anywhere = some.endswith("/**")
            end = "(?:/[^/]+)*" if anywhere else ""
            found[f"{start}{_regex(some.removesuffix('/**'))}{end}"] = None
    return re.compile(f"(?:{'|'.join(found) or '(?!)'})\\Z", re.IGNORECASE)


def _regex(pattern: str) -> str:
    ways = ("[^/]*".join(map(re.escape, part.split("*"))) for part in pattern.split("**/"))
    return "(?:[^/]+/)*".join(ways)


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
"""What is there tells of all programs; a few names of it tell of the machine, or of nothing."""
OF_SECRETS: Final = ("secrets", "passwords")
_IN_SECRETS: Final = re.compile(
    rf"/(?:{'|'.join(OF_SECRETS)})/(?:[^/]+/)*[^/.]+/?\Z", re.IGNORECASE
)
"""What is in a directory of secrets and has no ending, as a password for a container has none."""
_PUBLIC: Final = re.compile(r"/\.ssh/[^/]*\.pub$", re.IGNORECASE)
_GIT_CONFIG: Final = re.compile(r"/\.git/(?:.*/)?config(?:\.worktree)?(?:/|$)", re.IGNORECASE)
"""A remote's address may have a password in it."""
