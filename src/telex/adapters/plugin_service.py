"""`plugin.*` of terminal automation: what plugins there are, what they offer, and loading more.

Loading is a server's to grant (`--allow-plugin-load`): whoever may load a plugin may have any file
below a manifest read and run, in a sandbox, but still.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telex.adapters import manifest as manifests
from telex.adapters import telling
from telex.adapters.asking import catalogue
from telex.adapters.problems import NotGranted, StillInUse, answered
from telex.adapters.sources import read_plugin
from telex.automation.notices import Connection
from telex.automation.protocol import NoParams
from telex.protocols import pty_adapters as spec
from telex.terminal.redact import redact_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.adapters.live import Live
    from telex.adapters.predicates import Predicates
    from telex.adapters.registry import Plugins
    from telex.automation.server import AutomationService


class PluginService:
    """The service: one per server, shared by its connections."""

    def __init__(
        self,
        automation: AutomationService,
        plugins: Plugins,
        predicates: Predicates,
        live: Live,
        *,
        may_load: bool,
    ) -> None:
        self.redactor = automation.redactor
        self._plugins = plugins
        self._predicates = predicates
        self._live = live
        self._may_load = may_load
        automation.add_handlers(self._handlers())

    def capabilities(self, asked: NoParams, who: Connection) -> spec.PluginCapabilities:
        """What plugins can have here, and those that come with telex."""
        manifests = telling.manifests(self._plugins.builtins(), self.redactor)
        return spec.PluginCapabilities(spec.PERMISSIONS, True, False, manifests)

    @answered
    def validate_manifest(
        self, asked: spec.ValidateManifest, who: Connection
    ) -> spec.ManifestValid:
        """Check a manifest. What is wrong with it is told all at once, field by field."""
        manifests.check(asked.manifest)
        return spec.ManifestValid(True)

    @answered
    async def describe(self, asked: spec.OfPlugin, who: Connection) -> spec.PluginDescription:
        """What a plugin offers: by its own word, or else by what it exports."""
        plugin = self._plugins.find(asked.plugin)
        said = await catalogue(self._predicates.instance(asked.plugin))
        (manifest,) = telling.manifests([plugin], self.redactor)
        named = [
            redact_values(one, self.redactor)
            for one in (said.intents, said.wait_matchers, said.states)
        ]
        return spec.PluginDescription(plugin.name, manifest, *named)

    @answered
    async def load(self, asked: spec.LoadPlugin, who: Connection) -> spec.Loaded:
        """Add a plugin from its manifest on disk."""
        self._granted("plugin.load")
        plugin = await asyncio.to_thread(read_plugin, Path(asked.manifest_path))
        self._plugins.add(plugin)
        return spec.Loaded(plugin.name)

    @answered
    async def unload(self, asked: spec.OfPlugin, who: Connection) -> spec.Unloaded:
        """Remove a plugin that was loaded and is not in use."""
        self._granted("plugin.unload")
        plugin = self._plugins.find(asked.plugin)
        users = [one.id for one in self._live.all() if one.plugin.name == plugin.name]
        if users and not plugin.builtin:
            raise StillInUse(plugin.name, users)
        self._plugins.remove(plugin.name)  # which refuses those that come with telex
        await self._predicates.forget(plugin.name)
        return spec.Unloaded(True)

    def _granted(self, method: str) -> None:
        if not self._may_load:
            raise NotGranted(method)

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        return {
            "plugin.capabilities": self.capabilities,
            "plugin.validate_manifest": self.validate_manifest,
            "plugin.describe": self.describe,
            "plugin.load": self.load,
            "plugin.unload": self.unload,
        }
