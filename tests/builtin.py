"""A builtin plugin in its worker, and its fixtures, for tests."""

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


class RunningBuiltin:
    """A plugin in a worker, with functions for its calls."""

    def __init__(self, instance: Instance) -> None:
        self._instance, self._name = instance, instance.plugin.name

    async def state(self, screen: str = "", **context: Any) -> AdapterState:
        """Return the state of a screen."""
        full = fixture_context(screen, {"context": context})
        return read_state(self._name, await self._instance.call("classify", full), 1, None)

    async def wrong(self, fixture: Fixture) -> list[FixtureDifference]:
        """Return the differences from the expected state of a fixture."""
        answer = await self._instance.call("classify", fixture.context())
        return differences(fixture.expected, read_state(self._name, answer, 1, None))

    async def plan(
        self, intent: str, screen: str = "", shown: dict[str, Any] | None = None, **params: Any
    ) -> IntentPlan:
        """Return the plan of an intent for a screen."""
        context = shown or fixture_context(screen, {})
        return read_plan(self._name, intent, await self._instance.call(intent, params, context))

    async def matcher(self, name: str, **params: Any) -> Matcher:
        given = {"completed_turn_stable_ms": 300, **params}
        result = await self._instance.call(name, given, fixture_context("", {}))
        return read_matcher(self._name, name, result)

    async def predicate(self, name: str, **moment: Any) -> Any:
        """Return the result of a predicate for a moment."""
        return await self._instance.call(name, fixture_context("", {}) | moment)

    async def catalogue(self) -> PluginCatalogue:
        return read_catalogue(self._name, await self._instance.call("describe"))

    async def exports(self) -> set[str]:
        return set(await self._instance.exports())


@asynccontextmanager
async def running_builtin(name: str) -> AsyncIterator[RunningBuiltin]:
    """Yield a builtin plugin in a worker: `async with running_builtin("shell") as shell:`."""
    workers = WorkerPool()
    try:
        yield RunningBuiltin(workers.instance(plugin(name)))
    finally:
        await workers.close()
