"""What a plugin answered, read into values: states, plans, matchers, outcomes.

A plugin may answer anything. Here it becomes what it was meant to be, or a `PluginProblem` that
names the function and the field. Pure; used by `adapter`, `predicates` and the fixture tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct

from telex.adapters.lua.problems import PluginProblem
from telex.protocols.pty_adapters import PLUGIN_ERROR, Candidate, HostMark, State
from telex.terminal.actions import Action, Key
from telex.terminal.keys import UnknownKey, parse_key
from telex.terminal.waits.evidence import PredicateOutcome
from telex.terminal.waits.matchers import Matcher
from telex.wire import limits

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


class Catalogue(Struct, frozen=True):
    """What `describe` answers."""

    intents: list[Any] = []
    wait_matchers: list[Any] = []
    states: list[Any] = []


@dataclass(frozen=True, slots=True)
class Plan:
    """What an intent wants done."""

    actions: tuple[Action, ...]
    last_intent: str | None
    """What to remember of it: empty to forget what there was, None to leave that alone."""
    next: NextStep | None = None


def read_state(plugin: str, answer: Any, sequence: int, last_intent: str | None) -> State:
    """What `classify` said."""
    said = _read(plugin, "classify", answer, _StateAnswer)
    guesses = [
        Candidate(guess.state, round(guess.confidence, 3), guess.evidence)
        for guess in said.candidates
    ]
    return State(
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


def plugin_error(problem: PluginProblem, sequence: int, last_intent: str | None) -> State:
    """The state when the plugin could not say one."""
    return State(
        state=PLUGIN_ERROR,
        confidence=0.0,
        evidence=str(problem),
        sequence=sequence,
        last_intent=last_intent,
        metadata=problem.facts(),
    )


def read_plan(plugin: str, function: str, answer: Any) -> Plan:
    """What an intent said: a plan, or its bare list of actions."""
    if isinstance(answer, list) or answer == {}:
        answer = {"actions": answer or []}
    said = _read(plugin, function, answer, _PlanAnswer)
    for action in said.actions:
        if isinstance(action, Key):
            _check_key(plugin, function, action.value)
    return Plan(said.actions, said.last_intent, said.next)


def read_matcher(plugin: str, function: str, answer: Any) -> Matcher:
    """What a wait matcher said."""
    return _read(plugin, function, {"matcher": answer}, _MatcherAnswer).matcher


def read_outcome(plugin: str, function: str, answer: Any) -> PredicateOutcome | None:
    """What a predicate said; None for no."""
    if answer is None or isinstance(answer, bool):
        return PredicateOutcome() if answer else None
    said = _read(plugin, function, answer, _OutcomeAnswer)
    return PredicateOutcome(said.evidence, said.capture) if said.matched else None


def read_catalogue(plugin: str, answer: Any) -> Catalogue:
    """What `describe` said."""
    return _read(plugin, "describe", answer, Catalogue)


def introspected(exports: tuple[str, ...]) -> Catalogue:
    """What can be said of a plugin that does not describe itself."""
    names = [name for name in exports if name not in {"classify", "describe"}]
    return Catalogue(
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
