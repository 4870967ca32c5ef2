"""Which plugins there are: executables in the plugin directories, looked at and not run.

In this order, where the first of a name wins: telex's own `plugins` in its data directory, each
directory of TELEX_PLUGIN_PATH, and `.telex/plugins` of the project, which has to be trusted first.
In a directory a plugin is an executable file, or a directory with a `manifest.json`; a plugin
directory with a manifest of its own is one plugin, for whoever is writing it.

Nothing is run that another user could have written (`ownership`): the file and its manifest, what
runs a script, and what lies where a program looks for the rest of itself. What a manifest names
lies beneath it, links included. Looking and running are two steps; that is sound here because only
we can change anything in between.

What is wrong is told and never fatal: a plugin that cannot be run is found with its problem, and
keeps its name from those after it, for breaking one must not put another in its place. `find` is
for whoever starts plugins or lists them.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from telex.config.errors import ConfigError
from telex.config.places import read_file
from telex.plugins import ownership, project_trust
from telex.plugins import plugin_manifest as manifests
from telex.plugins.limits import PLUGIN_DIRECTORY_ENTRIES
from telex.plugins.ownership import interpreters
from telex.plugins.protocol import PluginManifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from telex.config.places import Places

VARIABLE: Final = "TELEX_PLUGIN_PATH"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SUFFIX: Final = re.compile(r"(?<=.)\.[A-Za-z]+\Z")
"""`hello.py` is `hello`; `tool-1.2` is `tool-1.2`."""


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """One plugin, whether it can be run or not."""

    name: str
    executable: Path
    """Absolute, links resolved, if it is there."""
    manifest: PluginManifest | None
    where: Path
    """Its manifest's directory, or the executable itself."""
    problem: str | None = None
    """What is wrong with it."""
    trusted: bool = True
    """False for a project's that nobody agreed to."""
    distrust: str = ""
    """Why, and what to do."""
    project: bool = False
    """Whether it is a project's."""
    hints: tuple[str, ...] = ()

    @property
    def refusal(self) -> str | None:
        """Why it must not be run, in one sentence; None where it may be."""
        if self.problem or self.trusted:
            return self.problem
        return self.distrust or f"{self.where} is a project's and not trusted"


@dataclass(frozen=True, slots=True)
class FoundPlugins:
    """What was found, one of a name, and what there is to say about where we looked."""

    found: tuple[FoundPlugin, ...]
    problems: tuple[str, ...]
    hints: tuple[str, ...]


@dataclass(slots=True)
class _Search:
    found: dict[str, FoundPlugin] = field(default_factory=dict)
    files: dict[tuple[int, int], FoundPlugin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    path: Sequence[str] = ()
    """Where `env` finds a script's interpreter."""
    beside: dict[Path, str | None] = field(default_factory=dict)

    def problem_beside(self, directory: Path) -> str | None:
        """Of bare plugins, which share it: looked at once."""
        if directory not in self.beside:
            self.beside[directory] = ownership.writable_beside(directory)
        return self.beside[directory]

    def add(self, plugin: FoundPlugin) -> None:
        self.hints += (f"{plugin.where}: {hint}" for hint in plugin.hints)
        if first := self.found.get(plugin.name):
            self.problems.append(
                f"{plugin.where} is left out: {first.where} has the name {plugin.name} already"
            )
        elif first := self._same_file(plugin):
            self.problems.append(
                f"{plugin.where} is left out: it is the same file as {first.where}, "
                f"the plugin {first.name}"
            )
        else:
            self.found[plugin.name] = plugin

    def _same_file(self, plugin: FoundPlugin) -> FoundPlugin | None:
        if plugin.problem:
            return None
        status = plugin.executable.stat()
        first = self.files.setdefault((status.st_dev, status.st_ino), plugin)
        return None if first is plugin else first


def find(places: Places, environ: Mapping[str, str], project: Path | None = None) -> FoundPlugins:
    """Look everywhere. `project` is a directory of the project, mostly the one we stand in."""
    search = _Search(path=environ.get("PATH", os.defpath).split(os.pathsep))
    seen: set[Path] = set()
    for directory, wanted in _directories(places, environ, search):
        # A directory that is listed twice is no mistake worth a word.
        if (real := _real(directory)) not in seen:
            seen.add(real)
            _look(directory, real, search, wanted=wanted)
    if project is not None and (theirs := project_trust.of_project(project)) is not None:
        _look_in_project(theirs, places, seen, search)
    return FoundPlugins(tuple(search.found.values()), tuple(search.problems), tuple(search.hints))


def _directories(
    places: Places, environ: Mapping[str, str], search: _Search
) -> Iterator[tuple[Path, bool]]:
    """Each with whether somebody asked for it."""
    yield places.plugins, False
    for path in filter(None, environ.get(VARIABLE, "").split(os.pathsep)):
        if os.path.isabs(path):
            yield Path(path), True
        else:  # it would be another one in each directory, a stranger's among them
            search.problems.append(f"{VARIABLE}: {path} is left out: it is not absolute")


def _look_in_project(directory: Path, places: Places, seen: set[Path], search: _Search) -> None:
    real = _real(directory)
    if real in seen:
        return
    try:
        refusal = project_trust.refusal(project_trust.read(real, places))
    except (project_trust.NotTrustable, ConfigError) as error:
        refusal = f"the plugins in {directory} cannot be trusted: {error}"
    if refusal:
        search.problems.append(refusal)
    _look(directory, real, search, wanted=True, project=True, distrust=refusal or "")


def _look(
    directory: Path,
    real: Path,
    search: _Search,
    *,
    wanted: bool,
    project: bool = False,
    distrust: str = "",
) -> None:
    """All plugins of one directory; `distrust` is why a project's are not to be run."""
    try:
        names = sorted(os.listdir(real))
    except FileNotFoundError:
        # Nobody has to have made the usual place.
        told = search.problems if wanted else search.hints
        told.append(f"there is no directory {directory}; plugins that are put there are found")
        return
    except OSError as error:
        search.problems.append(f"{directory} cannot be read: {error.strerror}")
        return
    if len(names) > PLUGIN_DIRECTORY_ENTRIES:
        search.problems.append(
            f"{directory} holds more than {PLUGIN_DIRECTORY_ENTRIES} files and is left out"
        )
        return
    if manifests.NAME in names:
        paths = [real]
    else:  # a name that is not printable is not told either: it may be meant for the terminal
        paths = [real / name for name in names if name[0] != "." and name.isprintable()]
    for path in paths:
        if plugin := _plugin(path, real, search):
            search.add(replace(plugin, trusted=not distrust, distrust=distrust, project=project))


def _plugin(path: Path, top: Path, search: _Search) -> FoundPlugin | None:
    """What is there, if that is a plugin."""
    if os.path.lexists(path / manifests.NAME):
        return _with_manifest(path, top, search)
    name = _SUFFIX.sub("", path.name)
    if path.is_dir() or not (_looks_executable(path) and _NAME.fullmatch(name)):
        return None
    return _bare(path, name, top, search)


def _looks_executable(path: Path) -> bool:
    """By its mode, or by its first line: then somebody forgot the mode, and is told."""
    try:
        if not path.is_file() or os.access(path, os.X_OK):
            return path.is_file()
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _bare(path: Path, name: str, top: Path, search: _Search) -> FoundPlugin:
    executable = _real(path)
    problem = _not_runnable(path, top, search)
    if problem is None and interpreters(executable, search.path):
        # A script's first place to import from is the directory it really lies in.
        problem = _not_run(path, search.problem_beside(executable.parent))
    return FoundPlugin(name, executable, None, path, problem)


def _not_run(path: Path, problem: str | None) -> str | None:
    return problem and f"{path} is not run, for others could have changed what it uses: {problem}"


def _with_manifest(directory: Path, top: Path, search: _Search) -> FoundPlugin:
    name = directory.name
    path = directory / manifests.NAME

    def broken(problem: str) -> FoundPlugin:
        return FoundPlugin(name, directory, None, directory, problem)

    try:
        content = read_file(path)
        problem = ownership.writable_by_others(path, top)
    except ConfigError as error:
        return broken(str(error))
    except OSError as error:
        return broken(f"{path} cannot be read: {error.strerror}")
    if content is None or problem:
        return broken(problem or f"{path} cannot be read: it is gone")
    read = manifests.read(content)
    if read.value is None:
        bad = manifests.BadPluginManifest(path, read.problems)
        return replace(broken(str(bad)), hints=read.hints)
    named = directory / read.value.executable
    problem = leads_out(named, directory) or _not_runnable(named, top, search)
    problem = problem or _not_run(named, ownership.writable_beneath(_real(directory)))
    return FoundPlugin(
        read.value.name, _real(named), read.value, directory, problem, hints=read.hints
    )


def leads_out(path: Path, directory: Path) -> str | None:
    """Whether what a manifest in a directory names lies elsewhere, and what to do."""
    if _real(path).is_relative_to(_real(directory)):
        return None
    return f"the executable {path} leads out of its directory, to {_real(path)}; put a copy there"


def _real(path: Path) -> Path:
    # Not Path.resolve: it raises RuntimeError where links lead in a circle.
    return Path(os.path.realpath(path))


def _not_runnable(path: Path, top: Path, search: _Search) -> str | None:
    try:
        status = path.stat()
        problem = ownership.writable_by_others(path, top) or _not_run(
            path, ownership.first_writable(interpreters(path, search.path))
        )
    except OSError as error:
        return f"{path} cannot be run: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return f"{path} cannot be run: it is not a file"
    if not problem and not os.access(path, os.X_OK):
        return f"{path} is not executable; if it is a plugin: chmod u+x {quote(str(path))}"
    return problem
