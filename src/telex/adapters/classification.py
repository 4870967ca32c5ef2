"""Calls of a plugin's `classify` and `describe`, and readers for the results of its functions:
states, plans, matchers, outcomes.

A plugin may return any value. The readers (`read_state`, `read_plan`, …) convert it into the
expected type, or raise a `PluginProblem` that names the function and the field. `classify` turns
such a problem into the state `plugin_error`; `watch_state` classifies after each screen change.
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
from telex.terminal.input_state import State
from telex.terminal.keys import UnknownKey, parse_key
from telex.terminal.waits.evidence import PredicateOutcome
from telex.terminal.waits.matchers import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.adapters.lua.instance import Instance
    from telex.terminal.session import PtySession


T = TypeVar("T")

_LISTS: Final = ("candidates", "host_marks", "actions", "intents", "wait_matchers", "states")
"""Members that are lists. Lua has one kind of table, so an empty list looks like an empty map."""

Share = Annotated[float, Meta(ge=0, le=1)]


class _Guess(Struct, frozen=True):
    state: str
    confidence: Share = 0.0
    evidence: str = ""


class _StateAnswer(Struct, frozen=True):
    """The result of `classify`, as a plugin returns it."""

    state: Annotated[str, Meta(min_length=1, max_length=128)]
    confidence: Share
    evidence: str = ""
    rule: str | None = None
    metadata: dict[str, Any] | None = None
    candidates: tuple[_Guess, ...] = ()
    host_marks: Annotated[tuple[HostMark, ...], Meta(max_length=limits.HOST_MARKS)] = ()


class NextStep(Struct, frozen=True):
    """The continuation of a plan after its actions: a function that returns another plan."""

    intent: Annotated[str, Meta(min_length=1, max_length=128)]
    when: Matcher
    """The condition to wait for before the function is called."""
    within_ms: Annotated[int, Meta(ge=0, le=limits.PLAN_STEP_SECONDS * 1000)]
    """After this time the function is called all the same, with `matched` false."""
    params: dict[str, Any] = {}


class _PlanAnswer(Struct, frozen=True):
    """The result of an intent, as a plugin returns it."""

    actions: Annotated[tuple[Action, ...], Meta(max_length=limits.PLAN_ACTIONS)]
    last_intent: Annotated[str, Meta(max_length=128)] | None = None
    next: NextStep | None = None


class _MatcherAnswer(Struct, frozen=True):
    """The result of a wait matcher, under a name so that the path in an error begins with it."""

    matcher: Matcher


class _OutcomeAnswer(Struct, frozen=True):
    """The result of a predicate, unless it is a boolean."""

    matched: bool
    evidence: Any = None
    capture: str | None = None


class _StateEntry(Struct, frozen=True):
    """A state of the catalogue, as far as it is used here."""

    name: str
    input: State | None = None


class PluginCatalogue(Struct, frozen=True):
    """The result of `describe`."""

    intents: list[Any] = []
    wait_matchers: list[Any] = []
    states: list[Any] = []


@dataclass(frozen=True, slots=True)
class IntentPlan:
    """The actions of an intent, and what follows them."""

    actions: tuple[Action, ...]
    last_intent: str | None
    """The new `last_intent` of the adapter: empty clears it, None keeps the old one."""
    next: NextStep | None = None


def read_state(plugin: str, answer: Any, sequence: int, last_intent: str | None) -> AdapterState:
    """Read the result of `classify`."""
    result = _read(plugin, "classify", answer, _StateAnswer)
    guesses = [
        StateCandidate(guess.state, round(guess.confidence, 3), guess.evidence)
        for guess in result.candidates
    ]
    return AdapterState(
        state=result.state,
        confidence=round(result.confidence, 3),
        evidence=result.evidence,
        sequence=sequence,
        candidates=tuple(guesses),
        last_intent=last_intent,
        rule=result.rule if result.rule is not None else UNSET,
        metadata=result.metadata or {},
        host_marks=result.host_marks or UNSET,
    )


def plugin_error(problem: PluginProblem, sequence: int, last_intent: str | None) -> AdapterState:
    """Return the state for a plugin that failed to classify."""
    return AdapterState(
        state=PLUGIN_ERROR,
        confidence=0.0,
        evidence=str(problem),
        sequence=sequence,
        last_intent=last_intent,
        metadata=problem.facts(),
    )


def read_plan(plugin: str, function: str, answer: Any) -> IntentPlan:
    """Read the result of an intent: a plan, or only its list of actions."""
    if isinstance(answer, list) or answer == {}:
        answer = {"actions": answer or []}
    result = _read(plugin, function, answer, _PlanAnswer)
    for action in result.actions:
        if isinstance(action, Key):
            _check_key(plugin, function, action.value)
    return IntentPlan(result.actions, result.last_intent, result.next)


def read_matcher(plugin: str, function: str, answer: Any) -> Matcher:
    """Read the result of a wait matcher."""
    return _read(plugin, function, {"matcher": answer}, _MatcherAnswer).matcher


def read_outcome(plugin: str, function: str, answer: Any) -> PredicateOutcome | None:
    """Read the result of a predicate; None if it did not match."""
    if answer is None or isinstance(answer, bool):
        return PredicateOutcome() if answer else None
    result = _read(plugin, function, answer, _OutcomeAnswer)
    return PredicateOutcome(result.evidence, result.capture) if result.matched else None


def read_catalogue(plugin: str, answer: Any) -> PluginCatalogue:
    """Read the result of `describe`."""
    return _read(plugin, "describe", answer, PluginCatalogue)


def input_states(catalogue: PluginCatalogue) -> dict[str, State]:
    """Return what the program waits for in each state, as far as a catalogue says it."""
    found: dict[str, State] = {}
    for entry in catalogue.states:
        with contextlib.suppress(msgspec.ValidationError):  # a word that is no input state
            state = msgspec.convert(entry, _StateEntry)
            if state.input is not None:
                found[state.name] = state.input
    return found


def catalogue_of_exports(exports: tuple[str, ...]) -> PluginCatalogue:
    """Return the catalogue of a plugin without `describe`, from the names of its functions."""
    names = [name for name in exports if name not in {"classify", "describe"}]
    return PluginCatalogue(
        [{"name": name} for name in names if not name.endswith("_matcher")],
        [{"name": name} for name in names if name.endswith("_matcher")],
    )


def _check_key(plugin: str, function: str, name: str) -> None:
    """Check the name now, and not after half of the plan was executed."""
    try:
        parse_key(name)
    except UnknownKey as unknown:
        raise _bad_shape(plugin, function, str(unknown)) from None


def _read(plugin: str, function: str, answer: Any, shape: type[T]) -> T:
    try:
        result: T = msgspec.convert(_plain(answer), shape)
    except msgspec.ValidationError as error:
        raise _bad_shape(plugin, function, str(error)) from None
    return result


def _bad_shape(plugin: str, function: str, why: str) -> PluginProblem:
    sentence = f"its result has not the right shape: {why}"
    return PluginProblem(plugin=plugin, function=function, kind="shape", problem=sentence)


def _plain(value: Any, name: str = "") -> Any:
    """Convert floats with whole values to integers, and empty tables that are lists to lists."""
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
    """A state, and how long the plugin took to classify."""

    state: AdapterState
    seconds: float
    problem: PluginProblem | None = None
    """The reason of the state `plugin_error`."""


async def classify(instance: Instance, context: dict[str, Any]) -> Classified:
    """Call the plugin's `classify`. If it fails, the state is `plugin_error`."""
    loop = asyncio.get_running_loop()
    sequence, last_intent = context["sequence"], context.get("last_intent")
    began = loop.time()
    try:
        answer = await instance.call("classify", context)
        took = loop.time() - began
        return Classified(read_state(instance.plugin.name, answer, sequence, last_intent), took)
    except PluginProblem as problem:
        took = loop.time() - began
        return Classified(plugin_error(problem, sequence, last_intent), took, problem)


async def describe_plugin(instance: Instance) -> PluginCatalogue:
    """Return the result of `describe`, or else a catalogue of the exports. Raises PluginProblem."""
    exports = await instance.exports()
    if "describe" not in exports:
        return catalogue_of_exports(exports)
    return read_catalogue(instance.plugin.name, await instance.call("describe"))


async def watch_state(
    session: PtySession, instance: Instance, on_state: Callable[[Classified], None]
) -> None:
    """Classify the session after each screen change until cancelled, and once more when the screen
    has been stable long enough for a turn to be complete. One call runs at a time: changes during a
    call are part of the next call."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    session.watchers.add(changed.set)
    try:
        while True:
            changed.clear()
            context = session_context(session, instance.plugin.permissions, loop.time())
            on_state(await classify(instance, context))
            settled = context["stable_ms"] >= COMPLETED_TURN_STABLE_MS
            until = session.last_change() + COMPLETED_TURN_STABLE_MS / 1000
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if settled else until + 0.001):
                    await changed.wait()
    finally:
        session.watchers.discard(changed.set)
