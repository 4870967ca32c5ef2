"""A git index, read: the names of tracked files and of submodules. Pure.

What is not one of the known versions, or is kept in two files, is `ValueError`, `IndexError` or
`struct.error`. Used by `git_repository`.
"""

from __future__ import annotations

import posixpath
import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from telex.agent.judging.names import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_AN_INDEX: Final = (struct.error, ValueError, IndexError)
_GITLINK_MODE: Final = 0o160000
_DIRECTORY_MODE: Final = 0o040000
_GITLINK: Final = b"\x00\x00\xe0\x00"
"""The mode of a submodule, as it is written."""
_MODE: Final = struct.Struct(">24xL12x")
_FLAGS: Final = struct.Struct(">H")
_EXTENDED: Final = 0x4000


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    """From the top of the working tree."""
    is_submodule: bool


@dataclass(frozen=True, slots=True)
class Tracked:
    """What an index says, as far as anybody here asks."""

    submodules: tuple[str, ...]
    secrets: tuple[str, ...]
    """Files that are secrets by their names, or whose names lead out of the working tree."""
    directories: tuple[str, ...]
    """Above any file."""


_ODD: Final = frozenset({"", ".", "..", ".git"})
"""Names that git puts into no index, and reads from one."""
_KEPT: Final = 8
"""Indexes whose `Tracked` is kept: to look through the names of a large one takes a second."""
_kept: dict[tuple[bytes, int], Tracked] = {}


def tracked(index: bytes, hash_bytes: int) -> Tracked:
    key = (blake2b(index).digest(), hash_bytes)
    if key not in _kept:
        found = _tracked(index, hash_bytes)
        if len(_kept) >= _KEPT:
            _kept.clear()
        _kept[key] = found
    return _kept[key]


def _tracked(index: bytes, hash_bytes: int) -> Tracked:
    submodules, secrets = [], []
    directories: set[str] = set()
    for entry in entries(index, hash_bytes):
        above = posixpath.dirname(entry.name)
        while above and above not in directories:
            directories.add(above)
            above = posixpath.dirname(above)
        if entry.is_submodule:
            submodules.append(entry.name)
        if is_secret("/" + entry.name) or not _ODD.isdisjoint(entry.name.lower().split("/")):
            secrets.append(entry.name)
    return Tracked(tuple(submodules), tuple(secrets), tuple(sorted(directories)))


def may_have_submodules(index: bytes) -> bool:
    """Whether it is worth reading for them; a split index may have them in its other file."""
    return _GITLINK in index or b"link" in index


def entries(index: bytes, hash_bytes: int) -> Iterator[Entry]:
    version, count = struct.unpack_from(">4xLL", index)
    if not index.startswith(b"DIRC") or version not in (2, 3, 4):
        raise ValueError("not an index")
    at, name = 12, b""
    for _ in range(count):
        begin = at
        (mode,) = _MODE.unpack_from(index, at)
        at += _MODE.size + hash_bytes
        (flags,) = _FLAGS.unpack_from(index, at)
        at += 4 if flags & _EXTENDED else 2
        if version == 4:
            dropped, at = _varint(index, at)
            name = name[: len(name) - dropped]
        else:
            name = b""
        end = index.index(b"\x00", at)
        name += index[at:end]
        at = end + 1 if version == 4 else end + 8 - (end - begin) % 8
        if mode == _DIRECTORY_MODE:
            raise ValueError("a sparse index: what is in the directory is not in it")
        yield Entry(name.decode("utf-8", "surrogateescape"), mode == _GITLINK_MODE)
    while at < len(index) - hash_bytes:
        (size,) = struct.unpack_from(">4xL", index, at)
        if index[at : at + 4] == b"link":
            raise ValueError("a split index")
        at += 8 + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 127
    while byte & 128:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 127)
    return value, at + 1
