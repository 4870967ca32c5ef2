"""A built-in plugin in its worker, for the tests that ask it something, and its fixtures."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from telex.adapters.classification import read_catalogue, read_matcher, read_plan, read_state
from telex.adapters.context import fixture_context
from telex.adapters.fixtures import DIRECTORY, differences, read_fixtures
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.plugin_registry import builtin_plugins

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.adapters.classification import IntentPlan, PluginCatalogue
    from telex.adapters.fixtures import Fixture, FixtureDifference
    from telex.adapters.lua.instance import Instance
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.protocol import AdapterState
    from telex.terminal.waits.matchers import Matcher


def plugin(name: str) -> LuaPlugin:
    (found,) = [one for one in builtin_plugins() if one.name == name]
    return found


def fixtures(name: str) -> dict[str, Fixture]:
    directory = plugin(name).directory
    assert directory is not None
    found, problems = read_fixtures(directory / DIRECTORY)
    assert not problems
    return {fixture.name: fixture for fixture in found}


class Asked:
    """A plugin, and what it says."""

    def __init__(self, instance: Instance) -> None:
        self._instance, self._name = instance, instance.plugin.name

    async def state(self, screen: str = "", **context: Any) -> AdapterState:
        """What it makes of a screen."""
        shown = fixture_context(screen, {"context": context})
        return read_state(self._name, await self._instance.call("classify", shown), 1, None)

    async def wrong(self, fixture: Fixture) -> list[FixtureDifference]:
        """Where it says something else of a fixture than is expected."""
        shown = fixture.shown()
        answer = await self._instance.call("classify", shown)
        return differences(fixture.expected, read_state(self._name, answer, 1, None))

    async def plan(
        self, intent: str, screen: str = "", shown: dict[str, Any] | None = None, **params: Any
    ) -> IntentPlan:
        """What it does for an intent in front of a screen."""
        context = shown or fixture_context(screen, {})
        return read_plan(self._name, intent, await self._instance.call(intent, params, context))

    async def matcher(self, name: str, **params: Any) -> Matcher:
        given = {"completed_turn_stable_ms": 300, **params}
        said = await self._instance.call(name, given, fixture_context("", {}))
        return read_matcher(self._name, name, said)

    async def says(self, predicate: str, **moment: Any) -> Any:
        """What a predicate says of a moment."""
        return await self._instance.call(predicate, fixture_context("", {}) | moment)

    async def catalogue(self) -> PluginCatalogue:
        return read_catalogue(self._name, await self._instance.call("describe"))

    async def exports(self) -> set[str]:
        return set(await self._instance.exports())


@asynccontextmanager
async def asking(name: str) -> AsyncIterator[Asked]:
    """`async with asking("shell") as shell:`"""
    workers = WorkerPool()
    try:
        yield Asked(workers.instance(plugin(name)))
    finally:
        await workers.close()
