"""The records of the store (threads, runs, events, messages, questions, decisions), their ids on
the wire, and the check of JSON that may be stored. Pure.

JSON from other programs is kept byte for byte, so that unknown members survive. It must be one
object, in UTF-8, on one line, of bounded size: it is later sent inside a line of NDJSON, which a
line break between two members would split. Times are milliseconds since the epoch.
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
    """The status of a run, with the values of the wire (spec §5.6)."""

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
    """A session with the fields of `session.list`."""

    session_id: str
    created_at: int
    updated_at: int
    message_count: int
    """The number of user inputs and of `final` events."""
    last_run_id: str | None
    last_user_message: str | None
    meta: bytes | None
    workspace: str | None
    """The workspace of the last run; None for sessions older than this field."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run without its events."""

    run_id: str
    session_id: str
    status: Status
    message: str | None
    input: bytes
    started_at: int
    ended_at: int | None
    meta: bytes | None
    may_return: bool
    """Whether a UI of the run may reconnect to it."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it is sent or replayed. `seq` is -1 for the user's input that started the run."""

    run_id: str
    seq: int
    at: int
    event: bytes
    meta: bytes | None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a thread's conversation, and the run that it belongs to."""

    position: int
    run_id: str
    message: bytes


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A request that was sent to a UI and has no answer yet. When it is sent again, its id on the
    wire stays the same."""

    id: str
    run_id: str | None
    method: str
    params: bytes
    digest: bytes
    """The digest of the action that the answer allows. The runtime compares it with the action
    before it acts."""
    asked_at: int
    call: str | None = None
    """The id of the tool call that the question is about."""


@dataclass(frozen=True, slots=True)
class ClosedQuestion:
    """How a question was closed. The first answer wins; `won` is true for that answer."""

    won: bool
    answer: bytes | None
    """None: the question was withdrawn, and no later answer counts."""
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
    """Return an id that is random from its first character: UIs show only the first eight."""
    return str(uuid.uuid4())


def new_run_id() -> str:
    return f"run_{uuid.uuid4().hex}"


T = TypeVar("T")


class _Any(msgspec.Struct):
    """A JSON object with any members."""


class _Event(msgspec.Struct):
    type: str


_ANY = msgspec.json.Decoder(_Any)
_EVENT = msgspec.json.Decoder(_Event)


def check_json(kept: bytes | None, what: str, *, other_bytes: int = 0) -> None:
    """Raise `NotStorable` unless `kept` is a storable JSON object or None. `what` names the value
    in the message; `other_bytes` is the size of the other values on the same line."""
    if kept is not None:
        _decode(kept, what, _ANY, other_bytes)


def event_type(event: bytes) -> str:
    """Return the `type` of an event. Raise `NotStorable` if the event cannot be stored."""
    return _decode(event, "an event", _EVENT).type


def _decode(kept: bytes, what: str, decoder: msgspec.json.Decoder[T], other_bytes: int = 0) -> T:
    if (size := other_bytes + len(kept)) > AGENT_EVENT_BYTES:
        raise NotStorable(f"{what} has {size} bytes; the limit is {AGENT_EVENT_BYTES}")
    if b"\n" in kept or b"\r" in kept:
        raise NotStorable(f"{what} has a line break; write it on one line")
    try:
        str(kept, "utf-8")  # msgspec does not validate the strings it skips
        return decoder.decode(kept)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotStorable(f"{what} cannot be stored: {error}") from error
