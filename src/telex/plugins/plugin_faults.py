"""Protocol faults of one plugin: counted, logged, and limited.

`PluginFaults` gets them from the dialect of a running plugin. It ends the plugin at the
PLUGIN_PROTOCOL_ERRORS-th protocol error within PLUGIN_WINDOW_SECONDS. It fails a call at once when
the response to this call cannot be read: a call without a deadline would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from telex.plugins import errors, limits
from telex.plugins.plugin_process import escape_controls
from telex.rpc.state import Counts

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterator

    from telex.rpc.messages import Id

QUOTED_CHARS: Final = 200
"""Maximum length of a plugin's own text that is quoted in a message of telex."""
_RESPONSES_WITHOUT_ID: Final = 20
"""Responses without an id within PLUGIN_WINDOW_SECONDS; more are protocol errors."""


@dataclass(slots=True)
class PendingCall:
    """A call that waits for its response."""

    clock: asyncio.Timeout
    id: Id | None = None
    unreadable: str | None = None
    """Why the response could not be read."""

    def fail(self, why: str) -> None:
        """End the wait now: the clock expires, and `unreadable` tells this from a real timeout."""
        if not self.clock.expired():
            self.unreadable = why
            self.clock.reschedule(asyncio.get_running_loop().time())


class PluginFaults:
    """Counts the faults of one plugin. The `on_…` methods are called by `PluginDialect`."""

    def __init__(
        self,
        name: str,
        log: logging.Logger,
        redact: Callable[[str], str],
        end: Callable[[str], None],
    ) -> None:
        """`end` is called with the reason when the plugin made too many protocol errors."""
        self.strays = 0
        """Pieces of output between messages that are not messages."""
        self.mistakes = 0
        """Protocol errors."""
        self.responses_without_id = 0
        self.absorbed = Counts()
        """The counters of the plugin's `Peer`, once it is open."""
        self._name, self._log, self._redact, self._end = name, log, redact, end
        self._recent = SlidingWindow(limits.PLUGIN_PROTOCOL_ERRORS, limits.PLUGIN_WINDOW_SECONDS)
        self._without_id = SlidingWindow(_RESPONSES_WITHOUT_ID, limits.PLUGIN_WINDOW_SECONDS)
        self._pending: dict[asyncio.Task[Any] | None, PendingCall] = {}
        """Keyed by the calling task, because a task makes one call at a time."""

    @property
    def late(self) -> int:
        """Responses to calls that had timed out or were cancelled."""
        return self.absorbed.late

    @property
    def unasked(self) -> int:
        """Responses to no request, mostly second responses to the same request."""
        return self.absorbed.unknown - self.responses_without_id

    @contextmanager
    def pending(self, clock: asyncio.Timeout) -> Iterator[PendingCall]:
        """Register the call that the current task makes within this context."""
        task = asyncio.current_task()
        call = self._pending[task] = PendingCall(clock)
        try:
            yield call
        finally:
            del self._pending[task]

    def first_output_hint(self, data: bytes) -> str:
        """Return a likely reason why no first message came, from the first output of the plugin."""
        if not data:
            return errors.BUFFERED
        text = escape_controls(self._redact(data.decode("utf-8", "backslashreplace")).strip())
        return f"what it wrote is no message: {text}"

    def timeout_hint(self) -> str:
        """Return a likely reason for a missing response, or an empty string."""
        if count := self.strays + self.mistakes:
            return f"some of what it wrote is no message ({count} so far)"
        return ""

    def on_stray(self, what: str) -> None:
        self.strays += 1
        self._log.warning("%s wrote something that is no message (%s)", self._name, what)

    def on_response_without_id(self, what: str) -> None:
        self.responses_without_id += 1
        if self._without_id.add(asyncio.get_running_loop().time()):
            self.on_mistake(f"{self.responses_without_id} responses without an id")
        elif self.responses_without_id <= limits.PLUGIN_PROTOCOL_ERRORS:
            quoted = escape_controls(self._redact(what))[:QUOTED_CHARS]
            self._log.warning("%s sent a response without an id: %s", self._name, quoted)

    def on_mistake(self, what: str) -> None:
        self.mistakes += 1
        self._log.warning("%s made a protocol error: %s", self._name, what)
        if self._recent.add(asyncio.get_running_loop().time()):
            self._end(f"made {limits.PLUGIN_PROTOCOL_ERRORS} protocol errors (the last: {what})")

    def on_request_id(self, id: Id) -> None:
        if (call := self._pending.get(asyncio.current_task())) is not None:
            call.id = id

    def on_lost_answer(self, id: Id | None, what: str) -> None:
        """Fail the call whose response cannot be read, or every pending call if `id` is None."""
        for call in self._pending.values():
            if id is None or (call.id == id and type(call.id) is type(id)):
                call.fail(what)


class SlidingWindow:
    """Counts events within the last `seconds`, up to `most`.

    A count that never decays could not tell five failures in three minutes, a crash loop, from five
    in a month. Pure: the time is an argument.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=most)

    def add(self, now: float) -> bool:
        """Record an event. Return whether the window is full now."""
        self._times.append(now)
        return self.full_until(now) is not None

    def count(self, now: float) -> int:
        """Return how many events are within the window."""
        return sum(now - time < self._seconds for time in self._times)

    def last(self) -> float | None:
        return self._times[-1] if self._times else None

    def full_until(self, now: float) -> float | None:
        """Return when a full window has room again, which is when its oldest event is too old;
        None if it is not full."""
        full = self.count(now) == self._times.maxlen
        return self._times[0] + self._seconds if full else None
