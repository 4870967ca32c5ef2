"""The plugins that `telex serve` begins with: its own, the person's, and those named to it.

One that is named and no good keeps the server from starting; one that merely lies in the data
directory gets a line on stderr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.adapters.finding import manifest_at
from telex.adapters.registry import NameTaken, Plugins, builtin_plugins, installed_plugins
from telex.adapters.sources import read_plugin
from telex.cli.console import explain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from telex.adapters.sources import Plugin
    from telex.config.places import Places


def served_plugins(places: Places, named: Iterable[Path]) -> tuple[Plugin, ...]:
    """Raises what is wrong with one that was named."""
    plugins = Plugins(builtin_plugins())
    for path in named:
        plugins.add(read_plugin(manifest_at(path)))
    installed, problems = installed_plugins(places.adapters)
    for plugin in installed:
        try:
            plugins.add(plugin)
        except NameTaken as taken:
            problems.append(f"{plugin.directory}: {taken}")
    for problem in problems:
        explain(f"telex: not loaded: {problem}")
    return plugins.all()
