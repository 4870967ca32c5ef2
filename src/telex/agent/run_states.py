"""What may follow what in a run: its phases, and the order of its events. Two tables, no I/O.

Nothing outside this file decides a transition. `RunPhases` says whether a run may act, and to send
an event is to act: in CANCELLING it may not, so an "allow" that arrives then has no effect.
`EventOrder` holds a core to the sequence that UIs rely on (docs/reference/agent-protocol.md).
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
    ASKED = "a question is put to a UI"
    ANSWERED = "the question is answered, or nobody can"
    CANCEL = "somebody cancels"
    DONE = "the core is done"
    FAILED = "something failed"
    STOPPED = "nothing of it runs any more"


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
        """Move on. False where the table has no such step: nothing changes."""
        then = PHASES[self.phase].get(step)
        if then is None:
            return False
        self.phase = then
        return True

    @property
    def may_act(self) -> bool:
        return self.phase is RunPhase.RUNNING

    @property
    def ended(self) -> bool:
        return not PHASES[self.phase]


class EventPosition(Enum):
    """Where in its sequence of events a run is."""

    BETWEEN = "between steps"
    STEP = "a step began"
    CALLED = "a tool is called"
    SHOWN = "what it would change was shown"
    READY = "permission is about to be asked"
    RESULT = "the tool answered"
    COMPACTING = "the context is made smaller"
    OVER = "final"


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
    """A core said something where it has no place."""


class EventOrder:
    """Where one run is. A kind of event that nobody knows has its place between steps."""

    def __init__(self) -> None:
        self.position = EventPosition.BETWEEN

    def take(self, kind: str) -> None:
        then = ORDER[self.position].get(kind)
        if then is None and kind not in KINDS and self.position is EventPosition.BETWEEN:
            then = self.position
        if then is None:
            raise EventOutOfOrder(f"{kind!r} cannot come now: {self.position.value}")
        self.position = then
