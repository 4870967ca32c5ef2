"""What may follow what in a run: its phases, and the order of its events. Two tables, no I/O.

Nothing outside this file decides a transition. `Phases` says whether a run may act, and to tell is
to act: in CANCELLING it may not, so an old "allow" that arrives then finds nobody who acts on it.
`Order` holds a core to the sequence that UIs rely on (docs/reference/agent-protocol.md).
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Phase(Enum):
    RUNNING = "running"
    AWAITING_UI = "awaiting_ui"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"


class Step(Enum):
    ASKED = "a question is put to a UI"
    ANSWERED = "the question is answered, or nobody can"
    CANCEL = "somebody cancels"
    DONE = "the core is done"
    FAILED = "something failed"
    STOPPED = "nothing of it runs any more"


PHASES: Final[dict[Phase, dict[Step, Phase]]] = {
    Phase.RUNNING: {
        Step.ASKED: Phase.AWAITING_UI,
        Step.CANCEL: Phase.CANCELLING,
        Step.DONE: Phase.COMPLETED,
        Step.FAILED: Phase.ERROR,
    },
    Phase.AWAITING_UI: {
        Step.ANSWERED: Phase.RUNNING,
        Step.CANCEL: Phase.CANCELLING,
        Step.FAILED: Phase.ERROR,
    },
    Phase.CANCELLING: {Step.STOPPED: Phase.CANCELLED},
    Phase.COMPLETED: {},
    Phase.ERROR: {},
    Phase.CANCELLED: {},
}


class Phases:
    """The phase of one run."""

    def __init__(self) -> None:
        self.phase = Phase.RUNNING

    def step(self, step: Step) -> bool:
        """Move on. False where the table has no such step: nothing changes."""
        then = PHASES[self.phase].get(step)
        if then is None:
            return False
        self.phase = then
        return True

    @property
    def may_act(self) -> bool:
        return self.phase is Phase.RUNNING

    @property
    def ended(self) -> bool:
        return not PHASES[self.phase]


class Place(Enum):
    """Where in its sequence of events a run is."""

    BETWEEN = "between steps"
    STEP = "a step began"
    CALLED = "a tool is called"
    SHOWN = "what it would change was shown"
    READY = "permission is about to be asked"
    RESULT = "the tool answered"
    COMPACTING = "the context is made smaller"
    OVER = "final"


_CALL: Final = {"tool_result": Place.RESULT}
ORDER: Final[dict[Place, dict[str, Place]]] = {
    Place.BETWEEN: {
        "text": Place.BETWEEN,
        "reasoning": Place.BETWEEN,
        "llm.retry": Place.BETWEEN,
        "hidden_user_message": Place.BETWEEN,
        "step_start": Place.STEP,
        "compaction_start": Place.COMPACTING,
        "final": Place.OVER,
    },
    Place.STEP: {"tool_call": Place.CALLED},
    Place.CALLED: {
        "permission.preview": Place.SHOWN,
        "permission.ready": Place.READY,
        **_CALL,
    },
    Place.SHOWN: {"permission.ready": Place.READY, **_CALL},
    Place.READY: _CALL,
    Place.RESULT: {"step_complete": Place.BETWEEN},
    Place.COMPACTING: {
        "llm.retry": Place.COMPACTING,
        "compaction_complete": Place.BETWEEN,
    },
    Place.OVER: {},
}
KINDS: Final = frozenset(kind for after in ORDER.values() for kind in after)


class OutOfOrder(Exception):
    """A core said something where it has no place."""


class Order:
    """Where one run is. A kind of event that nobody knows has its place between steps."""

    def __init__(self) -> None:
        self.place = Place.BETWEEN

    def take(self, kind: str) -> None:
        then = ORDER[self.place].get(kind)
        if then is None and kind not in KINDS and self.place is Place.BETWEEN:
            then = self.place
        if then is None:
            raise OutOfOrder(f"{kind!r} cannot come now: {self.place.value}")
        self.place = then
