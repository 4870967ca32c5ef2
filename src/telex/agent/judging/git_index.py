"""A git index, read: the names of tracked files and of submodules. Pure.

It is read as git does, which goes by lengths that are written down, by several threads from places
that are written down too, and without a look at the checksum. What is not one of the known
versions, is kept in two files, has an extension that is not known, or says a thing in two ways that
differ, is `ValueError`, `IndexError` or `struct.error`. Used by `git_repository`.
"""

from __future__ import annotations

import posixpath
import struct
from dataclasses import dataclass
from hashlib import blake2b, sha1, sha256
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
_LONG_NAME: Final = 0xFFF
"""Of the flags, a name's length; or that it is at least so long."""
_HEADER: Final = 12
_COMPRESSED: Final = 4
"""The version in which a name is what differs from the one before."""
_SHA1: Final = 20
_END_OF_ENTRIES: Final = b"EOIE"
_OFFSETS: Final = b"IEOT"
_EXTENSIONS: Final = frozenset({b"TREE", b"REUC", b"UNTR", b"FSMN", _END_OF_ENTRIES, _OFFSETS})
"""By which no other files are tracked. Not `link`, half an index, nor `sdir`, a sparse one."""


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
    """All of them, in order. Whoever stops before the end does not know whether it is an index."""
    version, count = struct.unpack_from(">4xLL", index)
    if not index.startswith(b"DIRC") or version not in (2, 3, 4):
        raise ValueError("not an index")
    end = len(index) - hash_bytes
    _check_sum(index[:end], index[end:])
    at, name = _HEADER, b""
    begins: dict[int, tuple[int, bool]] = {}
    for number in range(count):
        begin = at
        (mode,) = _MODE.unpack_from(index, at)
        at += _MODE.size + hash_bytes
        (flags,) = _FLAGS.unpack_from(index, at)
        at += 4 if flags & _EXTENDED else 2
        kept = 0
        if version == _COMPRESSED:
            dropped, at = _varint(index, at)
            kept = len(name) - dropped
            if kept < 0:
                raise ValueError("more is left out of a name than it has")
        name_end = index.index(b"\x00", at, end)
        name = name[:kept] + index[at:name_end]
        if min(len(name), _LONG_NAME) != flags & _LONG_NAME:
            raise ValueError("a name is not as long as it says")
        at = name_end + 1 if version == _COMPRESSED else name_end + 8 - (name_end - begin) % 8
        if index[name_end:at].strip(b"\x00") or at > end:
            raise ValueError("something is between two entries")
        begins[begin] = (number, kept == 0)
        if mode == _DIRECTORY_MODE:
            raise ValueError("a sparse index: what is in the directory is not in it")
        yield Entry(name.decode("utf-8", "surrogateescape"), mode == _GITLINK_MODE)
    _check_extensions(index[:end], at, begins, count)


def _check_sum(content: bytes, written: bytes) -> None:
    """Git may be told to write none."""
    made = sha1(content, usedforsecurity=False) if len(written) == _SHA1 else sha256(content)
    if written.strip(b"\x00") and made.digest() != written:
        raise ValueError("the checksum is another")


def _check_extensions(
    content: bytes, at: int, begins: dict[int, tuple[int, bool]], count: int
) -> None:
    entries_end = at
    while at < len(content):
        (size,) = struct.unpack_from(">4xL", content, at)
        kind, data = content[at : at + 4], content[at + 8 : at + 8 + size]
        at += 8 + size
        if kind not in _EXTENSIONS:
            raise ValueError("a split or sparse index, or an extension that is not known")
        if kind == _END_OF_ENTRIES and struct.unpack_from(">L", data)[0] != entries_end:
            raise ValueError("the entries end elsewhere")
        if kind == _OFFSETS:
            _check_offsets(data, begins, count)
    if at != len(content):
        raise ValueError("an extension is longer than the index")


def _check_offsets(data: bytes, begins: dict[int, tuple[int, bool]], count: int) -> None:
    """From each of these places a thread of git reads so many entries, the first of which has its
    whole name."""
    (version,) = struct.unpack_from(">L", data)
    blocks = list(struct.iter_unpack(">LL", data[4:]))
    done = 0
    for place, number in blocks:
        if begins.get(place) != (done, True):
            raise ValueError("a thread reads from elsewhere")
        done += number
    if version != 1 or done != count:
        raise ValueError("threads read other entries")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 127
    while byte & 128:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 127)
    return value, at + 1
