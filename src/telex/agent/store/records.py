"""What the store tells: threads, runs, events, questions put to a UI, and remembered decisions.

JSON that others wrote stays the bytes it was, so that members we do not know survive. Times are
milliseconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Of a run, as on the wire (spec §5.6)."""

    RUNNING = "running"
    AWAITING_UI = "awaiting_ui"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self not in (Status.RUNNING, Status.AWAITING_UI)


@dataclass(frozen=True, slots=True)
class Thread:
    """A session, as `session.list` tells it."""

    session_id: str
    created_at: int
    updated_at: int
    message_count: int
    """What the person said, and the `final` of each run."""
    last_run_id: str | None
    last_user_message: str | None
    meta: bytes | None
    workspace: str | None
    """Of its last run; None where it was not known yet."""


@dataclass(frozen=True, slots=True)
class Run:
    run_id: str
    session_id: str
    status: Status
    message: str | None
    input: bytes
    started_at: int
    ended_at: int | None
    meta: bytes | None
    may_return: bool
    """Whether a UI of it may come back to it."""


@dataclass(frozen=True, slots=True)
class Event:
    """As it is sent, or sent again. `seq` is -1 for what the person said to start the run."""

    run_id: str
    seq: int
    at: int
    event: bytes
    meta: bytes | None


@dataclass(frozen=True, slots=True)
class Question:
    """A request put to a UI, which has not been answered. Its id on the wire stays the same."""

    id: str
    run_id: str | None
    method: str
    params: bytes
    digest: bytes
    """Of what the answer allows. Whoever acts on the answer compares it with what it will do."""
    asked_at: int


@dataclass(frozen=True, slots=True)
class Closed:
    """How a question ended. The first answer wins; `won` tells whether it was this one."""

    won: bool
    answer: bytes | None
    """None: it was withdrawn, and no answer counts any more."""
    by: str
    at: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Decision:
    """A rule that a person asked to be remembered."""

    id: int
    rule: bytes
    by: str
    at: int
    request_id: str | None
    revoked_by: str | None
    revoked_at: int | None
