"""A project's own `.telex/config.toml`: where it is, and whether its reader agreed to it.

Changing into a directory must not change what telex does, so a project's file is used only after
its reader said so, for that path and for exactly that content. The answers are kept in one small
file each, named by the path's hash: trusting is one atomic replacement, two of them cannot undo
each other, and no lock is needed.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from telex.config.private import read_file, write_private

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = ".telex/config.toml"
_NAMES: Final = tuple(NAME.split("/"))


class Trust(StrEnum):
    """What its reader said of a project file."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    CHANGED = "changed since it was trusted"


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project file as it was in one reading: the content judged is the content used."""

    path: Path
    content: bytes
    trust: Trust


class _Record(msgspec.Struct, frozen=True):
    path: str
    sha256: str


def find(start: Path) -> Path | None:
    """The project file of a directory: its own, or a parent's up to the repository's root."""
    candidates = (directory / NAME for directory in speaking_for(start))
    return next((path for path in candidates if os.path.lexists(path)), None)


def read(path: Path, records: Path) -> ProjectFile | None:
    """The file and what its reader said of it; None where it is gone."""
    path = _place(path)
    content = read_file(path)
    return None if content is None else ProjectFile(path, content, judge(path, content, records))


def trust(file: ProjectFile, records: Path) -> None:
    """From now on this content may be read at this path."""
    record = _Record(str(file.path), _digest(file.content))
    write_private(_record_of(file.path, records), msgspec.json.encode(record))


def untrust(path: Path, records: Path) -> bool:
    """Forget what was said of this path, whether it still exists or not; False if nothing was."""
    try:
        _record_of(_place(path), records).unlink()
    except FileNotFoundError:
        return False
    return True


def speaking_for(start: Path) -> tuple[Path, ...]:
    """The directories whose project a directory belongs to, nearest first."""
    upward = (start, *start.parents)
    for depth, directory in enumerate(upward):
        if os.path.exists(directory / ".git"):
            return upward[: depth + 1]
    return (start,)  # outside a repository, a parent may be anybody's


def judge(path: Path, content: bytes, records: Path) -> Trust:
    """What was said of this content at this path, which has no links."""
    stored = read_file(_record_of(path, records), ours=True)
    if stored is None:
        return Trust.UNTRUSTED
    try:
        record = msgspec.json.decode(stored, type=_Record)
    except msgspec.DecodeError:
        return Trust.UNTRUSTED
    return Trust.TRUSTED if record.sha256 == _digest(content) else Trust.CHANGED


def _place(path: Path) -> Path:
    """Where a project has its file, though that may be a link: what was said of one project counts
    for no other that links to its file."""
    if path.parts[-2:] == _NAMES:
        return path.parent.parent.resolve() / NAME
    return path.resolve()


def _record_of(path: Path, records: Path) -> Path:
    return records / f"{_digest(os.fsencode(path))}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
