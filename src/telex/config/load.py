"""The configuration of this process: reads what there is to read and joins it.

Precedence, strongest first: flag, environment, project (once trusted), user, default.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from telex.config import project
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
from telex.config.private import read_file
from telex.config.project import ProjectFile, Trust

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.config.places import Places
    from telex.config.settings import Settings


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
    path = project.find(start)
    # With TELEX_HOME=~/.telex the user's own file looks like a project's when standing in ~.
    if path is None or path.resolve() == places.config_file.resolve():
        return None
    return project.read(path, places.trusted)


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
