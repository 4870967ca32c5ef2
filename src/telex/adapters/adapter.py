"""An adapter: a plugin bound to one live session, with a Lua instance of its own.

It turns the screen into a state, an intent into actions, a wait matcher into a matcher; and it is
where a turn is atomic: inputs queue here, in order, and a turn is one of them. Reading does not
queue. It knows nothing of connections or of the wire; `service` does.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from telex.adapters import classification
from telex.adapters.asking import ask, catalogue
from telex.adapters.context import context
from telex.adapters.lua.problems import PluginProblem
from telex.adapters.permissions import demand_for, demand_to_go_on
from telex.automation.portal import shielded
from telex.protocols.pty_adapters import COMPLETED_TURN_STABLE_MS, State
from telex.terminal.waits.compiler import MatcherRefused
from telex.terminal.waits.engine import ProgramGone, WaitTimedOut
from telex.terminal.waits.evidence import LiveMoment
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.adapters.lua.instance import Instance
    from telex.adapters.sources import Plugin
    from telex.terminal.session import PtySession
    from telex.terminal.waits.engine import KeepMoment, WaitMatch
    from telex.terminal.waits.matchers import Matcher


class AdapterClosed(Exception):
    """Somebody closed the adapter meanwhile, or its session."""


class UnknownFunction(Exception):
    """The plugin has no such intent, or no such wait matcher."""


class Adapter:
    """One plugin on one session. `plugin` is what it was started with, whatever is loaded later."""

    def __init__(
        self,
        id: str,
        plugin: Plugin,
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

    async def state(self) -> State:
        """What the screen means now. A plugin that cannot say makes it `plugin_error`."""
        state = (await ask(self._instance, self._context())).state
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
        await shielded(self._do(plan, method))

    async def _plan(self, intent: str, params: dict[str, Any], method: str) -> classification.Plan:
        await self._exported(intent, intents=True)
        said = await self._instance.call(intent, params, self._context())
        plan = classification.read_plan(self.plugin.name, intent, said)
        demand_for(self.plugin, method, intent, plan.actions)
        if plan.next is not None:
            demand_to_go_on(self.plugin, method, intent)
        return plan

    async def _do(self, plan: classification.Plan, method: str) -> None:
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
            said = await catalogue(self._instance)
        except PluginProblem:  # of `describe`, which is not what was asked for
            said = classification.introspected(await self._instance.exports())
        entries = said.intents if intents else said.wait_matchers
        return [str(one["name"]) for one in entries if isinstance(one, dict) and "name" in one]

    def check_open(self) -> None:
        """Raise AdapterClosed if it was."""
        if self.closed or self.session.closed:
            raise AdapterClosed(f"the adapter {self.id} was closed")

    def _context(self) -> dict[str, Any]:
        self.check_open()
        shown = context(self.session, self.plugin.permissions, self._clock())
        if self.last_intent is not None:
            shown["last_intent"] = self.last_intent
        return shown


def _is_intent(function: str) -> bool:
    return function not in {"classify", "describe"} and not function.endswith("_matcher")
