"""The adapters whose programs can be used like models: those with a `core` in their manifest, where
the program is installed. No program is started to find out."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET

from telex.adapters.plugin_registry import known_plugins

if TYPE_CHECKING:
    from telex.adapters.protocol import Manifest
    from telex.config.places import Places


@dataclass(frozen=True, slots=True)
class FoundAdapter:
    """An adapter that can be a model, and the path of its program; None if it is not on PATH."""

    manifest: Manifest
    program: str
    path: str | None

    @property
    def why(self) -> str:
        if self.path is None:
            return f"there is no program {self.program} on PATH"
        return f"the adapter knows the program {self.path}, which it drives in a terminal"


def find_adapters(places: Places, path: str | None) -> list[FoundAdapter]:
    """Return the adapters that can be models, also where their program is missing. Reads the disk.

    Args:
        path: The variable PATH of the programs that the agent starts.
    """
    found = []
    for plugin in known_plugins(places):
        target = plugin.manifest.default_target
        if plugin.manifest.core is not UNSET and target is not None:
            where = shutil.which(target.program, path=path)
            found.append(FoundAdapter(plugin.manifest, target.program, where))
    return found
