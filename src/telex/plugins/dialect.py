"""A plugin's JSON-RPC as the host reads it, its pipes, and the faults in its output.

Faults in a plugin's output are reported to `PluginFaults`, in three kinds. *Stray* output
between frames comes from a `print` that was not meant for the host, so it is skipped, counted, and
not answered. A response *without an id* means that the plugin could not read a message of the host.
Every other fault is a *mistake*: a protocol error, of which a plugin may make few.

A message that cannot be read (too large, not UTF-8, nested too deep) may have been the response to
a call. This call has then *lost* its answer and fails at once. `answered_id` finds the call from
the members in the first bytes of the message: most plugins write the id before the rest.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.plugins import errors, limits
from telex.plugins import protocol as spec
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import RESERVED, Condition, Problem
from telex.rpc.messages import Failure, Malformed
from telex.rpc.state import Counts
from telex.transports.channels import LSP, FramedChannel
from telex.wire.events import Fault, Reason

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterator, Sequence

    from telex.rpc.messages import Batch, Id, Message
    from telex.wire.events import Event


CODES: Final = {
    **RESERVED,
    Condition.CANCELLED: spec.CANCELLED,
    Condition.TIMED_OUT: spec.TIMED_OUT,
    Condition.CLOSING: spec.SHUTTING_DOWN,
}
_JSON: Final = JsonRpc(CODES, cancel_method="$/cancelRequest")
_loose: Final = msgspec.json.Decoder()
_FIRST_OUTPUT_BYTES: Final = 80


class PluginDialect:
    """JSON-RPC with one plugin. Reports faults in its messages to the listener."""

    default_timeout: float | None = None
    streams = False

    def __init__(self, listener: PluginFaults) -> None:
        self._listener = listener
        self.cancels = False
        """Whether to send cancels: set when the plugin has the capability. The plugin's own cancels
        are always served."""

    def new_id(self, count: int) -> int | str:
        id = _JSON.new_id(count)
        self._listener.on_request_id(id)
        return id

    def encode(self, message: Message) -> bytes:
        return _JSON.encode(message)

    def encode_batch(self, answers: Sequence[Message]) -> bytes:
        return _JSON.encode_batch(answers)

    def decode(self, body: bytes) -> Message | Malformed | Batch:
        message = _JSON.decode(body)
        match message:
            case Failure(None, problem):
                self._listener.on_response_without_id(problem.message)
            case Malformed():
                return self._report(message, body)
        return message

    def answer_to(self, fault: Fault) -> None:
        if fault.reason is Reason.HEADER:
            self._listener.on_stray(fault.detail)
            return
        self._listener.on_mistake(fault.detail)
        if fault.reason is Reason.TOO_LONG:
            self._lost(fault.begins, f"It has {fault.detail}.")

    def _lost(self, begins: bytes, why: str) -> None:
        try:
            id = answered_id(begins)
        except NotAnAnswer:
            return
        self._listener.on_lost_answer(id, why)

    def _report(self, message: Malformed, body: bytes) -> Malformed:
        """Report an invalid message. A message without a method was meant as a response: it is not
        answered, and its call fails now instead of at its deadline."""
        members = _members(message.problem, body)
        if "result" in members and members.get("id") is None:
            self._listener.on_response_without_id(message.problem.message)
            return message
        self._listener.on_mistake(message.problem.message)
        if not members and message.spoils is None:
            self._lost(body, message.problem.message)
            return message
        id = members.get("id")
        if members.get("method") is None and isinstance(id, (int, str)):
            spoils = None if isinstance(id, bool) else id  # True equals 1
            return Malformed(message.problem, spoils=spoils)
        return message


def _members(problem: Problem, body: bytes) -> dict[str, object]:
    """Return the members of an invalid message, as far as it can be decoded: a number may still be
    out of range."""
    if problem.code is Condition.PARSE:
        return {}
    try:
        value = _loose.decode(body)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


class PluginPipes(FramedChannel):
    """The channel over a plugin's standard input and output.

    A plugin that answers and exits closes both pipes at once, and the event loop may report the
    closed input before it has read the output. So a closed input is reported to `on_pipe_closed`,
    and the output is still read to its end.
    """

    def __init__(self, on_pipe_closed: Callable[[str], None]) -> None:
        super().__init__(LSP)
        self._on_pipe_closed = on_pipe_closed
        self._closing = self._input_closed = False
        self._offset, self._data = 0, b""
        """The position in the stream where the current read began, and its bytes."""
        self.first_output = b""
        """The first bytes of output, for an error message if they are no message."""

    def data_received(self, data: bytes) -> None:
        if len(self.first_output) < _FIRST_OUTPUT_BYTES:
            self.first_output += data[: _FIRST_OUTPUT_BYTES - len(self.first_output)]
        self._data = data
        super().data_received(data)
        self._offset += len(data)
        self._data = b""

    def _deliver(self, events: list[Event]) -> None:
        super()._deliver([self._with_first_bytes(event) for event in events])

    def _with_first_bytes(self, event: Event) -> Event:
        """Add the first bytes of a frame that is too long. The frame itself is dropped, but its
        first bytes are mostly in the same read as its header."""
        if not isinstance(event, Fault) or event.reason is not Reason.TOO_LONG:
            return event
        at = max(0, event.offset - self._offset)
        return replace(event, begins=self._data[at : at + SEARCHED_BYTES])

    def eof_received(self) -> bool:
        kept = super().eof_received()
        self._on_pipe_closed("closed its standard output")
        return kept

    def connection_lost(self, error: Exception | None) -> None:
        if self._closing:
            super().connection_lost(error)
            return
        self._input_closed = True
        self.resume_writing()  # a sender that waits for room would wait for ever
        self._on_pipe_closed("closed its standard input")

    def abort_writes(self) -> None:
        """Drop the bytes that the plugin has not read."""
        if self._writing is not None and self.unsent:
            self._writing.abort()

    async def close(self) -> None:
        self._closing = True
        if self._input_closed:
            self._input_closed = False
            super().connection_lost(None)
        await super().close()


SEARCHED_BYTES: Final = 4096
"""Enough for a header and the members before a result."""

_TOKEN: Final = re.compile(
    rb'"((?:[^"\\]|\\.)*+)"(\s*:\s*(?:(-?[0-9]{1,18})\b|"([^"\\]*)")?)?|[{}\[\]]'
)


class NotAnAnswer(Exception):
    """The message has a method: it is a request or a notification."""


def answered_id(begins: bytes) -> int | str | None:
    """Return the id of a response from its first bytes; None if they do not have it. Raises
    NotAnAnswer."""
    found: int | str | None = None
    depth = 0
    for token in _TOKEN.finditer(begins, max(0, begins.find(b"{")), SEARCHED_BYTES):
        if token[0] in b"{[":
            depth += 1
        elif token[0] in b"}]":
            depth -= 1
        elif depth == 1 and token[2] is not None:
            if token[1] == b"method":
                raise NotAnAnswer
            if token[1] == b"id":
                found = _id(token[3], token[4])
    return found


def _id(number: bytes | None, text: bytes | None) -> int | str | None:
    if number is not None:
        return int(number)
    return None if text is None else text.decode("utf-8", "replace")


# Protocol faults of one plugin: counted, logged, and limited.
#
# `PluginFaults` gets them from the dialect of a running plugin. It ends the plugin at the
# PLUGIN_PROTOCOL_ERRORS-th protocol error within PLUGIN_WINDOW_SECONDS. It fails a call at once
# when the response to this call cannot be read: a call without a deadline would wait for ever.


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


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def escape_controls(text: str) -> str:
    """Escape control characters, so that a terminal shows the text and does not execute it."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


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
