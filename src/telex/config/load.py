"""The configuration of this process: reads what there is to read and joins it.

Precedence, strongest first: flag, environment, project (once trusted), user, default.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from telex.config.errors import Unreadable
from telex.config.layers import (
    EMPTY,
    Layer,
    Origin,
    Source,
    Value,
    from_environment,
    from_file,
    merge,
    settings_of,
)
from telex.config.places import read_file, write_private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.config.places import Places
    from telex.config.settings import Settings


# A project's own `.telex/config.toml`: where it is, and whether its reader agreed to it.
#
# Changing into a directory must not change what telex does, so a project's file is used only after
# its reader said so, for that path and for exactly that content. The answers are kept in one small
# file each, named by the path's hash: trusting is one atomic replacement, two of them cannot undo
# each other, and no lock is needed.


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


@dataclass(frozen=True, slots=True)
class Config:
    """What holds, why, and what its reader should know about it."""

    settings: Settings
    values: tuple[Value, ...]
    warnings: tuple[str, ...]
    user_file: Path
    project_file: ProjectFile | None


def load(
    places: Places,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
    flags: Layer = EMPTY,
) -> Config:
    """Read it all. `directory` is where the search for a project file starts (default: here)."""
    user = _user_layer(places.config_file)
    project_file, project_layer = _project(places, directory)
    layers = (user, project_layer, from_environment(environ), flags)
    values = merge(layers)
    warnings = tuple(warning for layer in layers for warning in layer.warnings)
    return Config(settings_of(values), values, warnings, places.config_file, project_file)


def find_project(places: Places, directory: Path | None = None) -> ProjectFile | None:
    """The project file that applies here, trusted or not."""
    try:
        start = directory or Path.cwd()
    except FileNotFoundError:  # somebody removed the directory we stand in
        return None
    path = find(start)
    # With TELEX_HOME=~/.telex the user's own file looks like a project's when standing in ~.
    if path is None or path.resolve() == places.config_file.resolve():
        return None
    return read(path, places.trusted)


def _user_layer(path: Path) -> Layer:
    content = read_file(path)
    return EMPTY if content is None else from_file(content, Origin(Source.USER, str(path)))


def _project(places: Places, directory: Path | None) -> tuple[ProjectFile | None, Layer]:
    try:
        file = find_project(places, directory)
    except Unreadable as error:  # a file nobody asked for must not stop what was asked for
        return None, Layer({}, (str(error),))
    if file is None:
        return None, EMPTY
    if file.trust is Trust.TRUSTED:
        return file, from_file(file.content, Origin(Source.PROJECT, str(file.path)))
    why = "it changed since you trusted it" if file.trust is Trust.CHANGED else "it is not trusted"
    its = shlex.quote(str(file.path.parent.parent))  # which need not be where one stands
    warning = f"{file.path}: not read, {why}; look at it, then: telex config trust {its}"
    return file, Layer({}, (warning,))
