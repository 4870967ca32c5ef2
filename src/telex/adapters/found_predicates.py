"""The `lua` matcher where there is no server: its plugins are found as a person would call them.

A plugin is read when it is first asked, by name or by path, and stays as it was read. For
`spawning`; a server has a `registry` and its `predicates`, and reads nothing that a client names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from telex.adapters.finding import PluginNotFound, find_plugin
from telex.adapters.lua.nursery import Nursery
from telex.adapters.manifest import BadManifest
from telex.adapters.predicates import Predicates
from telex.adapters.registry import NameTaken, Plugins
from telex.adapters.sources import PluginRefused
from telex.automation.errors import error_kind
from telex.terminal.waits.evidence import PredicateFailed

if TYPE_CHECKING:
    from telex.config.places import Places
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import PredicateRunner
    from telex.terminal.waits.matchers import Predicate


class FoundPredicates:
    """Of one program that is driven. Close it."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._plugins = Plugins()
        self._nursery = Nursery()
        self._predicates = Predicates(self._plugins, self._nursery)
        self._names: dict[str, str] = {}
        """By what they were called, which may be a path."""

    def runner(self, session: PtySession, predicate: Predicate) -> PredicateRunner:
        """For one wait. Raises NoAnswer for a plugin that is not there, or no good."""
        called = predicate.plugin
        if called not in self._names:
            self._names[called] = self._found(called)
        named = msgspec.structs.replace(predicate, plugin=self._names[called])
        return self._predicates.runner(session, named)

    async def close(self) -> None:
        try:
            await self._predicates.close()
        finally:
            await self._nursery.close()

    def _found(self, called: str) -> str:
        try:
            plugin = find_plugin(called, self._places)
            self._plugins.add(plugin)
        except (PluginNotFound, BadManifest, PluginRefused, NameTaken) as error:
            raise PredicateFailed(
                str(error), {"reason": error_kind(error)}, asked_wrongly=True
            ) from None
        return plugin.name
