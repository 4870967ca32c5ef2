"""The plugins whose tools the agent has, as the configuration names them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from telex.cli.console import explain, warn
from telex.cli.plugin.target import Host
from telex.cli.redacting import redactor_of
from telex.plugins import finding
from telex.plugins.keepers import Keepers
from telex.plugins.values import sections_of

if TYPE_CHECKING:
    from telex.config.load import Config
    from telex.config.places import Places


def keepers_of(config: Config, places: Places) -> Keepers:
    """Close them. Nothing is started; what is not there or may not be run is told and left out."""
    there = {one.name: one for one in finding.find(places, os.environ, Path.cwd()).found}
    used = []
    for name in dict.fromkeys(config.settings.agent.plugins):
        if (found := there.get(name)) is None:
            warn(f"agent.plugins: there is no plugin {name}; see: telex plugin list")
        elif found.refusal is not None:
            warn(f"agent.plugins: {name} is not run: {found.refusal}")
        else:
            used.append(found)
    host = Host(redactor_of(config.settings), config.settings.logging.level, sections_of(config))
    return Keepers(used, host.settings(explain))
