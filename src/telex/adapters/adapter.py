"""Adapters: each is a plugin bound to one live session, with its own Lua instance.

`Adapter` turns the screen into a state, an intent into actions, a wait matcher into a matcher.
Inputs are queued in order, and a turn is one input, so a turn is atomic. Reads are not queued.
`Adapters` has the adapters of one server by id. Connections and the wire are in `server`.
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
from telex.automation.error_map import start_failed
from telex.processes.shielded import run_shielded
from telex.processes.spawn import StartFailed
from telex.rpc.identity import IN_PROCESS, Identity
from telex.terminal.cells import Size
from telex.terminal.input_log import AuthoredInput
from telex.terminal.input_state import InputState
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
    from telex.terminal.input_state import State
    from telex.terminal.session import PtySession
    from telex.terminal.waits.engine import KeepMoment, WaitMatch
    from telex.terminal.waits.matchers import Matcher


class Adapter:
    """One plugin on one session. `plugin` stays the one it was started with, also after a
    reload."""

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
        """Whether the session was started for this adapter and ends with it."""
        self.last_intent: str | None = None
        self.closed = False
        self._instance = instance
        self._inputs = asyncio.Lock()
        self._waits: set[asyncio.Task[WaitMatch]] = set()
        self._clock = asyncio.get_running_loop().time
        self._input_states: dict[str, State] | None = None
        """What the program waits for in each state of the plugin, once it was asked."""
        self._hinting: asyncio.Task[None] | None = None
        session.input_watch.ask_adapter = self._begin_hint

    @asynccontextmanager
    async def input(self) -> AsyncIterator[None]:
        """Wait for the earlier inputs, then hold the input lock. Raises AdapterClosed if the
        adapter was closed meanwhile."""
        async with self._inputs:
            self.check_open()
            yield

    async def state(self) -> AdapterState:
        """Classify the screen now. If the plugin fails, the state is `plugin_error`."""
        state = (await classify(self._instance, self._context())).state
        self.check_open()
        if state.host_marks and "input.write" not in self.plugin.permissions:
            why = "`host_marks` need the permission input.write, as any mark does"
            problem = PluginProblem(self.plugin.name, "classify", "shape", why)
            return classification.plugin_error(problem, state.sequence, self.last_intent)
        for mark in state.host_marks or ():
            self.session.label(mark.label)
        await self._hint(state)
        return state

    def _begin_hint(self) -> None:
        """Classify the screen for the input state of the session; one call runs at a time."""
        if self._hinting is None and not self.closed:
            self._hinting = asyncio.create_task(self._classify_for_hint())

    async def _classify_for_hint(self) -> None:
        try:
            await self._hint((await classify(self._instance, self._context())).state)
        except AdapterClosed:
            pass
        finally:
            self._hinting = None

    async def _hint(self, state: AdapterState) -> None:
        """Tell the session what the program waits for in this state, if the plugin says so."""
        if self._input_states is None:
            try:
                catalogue = await describe_plugin(self._instance)
            except PluginProblem:  # of `describe`: the other sources decide
                catalogue = classification.catalogue_of_exports(())
            self._input_states = classification.input_states(catalogue)
        kind = self._input_states.get(state.state, "unknown")
        why = f"{self.plugin.name} says {state.state}: {state.evidence}"
        hint = InputState(kind, "adapter", state.confidence, why)
        self.session.input_watch.set_hint(hint, state.sequence)

    async def perform(
        self, intent: str, params: dict[str, Any], method: str, who: Identity = IN_PROCESS
    ) -> None:
        """Execute the plan of an intent, for `who`. The whole plan is checked before its first
        action.

        Raises PluginProblem, UnknownFunction, PermissionMissing, and the errors of
        `PtySession.act`.
        """
        plan = await self._plan(intent, params, method)
        # A plan is not interrupted by a cancel: the next input would follow half of it.
        self.session.log_input(AuthoredInput(who, "intent", f"{self.id} {intent}"))
        await run_shielded(self._do(plan, method, who))

    async def _plan(
        self, intent: str, params: dict[str, Any], method: str
    ) -> classification.IntentPlan:
        await self._exported(intent, intents=True)
        result = await self._instance.call(intent, params, self._context())
        plan = classification.read_plan(self.plugin.name, intent, result)
        require_for_actions(self.plugin, method, intent, plan.actions)
        if plan.next is not None:
            require_for_next_step(self.plugin, method, intent)
        return plan

    async def _do(self, plan: classification.IntentPlan, method: str, who: Identity) -> None:
        function = ""
        for _ in range(limits.PLAN_STEPS):
            for action in plan.actions:
                await self.session.act(action, who)
            if plan.last_intent is not None:
                self.last_intent = plan.last_intent or None
            if (step := plan.next) is None:
                return
            try:
                matched = await self._wait_for_step(step)
            except ProgramGone:
                return  # the program exited: further input is impossible, and the state shows it
            function = step.intent
            plan = await self._plan(function, {**step.params, "matched": matched}, method)
        why = f"its plan has more than {limits.PLAN_STEPS} steps"
        raise PluginProblem(self.plugin.name, function, "shape", why)

    async def _wait_for_step(self, step: classification.NextStep) -> bool:
        """Return whether the condition of the next step was true in time."""
        try:
            await self._until(step.when, step.intent, step.within_ms / 1000)
        except WaitTimedOut:
            return False
        return True

    async def _matcher(self, function: str, params: dict[str, Any]) -> Matcher:
        await self._exported(function, intents=False)
        passed = {"completed_turn_stable_ms": COMPLETED_TURN_STABLE_MS, **params}
        result = await self._instance.call(function, passed, self._context())
        return classification.read_matcher(self.plugin.name, function, result)

    async def wait(
        self, function: str, params: dict[str, Any], timeout: float, keep: KeepMoment
    ) -> WaitMatch:
        """Wait until the matcher that a plugin's function returns matches.

        Raises PluginProblem, UnknownFunction, AdapterClosed, and the errors of `PtySession.wait`.
        """
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
        except MatcherRefused as refused:  # the plugin wrote the matcher, and not the caller
            raise PluginProblem(self.plugin.name, function, "shape", str(refused)) from None
        finally:
            waiting.cancel()
            self._waits.discard(waiting)

    async def close(self) -> None:
        """Cancel the waits and end the Lua instance. The session stays open."""
        self.closed = True
        self.session.input_watch.ask_adapter = None
        for waiting in self._waits:
            waiting.cancel()
        if self._hinting is not None:
            self._hinting.cancel()
            await asyncio.wait({self._hinting})
        await self._instance.close()

    async def _exported(self, name: str, *, intents: bool) -> None:
        """Raise UnknownFunction unless the plugin exports this intent or wait matcher. `classify`
        and `describe` are neither."""
        exports = await self._instance.exports()
        if name in exports and _is_intent(name) == intents:
            return
        kind = "intent" if intents else "wait matcher"
        names = await self._offered(intents=intents)
        there = f"there are {', '.join(names)}" if names else "it has none"
        raise UnknownFunction(f"{self.plugin.name} has no {kind} {name!r}; {there}")

    async def _offered(self, *, intents: bool) -> list[str]:
        """Return the names that `describe` lists. Exports alone would include predicates, which
        cannot be told from intents."""
        try:
            catalogue = await describe_plugin(self._instance)
        except PluginProblem:  # of `describe`, which the caller did not request
            catalogue = classification.catalogue_of_exports(await self._instance.exports())
        entries = catalogue.intents if intents else catalogue.wait_matchers
        return [str(one["name"]) for one in entries if isinstance(one, dict) and "name" in one]

    def check_open(self) -> None:
        """Raise AdapterClosed if the adapter or its session was closed."""
        if self.closed or self.session.closed:
            raise AdapterClosed(f"the adapter {self.id} was closed")

    def _context(self) -> dict[str, Any]:
        self.check_open()
        context = session_context(self.session, self.plugin.permissions, self._clock())
        if self.last_intent is not None:
            context["last_intent"] = self.last_intent
        return context


def _is_intent(function: str) -> bool:
    return function not in {"classify", "describe"} and not function.endswith("_matcher")


ROWS: Final = 40
COLS: Final = 120
"""The size of a terminal when neither the caller nor the manifest has one."""


class Adapters:
    """The open adapters of one server, by id.

    All connections share them, and they outlive the connections. An adapter that started a program
    owns its session and ends it. An attached adapter leaves the session open when it is closed.
    Both are closed when their session is closed.
    """

    def __init__(self, automation: AutomationService, workers: WorkerPool) -> None:
        self._automation = automation
        self._workers = workers
        self._adapters: dict[str, Adapter] = {}
        self._ending: dict[str, tuple[Adapter, asyncio.Task[None]]] = {}
        self._count = 0
        automation.closers.add(self._session_closed)

    def all(self) -> tuple[Adapter, ...]:
        return tuple(self._adapters.values())  # in the order of their creation

    def knows(self, id: str) -> bool:
        return id in self._adapters

    def find(self, id: str, *, ending: bool = False) -> Adapter:
        """Return an adapter; with `ending` also one that is being closed. Raises UnknownAdapter."""
        if ending and id in self._ending:
            return self._ending[id][0]
        try:
            return self._adapters[id]
        except KeyError:
            known = ", ".join([*self._adapters][:8])
            listed = f"there are {known}" if known else "there are none"
            raise UnknownAdapter(f"unknown adapter: {id}; {listed}") from None

    def start(self, plugin: LuaPlugin, params: Start) -> Adapter:
        """Start a program and return a new adapter on it. Raises the errors of the start."""
        self.check(plugin, params)
        program = program_of(plugin, params)
        try:
            session, _ = self._automation.open(program)
        except StartFailed as error:
            raise start_failed(error, program.argv[0]) from error
        return self._bound(plugin, session, owns=True)

    def check(self, plugin: LuaPlugin, params: Start, instead_of: str | None = None) -> None:
        """Raise the errors that are known before a program is started or `instead_of` is closed."""
        self._room_for(plugin, 0 if instead_of is None else self.knows(instead_of))
        program_of(plugin, params)

    def attach(self, plugin: LuaPlugin, session: str) -> Adapter:
        """Return a new adapter on an existing session. Raises UnknownSession."""
        self._automation.find(session)
        self._room_for(plugin)
        return self._bound(plugin, session, owns=False)

    async def end(self, adapter: Adapter) -> None:
        """End an adapter, and its session if it owns the session. Pending waits fail with
        AdapterClosed. The work continues if this is cancelled."""
        ending = self._ending.get(adapter.id)
        if ending is not None:  # another caller closes it already
            await asyncio.shield(ending[1])
        elif not adapter.closed:
            await asyncio.shield(self._begin_to_end(adapter))

    async def close(self) -> None:
        """End all adapters and wait."""
        for adapter in self.all():
            _ = self._begin_to_end(adapter)
        if self._ending:
            await asyncio.wait({task for _, task in self._ending.values()})

    def _room_for(self, plugin: LuaPlugin, closing: int = 0) -> None:
        if plugin.manifest.kind != "adapter":
            raise NotAnAdapter(f"{plugin.name} is a {plugin.manifest.kind}, not an adapter")
        if len(self._adapters) - closing >= limits.ADAPTERS:
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


def program_of(plugin: LuaPlugin, params: Start) -> Program:
    """Return the program to start: each value from the caller, else from the manifest, else the
    default here. The caller cannot override `required_env` of the manifest."""
    manifest = plugin.manifest.default_target
    name = params.program or (manifest.program if manifest else None)
    if name is None:
        raise NoProgram(
            f"the manifest of {plugin.name} has no default_target; pass the program to start"
        )
    default = manifest or DefaultTarget(name)
    args = params.args
    if args is None:
        args = default.args if params.program is None else ()
    size = Size(
        params.rows or default.rows or ROWS,
        params.cols or default.cols or COLS,
        params.pixel_width or 0,
        params.pixel_height or 0,
    )
    env = {**default.env, **(params.env or {}), **default.required_env}
    return Program((name, *args), params.cwd, env, size)
