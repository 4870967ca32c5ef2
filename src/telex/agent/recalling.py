"""A run that goes on after a restart: its core runs again; what it had done is recalled, not done.

Only a run that waited for an answer can go on: of its last call nothing has happened yet. The core
is run from its beginning with the same input. Where it says what is stored already, nothing is
stored or told again; where it makes a call whose result is stored, it gets that result; what a
person had answered it, or said to it meanwhile, it hears again at the same place; and the question
that was open is the same question, if it is about the same thing. A core that says or calls
something else this time cannot go on, and nothing of it runs.

Pure; `Run` and `Turn` ask it, `Runtime` makes it. Of an event only the members that are needed are
read: the others may be JSON that no type of ours holds.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from telex.agent.tools.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.agent.store import Closed, Event, Question

T = TypeVar("T")

SAID = "hidden_user_message"
STALE = "what it was about has changed"
"""Why a question from before was withdrawn: it is as if it had not been asked."""


class CannotGoOn(Exception):
    """The core does not do what it did before."""


class _Said(Struct):
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


class _Words(Struct):
    content: str


class Recall:
    """What one run had told, what was answered to it, and what it had asked and nobody answered."""

    def __init__(
        self,
        events: Iterable[Event] = (),
        questions: Iterable[Question] = (),
        closed: Iterable[tuple[Question, Closed]] = (),
    ) -> None:
        self._events = deque(events)
        self._questions = list(questions)
        # A call's confirm is not among them: with it the call's result is stored, or nothing.
        asked = (pair for pair in closed if not pair[0].digest)
        self._closed = deque(pair for pair in asked if pair[1].by != STALE)
        self.last_seq = self._events[-1].seq if self._events else -1
        self._beyond = False

    @property
    def over(self) -> bool:
        """Whether the core is where it was."""
        return self._beyond or not (self._events or self._closed or self._questions)

    def told(self, event: bytes) -> bool:
        """Whether the event that comes now is one that is stored."""
        now = _read(event, _Said)
        if now.type == "tool_result":
            self._pass_over_asking()
        if not self._events:
            self._beyond = True
            return False
        before = _read(self._events.popleft().event, _Said)
        if before != now:
            what = repr(now.type) if before.type != now.type else "something else in it"
            raise CannotGoOn(f"it said {before.type!r} before the restart, and now {what}")
        return True

    def call_id(self) -> str | None:
        """Of the call that comes now, a step_start and then itself."""
        if len(self._events) < 2:
            return None
        return _read(self._events[1].event, _Called).tool_call_id

    def result(self) -> ToolResult | None:
        """Of the call that was told last, where it has been made."""
        made = next((one for one in self._events if not _asks(one)), None)
        if made is None:
            return None
        if (kind := _read(made.event, _Said).type) != "tool_result":
            raise CannotGoOn(f"a call had no result, and {kind!r} came after it")
        stored = _read(made.event, _Result)
        return ToolResult(stored.result, stored.is_error)

    def _pass_over_asking(self) -> None:
        """Somebody was asked about a call then, and need not be now."""
        while self._events and _asks(self._events[0]):
            self._events.popleft()

    def steered(self) -> str | None:
        """What the person had said here."""
        if not self._events or _read(self._events[0].event, _Said).type != SAID:
            return None
        return _read(self._events[0].event, _Words).content

    def untaken(self, said: list[str]) -> list[str]:
        """Of all that was said to it meanwhile, what it had not heard."""
        left = deque(said)
        for one in self._events:
            heard = left and _read(one.event, _Said).type == SAID
            if heard and _read(one.event, _Words).content == left[0]:
                left.popleft()
        return list(left)

    def closed(self, method: str, params: bytes) -> tuple[Question, Closed] | None:
        """How the question that the core itself asks now had ended."""
        if self._closed:
            question, _ = self._closed[0]
            if (question.method, question.params) == (method, params):
                return self._closed.popleft()
        return None

    @property
    def unasked(self) -> bool:
        """Whether it went on from here: a question that is not stored could be put to nobody."""
        return bool(self._events or self._closed)

    def question(self, method: str, params: bytes, digest: bytes) -> Question | None:
        """The open one that asks the same: by what it is bound to, else by its words."""
        for one in self._questions:
            same = one.digest == digest if digest else one.params == params
            if one.method == method and same:
                self._questions.remove(one)
                return one
        return None

    def stale(self) -> list[Question]:
        """Questions that are not asked this time, as the core goes on without: to be withdrawn."""
        found, self._questions = self._questions, []
        return found


def _asks(event: Event) -> bool:
    return _read(event.event, _Said).type.startswith("permission.")


def _read(event: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(event, type=kind)
    except msgspec.DecodeError as error:
        raise CannotGoOn(f"an event cannot be read: {error}") from error
