"""A run that goes on after a restart: its core runs again against its stored events.

Only a run that waited for an answer can go on: of its last call nothing has happened yet. The core
is run from its beginning with the same input. Where it emits what is stored already, nothing is
stored or sent again; where it makes a call whose result is stored, it gets that result; what a
person had answered it, or said to it meanwhile, it gets again at the same place; and the question
that was open is the same question, if it is about the same thing. A core that emits or calls
something else this time cannot go on, and nothing of it runs.

Pure; `AgentRun` and `RunContext` ask a `Replay`, the runtime makes it. Of an event only the members
that are needed are read: the others may be JSON that no type of ours holds.
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
"""Why a question from before was withdrawn: it is as if it had not been asked."""


class ReplayDiverged(Exception):
    """The core does not do what it did before."""


class _EventIdentity(Struct):
    """What makes an event the same one: its kind, its words, or the call."""

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
        # A call's confirm is not among them: with it the call's result is stored, or nothing.
        asked = (pair for pair in closed if not pair[0].digest)
        self._closed = deque(pair for pair in asked if pair[1].by != STALE_QUESTION)
        self.last_seq = self._events[-1].seq if self._events else -1
        self._beyond = False

    @property
    def finished(self) -> bool:
        """Whether the core is where it was."""
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
            what = repr(now.type) if before.type != now.type else "something else in it"
            raise ReplayDiverged(f"it said {before.type!r} before the restart, and now {what}")
        return True

    def next_call_id(self) -> str | None:
        """Of the call that comes now, a step_start and then itself."""
        if len(self._events) < 2:
            return None
        return _read(self._events[1].event, _Called).tool_call_id

    def next_result(self) -> ToolResult | None:
        """Of the last call, where it has been made."""
        made = next((one for one in self._events if not _asks(one)), None)
        if made is None:
            return None
        if (kind := _read(made.event, _EventIdentity).type) != "tool_result":
            raise ReplayDiverged(f"a call had no result, and {kind!r} came after it")
        stored = _read(made.event, _Result)
        return ToolResult(stored.result, stored.is_error)

    def _skip_permission_events(self) -> None:
        """Somebody was asked about a call then, and need not be now."""
        while self._events and _asks(self._events[0]):
            self._events.popleft()

    def next_steering(self) -> str | None:
        """What the person had said here."""
        if not self._events or _read(self._events[0].event, _EventIdentity).type != USER_MESSAGE:
            return None
        return _read(self._events[0].event, _Content).content

    def unread_steering(self, said: list[str]) -> list[str]:
        """Of all that was said to the run meanwhile, what it had not read."""
        left = deque(said)
        for one in self._events:
            was_read = left and _read(one.event, _EventIdentity).type == USER_MESSAGE
            if was_read and _read(one.event, _Content).content == left[0]:
                left.popleft()
        return list(left)

    def next_answer(
        self, method: str, params: bytes
    ) -> tuple[StoredQuestion, ClosedQuestion] | None:
        """How the question that the core itself asks now had ended."""
        if self._closed:
            question, _ = self._closed[0]
            if (question.method, question.params) == (method, params):
                return self._closed.popleft()
        return None

    @property
    def went_on(self) -> bool:
        """Whether the run went on from here: then no UI could be asked what is not stored."""
        return bool(self._events or self._closed)

    def take_open_question(
        self, method: str, params: bytes, digest: bytes
    ) -> StoredQuestion | None:
        """The open one that asks the same: by what it is bound to, else by its words."""
        for one in self._questions:
            same = one.digest == digest if digest else one.params == params
            if one.method == method and same:
                self._questions.remove(one)
                return one
        return None

    def take_stale_questions(self) -> list[StoredQuestion]:
        """Questions that are not asked this time, as the core goes on without: to be withdrawn."""
        found, self._questions = self._questions, []
        return found


def _asks(event: StoredEvent) -> bool:
    return _read(event.event, _EventIdentity).type.startswith("permission.")


def _read(event: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(event, type=kind)
    except msgspec.DecodeError as error:
        raise ReplayDiverged(f"an event cannot be read: {error}") from error


class RunSettings(msgspec.Struct, omit_defaults=True):
    """What a run needs beside its input to go on after a restart."""

    model: str = ""
    compact: bool = False
    steered: list[str] = []
    """All that was said to it meanwhile."""


class _RunMeta(msgspec.Struct, omit_defaults=True):
    """Stored with a run beside its input: ours, and the UI's own `meta` as it came."""

    telex: RunSettings = msgspec.field(default_factory=RunSettings)
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def run_settings(meta: bytes | None) -> RunSettings:
    return msgspec.json.decode(meta or b"{}", type=_RunMeta).telex


def with_run_settings(meta: bytes | None, settings: RunSettings) -> bytes:
    given = msgspec.UNSET if meta is None else msgspec.Raw(meta)
    return msgspec.json.encode(_RunMeta(settings, given))


def with_steering(kept: bytes | None, text: str) -> bytes:
    meta = msgspec.json.decode(kept or b"{}", type=_RunMeta)
    meta.telex.steered = [*meta.telex.steered, text]
    return msgspec.json.encode(meta)
