"""Calls of a plugin's `classify` and `describe`, and its answers read into values: states, plans,
matchers, outcomes.

A plugin may answer anything. The readers here (`read_state`, `read_plan`, …) make of it what it was
meant to be, or raise a `PluginProblem` that names the function and the field. `classify` turns such
a problem into the state `plugin_error`; `watch_state` calls it whenever the screen changed.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct

from telex.adapters import limits
from telex.adapters.context import session_context
from telex.adapters.errors import PluginProblem
from telex.adapters.protocol import (
    COMPLETED_TURN_STABLE_MS,
    PLUGIN_ERROR,
    AdapterState,
    HostMark,
    StateCandidate,
)
from telex.terminal.actions import Action, Key
from telex.terminal.keys import UnknownKey, parse_key
from telex.terminal.waits.evidence import PredicateOutcome
from telex.terminal.waits.matchers import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from telex.adapters.lua.instance import Instance
    from telex.adapters.protocol import AdapterState
    from telex.terminal.session import PtySession


T = TypeVar("T")

_LISTS: Final = ("candidates", "host_marks", "actions", "intents", "wait_matchers", "states")
"""Members that are lists. Lua has one kind of table, and an empty one does not say which it is."""

Share = Annotated[float, Meta(ge=0, le=1)]


class _Guess(Struct, frozen=True):
    state: str
    confidence: Share = 0.0
    evidence: str = ""


class _StateAnswer(Struct, frozen=True):
    """What `classify` answers."""

    state: Annotated[str, Meta(min_length=1, max_length=128)]
    confidence: Share
    evidence: str = ""
    rule: str | None = None
    metadata: dict[str, Any] | None = None
    candidates: tuple[_Guess, ...] = ()
    host_marks: Annotated[tuple[HostMark, ...], Meta(max_length=limits.HOST_MARKS)] = ()


class NextStep(Struct, frozen=True):
    """How a plan goes on, once its actions are done: a function that answers another plan."""

    intent: Annotated[str, Meta(min_length=1, max_length=128)]
    when: Matcher
    """What has to be seen first."""
    within_ms: Annotated[int, Meta(ge=0, le=limits.PLAN_STEP_SECONDS * 1000)]
    """Then it goes on all the same, and is told that it was not seen."""
    params: dict[str, Any] = {}


class _PlanAnswer(Struct, frozen=True):
    """What an intent answers."""

    actions: Annotated[tuple[Action, ...], Meta(max_length=limits.PLAN_ACTIONS)]
    last_intent: Annotated[str, Meta(max_length=128)] | None = None
    next: NextStep | None = None


class _MatcherAnswer(Struct, frozen=True):
    """What a wait matcher answers, under a name for the sake of the path in an error."""

    matcher: Matcher


class _OutcomeAnswer(Struct, frozen=True):
    """What a predicate answers, unless it is a plain yes or no."""

    matched: bool
    evidence: Any = None
    capture: str | None = None


class PluginCatalogue(Struct, frozen=True):
    """What `describe` answers."""

    intents: list[Any] = []
    wait_matchers: list[Any] = []
    states: list[Any] = []


@dataclass(frozen=True, slots=True)
class IntentPlan:
    """What an intent wants done."""

    actions: tuple[Action, ...]
    last_intent: str | None
    """What to remember of it: empty to forget what there was, None to leave that alone."""
    next: NextStep | None = None


def read_state(plugin: str, answer: Any, sequence: int, last_intent: str | None) -> AdapterState:
    """What `classify` said."""
    said = _read(plugin, "classify", answer, _StateAnswer)
    guesses = [
        StateCandidate(guess.state, round(guess.confidence, 3), guess.evidence)
        for guess in said.candidates
    ]
    return AdapterState(
        state=said.state,
        confidence=round(said.confidence, 3),
        evidence=said.evidence,
        sequence=sequence,
        candidates=tuple(guesses),
        last_intent=last_intent,
        rule=said.rule if said.rule is not None else UNSET,
        metadata=said.metadata or {},
        host_marks=said.host_marks or UNSET,
    )


def plugin_error(problem: PluginProblem, sequence: int, last_intent: str | None) -> AdapterState:
    """The state when the plugin could not say one."""
    return AdapterState(
        state=PLUGIN_ERROR,
        confidence=0.0,
        evidence=str(problem),
        sequence=sequence,
        last_intent=last_intent,
        metadata=problem.facts(),
    )


def read_plan(plugin: str, function: str, answer: Any) -> IntentPlan:
    """What an intent said: a plan, or its bare list of actions."""
    if isinstance(answer, list) or answer == {}:
        answer = {"actions": answer or []}
    said = _read(plugin, function, answer, _PlanAnswer)
    for action in said.actions:
        if isinstance(action, Key):
            _check_key(plugin, function, action.value)
    return IntentPlan(said.actions, said.last_intent, said.next)


def read_matcher(plugin: str, function: str, answer: Any) -> Matcher:
    """What a wait matcher said."""
    return _read(plugin, function, {"matcher": answer}, _MatcherAnswer).matcher


def read_outcome(plugin: str, function: str, answer: Any) -> PredicateOutcome | None:
    """What a predicate said; None for no."""
    if answer is None or isinstance(answer, bool):
        return PredicateOutcome() if answer else None
    said = _read(plugin, function, answer, _OutcomeAnswer)
    return PredicateOutcome(said.evidence, said.capture) if said.matched else None


def read_catalogue(plugin: str, answer: Any) -> PluginCatalogue:
    """What `describe` said."""
    return _read(plugin, "describe", answer, PluginCatalogue)


def catalogue_of_exports(exports: tuple[str, ...]) -> PluginCatalogue:
    """What can be said of a plugin that does not describe itself."""
    names = [name for name in exports if name not in {"classify", "describe"}]
    return PluginCatalogue(
        [{"name": name} for name in names if not name.endswith("_matcher")],
        [{"name": name} for name in names if name.endswith("_matcher")],
    )


def _check_key(plugin: str, function: str, name: str) -> None:
    """Now, not when half of the plan is done."""
    try:
        parse_key(name)
    except UnknownKey as unknown:
        raise _misshapen(plugin, function, str(unknown)) from None


def _read(plugin: str, function: str, answer: Any, shape: type[T]) -> T:
    try:
        told: T = msgspec.convert(_plain(answer), shape)
    except msgspec.ValidationError as wrong:
        raise _misshapen(plugin, function, str(wrong)) from None
    return told


def _misshapen(plugin: str, function: str, why: str) -> PluginProblem:
    sentence = f"what it answered has not the right shape: {why}"
    return PluginProblem(plugin=plugin, function=function, kind="shape", problem=sentence)


def _plain(value: Any, name: str = "") -> Any:
    """Whole numbers as such, whatever arithmetic made them, and empty lists as lists."""
    match value:
        case {} if not value and name in _LISTS:
            return []
        case dict():
            return {key: _plain(member, key) for key, member in value.items()}
        case list():
            return [_plain(member) for member in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Classified:
    """A state, and how long the plugin took to say it."""

    state: AdapterState
    seconds: float
    problem: PluginProblem | None = None
    """Why there is no other state than `plugin_error`."""


async def classify(instance: Instance, seen: dict[str, Any]) -> Classified:
    """What the plugin says of what it is shown, or what is wrong with it."""
    loop = asyncio.get_running_loop()
    sequence, last_intent = seen["sequence"], seen.get("last_intent")
    began = loop.time()
    try:
        answer = await instance.call("classify", seen)
        took = loop.time() - began
        return Classified(read_state(instance.plugin.name, answer, sequence, last_intent), took)
    except PluginProblem as problem:
        took = loop.time() - began
        return Classified(plugin_error(problem, sequence, last_intent), took, problem)


async def describe_plugin(instance: Instance) -> PluginCatalogue:
    """What the plugin offers: by its own word, or else by what it exports. Raises PluginProblem."""
    exports = await instance.exports()
    if "describe" not in exports:
        return catalogue_of_exports(exports)
    return read_catalogue(instance.plugin.name, await instance.call("describe"))


async def watch_state(
    session: PtySession, instance: Instance, told: Callable[[Classified], None]
) -> None:
    """Classify this session whenever its screen changed, and once more when it has stood still long
    enough for a turn to be over, until cancelled. One call at a time: what changes while the plugin
    thinks is part of the next."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    session.watchers.add(changed.set)
    try:
        while True:
            changed.clear()
            seen = session_context(session, instance.plugin.permissions, loop.time())
            told(await classify(instance, seen))
            settled = seen["stable_ms"] >= COMPLETED_TURN_STABLE_MS
            until = session.last_change() + COMPLETED_TURN_STABLE_MS / 1000
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if settled else until + 0.001):
                    await changed.wait()
    finally:
        session.watchers.discard(changed.set)
