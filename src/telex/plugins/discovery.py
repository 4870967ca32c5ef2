"""Finds plugins: executables in the plugin directories, which are checked here and not run.

The directories are searched in this order, and the first plugin of a name wins: `plugins` in
telex's data directory, each directory of TELEX_PLUGIN_PATH, and `.telex/plugins` of the project,
which must be trusted first. In a directory, a plugin is an executable file, or a directory with a
`manifest.json`. A plugin directory that has a `manifest.json` itself is one plugin, for its author.

A plugin is refused if another user could have written it (`ownership`): the file, its manifest, the
interpreter of a script, or the directories from which the program loads its other files. The
executable that a manifest names must be below the manifest, links included. The check and the run
are two steps. That is safe, because only this user and root can change the files in between.

A problem is reported and never fatal. A plugin that cannot be run is found with its problem and
keeps its name: if it were left out, a later plugin of the same name would take its place.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from telex.config import load
from telex.config.errors import ConfigError
from telex.config.load import ProjectFile, Trust
from telex.config.places import read_file
from telex.plugins import ownership
from telex.plugins import plugin_manifest as manifests
from telex.plugins.limits import PLUGIN_DIRECTORY_ENTRIES, PLUGIN_TRUSTED_BYTES
from telex.plugins.ownership import interpreters
from telex.plugins.protocol import PluginManifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from telex.config.places import Places


VARIABLE: Final = "TELEX_PLUGIN_PATH"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SUFFIX: Final = re.compile(r"(?<=.)\.[A-Za-z]+\Z")
"""Removed from a file name: `hello.py` is `hello`; `tool-1.2` stays `tool-1.2`."""


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """One plugin, whether it can be run or not."""

    name: str
    executable: Path
    """Absolute, with links resolved, if it exists."""
    manifest: PluginManifest | None
    where: Path
    """The directory of the manifest, or the executable itself."""
    problem: str | None = None
    """Why it cannot be run."""
    trusted: bool = True
    """False for a project's plugin that is not trusted."""
    distrust: str = ""
    """Why it is not trusted, and what to do."""
    project: bool = False
    """Whether it is a project's plugin."""
    hints: tuple[str, ...] = ()

    @property
    def refusal(self) -> str | None:
        """Why it must not be run, as a sentence; None if it may be run."""
        if self.problem or self.trusted:
            return self.problem
        return self.distrust or f"{self.where} is a project's and not trusted"


@dataclass(frozen=True, slots=True)
class FoundPlugins:
    """The plugins, one for each name, and messages about the search."""

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
    """PATH, in which `env` finds a script's interpreter."""
    beside: dict[Path, str | None] = field(default_factory=dict)

    def problem_beside(self, directory: Path) -> str | None:
        """Return the problem of a directory with plugins that have no manifest. Checked once for
        all plugins in it."""
        if directory not in self.beside:
            self.beside[directory] = ownership.writable_beside(directory)
        return self.beside[directory]

    def add(self, plugin: FoundPlugin) -> None:
        self.hints += (f"{plugin.where}: {hint}" for hint in plugin.hints)
        if first := self.found.get(plugin.name):
            self.problems.append(
                f"{plugin.where} is left out: {first.where} already has the name {plugin.name}"
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
    """Search all plugin directories. `project` is a directory of the project, mostly the current
    one."""
    search = _Search(path=environ.get("PATH", os.defpath).split(os.pathsep))
    seen: set[Path] = set()
    for directory, wanted in _directories(places, environ, search):
        # A directory that is listed twice is harmless and not reported.
        if (real := _real(directory)) not in seen:
            seen.add(real)
            _search_directory(directory, real, search, wanted=wanted)
    if project is not None and (theirs := project_directory(project)) is not None:
        _search_project(theirs, places, seen, search)
    return FoundPlugins(tuple(search.found.values()), tuple(search.problems), tuple(search.hints))


def _directories(
    places: Places, environ: Mapping[str, str], search: _Search
) -> Iterator[tuple[Path, bool]]:
    """Yield each directory, and whether the person named it."""
    yield places.plugins, False
    for path in filter(None, environ.get(VARIABLE, "").split(os.pathsep)):
        if os.path.isabs(path):
            yield Path(path), True
        else:  # it would depend on the current directory, which may be another user's
            search.problems.append(f"{VARIABLE}: {path} is left out: it is not absolute")


def _search_project(directory: Path, places: Places, seen: set[Path], search: _Search) -> None:
    real = _real(directory)
    if real in seen:
        return
    try:
        refusal = _untrusted(read_project(real, places))
    except (NotTrustable, ConfigError) as error:
        refusal = f"the plugins in {directory} cannot be trusted: {error}"
    if refusal:
        search.problems.append(refusal)
    _search_directory(directory, real, search, wanted=True, project=True, distrust=refusal or "")


def _search_directory(
    directory: Path,
    real: Path,
    search: _Search,
    *,
    wanted: bool,
    project: bool = False,
    distrust: str = "",
) -> None:
    """Add the plugins of one directory. `distrust` is why a project's plugins must not be run."""
    try:
        names = sorted(os.listdir(real))
    except FileNotFoundError:
        # The default directory need not exist.
        messages = search.problems if wanted else search.hints
        messages.append(f"there is no directory {directory}; plugins that are put there are found")
        return
    except OSError as error:
        search.problems.append(f"{directory} cannot be read: {error.strerror}")
        return
    if len(names) > PLUGIN_DIRECTORY_ENTRIES:
        search.problems.append(
            f"{directory} has more than {PLUGIN_DIRECTORY_ENTRIES} files and is left out"
        )
        return
    if manifests.NAME in names:
        paths = [real]
    else:  # a name that is not printable is not reported: it may be an escape sequence
        paths = [real / name for name in names if name[0] != "." and name.isprintable()]
    for path in paths:
        if plugin := _plugin(path, real, search):
            search.add(replace(plugin, trusted=not distrust, distrust=distrust, project=project))


def _plugin(path: Path, top: Path, search: _Search) -> FoundPlugin | None:
    """Return the plugin at a path, or None if it is no plugin."""
    if os.path.lexists(path / manifests.NAME):
        return _with_manifest(path, top, search)
    name = _SUFFIX.sub("", path.name)
    if path.is_dir() or not (_looks_executable(path) and _NAME.fullmatch(name)):
        return None
    return _bare(path, name, top, search)


def _looks_executable(path: Path) -> bool:
    """Return whether a file is executable, or starts with `#!`: then the person forgot the mode,
    which is reported."""
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
        # A script first imports from the directory that contains it, with links resolved.
        problem = _not_run(path, search.problem_beside(executable.parent))
    return FoundPlugin(name, executable, None, path, problem)


def _not_run(path: Path, problem: str | None) -> str | None:
    return problem and f"{path} is not run, other users could have changed what it uses: {problem}"


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
        return broken(problem or f"{path} cannot be read: it was removed")
    read = manifests.read(content)
    if read.value is None:
        bad = manifests.BadPluginManifest(path, read.problems)
        return replace(broken(str(bad)), hints=read.hints)
    named = directory / read.value.executable
    problem = leads_out(named, directory) or _not_runnable(named, top, search)
    problem = problem or _not_run(named, ownership.writable_below(_real(directory)))
    return FoundPlugin(
        read.value.name, _real(named), read.value, directory, problem, hints=read.hints
    )


def leads_out(path: Path, directory: Path) -> str | None:
    """Return a problem if the executable of a manifest is outside of the manifest's directory."""
    if _real(path).is_relative_to(_real(directory)):
        return None
    return f"the executable {path} leads out of its directory, to {_real(path)}; put a copy there"


def _real(path: Path) -> Path:
    # Not Path.resolve: it raises RuntimeError for a loop of links.
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


# The plugins of a project, and whether the person trusted them as they are now.
#
# To change into a directory must not run its programs. So they run only after the person has read
# and trusted them: `telex plugin trust`. The person trusts the whole directory, with names,
# contents and executable bits, and not one plugin in it: a Python script imports from its
# directory, so a new file beside the script can change what the script does. The decisions are
# stored with those about config files (`config.load`). A link is trusted by its target path, and
# only if the target is in the directory, where its content is read.


PROJECT_PLUGINS: Final = ".telex/plugins"


class NotTrustable(Exception):
    """A project's plugins cannot be trusted; the message has the reason."""


def project_directory(start: Path) -> Path | None:
    """Return the plugin directory of a project: in `start`, or in a parent within the
    repository."""
    candidates = (directory / PROJECT_PLUGINS for directory in load.project_directories(start))
    return next((path for path in candidates if os.path.lexists(path)), None)


def read_project(directory: Path, places: Places) -> ProjectFile:
    """Read the directory, and whether it is trusted as it is now. Raises NotTrustable."""
    directory = Path(os.path.realpath(directory))
    listing = "\n".join(_listing(directory)).encode("utf-8", "surrogateescape")
    return ProjectFile(directory, listing, load.judge(directory, listing, places.trusted))


def trust_project(seen: ProjectFile, places: Places) -> None:
    """Trust the directory as it was read."""
    load.trust(seen, places.trusted)


def untrust_project(directory: Path, places: Places) -> bool:
    """Remove the decision about this directory. Return False if there was none."""
    return load.untrust(directory, places.trusted)


def _untrusted(seen: ProjectFile) -> str | None:
    """Return why these plugins are not run, and what to do; None if they are trusted."""
    if seen.trust is Trust.TRUSTED:
        return None
    changed = seen.trust is Trust.CHANGED
    why = "changed since you trusted them" if changed else "are the project's and not trusted"
    return f"the plugins in {seen.path} {why}; read them, then run: telex plugin trust"


def _listing(directory: Path) -> Iterator[str]:
    """Yield a line for each entry at any depth, in a fixed order. A line changes with its entry."""
    room = PLUGIN_TRUSTED_BYTES
    for path in _entries(directory):
        status = path.lstat()
        name = ascii(str(path.relative_to(directory)))
        if stat.S_ISDIR(status.st_mode):
            yield f"directory {name}"
        elif stat.S_ISLNK(status.st_mode):
            yield f"link {name} {_link_target(path, directory)!a}"
        elif stat.S_ISREG(status.st_mode):
            digest, size = _digest(path, room)
            room -= size
            yield f"{digest} {'x' if status.st_mode & 0o111 else '-'} {name}"
        else:
            raise NotTrustable(f"{path} is neither a file nor a directory; remove it")


def _entries(directory: Path) -> list[Path]:
    found: list[Path] = []
    waiting = [directory]
    while waiting:
        try:
            inside = list(waiting.pop().iterdir())
        except OSError as error:
            raise NotTrustable(f"{error.filename} cannot be read: {error.strerror}") from error
        found += inside
        if len(found) > PLUGIN_DIRECTORY_ENTRIES:
            raise NotTrustable(
                f"{directory} has more than {PLUGIN_DIRECTORY_ENTRIES} files; move files that the "
                "plugins need elsewhere"
            )
        waiting += (path for path in inside if path.is_dir() and not path.is_symlink())
    return sorted(found)


def _link_target(link: Path, directory: Path) -> str:
    target = os.path.realpath(link)
    if not target.startswith(f"{directory}{os.sep}"):
        raise NotTrustable(f"{link} leads out of {directory}; replace it by a copy")
    return os.readlink(link)


def _digest(path: Path, room: int) -> tuple[str, int]:
    """Return the digest and the size of a file."""
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb", opener=_no_link) as file:
            while block := file.read(1 << 20):
                size += len(block)
                if size > room:
                    raise NotTrustable(f"{path}: the directory is larger than telex reads")
                digest.update(block)
    except OSError as error:
        raise NotTrustable(f"{path} cannot be read: {error.strerror}") from error
    return digest.hexdigest(), size


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
