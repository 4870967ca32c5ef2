"""The plugins of a server by name, and the directories in which plugins are found.

`Plugins` has the builtin plugins (`builtin/`), the installed plugins of the person, and the plugins
loaded while the server runs. A plugin in it stays as it was read. `server` decides whether a plugin
may be removed while adapters use it: this module does not know adapters.

`find_plugin` resolves a name that a person types. With a `/` in it (or `.`) it is the path of a
directory or of its manifest. Otherwise it is a builtin plugin, an installed plugin, or else a
directory in the current directory.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from telex.adapters.lua_plugin import (
    LuaPlugin,
    PluginRefused,
    others_can_write,
    printable_path,
    read_plugin,
)
from telex.adapters.manifest import BadManifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from telex.config.places import Places


MANIFEST: Final = "manifest.toml"
_BUILTIN: Final = Path(__file__).parent / "builtin"


class UnknownPlugin(LookupError):
    """No plugin has this name."""


class NameTaken(ValueError):
    """Another plugin has this name already."""


class BuiltinStays(ValueError):
    """A builtin plugin cannot be removed."""


class Plugins:
    """A table of plugins, in which each name occurs once."""

    def __init__(self, plugins: Iterable[LuaPlugin] = ()) -> None:
        self._by_name: dict[str, LuaPlugin] = {}
        for plugin in plugins:
            self.add(plugin)

    def find(self, name: str) -> LuaPlugin:
        if plugin := self._by_name.get(name):
            return plugin
        raise UnknownPlugin(_unknown(name, self.names()))

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_name))

    def all(self) -> tuple[LuaPlugin, ...]:
        """Return the plugins, sorted by name."""
        return tuple(self._by_name[name] for name in self.names())

    def builtins(self) -> tuple[LuaPlugin, ...]:
        return tuple(plugin for plugin in self.all() if plugin.builtin)

    def add(self, plugin: LuaPlugin) -> None:
        if there := self._by_name.get(plugin.name):
            whose = "a builtin plugin" if there.builtin else "another plugin"
            raise NameTaken(
                f"{whose} is called {plugin.name}; change the name in the manifest of this one"
            )
        self._by_name[plugin.name] = plugin

    def remove(self, name: str) -> None:
        if self.find(name).builtin:
            raise BuiltinStays(f"{name} is builtin; only loaded plugins can be removed")
        del self._by_name[name]


def builtin_plugins() -> tuple[LuaPlugin, ...]:
    """Read the builtin plugins. Raises the error of a plugin that cannot be read."""
    found = sorted(_BUILTIN.glob(f"*/{MANIFEST}"))
    return tuple(read_plugin(path, builtin=True) for path in found)


def installed_plugins(directory: Path) -> tuple[list[LuaPlugin], list[str]]:
    """Read the installed plugins: return the usable ones, and a message for each other one.

    These plugins are not named by the person, so files that another user could have written are not
    read. The directory of a plugin may be a link, for authors who keep their plugin elsewhere.
    """
    found = scan_installed(directory)
    usable = [one.plugin for one in found if one.plugin is not None and not one.problem]
    return usable, [one.problem for one in found if one.problem]


@dataclass(frozen=True, slots=True)
class Installed:
    """One directory among the installed plugins."""

    directory: Path
    plugin: LuaPlugin | None = None
    problem: str = ""
    """Why the plugin is not used; empty if it is."""


def scan_installed(directory: Path) -> list[Installed]:
    """Read each directory of installed plugins; if `directory` itself is unreadable, return it."""
    try:
        paths = _manifests(directory)
    except PluginRefused as error:
        return [Installed(directory, problem=str(error))]
    except OSError as error:
        return [Installed(directory, problem=f"{directory}: {error.strerror}")]
    return list(_read_installed(paths))


def _read_installed(paths: list[Path]) -> Iterator[Installed]:
    plugins: dict[str, LuaPlugin] = {}
    for path in paths:
        try:
            plugin = read_plugin(path, ours=True)
        except (BadManifest, PluginRefused) as error:
            yield Installed(path.parent, problem=str(error))
            continue
        first = plugins.setdefault(plugin.name, plugin)
        problem = ""
        if first is not plugin and first.directory is not None:
            there = printable_path(first.directory)
            problem = f"{printable_path(path)}: not used; {there} is already called {plugin.name}"
        yield Installed(path.parent, plugin, problem)


def _manifests(directory: Path) -> list[Path]:
    """Return the manifest path of each subdirectory, also if there is no file: this is reported."""
    if not directory.exists():
        return []
    if others_can_write(directory.stat()):
        raise PluginRefused(str(directory), "other users can write here; chown it, and chmod go-w")
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.is_dir() and entry.name[0] != "."]
    return [directory / name / MANIFEST for name in sorted(names)]


def _unknown(name: str, names: tuple[str, ...]) -> str:
    # A long name is not shown, not even its beginning: it may be a secret.
    shown = ascii(name) if len(name) <= 64 else f"by {len(name)} characters"
    if not names:
        return f"no plugin is called {shown}; there are none"
    near = difflib.get_close_matches(name[:64], names, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"no plugin is called {shown}; {meant}there are {', '.join(names)}"


class PluginNotFound(Exception):
    """No plugin has this name or path. The message lists the names."""

    exit_code = 2


def find_plugin(name: str, places: Places) -> LuaPlugin:
    """Find and read a plugin by name or path. Raises PluginNotFound, and the errors of
    `read_plugin`."""
    if is_path(name):
        return read_plugin(manifest_at(Path(name)))
    plugins, problems = _known(places)
    try:
        return plugins.find(name)
    except UnknownPlugin as unknown:
        if (here := Path(name) / MANIFEST).is_file():
            return read_plugin(here)
        raise PluginNotFound("; ".join([str(unknown), *problems])) from None


def known_plugins(places: Places) -> tuple[LuaPlugin, ...]:
    """Read the builtin and the installed plugins, without those that cannot be used."""
    return _known(places)[0].all()


def is_path(name: str) -> bool:
    """Return whether this is a path, and not a name."""
    return "/" in name or name in {".", "..", MANIFEST}


def _known(places: Places) -> tuple[Plugins, list[str]]:
    """Return the builtin and installed plugins, and messages for the unusable ones."""
    plugins = Plugins(builtin_plugins())
    installed, problems = installed_plugins(places.adapters)
    for plugin in installed:
        try:
            plugins.add(plugin)
        except NameTaken as taken:
            problems.append(f"{plugin.directory}: {taken}")
    return plugins, problems


def manifest_at(path: Path) -> Path:
    """Return the manifest's path, from itself or from its directory. Raises PluginNotFound."""
    manifest = path if path.name == MANIFEST else path / MANIFEST
    if not manifest.is_file():
        raise PluginNotFound(
            f"there is no {manifest}; a plugin is a directory with a {MANIFEST} "
            "(`telex adapter new` makes one)"
        )
    return manifest
