"""Parse a git index: the names of tracked files and of submodules. Pure.

The index is parsed as git parses it: by the lengths in the entries, and by the offsets that git's
threads use (an extension). The checksum is checked too, although git does not check it. An unknown
version or extension, a split or sparse index, and two statements that contradict each other raise
one of `NOT_AN_INDEX`. Used by `git_inspector`.
"""

from __future__ import annotations

import posixpath
import struct
from dataclasses import dataclass
from hashlib import blake2b, sha1, sha256
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.sensitive_names import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_AN_INDEX: Final = (struct.error, ValueError, IndexError)
"""The errors of an index that is not understood."""
_GITLINK_MODE: Final = 0o160000
_DIRECTORY_MODE: Final = 0o040000
_GITLINK: Final = b"\x00\x00\xe0\x00"
"""The mode of a submodule as bytes in the index."""
_MODE: Final = struct.Struct(">24xL12x")
_FLAGS: Final = struct.Struct(">H")
_EXTENDED: Final = 0x4000
_LONG_NAME: Final = 0xFFF
"""The bits of the flags that hold a name's length. All bits set means: this long or longer."""
_HEADER: Final = 12
_COMPRESSED: Final = 4
"""The version in which a name is stored as its difference from the name before it."""
_SHA1: Final = 20
_END_OF_ENTRIES: Final = b"EOIE"
_OFFSETS: Final = b"IEOT"
_EXTENSIONS: Final = frozenset({b"TREE", b"REUC", b"UNTR", b"FSMN", _END_OF_ENTRIES, _OFFSETS})
"""Extensions that track no further files. Not `link` (a split index), nor `sdir` (a sparse one)."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One tracked file or submodule."""

    name: str
    """The path from the top of the working tree."""
    is_submodule: bool


@dataclass(frozen=True, slots=True)
class TrackedFiles:
    """The content of an index, as far as the judge needs it."""

    submodules: tuple[str, ...]
    secrets: tuple[str, ...]
    """Files with the name of a secret, or with a name that leads out of the working tree."""
    directories: tuple[str, ...]
    """All directories that contain a tracked file."""


_INVALID_NAMES: Final = frozenset({"", ".", "..", ".git"})
"""Names that git never writes to an index, but reads from one."""
_MOST_CACHED: Final = 8
"""Indexes whose `TrackedFiles` is cached: checking the names of a large one takes a second."""
_cache: dict[tuple[bytes, int], TrackedFiles] = {}


def tracked_files(index: bytes, hash_bytes: int) -> TrackedFiles:
    """Parse an index whose object ids have `hash_bytes` bytes. Raise one of `NOT_AN_INDEX`."""
    key = (blake2b(index).digest(), hash_bytes)
    if key not in _cache:
        found = _tracked_files(index, hash_bytes)
        if len(_cache) >= _MOST_CACHED:
            _cache.clear()
        _cache[key] = found
    return _cache[key]


def _tracked_files(index: bytes, hash_bytes: int) -> TrackedFiles:
    submodules, secrets = [], []
    directories: set[str] = set()
    for entry in index_entries(index, hash_bytes):
        above = posixpath.dirname(entry.name)
        while above and above not in directories:
            directories.add(above)
            above = posixpath.dirname(above)
        if entry.is_submodule:
            submodules.append(entry.name)
        has_invalid_name = not _INVALID_NAMES.isdisjoint(entry.name.lower().split("/"))
        if is_secret("/" + entry.name) or has_invalid_name:
            secrets.append(entry.name)
    return TrackedFiles(tuple(submodules), tuple(secrets), tuple(sorted(directories)))


def may_have_submodules(index: bytes) -> bool:
    """Return whether the index must be parsed to find submodules. A split index (`link`) may have
    them in its other file."""
    return _GITLINK in index or b"link" in index


def index_entries(index: bytes, hash_bytes: int) -> Iterator[IndexEntry]:
    """Yield all entries in order. Errors may be raised as late as after the last entry, so a caller
    that stops earlier does not know whether the index is valid."""
    version, count = struct.unpack_from(">4xLL", index)
    if not index.startswith(b"DIRC") or version not in (2, 3, 4):
        raise ValueError("not an index of a known version")
    end = len(index) - hash_bytes
    _check_sum(index[:end], index[end:])
    at, name = _HEADER, b""
    starts: dict[int, tuple[int, bool]] = {}
    for number in range(count):
        start = at
        (mode,) = _MODE.unpack_from(index, at)
        at += _MODE.size + hash_bytes
        (flags,) = _FLAGS.unpack_from(index, at)
        at += 4 if flags & _EXTENDED else 2
        kept = 0
        if version == _COMPRESSED:
            dropped, at = _varint(index, at)
            kept = len(name) - dropped
            if kept < 0:
                raise ValueError("a compressed name drops more bytes than the name before it has")
        name_end = index.index(b"\x00", at, end)
        name = name[:kept] + index[at:name_end]
        if min(len(name), _LONG_NAME) != flags & _LONG_NAME:
            raise ValueError("the length of a name differs from its length field")
        at = name_end + 1 if version == _COMPRESSED else name_end + 8 - (name_end - start) % 8
        if index[name_end:at].strip(b"\x00") or at > end:
            raise ValueError("the padding between two entries is not zero")
        starts[start] = (number, kept == 0)
        if mode == _DIRECTORY_MODE:
            raise ValueError("a sparse index, which does not list the files of a directory")
        yield IndexEntry(name.decode("utf-8", "surrogateescape"), mode == _GITLINK_MODE)
    _check_extensions(index[:end], at, starts, count)


def _check_sum(content: bytes, written: bytes) -> None:
    """Compare the checksum. All zeros mean that git was configured to write none."""
    computed = sha1(content, usedforsecurity=False) if len(written) == _SHA1 else sha256(content)
    if written.strip(b"\x00") and computed.digest() != written:
        raise ValueError("the checksum differs")


def _check_extensions(
    content: bytes, at: int, starts: dict[int, tuple[int, bool]], count: int
) -> None:
    entries_end = at
    while at < len(content):
        (size,) = struct.unpack_from(">4xL", content, at)
        kind, data = content[at : at + 4], content[at + 8 : at + 8 + size]
        at += 8 + size
        if kind not in _EXTENSIONS:
            raise ValueError("a split or sparse index, or an unknown extension")
        if kind == _END_OF_ENTRIES and struct.unpack_from(">L", data)[0] != entries_end:
            raise ValueError("the entries end at another offset than the extension states")
        if kind == _OFFSETS:
            _check_offsets(data, starts, count)
    if at != len(content):
        raise ValueError("an extension is longer than the index")


def _check_offsets(data: bytes, starts: dict[int, tuple[int, bool]], count: int) -> None:
    """Check the offsets from which git's threads read blocks of entries. The first entry of a block
    must have its whole name, without compression."""
    (version,) = struct.unpack_from(">L", data)
    blocks = list(struct.iter_unpack(">LL", data[4:]))
    done = 0
    for offset, number in blocks:
        if starts.get(offset) != (done, True):
            raise ValueError("the offset of a block is not the start of its first entry")
        done += number
    if version != 1 or done != count:
        raise ValueError("the blocks do not cover all entries")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer and the offset after it."""
    byte = data[at]
    value = byte & 127
    while byte & 128:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 127)
    return value, at + 1
