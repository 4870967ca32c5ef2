"""The `lua` matcher: a plugin's predicate, called with moments of a session during a wait.

A predicate runs in a worker of its plugin, separate from the workers of adapters (the spec:
predicates see no adapter's state). So its result arrives after the check that called it. A result
is valid only for the moment that was passed to the predicate: that way all branches of a matcher
are true at the same moment. When a result arrives, the session checks its waits again.

Time alone may change a result, because `stable_ms` is part of the context. Without screen changes
the predicate is called again after increasing silences, not at an interval.

`Predicates` is for a server, which reads no file that a client names. `FoundPredicates` is for
`telex.spawn`, which finds and reads a plugin, by name or by path, at the first use.
"""

from __future__ import annotations

import asyncio
import bisect
import weakref
from typing import TYPE_CHECKING, Final

import msgspec

from telex.adapters import classification
from telex.adapters.context import session_context
from telex.adapters.errors import PluginProblem
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.lua_plugin import PluginRefused
from telex.adapters.manifest import BadManifest
from telex.adapters.plugin_registry import (
    NameTaken,
    PluginNotFound,
    Plugins,
    UnknownPlugin,
    find_plugin,
)
from telex.automation.error_map import error_kind
from telex.terminal.waits.evidence import PredicateFailed

if TYPE_CHECKING:
    from telex.adapters.lua.instance import Instance
    from telex.config.places import Places
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import Moment, PredicateOutcome, PredicateRunner
    from telex.terminal.waits.matchers import Predicate


SILENCES: Final = (0.05, 0.1, 0.2, 0.3, 0.5, *(2.0**n for n in range(18)))
"""Seconds without a screen change after which a predicate is called again, up to a day. After 0.3 a
turn may be complete."""

SETTLED: Final = 0.5
"""Seconds after an exited program's last change from which on a predicate will not match any
more."""

REPEATS: Final = 3
"""While a program prints faster than a predicate runs, every result is for a past moment. A result
that is the same so many times in a row is used for the present moment."""

RETRY_SECONDS: Final = 0.2
"""How long to wait before the next call if the plugin failed with kind `resting`."""

ROUNDING: Final = 0.002
"""Seconds added to a timer, because it may fire early and milliseconds are rounded down."""


class Predicates:
    """The predicates of one server: one instance for each plugin, created at the first use."""

    def __init__(self, plugins: Plugins, workers: WorkerPool) -> None:
        self._plugins = plugins
        self._workers = workers
        self._instances: dict[str, Instance] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._runners: weakref.WeakSet[PredicateQuestion] = weakref.WeakSet()

    def runner(self, session: PtySession, predicate: Predicate) -> PredicateQuestion:
        """Return the runner of one predicate in one wait. Raises PredicateFailed if there is no
        such plugin."""
        try:
            instance = self.instance(predicate.plugin)
        except UnknownPlugin as unknown:
            facts: dict[str, object] = {"reason": "unknown_plugin"}
            raise PredicateFailed(str(unknown), facts, asked_wrongly=True) from None
        runner = PredicateQuestion(session, predicate, instance, self._asking)
        self._runners.add(runner)
        return runner

    def instance(self, name: str) -> Instance:
        """Return the instance for a plugin's predicates and its `describe`. Raises
        UnknownPlugin."""
        plugin = self._plugins.find(name)
        if name not in self._instances:
            self._instances[name] = self._workers.instance(plugin)
        return self._instances[name]

    async def forget(self, name: str) -> None:
        """End the instance of a plugin that is unloaded. Its pending waits fail."""
        if (instance := self._instances.pop(name, None)) is None:
            return
        unloaded = PluginProblem(name, "", "closed", "the plugin was unloaded")
        for runner in [one for one in self._runners if one.uses(instance)]:
            runner.fail(unloaded)
        await instance.close()

    async def close(self) -> None:
        for name in [*self._instances]:
            await self.forget(name)
        if self._asking:
            await asyncio.wait(self._asking)


class PredicateQuestion:
    """One predicate in one wait: a `PredicateRunner` that calls the plugin in a task."""

    def __init__(
        self,
        session: PtySession,
        predicate: Predicate,
        instance: Instance,
        tasks: set[asyncio.Task[None]],
    ) -> None:
        self.says = "has not answered yet"
        self.decided = False
        self._session = session
        self._predicate = predicate
        self._instance = instance
        self._tasks = tasks
        self._pending: asyncio.Task[None] | None = None
        self._moment: tuple[int, bool, int] | None = None
        """The moment of the last result, or of the pending call."""
        self._result: PredicateOutcome | None = None
        self._in_a_row = 0
        """How many results in a row were the same."""
        self._failed: PredicateFailed | None = None

    def look(self, moment: Moment) -> PredicateOutcome | None:
        if self._failed is not None:
            raise self._failed
        current = self._pending is None and self._moment == (about := self._key(moment))
        if not current and self._pending is None:
            self._moment = about
            self._pending = asyncio.create_task(self._call(moment.now))
            self._tasks.add(self._pending)
            self._pending.add_done_callback(self._tasks.discard)
        self.decided = current or self._in_a_row >= REPEATS
        return self._result if self.decided else None

    def may_come(self, moment: Moment) -> bool:
        return not self.decided or moment.now - moment.last_change < SETTLED + ROUNDING

    def wake_at(self, moment: Moment) -> float | None:
        later = moment.last_change + SILENCES[self._silence(moment)] + ROUNDING
        return max(later, moment.now + ROUNDING)

    def uses(self, instance: Instance) -> bool:
        return self._instance is instance

    def fail(self, problem: PluginProblem) -> None:
        """Fail the wait now: the predicate cannot be called any more."""
        self._failed = PredicateFailed(
            str(problem), problem.facts(), asked_wrongly=problem.is_callers_error
        )
        if not self._session.closed:
            self._session.recheck_waits()

    def _key(self, moment: Moment) -> tuple[int, bool, int]:
        return moment.sequence, moment.exit is not None, self._silence(moment)

    def _silence(self, moment: Moment) -> int:
        """Return how many of the silences have passed."""
        silent = moment.now - moment.last_change - ROUNDING / 2
        return min(bisect.bisect(SILENCES, silent), len(SILENCES) - 1)

    async def _call(self, now: float) -> None:
        name, plugin = self._predicate.predicate, self._instance.plugin
        context = session_context(self._session, plugin.permissions, now)
        context["params"] = self._predicate.params or {}
        try:
            result = await self._instance.call(name, context)
            self._set_result(classification.read_outcome(plugin.name, name, result))
        except PluginProblem as problem:
            if problem.kind != "resting":
                self.fail(problem)
                return
            # Calls of other waits failed. This wait may continue until its own timeout.
            await asyncio.sleep(RETRY_SECONDS)
            self._moment = None
        self._pending = None
        if not self._session.closed:
            self._session.recheck_waits()

    def _set_result(self, result: PredicateOutcome | None) -> None:
        same = (result is None) == (self._result is None)
        self._in_a_row = self._in_a_row + 1 if same else 1
        self._result = result
        self.says = "says no" if result is None else "says yes"


class FoundPredicates:
    """The predicates for one program of `telex.spawn`. Call `close()` at the end."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._plugins = Plugins()
        self._workers = WorkerPool()
        self._predicates = Predicates(self._plugins, self._workers)
        self._names: dict[str, str] = {}
        """Plugin names by the text in the matcher, which may be a path."""

    def runner(self, session: PtySession, predicate: Predicate) -> PredicateRunner:
        """Return the runner of one predicate in one wait. Raises PredicateFailed if the plugin
        cannot be found or read."""
        given = predicate.plugin
        if given not in self._names:
            self._names[given] = self._found(given)
        named = msgspec.structs.replace(predicate, plugin=self._names[given])
        return self._predicates.runner(session, named)

    async def close(self) -> None:
        try:
            await self._predicates.close()
        finally:
            await self._workers.close()

    def _found(self, given: str) -> str:
        try:
            plugin = find_plugin(given, self._places)
            self._plugins.add(plugin)
        except (PluginNotFound, BadManifest, PluginRefused, NameTaken) as error:
            raise PredicateFailed(
                str(error), {"reason": error_kind(error)}, asked_wrongly=True
            ) from None
        return plugin.name
