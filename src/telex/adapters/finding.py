"""A plugin by what a person calls it: its name, or where it is.

With a `/` in it (or `.`) it is a path, of a directory or of its manifest. Without, it is a plugin
that comes with telex, one that is installed, or else a directory here. Used by the commands of
`telex adapter`; a server finds its plugins in its `registry`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from telex.adapters.registry import (
    MANIFEST,
    NameTaken,
    Plugins,
    UnknownPlugin,
    builtin_plugins,
    installed_plugins,
)
from telex.adapters.sources import read_plugin

if TYPE_CHECKING:
    from telex.adapters.sources import Plugin
    from telex.config.places import Places


class PluginNotFound(Exception):
    """Nothing is called that; the sentence says what is."""

    exit_code = 2


def find_plugin(name: str, places: Places) -> Plugin:
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
