"""State machines of a run: its phases, and the order of its events. Two tables, no I/O.

All transitions are decided here. `RunPhases` decides whether a run may act; emitting an event is
acting. In CANCELLING a run may not act, so an "allow" that arrives then has no effect.
`EventOrder` enforces the sequence of events that UIs rely on (docs/reference/agent-protocol.md).
"""

from __future__ import annotations

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
    ANSWERED = "the question is closed, with or without an answer"
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
        return self.phase is RunPhase.RUNNING

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
    EventPosition.READY: _CALL,
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


class EventOrder:
    """The position of one run. Unknown kinds of event are allowed between steps."""

    def __init__(self) -> None:
        self.position = EventPosition.BETWEEN

    def take(self, kind: str) -> None:
        """Move to the position after this event. Raises `EventOutOfOrder`."""
        following = ORDER[self.position].get(kind)
        if following is None and kind not in KINDS and self.position is EventPosition.BETWEEN:
            following = self.position
        if following is None:
            raise EventOutOfOrder(f"event {kind!r} is not allowed {self.position.value}")
        self.position = following
