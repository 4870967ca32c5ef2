"""A plugin's JSON-RPC as a host reads it, and its pipes, of which either half may end alone.

What a plugin does wrong goes to a `DialectListener`, in three kinds. *Stray* output between frames
is somebody's `print`: it was not meant for us, so it is skipped, counted, and not answered. A
response *without an id* means that the plugin could not read something of ours. Everything else is
a *mistake*: a protocol error, of which a plugin may make few.

A message that cannot be read (too large, not UTF-8, too deep) may have been the answer to a call,
which is then *lost* and fails at once. `answered_id` finds out which call, from the members in its
first bytes: most plugins write the id before the rest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from telex.plugins import protocol as spec
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import RESERVED, Condition, Problem
from telex.rpc.messages import Failure, Malformed
from telex.transports.channels import LSP, FramedChannel
from telex.wire.events import Fault, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
_BEGINNING: Final = 80


class DialectListener(Protocol):
    """Who is told what a plugin does wrong."""

    def on_stray(self, what: str) -> None: ...
    def on_response_without_id(self, what: str) -> None: ...
    def on_mistake(self, what: str) -> None: ...
    def on_lost_answer(self, id: Id | None, what: str) -> None: ...
    def on_request_id(self, id: Id) -> None: ...


class PluginDialect:
    """The dialect of one plugin."""

    default_timeout: float | None = None
    streams = False

    def __init__(self, listener: DialectListener) -> None:
        self._listener = listener
        self.cancels = False
        """Whether it announced that it heeds cancels. Its own are always heeded."""

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
                return self._judged(message, body)
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

    def _judged(self, message: Malformed, body: bytes) -> Malformed:
        """A message that is none. One without a method was meant as an answer: it is not answered
        in turn, and the call whose answer it would have been fails now and not when time is up."""
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
            spoilt = None if isinstance(id, bool) else id  # True would be taken for 1
            return Malformed(message.problem, spoils=spoilt)
        return message


def _members(problem: Problem, body: bytes) -> dict[str, object]:
    """What it consists of, as far as that can be told: a number may still be out of range."""
    if problem.code is Condition.PARSE:
        return {}
    try:
        value = _loose.decode(body)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


class PluginPipes(FramedChannel):
    """The channel. A plugin that answers and exits closes its input and its output at once, and we
    may hear of the first before we have read the second: that its input is closed is told, and
    what it said is read to the end."""

    def __init__(self, silent: Callable[[str], None]) -> None:
        super().__init__(LSP)
        self._silent = silent
        self._closing = self._deaf = False
        self._offset, self._data = 0, b""
        """Where in the stream this read began, and what it brought."""
        self.first_output = b""
        """The first it wrote, for who has to say that it was no message."""

    def data_received(self, data: bytes) -> None:
        if len(self.first_output) < _BEGINNING:
            self.first_output += data[: _BEGINNING - len(self.first_output)]
        self._data = data
        super().data_received(data)
        self._offset += len(data)
        self._data = b""

    def _deliver(self, events: list[Event]) -> None:
        super()._deliver([self._with_its_beginning(event) for event in events])

    def _with_its_beginning(self, event: Event) -> Event:
        """What is too long is not kept; how it begins mostly came with its header."""
        if not isinstance(event, Fault) or event.reason is not Reason.TOO_LONG:
            return event
        at = max(0, event.offset - self._offset)
        return replace(event, begins=self._data[at : at + LOOKED_AT])

    def eof_received(self) -> bool:
        kept = super().eof_received()
        self._silent("closed its standard output")
        return kept

    def connection_lost(self, error: Exception | None) -> None:
        if self._closing:
            super().connection_lost(error)
            return
        self._deaf = True
        self.resume_writing()  # who waits for room need not
        self._silent("closed its standard input")

    def abort_writes(self) -> None:
        """Drop what it has not taken: it was given its time."""
        if self._writing is not None and self.unsent:
            self._writing.abort()

    async def close(self) -> None:
        self._closing = True
        if self._deaf:
            self._deaf = False
            super().connection_lost(None)
        await super().close()


LOOKED_AT: Final = 4096
"""Bytes: a header, and the members before a result."""

_TOKEN: Final = re.compile(
    rb'"((?:[^"\\]|\\.)*+)"(\s*:\s*(?:(-?[0-9]{1,18})\b|"([^"\\]*)")?)?|[{}\[\]]'
)


class NotAnAnswer(Exception):
    """It has a method: somebody asks or tells something."""


def answered_id(begins: bytes) -> int | str | None:
    """The id of what it answers; None where it cannot be told. Raises NotAnAnswer."""
    found: int | str | None = None
    depth = 0
    for token in _TOKEN.finditer(begins, max(0, begins.find(b"{")), LOOKED_AT):
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
