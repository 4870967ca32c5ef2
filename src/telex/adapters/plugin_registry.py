"""The plugins a server has, by name, and where plugins are found.

`Plugins` holds those that come with telex (`builtin/`), a person's own, and those loaded while the
server runs. A plugin once taken stays as it was read. Whether one may be removed while adapters use
it is for `server` to say: nothing here knows an adapter.

`find_plugin` is for what a person types. With a `/` in it (or `.`) it is a path, of a directory or
of its manifest. Without, it is a builtin plugin, an installed one, or else a directory here.
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

    from telex.adapters.lua_plugin import LuaPlugin
    from telex.config.places import Places


MANIFEST: Final = "manifest.toml"
_BUILTIN: Final = Path(__file__).parent / "builtin"


class UnknownPlugin(LookupError):
    """No plugin has this name."""


class NameTaken(ValueError):
    """A plugin of this name is there already."""


class BuiltinStays(ValueError):
    """A plugin that comes with telex cannot be removed."""


class Plugins:
    """By name, each name once."""

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
        """Sorted by name."""
        return tuple(self._by_name[name] for name in self.names())

    def builtins(self) -> tuple[LuaPlugin, ...]:
        return tuple(plugin for plugin in self.all() if plugin.builtin)

    def add(self, plugin: LuaPlugin) -> None:
        if there := self._by_name.get(plugin.name):
            whose = "one that comes with telex" if there.builtin else "another plugin"
            raise NameTaken(
                f"{whose} is called {plugin.name}; give this one another name in its manifest"
            )
        self._by_name[plugin.name] = plugin

    def remove(self, name: str) -> None:
        if self.find(name).builtin:
            raise BuiltinStays(f"{name} comes with telex and stays; only loaded plugins can go")
        del self._by_name[name]


def builtin_plugins() -> tuple[LuaPlugin, ...]:
    """Those that come with telex. One that cannot be read is our fault, and raised."""
    found = sorted(_BUILTIN.glob(f"*/{MANIFEST}"))
    return tuple(read_plugin(path, builtin=True) for path in found)


def installed_plugins(directory: Path) -> tuple[list[LuaPlugin], list[str]]:
    """A person's own: each directory with a manifest, and a sentence for each that is not taken.

    Nobody named them, so what others could have written is not read. A directory may be a link:
    whoever works on a plugin keeps it elsewhere.
    """
    found = scan_installed(directory)
    taken = [one.plugin for one in found if one.plugin is not None and not one.problem]
    return taken, [one.problem for one in found if one.problem]


@dataclass(frozen=True, slots=True)
class Installed:
    """What lies where a person's plugins are."""

    directory: Path
    plugin: LuaPlugin | None = None
    problem: str = ""
    """Why it is not taken: a sentence."""


def scan_installed(directory: Path) -> list[Installed]:
    """Each directory that should be a plugin; the whole one, if it cannot be looked into."""
    try:
        paths = _manifests(directory)
    except PluginRefused as error:
        return [Installed(directory, problem=str(error))]
    except OSError as error:
        return [Installed(directory, problem=f"{directory}: {error.strerror}")]
    return list(_looked_at(paths))


def _looked_at(paths: list[Path]) -> Iterator[Installed]:
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
            problem = f"{printable_path(path)}: not used; {there} is called {plugin.name} already"
        yield Installed(path.parent, plugin, problem)


def _manifests(directory: Path) -> list[Path]:
    """Of each directory in this one, also where there is none: that is worth a sentence."""
    if not directory.exists():
        return []
    if others_can_write(directory.stat()):
        raise PluginRefused(str(directory), "others can write here; chown it, and chmod go-w")
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.is_dir() and entry.name[0] != "."]
    return [directory / name / MANIFEST for name in sorted(names)]


def _unknown(name: str, names: tuple[str, ...]) -> str:
    # As with keys: cut short, it could be the beginning of a secret.
    shown = ascii(name) if len(name) <= 64 else f"by {len(name)} characters"
    if not names:
        return f"no plugin is called {shown}; there are none"
    near = difflib.get_close_matches(name[:64], names, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"no plugin is called {shown}; {meant}there are {', '.join(names)}"


class PluginNotFound(Exception):
    """Nothing is called that; the sentence says what is."""

    exit_code = 2


def find_plugin(name: str, places: Places) -> LuaPlugin:
    """Raises PluginNotFound, and what `read_plugin` raises of one that is there and no good."""
    if is_path(name):
        return read_plugin(manifest_at(Path(name)))
    plugins, problems = _known(places)
    try:
        return plugins.find(name)
    except UnknownPlugin as unknown:
        if (here := Path(name) / MANIFEST).is_file():
            return read_plugin(here)
        raise PluginNotFound("; ".join([str(unknown), *problems])) from None


def is_path(name: str) -> bool:
    """Whether it says where a plugin is, and not what it is called."""
    return "/" in name or name in {".", "..", MANIFEST}


def _known(places: Places) -> tuple[Plugins, list[str]]:
    """Those with a name, and what is wrong with those that have none here."""
    plugins = Plugins(builtin_plugins())
    installed, problems = installed_plugins(places.adapters)
    for plugin in installed:
        try:
            plugins.add(plugin)
        except NameTaken as taken:
            problems.append(f"{plugin.directory}: {taken}")
    return plugins, problems


def manifest_at(path: Path) -> Path:
    """The manifest of a plugin that is there, or in the directory there. Raises PluginNotFound."""
    manifest = path if path.name == MANIFEST else path / MANIFEST
    if not manifest.is_file():
        raise PluginNotFound(
            f"there is no {manifest}; a plugin is a directory with a {MANIFEST} "
            "(`telex adapter new` makes one)"
        )
    return manifest
