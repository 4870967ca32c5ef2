"""Loads the configuration of this process: reads the files and merges all layers.

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


# A project's own `.telex/config.toml`: how it is found, and whether its user trusts it.
#
# Changing into a directory must not change the behaviour of telex. So a project's file is used only
# after the user trusted it, for that path and for exactly that content. Each decision is kept in a
# small file of its own, named by the path's hash: trusting is one atomic replacement, two of them
# cannot overwrite each other, and no lock is needed.


NAME: Final = ".telex/config.toml"
_NAMES: Final = tuple(NAME.split("/"))


class Trust(StrEnum):
    """Whether the user trusts a project file."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    CHANGED = "changed since it was trusted"


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project file, read once: the content whose trust was checked is the content used."""

    path: Path
    content: bytes
    trust: Trust


class _Record(msgspec.Struct, frozen=True):
    path: str
    sha256: str


def find(start: Path) -> Path | None:
    """Return the project file of a directory: its own, or a parent's up to the repository root."""
    candidates = (directory / NAME for directory in project_directories(start))
    return next((path for path in candidates if os.path.lexists(path)), None)


def read(path: Path, records: Path) -> ProjectFile | None:
    """Return the file and whether it is trusted; None if it does not exist."""
    path = _place(path)
    content = read_file(path)
    return None if content is None else ProjectFile(path, content, judge(path, content, records))


def trust(file: ProjectFile, records: Path) -> None:
    """Trust this content at this path from now on."""
    record = _Record(str(file.path), _digest(file.content))
    write_private(_record_of(file.path, records), msgspec.json.encode(record))


def untrust(path: Path, records: Path) -> bool:
    """Forget the decision for this path, existing or not. Returns False if there was none."""
    try:
        _record_of(_place(path), records).unlink()
    except FileNotFoundError:
        return False
    return True


def project_directories(start: Path) -> tuple[Path, ...]:
    """Return the directories of the project that `start` belongs to, nearest first."""
    upward = (start, *start.parents)
    for depth, directory in enumerate(upward):
        if os.path.exists(directory / ".git"):
            return upward[: depth + 1]
    return (start,)  # outside a repository, a parent directory may belong to another user


def judge(path: Path, content: bytes, records: Path) -> Trust:
    """Return whether this content is trusted at this path, which must have no links."""
    stored = read_file(_record_of(path, records), ours=True)
    if stored is None:
        return Trust.UNTRUSTED
    try:
        record = msgspec.json.decode(stored, type=_Record)
    except msgspec.DecodeError:
        return Trust.UNTRUSTED
    return Trust.TRUSTED if record.sha256 == _digest(content) else Trust.CHANGED


def _place(path: Path) -> Path:
    """Return the path in the project's own directory, even if the file itself is a link.

    So the decision for one project does not apply to another project that links to its file.
    """
    if path.parts[-2:] == _NAMES:
        return path.parent.parent.resolve() / NAME
    return path.resolve()


def _record_of(path: Path, records: Path) -> Path:
    return records / f"{_digest(os.fsencode(path))}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Config:
    """The effective settings, the origin of each value, and warnings for the user."""

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
    """Load everything. The search for a project file starts at `directory` (default: the cwd)."""
    user = _user_layer(places.config_file)
    project_file, project_layer = _project(places, directory)
    layers = (user, project_layer, from_environment(environ), flags)
    values = merge(layers)
    warnings = tuple(warning for layer in layers for warning in layer.warnings)
    return Config(settings_of(values), values, warnings, places.config_file, project_file)


def find_project(places: Places, directory: Path | None = None) -> ProjectFile | None:
    """Return the project file that applies here, trusted or not."""
    try:
        start = directory or Path.cwd()
    except FileNotFoundError:  # the working directory was removed
        return None
    path = find(start)
    # With TELEX_HOME=~/.telex the user's own file looks like a project file when the cwd is ~.
    if path is None or path.resolve() == places.config_file.resolve():
        return None
    return read(path, places.trusted)


def _user_layer(path: Path) -> Layer:
    content = read_file(path)
    return EMPTY if content is None else from_file(content, Origin(Source.USER, str(path)))


def _project(places: Places, directory: Path | None) -> tuple[ProjectFile | None, Layer]:
    try:
        file = find_project(places, directory)
    except Unreadable as error:  # a bad project file must not stop a command that does not need it
        return None, Layer({}, (str(error),))
    if file is None:
        return None, EMPTY
    if file.trust is Trust.TRUSTED:
        return file, from_file(file.content, Origin(Source.PROJECT, str(file.path)))
    why = "it changed since you trusted it" if file.trust is Trust.CHANGED else "it is not trusted"
    root = shlex.quote(str(file.path.parent.parent))  # the cwd may be below it
    warning = f"{file.path}: not read, {why}; check it, then run: telex config trust {root}"
    return file, Layer({}, (warning,))
