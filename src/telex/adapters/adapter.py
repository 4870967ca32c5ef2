"""Adapters: each is a plugin bound to one live session, with a Lua instance of its own.

`Adapter` turns the screen into a state, an intent into actions, a wait matcher into a matcher. A
turn is atomic here: inputs queue in order, and a turn is one of them. Reading does not queue.
`Adapters` holds those of one server by id. Neither knows connections or the wire; `server` does.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from telex.adapters import classification, limits
from telex.adapters.classification import classify, describe_plugin
from telex.adapters.context import session_context
from telex.adapters.errors import (
    AdapterClosed,
    NoProgram,
    NotAnAdapter,
    PluginProblem,
    TooManyAdapters,
    UnknownAdapter,
    UnknownFunction,
)
from telex.adapters.plugin_permissions import require_for_actions, require_for_next_step
from telex.adapters.protocol import COMPLETED_TURN_STABLE_MS, AdapterState, DefaultTarget
from telex.automation.errors import start_failed
from telex.processes.shielded import run_shielded
from telex.processes.spawn import StartFailed
from telex.terminal.cells import Size
from telex.terminal.pty import Program
from telex.terminal.waits.compiler import MatcherRefused
from telex.terminal.waits.engine import ProgramGone, WaitTimedOut
from telex.terminal.waits.evidence import LiveMoment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.adapters.lua.instance import Instance
    from telex.adapters.lua.worker_pool import WorkerPool
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.protocol import Start
    from telex.automation.server import AutomationService
    from telex.terminal.session import PtySession
    from telex.terminal.waits.engine import KeepMoment, WaitMatch
    from telex.terminal.waits.matchers import Matcher


class Adapter:
    """One plugin on one session. `plugin` is what it was started with, whatever is loaded later."""

    def __init__(
        self,
        id: str,
        plugin: LuaPlugin,
        instance: Instance,
        session_id: str,
        session: PtySession,
        *,
        owns: bool,
    ) -> None:
        self.id = id
        self.plugin = plugin
        self.session_id = session_id
        self.session = session
        self.owns = owns
        """Whether the session was started for it, and ends with it."""
        self.last_intent: str | None = None
        self.closed = False
        self._instance = instance
        self._inputs = asyncio.Lock()
        self._waits: set[asyncio.Task[WaitMatch]] = set()
        self._clock = asyncio.get_running_loop().time

    @asynccontextmanager
    async def input(self) -> AsyncIterator[None]:
        """One's turn to type, first come, first served. Raises AdapterClosed if the adapter was
        closed before it came."""
        async with self._inputs:
            self.check_open()
            yield

    async def state(self) -> AdapterState:
        """What the screen means now. A plugin that cannot say makes it `plugin_error`."""
        state = (await classify(self._instance, self._context())).state
        self.check_open()
        if state.host_marks and "input.write" not in self.plugin.permissions:
            why = "`host_marks` need the permission input.write, as any mark does"
            problem = PluginProblem(self.plugin.name, "classify", "shape", why)
            return classification.plugin_error(problem, state.sequence, self.last_intent)
        for mark in state.host_marks or ():
            self.session.label(mark.label)
        return state

    async def perform(self, intent: str, params: dict[str, Any], method: str) -> None:
        """Do what an intent wants done. Raises PluginProblem, UnknownFunction, NotPermitted, and
        what acting on a session raises. The plan is checked whole before anything is done."""
        plan = await self._plan(intent, params, method)
        # Half a plan is worse than none or all of it: the next one's keys would follow the half.
        await run_shielded(self._do(plan, method))

    async def _plan(
        self, intent: str, params: dict[str, Any], method: str
    ) -> classification.IntentPlan:
        await self._exported(intent, intents=True)
        said = await self._instance.call(intent, params, self._context())
        plan = classification.read_plan(self.plugin.name, intent, said)
        require_for_actions(self.plugin, method, intent, plan.actions)
        if plan.next is not None:
            require_for_next_step(self.plugin, method, intent)
        return plan

    async def _do(self, plan: classification.IntentPlan, method: str) -> None:
        function = ""
        for _ in range(limits.PLAN_STEPS):
            for action in plan.actions:
                await self.session.act(action)
            if plan.last_intent is not None:
                self.last_intent = plan.last_intent or None
            if (step := plan.next) is None:
                return
            try:
                matched = await self._seen(step)
            except ProgramGone:
                return  # nothing is left to type at; the state says what became of it
            function = step.intent
            plan = await self._plan(function, {**step.params, "matched": matched}, method)
        why = f"its plans go on after {limits.PLAN_STEPS} of them"
        raise PluginProblem(self.plugin.name, function, "shape", why)

    async def _seen(self, step: classification.NextStep) -> bool:
        """Whether it came in time."""
        try:
            await self._until(step.when, step.intent, step.within_ms / 1000)
        except WaitTimedOut:
            return False
        return True

    async def _matcher(self, function: str, params: dict[str, Any]) -> Matcher:
        await self._exported(function, intents=False)
        told = {"completed_turn_stable_ms": COMPLETED_TURN_STABLE_MS, **params}
        said = await self._instance.call(function, told, self._context())
        return classification.read_matcher(self.plugin.name, function, said)

    async def wait(
        self, function: str, params: dict[str, Any], timeout: float, keep: KeepMoment
    ) -> WaitMatch:
        """Until what a wait matcher of the plugin looks for is there. Raises PluginProblem,
        UnknownFunction, AdapterClosed, and what waiting on a session raises."""
        matcher = await self._matcher(function, params)
        return await self._until(matcher, function, timeout, keep)

    async def _until(
        self, matcher: Matcher, function: str, timeout: float, keep: KeepMoment = LiveMoment.keep
    ) -> WaitMatch:
        self.check_open()
        waiting = asyncio.create_task(self.session.wait(matcher, timeout, keep=keep))
        self._waits.add(waiting)
        try:
            await asyncio.wait({waiting})
            if waiting.cancelled():
                raise AdapterClosed(f"the adapter {self.id} was closed")
            return waiting.result()
        except MatcherRefused as refused:  # not the caller's: he has never seen it
            raise PluginProblem(self.plugin.name, function, "shape", str(refused)) from None
        finally:
            waiting.cancel()
            self._waits.discard(waiting)

    async def close(self) -> None:
        """Let go of the plugin, and of whoever waits. The session is for whoever it belongs to."""
        self.closed = True
        for waiting in self._waits:
            waiting.cancel()
        await self._instance.close()

    async def _exported(self, name: str, *, intents: bool) -> None:
        """Whether the plugin has it. The host's own functions are nobody's intents."""
        exports = await self._instance.exports()
        if name in exports and _is_intent(name) == intents:
            return
        kind = "intent" if intents else "wait matcher"
        names = await self._offered(intents=intents)
        there = f"there are {', '.join(names)}" if names else "it has none"
        raise UnknownFunction(f"{self.plugin.name} has no {kind} {name!r}; {there}")

    async def _offered(self, *, intents: bool) -> list[str]:
        """What it says it has: predicates, which look like intents, it does not name as such."""
        try:
            said = await describe_plugin(self._instance)
        except PluginProblem:  # of `describe`, which is not what was asked for
            said = classification.catalogue_of_exports(await self._instance.exports())
        entries = said.intents if intents else said.wait_matchers
        return [str(one["name"]) for one in entries if isinstance(one, dict) and "name" in one]

    def check_open(self) -> None:
        """Raise AdapterClosed if it was."""
        if self.closed or self.session.closed:
            raise AdapterClosed(f"the adapter {self.id} was closed")

    def _context(self) -> dict[str, Any]:
        self.check_open()
        shown = session_context(self.session, self.plugin.permissions, self._clock())
        if self.last_intent is not None:
            shown["last_intent"] = self.last_intent
        return shown


def _is_intent(function: str) -> bool:
    return function not in {"classify", "describe"} and not function.endswith("_matcher")


ROWS: Final = 40
COLS: Final = 120
"""The size of a terminal when neither the caller nor the manifest says one."""


class Adapters:
    """Every adapter of one server that was not closed, by id.

    All connections share them, and they outlive each. An adapter that started a program owns its
    session; one that was attached leaves the session when it is closed, and is closed with it.
    """

    def __init__(self, automation: AutomationService, workers: WorkerPool) -> None:
        self._automation = automation
        self._workers = workers
        self._adapters: dict[str, Adapter] = {}
        self._ending: dict[str, tuple[Adapter, asyncio.Task[None]]] = {}
        self._count = 0
        automation.closers.add(self._session_closed)

    def all(self) -> tuple[Adapter, ...]:
        return tuple(self._adapters.values())  # they are numbered as they come

    def knows(self, id: str) -> bool:
        return id in self._adapters

    def find(self, id: str, *, ending: bool = False) -> Adapter:
        """Raises UnknownAdapter. One that is being closed is found by those who ask for it."""
        if ending and id in self._ending:
            return self._ending[id][0]
        try:
            return self._adapters[id]
        except KeyError:
            known = ", ".join([*self._adapters][:8])
            listed = f"there are {known}" if known else "there are none"
            raise UnknownAdapter(f"unknown adapter: {id}; {listed}") from None

    def start(self, plugin: LuaPlugin, asked: Start) -> Adapter:
        """A new adapter on a program of its own. Raises what starting it raises."""
        self.check(plugin, asked)
        program = program_of(plugin, asked)
        try:
            session, _ = self._automation.open(program)
        except StartFailed as error:
            raise start_failed(error, program.argv[0]) from error
        return self._bound(plugin, session, owns=True)

    def check(self, plugin: LuaPlugin, asked: Start, instead_of: str | None = None) -> None:
        """Raise what can be known to be wrong before anything is started, or closed for it."""
        self._room_for(plugin, 0 if instead_of is None else self.knows(instead_of))
        program_of(plugin, asked)

    def attach(self, plugin: LuaPlugin, session: str) -> Adapter:
        """A new adapter on a session that is there. Raises UnknownSession."""
        self._automation.find(session)
        self._room_for(plugin)
        return self._bound(plugin, session, owns=False)

    async def end(self, adapter: Adapter) -> None:
        """End an adapter, and its session if that is its own. What waits on it is told so. Goes on
        to its end whoever leaves meanwhile."""
        ending = self._ending.get(adapter.id)
        if ending is not None:  # somebody closes it already: it is closed when that is done
            await asyncio.shield(ending[1])
        elif not adapter.closed:
            await asyncio.shield(self._begin_to_end(adapter))

    async def close(self) -> None:
        """Let go of all plugins."""
        for adapter in self.all():
            _ = self._begin_to_end(adapter)
        if self._ending:
            await asyncio.wait({task for _, task in self._ending.values()})

    def _room_for(self, plugin: LuaPlugin, leaving: int = 0) -> None:
        if plugin.manifest.kind != "adapter":
            raise NotAnAdapter(f"{plugin.name} is a {plugin.manifest.kind}, not an adapter")
        if len(self._adapters) - leaving >= limits.ADAPTERS:
            raise TooManyAdapters(f"there are {limits.ADAPTERS} adapters already; close some")

    def _bound(self, plugin: LuaPlugin, session_id: str, *, owns: bool) -> Adapter:
        session, _ = self._automation.find(session_id)
        self._count += 1
        id = f"e{self._count}"
        instance = self._workers.instance(plugin)
        adapter = Adapter(id, plugin, instance, session_id, session, owns=owns)
        self._adapters[id] = adapter
        self._automation.bindings.bind(session_id, id, own=owns)
        self._automation.session_appeared(session_id)
        return adapter

    def _session_closed(self, session: str) -> None:
        for adapter in self.all():
            if adapter.session_id == session:
                _ = self._begin_to_end(adapter)

    def _begin_to_end(self, adapter: Adapter) -> asyncio.Task[None]:
        self._adapters.pop(adapter.id, None)
        adapter.closed = True
        task = asyncio.create_task(self._end(adapter))
        self._ending[adapter.id] = (adapter, task)
        task.add_done_callback(lambda _: self._ending.pop(adapter.id))
        return task

    async def _end(self, adapter: Adapter) -> None:
        try:
            if not adapter.owns:
                self._automation.release_session(adapter.session_id, adapter.id)
            elif not adapter.session.closed:
                await self._automation.end_session(adapter.session_id)
        finally:
            await adapter.close()


def program_of(plugin: LuaPlugin, asked: Start) -> Program:
    """What to start: the caller's word, else the manifest's, else ours. Only `required_env` is the
    manifest's alone."""
    manifest = plugin.manifest.default_target
    name = asked.program or (manifest.program if manifest else None)
    if name is None:
        raise NoProgram(
            f"the manifest of {plugin.name} has no default_target; say which program to start"
        )
    default = manifest or DefaultTarget(name)
    args = asked.args
    if args is None:
        args = default.args if asked.program is None else ()
    size = Size(
        asked.rows or default.rows or ROWS,
        asked.cols or default.cols or COLS,
        asked.pixel_width or 0,
        asked.pixel_height or 0,
    )
    env = {**default.env, **(asked.env or {}), **default.required_env}
    return Program((name, *args), asked.cwd, env, size)
