"""What the store keeps: threads, runs, events, questions put to a UI, and remembered decisions;
their ids on the wire; and which bytes may be kept. Pure.

JSON that others wrote stays the bytes it was, so that members we do not know survive. It is one
object, in UTF-8, on one line, of bounded size: it is sent again inside a line of NDJSON, where a
line break between two members would do harm. Times are milliseconds since the epoch.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import msgspec

from telex.agent.limits import AGENT_EVENT_BYTES
from telex.agent.store.errors import NotStorable


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
class StoredThread:
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
class StoredRun:
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
class StoredEvent:
    """As it is sent, or sent again. `seq` is -1 for what the person said to start the run."""

    run_id: str
    seq: int
    at: int
    event: bytes
    meta: bytes | None


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A request put to a UI, which has not been answered. Its id on the wire stays the same."""

    id: str
    run_id: str | None
    method: str
    params: bytes
    digest: bytes
    """Of what the answer allows. Whoever acts on the answer compares it with what it will do."""
    asked_at: int


@dataclass(frozen=True, slots=True)
class ClosedQuestion:
    """How a question ended. The first answer wins; `won` tells whether it was this one."""

    won: bool
    answer: bytes | None
    """None: it was withdrawn, and no answer counts any more."""
    by: str
    at: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A rule that a person asked to be remembered."""

    id: int
    rule: bytes
    by: str
    at: int
    request_id: str | None
    revoked_by: str | None
    revoked_at: int | None


def new_session_id() -> str:
    """Random from its first character on: UIs list sessions by the first eight."""
    return str(uuid.uuid4())


def new_run_id() -> str:
    return f"run_{uuid.uuid4().hex}"


T = TypeVar("T")


class _Any(msgspec.Struct):
    """An object, whatever its members."""


class _Event(msgspec.Struct):
    type: str


_ANY = msgspec.json.Decoder(_Any)
_EVENT = msgspec.json.Decoder(_Event)


def check_json(kept: bytes | None, what: str, *, beside: int = 0) -> None:
    """Of something that may be kept, with so many bytes on the same line."""
    if kept is not None:
        _decoded(kept, what, _ANY, beside)


def event_type(event: bytes) -> str:
    """Of an event that may be kept."""
    return _decoded(event, "an event", _EVENT).type


def _decoded(kept: bytes, what: str, decoder: msgspec.json.Decoder[T], beside: int = 0) -> T:
    if (size := beside + len(kept)) > AGENT_EVENT_BYTES:
        raise NotStorable(f"{what} makes {size} bytes; at most {AGENT_EVENT_BYTES} are kept")
    if b"\n" in kept or b"\r" in kept:
        raise NotStorable(f"{what} holds a line break; write it on one line")
    try:
        str(kept, "utf-8")  # msgspec does not look into the strings it skips
        return decoder.decode(kept)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotStorable(f"{what} cannot be kept: {error}") from error
