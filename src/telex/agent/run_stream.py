"""One run as a client follows it: its messages in order, each event once.

`AsyncRun` receives the notifications of one run and hands them to the program that iterates over
it. Events are numbered, so a repeated one is dropped, and a gap is noticed. At most
`AGENT_CLIENT_MESSAGES` are kept. A program that is slower than that loses nothing: events past the
limit are dropped, and requested again with `run.attach` when the program has caught up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct

from telex.agent.limits import AGENT_CLIENT_MESSAGES
from telex.agent.protocol.events import EVENTS, AgentEvent, FinalEvent
from telex.agent.protocol.extensions import TodosUpdate
from telex.agent.protocol.runs import (
    AgentEventNotify,
    EndStatus,
    LlmCallDiagnostics,
    RunContextNotify,
    RunStatus,
    RunStatusNotify,
    SummaryDiagnostics,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from telex.agent.errors import AgentError
    from telex.agent.protocol.extensions import RunAttachResult, RunDiffResult, RunSteerResult
    from telex.agent.protocol.runs import RunCancelResult

ENDS: Final = ("completed", "error", "cancelled")


class RunCalls(Protocol):
    """The requests that a run makes through its client."""

    async def run_cancel(self, run_id: str, reason: str | None = None) -> RunCancelResult: ...

    async def run_steer(self, run_id: str, text: str) -> RunSteerResult: ...

    async def run_diff(self, run_id: str) -> RunDiffResult: ...


class UnknownEvent(AgentEvent, frozen=True, tag="unknown"):
    """An event of a kind that this version of telex does not know. Pass it over."""

    kind: str
    """The event's `type` on the wire."""
    members: dict[str, Any]
    """All of its members."""


class RunEvent(Struct, frozen=True):
    """One event of a run, with its place in the run."""

    run_id: str
    seq: int
    """From 0, without holes; -1 for the person's own message in a history."""
    event: AgentEvent
    """A `TextEvent`, a `ToolCallEvent`, … or an `UnknownEvent`."""
    meta: dict[str, Any]
    """Members that are stored beside the event, such as `details` of a tool's result."""
    raw: bytes
    """The event as JSON, as it is stored, with members that this version of telex does not know."""

    @property
    def replay(self) -> bool:
        """Whether the event was read from the store: it happened before this connection followed
        the run."""
        return self.meta.get("replay") is True


class RunDelta(Struct, frozen=True):
    """A piece of the next `TextEvent` or `ReasoningEvent`, which repeats the whole. Not stored."""

    run_id: str
    kind: Literal["text", "reasoning"]
    content: str


class RunResult(Struct, frozen=True):
    """The end of a run: its last status, and the agent's answer."""

    status: EndStatus
    message: str | None
    """Why the run failed, or why it was cancelled."""
    answer: str | None
    """The content of the final event; None where the run ended without one."""


class SessionHistory(Struct, frozen=True):
    """The stored events of a session, oldest first."""

    events: list[RunEvent]
    runs: int
    """How many runs the events belong to."""
    truncated: bool
    """Whether there are earlier events."""


RunMessage = (
    RunEvent
    | RunStatusNotify
    | RunContextNotify
    | LlmCallDiagnostics
    | SummaryDiagnostics
    | RunDelta
    | TodosUpdate
)
"""Everything that `AsyncRun.messages` yields."""

_decoders: Final[dict[object, msgspec.json.Decoder[Any]]] = {
    kind.__struct_config__.tag: msgspec.json.Decoder(kind) for kind in EVENTS
}


def run_event(notice: AgentEventNotify) -> RunEvent:
    """Decode a notification. An event of an unknown kind, or without a member, is an
    `UnknownEvent`: a newer runtime must not break an older client."""
    meta = {} if notice.meta is UNSET else msgspec.json.decode(notice.meta)
    event = _decoded(notice.event)
    meta = meta if isinstance(meta, dict) else {}
    return RunEvent(notice.run_id, notice.seq, event, meta, bytes(notice.event))


def _decoded(raw: Raw) -> AgentEvent:
    members = msgspec.json.decode(raw)
    if not isinstance(members, dict):
        return UnknownEvent("", {})
    kind = members.get("type")
    try:
        event: AgentEvent = _decoders[kind].decode(raw)
    except (KeyError, TypeError, msgspec.ValidationError):
        return UnknownEvent(kind if isinstance(kind, str) else "", members)
    return event


class AsyncRun:
    """One run that this client started or attached to.

    Iterate over it to receive its events until it has ended. The loop may be left and entered
    again: it continues after the last event it took. A question of the runtime is passed to its
    function when the loop has handled the events before it. The run continues when nobody
    iterates, and also when the client leaves.

    Attributes:
        run_id: The id of the run, for `run_attach` in another client.
        session_id: The session that the run belongs to.
        status: The last status that was received.
        last_seq: The number of the last event that the program took; -1 before the first.
        result: The end of the run; None until the program took the last message.

    Example:
        run = await agent.run_start("list *.py")
        async for event in run:
            match event:
                case telex.agent.ToolCallEvent(tool=tool):
                    print("*", tool)
                case telex.agent.FinalEvent(content=answer):
                    print(answer)
        print(run.status)
    """

    __module__ = "telex.agent"

    def __init__(
        self,
        calls: RunCalls,
        attach: Callable[[AsyncRun], Awaitable[None]],
        run_id: str,
        session_id: str = "",
        after_seq: int = -1,
    ) -> None:
        """`attach` requests the events after the last received one."""
        self._calls = calls
        self._attach = attach
        self.run_id = run_id
        self.session_id = session_id
        self.status: RunStatus = "running"
        self.last_seq = after_seq
        self.result: RunResult | None = None
        self._received = after_seq
        """The last event that was received in order."""
        self._dropped = after_seq
        """The last event that was received and not kept."""
        self._must_attach = False
        """An event was dropped since `run.attach` was last sent."""
        self._replaying = False
        """Events from before are on their way; a status comes behind them."""
        self._buffer: deque[RunMessage] = deque()
        self._sent_status: RunStatusNotify | None = None
        self._end: RunResult | None = None
        """The end, as soon as it was received."""
        self._answer: str | None = None
        self._error: AgentError | None = None
        self._wake = asyncio.Event()
        self._readers = 0
        self._waiting = 0
        self._idle = asyncio.Event()
        """Set while the program has handled every message, or does not iterate."""
        self._idle.set()

    def __repr__(self) -> str:
        return f"<telex.agent.AsyncRun run_id={self.run_id!r} status={self.status!r}>"

    async def __aiter__(self) -> AsyncGenerator[AgentEvent, None]:
        """Yield the events of the run until it has ended.

        Raises:
            ConnectionLost: The connection was lost, and could not be made again.
        """
        async with aclosing(self.messages()) as messages:
            async for message in messages:
                if isinstance(message, RunEvent):
                    yield message.event

    async def messages(self) -> AsyncGenerator[RunMessage, None]:
        """Yield everything that the runtime sends about the run, in order.

        These are events with their numbers (`RunEvent`), statuses, the context that is left,
        diagnostics, todo lists, and with `deltas` pieces of text (`RunDelta`). The last one is a
        `RunStatusNotify` with the status `completed`, `error` or `cancelled`. After a reconnect no
        event is missing or repeated; deltas may be missing.

        Raises:
            ConnectionLost: The connection was lost, and could not be made again.

        Example:
            run = await agent.run_start("list *.py")
            async for message in run.messages():
                match message:
                    case telex.agent.RunDelta(kind="text", content=piece):
                        print(piece, end="")
                    case telex.agent.RunStatusNotify(status="awaiting_ui"):
                        print("waiting for you")
        """
        self._readers += 1
        self._settle()
        try:
            while (message := await self._next()) is not None:
                yield message
        finally:
            self._readers -= 1
            self._settle()

    async def wait(self) -> RunResult:
        """Wait for the end of the run, and pass over its events.

        Returns:
            The status, and the agent's answer.

        Raises:
            ConnectionLost: The connection was lost, and could not be made again.

        Example:
            run = await agent.run_start("list *.py")
            result = await run.wait()
            print(result.answer)
        """
        async for _ in self.messages():
            pass
        assert self.result is not None  # else `messages` raised
        return self.result

    async def cancel(self, reason: str | None = None) -> RunCancelResult:
        """Cancel the run. When this returns, nothing of the run is executed any more.

        Args:
            reason: Stored with the run, and shown to its other UIs.

        Returns:
            `ok` is False if the run had ended before.

        Raises:
            AgentError: The runtime failed to store the end, or the connection was lost.
        """
        return await self._calls.run_cancel(self.run_id, reason)

    async def steer(self, text: str) -> RunSteerResult:
        """Add a message of the person to the run while it is active.

        Args:
            text: The core reads it before its next step.

        Returns:
            `ok` is False if the run had ended before.

        Raises:
            AgentError: The text is empty, or the connection was lost.
        """
        return await self._calls.run_steer(self.run_id, text)

    async def diff(self) -> RunDiffResult:
        """Return the changes that the run's `write` and `edit` made, file by file, in order.

        Raises:
            AgentError: The connection was lost.
        """
        return await self._calls.run_diff(self.run_id)

    # Called by `AsyncAgent` only.

    @property
    def _ended(self) -> bool:
        """Whether the end was received, whether or not the program took it."""
        return self._end is not None

    @property
    def _last_received(self) -> int:
        """The last event that was received, whether or not the program took it."""
        return self._received

    def _receive(self, message: RunMessage) -> None:
        """Keep a message for the program, unless it is repeated or there is no room."""
        if self._end is not None:
            return
        if isinstance(message, RunEvent):
            self._receive_event(message)
        elif isinstance(message, RunStatusNotify):
            self._receive_status(message)
        elif len(self._buffer) < AGENT_CLIENT_MESSAGES:
            self._buffer.append(message)
        self._wake.set()
        self._settle()

    def _receive_event(self, message: RunEvent) -> None:
        seq = message.seq
        if seq <= self._received:
            return
        if seq > self._received + 1 or len(self._buffer) >= AGENT_CLIENT_MESSAGES:
            self._dropped = max(self._dropped, seq)
            self._must_attach = True
            return
        self._received = seq
        if isinstance(message.event, FinalEvent):
            self._answer = message.event.content
        self._buffer.append(message)

    def _receive_status(self, message: RunStatusNotify) -> None:
        self._replaying = False
        self.status = message.status
        ended = message.status in ENDS
        if ended and self._received < self._dropped:
            return  # it comes again behind the events that were dropped
        if message == self._sent_status or (
            not ended and len(self._buffer) >= AGENT_CLIENT_MESSAGES
        ):
            return
        self._sent_status = message
        self._buffer.append(message)
        if ended:
            self._end = RunResult(_end_status(message.status), message.message, self._answer)

    def _attaching(self) -> None:
        """`run.attach` is about to be sent: the events after the last received one will come."""
        self._must_attach = False
        self._replaying = True

    def _attached(self, answer: RunAttachResult) -> None:
        """`run.attach` was answered. Its first messages may have been received before that."""
        self.session_id = answer.session_id
        if self._sent_status is None:
            self.status = answer.status

    def _fail(self, error: AgentError) -> None:
        """Raise this to the program, after what was received: no more will come."""
        self._replaying = False
        if self._end is None:
            self._error = error
            self._wake.set()
            self._settle()

    async def _handled(self) -> None:
        """Wait until the program has handled every message, or does not iterate."""
        await self._idle.wait()

    def _settle(self) -> None:
        if not self._readers or (self._waiting and not self._buffer):
            self._idle.set()
        else:
            self._idle.clear()

    async def _next(self) -> RunMessage | None:
        while not self._buffer:
            if self._end is not None:
                self.result = self._end
                return None
            if self._error is not None:
                raise type(self._error)(str(self._error), self._error.data, self._error.code)
            self._waiting += 1
            self._settle()
            try:
                if self._must_attach:
                    await self._attach(self)
                else:
                    self._wake.clear()
                    await self._wake.wait()
            finally:
                self._waiting -= 1
                self._settle()
        message = self._buffer.popleft()
        if isinstance(message, RunEvent):
            self.last_seq = message.seq
        elif self._end is not None and not self._buffer:
            self.result = self._end
        return message


def _end_status(status: RunStatus) -> EndStatus:
    assert status in ENDS
    return status
