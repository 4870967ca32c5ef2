"""Starts the plugins of `zoo/`, and has a host with short deadlines."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telex.plugins.discovery import FoundPlugin
from telex.plugins.plugin_settings import Deadlines, PluginSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.plugins.protocol import PluginManifest

ZOO = Path(__file__).parent / "zoo"

QUICK = Deadlines(handshake=5, initialize=2, shutdown=0.2, exit=0.2, stdin=0.2, term=0.2)
"""Long for steps that should succeed, short for steps that should time out."""


def found(path: Path, manifest: PluginManifest | None = None) -> FoundPlugin:
    return FoundPlugin(path.stem, path, manifest, path)


def animal(name: str) -> FoundPlugin:
    (path,) = ZOO.glob(f"{name}.*")
    return found(path)


def written(directory: Path, source: str, manifest: PluginManifest | None = None) -> FoundPlugin:
    """Write a plugin for one test, which may use `speaking`."""
    path = directory / "own.py"
    path.write_text(f"import sys\nsys.path.insert(0, {str(ZOO)!r})\nimport speaking\n{source}")
    return replace(found(path, manifest), name=manifest.name if manifest else "own")


@dataclass
class RecordingHost:
    """A host with its settings, which records the lines of standard error."""

    arguments: Sequence[str] = ()
    deadlines: Deadlines = QUICK
    lines: list[str] = field(default_factory=list)

    def settings(self, **more: Any) -> PluginSettings:
        given = {
            "on_stderr_line": self.lines.append,
            "command": self.command,
            "deadlines": self.deadlines,
        }
        return PluginSettings(**{**given, **more})

    def command(self, plugin: FoundPlugin) -> list[str]:
        path = str(plugin.executable)
        if path.endswith(".sh"):
            return [path, *self.arguments]
        # Without site-packages an animal starts in a quarter of the time.
        return [sys.executable, "-E", "-S", path, *self.arguments]
