"""Resume a run after a restart: replay its core against the stored events.

Only a run that awaited an answer can be resumed, because its last call has had no effect yet. The
core runs from its beginning with the same input:

- an event that is stored already is neither stored nor sent again
- a call whose result is stored gets that result
- answers and steering texts are given again at the place where the core read them
- the open question is the same question if its subject is the same

If the core emits or calls something else this time, the run fails and the call is not made.

Pure. The runtime makes a `Replay`; `AgentRun` and `RunContext` consume it. Only the members of an
event that are compared are decoded: the other members may be JSON that no Python type holds.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from telex.agent.tools.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.agent.store import ClosedQuestion, StoredEvent, StoredQuestion


T = TypeVar("T")

USER_MESSAGE = "hidden_user_message"
STALE_QUESTION = "what it was about has changed"
"""Stored as the reason why an open question was withdrawn at a resume. A later replay ignores the
question, as if it had never been asked."""


class ReplayDiverged(Exception):
    """The core emitted or called something else than before the restart."""


class _EventIdentity(Struct):
    """The members that must be equal for a replayed event to match the stored one."""

    type: str
    content: Raw | UnsetType = UNSET
    tool: Raw | UnsetType = UNSET
    args: Raw | UnsetType = UNSET


class _Called(Struct):
    tool_call_id: str | None = None


class _Result(Struct):
    result: str
    is_error: bool = False


class _Content(Struct):
    content: str


class Replay:
    """The stored events, answered questions and open questions of one run, consumed in order."""

    def __init__(
        self,
        events: Iterable[StoredEvent] = (),
        questions: Iterable[StoredQuestion] = (),
        closed: Iterable[tuple[StoredQuestion, ClosedQuestion]] = (),
    ) -> None:
        self._events = deque(events)
        self._questions = list(questions)
        # A question with a digest confirms a call. Its answer is not needed: either the result of
        # the call is stored too, or the call has had no effect and is asked about again.
        by_core = (pair for pair in closed if not pair[0].digest)
        self._closed = deque(pair for pair in by_core if pair[1].by != STALE_QUESTION)
        self.last_seq = self._events[-1].seq if self._events else -1
        self._beyond = False

    @property
    def finished(self) -> bool:
        """Whether the core has reached the point where it was before the restart."""
        return self._beyond or not (self._events or self._closed or self._questions)

    def matches_next(self, event: bytes) -> bool:
        """Whether the event is the next stored one. Raises `ReplayDiverged` where it differs."""
        now = _read(event, _EventIdentity)
        if now.type == "tool_result":
            self._skip_permission_events()
        if not self._events:
            self._beyond = True
            return False
        before = _read(self._events.popleft().event, _EventIdentity)
        if before != now:
            found = repr(now.type) if before.type != now.type else "one with other content"
            raise ReplayDiverged(
                f"the core emitted the event {before.type!r} before the restart, and now {found}"
            )
        return True

    def next_call_id(self) -> str | None:
        """Return the id of the call that begins now: its step_start and tool_call come next."""
        if len(self._events) < 2:
            return None
        return _read(self._events[1].event, _Called).tool_call_id

    def next_result(self) -> ToolResult | None:
        """Return the stored result of the call that has just been emitted; None if it was not
        made."""
        found = next((event for event in self._events if not _is_permission_event(event)), None)
        if found is None:
            return None
        if (kind := _read(found.event, _EventIdentity).type) != "tool_result":
            raise ReplayDiverged(f"a stored call has no result; the event {kind!r} follows it")
        stored = _read(found.event, _Result)
        return ToolResult(stored.result, stored.is_error)

    def _skip_permission_events(self) -> None:
        """Drop the permission events of a call whose result is stored: no question is asked."""
        while self._events and _is_permission_event(self._events[0]):
            self._events.popleft()

    def next_steering(self) -> str | None:
        """Return the steering text that the core read at this point, if any."""
        if not self._events or _read(self._events[0].event, _EventIdentity).type != USER_MESSAGE:
            return None
        return _read(self._events[0].event, _Content).content

    def unread_steering(self, texts: list[str]) -> list[str]:
        """Return those of the run's steering texts that the core had not read."""
        left = deque(texts)
        for stored in self._events:
            was_read = left and _read(stored.event, _EventIdentity).type == USER_MESSAGE
            if was_read and _read(stored.event, _Content).content == left[0]:
                left.popleft()
        return list(left)

    def next_answer(
        self, method: str, params: bytes
    ) -> tuple[StoredQuestion, ClosedQuestion] | None:
        """Return the stored question that the core asks now, and how it was closed; else None."""
        if self._closed:
            question, _ = self._closed[0]
            if (question.method, question.params) == (method, params):
                return self._closed.popleft()
        return None

    @property
    def continues(self) -> bool:
        """Whether stored events or answers follow this point. Then a question of the core that is
        not stored was not asked: no UI could answer it."""
        return bool(self._events or self._closed)

    def take_open_question(
        self, method: str, params: bytes, digest: bytes
    ) -> StoredQuestion | None:
        """Remove and return the open question that equals this one: by its digest if it has one,
        else by its text."""
        for question in self._questions:
            same = question.digest == digest if digest else question.params == params
            if question.method == method and same:
                self._questions.remove(question)
                return question
        return None

    def take_stale_questions(self) -> list[StoredQuestion]:
        """Remove and return the open questions that the core did not ask again. The caller
        withdraws them."""
        found, self._questions = self._questions, []
        return found


def _is_permission_event(event: StoredEvent) -> bool:
    return _read(event.event, _EventIdentity).type.startswith("permission.")


def _read(event: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(event, type=kind)
    except msgspec.DecodeError as error:
        raise ReplayDiverged(f"a stored event cannot be read: {error}") from error


class RunSettings(msgspec.Struct, omit_defaults=True):
    """The settings, beside its input, that a run needs to be resumed after a restart."""

    model: str = ""
    compact: bool = False
    steered: list[str] = []
    """All texts of `run.steer`, read or not."""


class _RunMeta(msgspec.Struct, omit_defaults=True):
    """Stored with a run beside its input: telex's settings, and the `meta` of the UI unchanged."""

    telex: RunSettings = msgspec.field(default_factory=RunSettings)
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def run_settings(meta: bytes | None) -> RunSettings:
    return msgspec.json.decode(meta or b"{}", type=_RunMeta).telex


def with_run_settings(meta: bytes | None, settings: RunSettings) -> bytes:
    given = msgspec.UNSET if meta is None else msgspec.Raw(meta)
    return msgspec.json.encode(_RunMeta(settings, given))


def with_steering(meta: bytes | None, text: str) -> bytes:
    decoded = msgspec.json.decode(meta or b"{}", type=_RunMeta)
    decoded.telex.steered = [*decoded.telex.steered, text]
    return msgspec.json.encode(decoded)
