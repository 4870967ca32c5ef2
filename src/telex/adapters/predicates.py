"""The `lua` matcher: a plugin's predicate, asked about the moments of a session while a wait lasts.

A predicate runs in a worker of its plugin's own, apart from every adapter's (the spec: predicates
see no adapter's state), and so its answer comes later than the look that asked for it. An answer
counts for the moment it was asked about, and for no other: that way all branches of a matcher are
true at one moment. When it comes, the session looks again.

Time alone may change an answer, for `stable_ms` is part of what a predicate sees. While nothing
happens it is asked again after ever longer silences, not at an interval.

`Predicates` are a server's, which reads nothing that a client names; `FoundPredicates` are those of
`telex.spawn`, which finds and reads a plugin, by name or by path, when it is first asked.
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
from telex.automation.errors import error_kind
from telex.terminal.waits.evidence import PredicateFailed

if TYPE_CHECKING:
    from telex.adapters.lua.instance import Instance
    from telex.adapters.plugin_registry import Plugins
    from telex.config.places import Places
    from telex.terminal.session import PtySession
    from telex.terminal.waits.evidence import Moment, PredicateOutcome, PredicateRunner
    from telex.terminal.waits.matchers import Predicate


SILENCES: Final = (0.05, 0.1, 0.2, 0.3, 0.5, *(2.0**n for n in range(18)))
"""After how many seconds without a change a predicate is asked again: up to a day. 0.3 is when a
turn may be complete."""

SETTLED: Final = 0.5
"""A predicate that still says no so long after its program's last change will not say yes."""

OFTEN: Final = 3
"""While a program prints faster than a predicate answers, every answer is about a moment that is
gone. One that is the same so often in a row is taken for the present."""

RESTING: Final = 0.2
"""How long to wait before asking again a plugin that rests, in seconds."""

ROUNDING: Final = 0.002
"""A timer may ring a moment early, and milliseconds are rounded down: a little after, then."""


class Predicates:
    """All of one server: an instance for each plugin that is asked, made when it first is."""

    def __init__(self, plugins: Plugins, workers: WorkerPool) -> None:
        self._plugins = plugins
        self._workers = workers
        self._instances: dict[str, Instance] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._runners: weakref.WeakSet[PredicateQuestion] = weakref.WeakSet()

    def runner(self, session: PtySession, predicate: Predicate) -> PredicateQuestion:
        """For one wait. Raises NoAnswer if there is no such plugin."""
        try:
            instance = self.instance(predicate.plugin)
        except UnknownPlugin as unknown:
            facts: dict[str, object] = {"reason": "unknown_plugin"}
            raise PredicateFailed(str(unknown), facts, asked_wrongly=True) from None
        runner = PredicateQuestion(session, predicate, instance, self._asking)
        self._runners.add(runner)
        return runner

    def instance(self, name: str) -> Instance:
        """Where the predicates of a plugin are asked, and its `describe`. Raises UnknownPlugin."""
        plugin = self._plugins.find(name)
        if name not in self._instances:
            self._instances[name] = self._workers.instance(plugin)
        return self._instances[name]

    async def forget(self, name: str) -> None:
        """The plugin is being unloaded: whoever still waits for it is told."""
        if (instance := self._instances.pop(name, None)) is None:
            return
        gone = PluginProblem(name, "", "closed", "the plugin was unloaded")
        for runner in [one for one in self._runners if one.asks(instance)]:
            runner.fail(gone)
        await instance.close()

    async def close(self) -> None:
        for name in [*self._instances]:
            await self.forget(name)
        if self._asking:
            await asyncio.wait(self._asking)


class PredicateQuestion:
    """One predicate in one wait. A `PredicateRunner`."""

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
        self._asked: tuple[int, bool, int] | None = None
        """The moment that the answer, or the question under way, is about."""
        self._answer: PredicateOutcome | None = None
        self._in_a_row = 0
        """How often it said the same, each time too late for the moment it was asked about."""
        self._failed: PredicateFailed | None = None

    def look(self, moment: Moment) -> PredicateOutcome | None:
        if self._failed is not None:
            raise self._failed
        current = self._pending is None and self._asked == (about := self._about(moment))
        if not current and self._pending is None:
            self._asked = about
            self._pending = asyncio.create_task(self._ask(moment.now))
            self._tasks.add(self._pending)
            self._pending.add_done_callback(self._tasks.discard)
        self.decided = current or self._in_a_row >= OFTEN
        return self._answer if self.decided else None

    def may_come(self, moment: Moment) -> bool:
        return not self.decided or moment.now - moment.last_change < SETTLED + ROUNDING

    def wake_at(self, moment: Moment) -> float | None:
        later = moment.last_change + SILENCES[self._silence(moment)] + ROUNDING
        return max(later, moment.now + ROUNDING)

    def asks(self, instance: Instance) -> bool:
        return self._instance is instance

    def fail(self, problem: PluginProblem) -> None:
        """It cannot be asked any more. Whoever waits for it hears of it now."""
        self._failed = PredicateFailed(
            str(problem), problem.facts(), asked_wrongly=problem.asked_wrongly
        )
        if not self._session.closed:
            self._session.recheck_waits()

    def _about(self, moment: Moment) -> tuple[int, bool, int]:
        return moment.sequence, moment.exit is not None, self._silence(moment)

    def _silence(self, moment: Moment) -> int:
        """How many of the silences are over."""
        silent = moment.now - moment.last_change - ROUNDING / 2
        return min(bisect.bisect(SILENCES, silent), len(SILENCES) - 1)

    async def _ask(self, now: float) -> None:
        name, plugin = self._predicate.predicate, self._instance.plugin
        shown = session_context(self._session, plugin.permissions, now)
        shown["params"] = self._predicate.params or {}
        try:
            said = await self._instance.call(name, shown)
            self._take(classification.read_outcome(plugin.name, name, said))
        except PluginProblem as problem:
            if problem.kind != "resting":
                self.fail(problem)
                return
            await asyncio.sleep(RESTING)  # others made it fail; this wait has its own time
            self._asked = None
        self._pending = None
        if not self._session.closed:
            self._session.recheck_waits()

    def _take(self, answer: PredicateOutcome | None) -> None:
        same = (answer is None) == (self._answer is None)
        self._in_a_row = self._in_a_row + 1 if same else 1
        self._answer = answer
        self.says = "says no" if answer is None else "says yes"


class FoundPredicates:
    """The predicates of one program driven by `telex.spawn`. Call `close()` at the end."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._plugins = Plugins()
        self._workers = WorkerPool()
        self._predicates = Predicates(self._plugins, self._workers)
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
            await self._workers.close()

    def _found(self, called: str) -> str:
        try:
            plugin = find_plugin(called, self._places)
            self._plugins.add(plugin)
        except (PluginNotFound, BadManifest, PluginRefused, NameTaken) as error:
            raise PredicateFailed(
                str(error), {"reason": error_kind(error)}, asked_wrongly=True
            ) from None
        return plugin.name
