"""A run that goes on after a restart: its core runs again; what it had done is recalled, not done.

Only a run that waited for an answer can go on: of its last call nothing has happened yet. The core
is run from its beginning with the same input. Where it says what is stored already, nothing is
stored or told again; where it makes a call whose result is stored, it gets that result; and the
question that was open is the same question, if it is about the same thing. A core that says
something else this time cannot go on, and nothing of it runs.

Pure; `Run` and `Turn` ask it, `Runtime` makes it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.tools.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telex.agent.store import Event, Question


class CannotGoOn(Exception):
    """The core does not do what it did before."""


class Recall:
    """What one run had told, and what it had asked and not been answered."""

    def __init__(self, events: Iterable[Event] = (), questions: Iterable[Question] = ()) -> None:
        stored = list(events)
        self.last_seq = stored[-1].seq if stored else -1
        self._events: deque[dict[str, Any]] = deque(
            msgspec.json.decode(event.event) for event in stored
        )
        self._questions = list(questions)

    def told(self, kind: str) -> bool:
        """Whether the event that comes now is one that is stored."""
        if not self._events:
            return False
        if (stored := self._events.popleft()["type"]) != kind:
            raise CannotGoOn(f"it said {stored!r} before the restart, and now {kind!r}")
        return True

    def call_id(self) -> str | None:
        """Of the call that comes now, a step_start and then itself."""
        if len(self._events) < 2:
            return None
        id: str | None = self._events[1].get("tool_call_id")
        return id

    def result(self) -> ToolResult | None:
        """Of the call that was told last, where it has been made."""
        while self._events and self._events[0]["type"].startswith("permission."):
            if all(one["type"] != "tool_result" for one in self._events):
                return None
            self._events.popleft()
        if not self._events:
            return None
        stored = self._events[0]
        if stored["type"] != "tool_result":
            raise CannotGoOn(f"a call had no result, and {stored['type']!r} came after it")
        return ToolResult(stored["result"], stored.get("is_error", False))

    def question(self, method: str, params: bytes, digest: bytes) -> Question | None:
        """The open one that asks the same: by what it is bound to, else by its words."""
        for one in self._questions:
            same = one.digest == digest if digest else one.params == params
            if one.method == method and same:
                self._questions.remove(one)
                return one
        return None

    def stale(self, method: str, digest: bytes) -> list[Question]:
        """Questions about something that has changed since: they are to be withdrawn."""
        found = [one for one in self._questions if digest and one.method == method and one.digest]
        self._questions = [one for one in self._questions if one not in found]
        return found
