"""State machines of a run: its phases, and the order of its events. Two tables, no I/O.

All transitions are decided here. `RunPhases` decides whether a run may act; emitting an event is
acting. In CANCELLING a run may not act, so an "allow" that arrives then has no effect.
`EventOrder` enforces the sequence of events that UIs rely on (docs/reference/agent-protocol.md).
Several steps may be open at once, when tools run side by side; the sequence holds for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class RunPhase(Enum):
    RUNNING = "running"
    AWAITING_UI = "awaiting_ui"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"


class RunTransition(Enum):
    ASKED = "a question is sent to the UIs"
    ANSWERED = "the last open question is closed, with or without an answer"
    CANCEL = "a cancel is requested"
    DONE = "the core has finished"
    FAILED = "the core or the runtime failed"
    STOPPED = "a cancelled core has stopped"


PHASES: Final[dict[RunPhase, dict[RunTransition, RunPhase]]] = {
    RunPhase.RUNNING: {
        RunTransition.ASKED: RunPhase.AWAITING_UI,
        RunTransition.CANCEL: RunPhase.CANCELLING,
        RunTransition.DONE: RunPhase.COMPLETED,
        RunTransition.FAILED: RunPhase.ERROR,
    },
    RunPhase.AWAITING_UI: {
        RunTransition.ASKED: RunPhase.AWAITING_UI,
        RunTransition.ANSWERED: RunPhase.RUNNING,
        RunTransition.CANCEL: RunPhase.CANCELLING,
        RunTransition.FAILED: RunPhase.ERROR,
    },
    RunPhase.CANCELLING: {RunTransition.STOPPED: RunPhase.CANCELLED},
    RunPhase.COMPLETED: {},
    RunPhase.ERROR: {},
    RunPhase.CANCELLED: {},
}


class RunPhases:
    """The phase of one run."""

    def __init__(self) -> None:
        self.phase = RunPhase.RUNNING

    def step(self, step: RunTransition) -> bool:
        """Change the phase. Return False, and change nothing, if the table has no such step."""
        following = PHASES[self.phase].get(step)
        if following is None:
            return False
        self.phase = following
        return True

    @property
    def may_act(self) -> bool:
        return self.phase in (RunPhase.RUNNING, RunPhase.AWAITING_UI)

    @property
    def ended(self) -> bool:
        return not PHASES[self.phase]


class EventPosition(Enum):
    """The position of a run in the sequence of its events. The values are for error messages."""

    BETWEEN = "between steps"
    STEP = "after step_start"
    CALLED = "after tool_call"
    SHOWN = "after permission.preview"
    READY = "after permission.ready"
    RESULT = "after tool_result"
    COMPACTING = "after compaction_start"
    OVER = "after final"


_CALL: Final = {"tool_result": EventPosition.RESULT}
ORDER: Final[dict[EventPosition, dict[str, EventPosition]]] = {
    EventPosition.BETWEEN: {
        "text": EventPosition.BETWEEN,
        "reasoning": EventPosition.BETWEEN,
        "llm.retry": EventPosition.BETWEEN,
        "hidden_user_message": EventPosition.BETWEEN,
        "step_start": EventPosition.STEP,
        "compaction_start": EventPosition.COMPACTING,
        "final": EventPosition.OVER,
    },
    EventPosition.STEP: {"tool_call": EventPosition.CALLED},
    EventPosition.CALLED: {
        "permission.preview": EventPosition.SHOWN,
        "permission.ready": EventPosition.READY,
        **_CALL,
    },
    EventPosition.SHOWN: {"permission.ready": EventPosition.READY, **_CALL},
    # A question that is asked again after a restart, about a file that has changed, is shown again.
    EventPosition.READY: {
        "permission.preview": EventPosition.SHOWN,
        "permission.ready": EventPosition.READY,
        **_CALL,
    },
    EventPosition.RESULT: {"step_complete": EventPosition.BETWEEN},
    EventPosition.COMPACTING: {
        "llm.retry": EventPosition.COMPACTING,
        "compaction_complete": EventPosition.BETWEEN,
    },
    EventPosition.OVER: {},
}
KINDS: Final = frozenset(kind for after in ORDER.values() for kind in after)


class EventOutOfOrder(Exception):
    """A core emitted an event that is not allowed at this position."""


@dataclass(slots=True)
class OpenStep:
    """A step without its `step_complete`. `call_id` is None until the `tool_call`."""

    step_id: str | None
    position: EventPosition = EventPosition.STEP
    call_id: str | None = None


class EventOrder:
    """The position of one run. Unknown kinds of event are allowed between steps."""

    def __init__(self) -> None:
        self._between = EventPosition.BETWEEN
        self._open: list[OpenStep] = []
        self.steps = 0
        """The number of steps that have begun."""

    @property
    def position(self) -> EventPosition:
        """The position of the run, or of the step that began last."""
        return self._open[-1].position if self._open else self._between

    def step_of(self, call_id: str | None) -> OpenStep | None:
        """Return the open step of a tool call."""
        return next((step for step in self._open if step.call_id == call_id), None)

    def take(self, kind: str, step_id: str | None = None, call_id: str | None = None) -> None:
        """Move to the position after this event. Raises `EventOutOfOrder`."""
        if kind == "step_start" and self._may_open(step_id):
            self._open.append(OpenStep(step_id))
            self.steps += 1
        elif self._open:
            self._take_in_step(kind, step_id, call_id)
        else:
            self._between = _following(self._between, kind)

    def _may_open(self, step_id: str | None) -> bool:
        known = any(step.step_id == step_id for step in self._open)
        return self._between is EventPosition.BETWEEN and not known

    def _take_in_step(self, kind: str, step_id: str | None, call_id: str | None) -> None:
        step = self._step_for(kind, step_id, call_id)
        step.position = _following(step.position, kind)
        if kind == "tool_call":
            step.call_id = call_id
        if step.position is EventPosition.BETWEEN:
            self._open.remove(step)

    def _step_for(self, kind: str, step_id: str | None, call_id: str | None) -> OpenStep:
        if kind == "tool_call":  # follows its `step_start` directly
            return self._open[-1]
        for step in self._open:
            if step.step_id == step_id if kind == "step_complete" else step.call_id == call_id:
                return step
        return self._open[-1]


def _following(position: EventPosition, kind: str) -> EventPosition:
    following = ORDER[position].get(kind)
    if following is None and kind not in KINDS and position is EventPosition.BETWEEN:
        following = position
    if following is None:
        raise EventOutOfOrder(f"event {kind!r} is not allowed {position.value}")
    return following
