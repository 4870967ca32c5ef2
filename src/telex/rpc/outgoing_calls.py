"""The open calls of one peer: where their responses go, and when the next call may be sent.

At most `CALLS_IN_FLIGHT` calls are open at once, and none is sent while the other side has too much
unread: callers wait in order. `state` decides what a response means; this module finds its caller.
Used by `Peer` only; `handler_tasks` is the counterpart for the other direction.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from telex.rpc import limits
from telex.rpc.errors import CallError, CallTimedOut, PeerGone, RpcError, StreamOverrun
from telex.rpc.messages import Id, Message, Part, Reply, Request, Typed

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable

    from telex.rpc.channel import Channel
    from telex.rpc.dialects import Dialect
    from telex.rpc.errors import Problem
    from telex.rpc.state import Conversation, Effect


# A bounded buffer for the parts of one stream, between the channel and the reader.
#
# A reader that falls too far behind loses this stream, and only this one. Pausing the channel
# instead would make every other call on it wait for one slow reader. A peer that wants that
# nevertheless checks `full` to pause the channel, and `on_room` is called when it can resume.


P = TypeVar("P")

_FEW: Final = limits.STREAM_PARTS // 2


class Inbox(Generic[P]):
    """A queue with one writer, one reader and an end."""

    def __init__(self, on_room: Callable[[], None] | None = None) -> None:
        """Create an empty inbox.

        Args:
            on_room: If given, `put` never refuses: the writer stops by itself when the inbox is
                `full`, and `on_room` is called as soon as the reader has taken half of the parts.
        """
        self._on_room = on_room
        self._parts: deque[P] = deque()
        self._ended = False
        self._error: Exception | None = None
        self._wake = asyncio.Event()

    def put(self, part: P) -> bool:
        """Add a part. Returns False when too many parts are unread."""
        if self.full and self._on_room is None:
            return False
        self._parts.append(part)
        self._wake.set()
        return True

    @property
    def full(self) -> bool:
        return len(self._parts) >= limits.STREAM_PARTS

    def end(self, error: Exception | None = None) -> None:
        """Add no more parts. The reader gets the parts already here, then the error, if any."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake.set()

    async def __aiter__(self) -> AsyncIterator[P]:
        """Yield the parts in order. Cancelling between two parts loses none."""
        while True:
            while self._parts:
                part = self._parts.popleft()
                if len(self._parts) == _FEW and self._on_room is not None:
                    self._on_room()
                yield part
            if self._ended:
                break
            self._wake.clear()
            await self._wake.wait()
        if self._error is not None:
            raise self._error


Answer = asyncio.Future[Reply] | Inbox[Reply]
"""Where a response goes: whole into a future, or in parts into an inbox."""


@dataclass(frozen=True, slots=True)
class _Pending:
    method: str
    timeout: float | None
    answer: Answer

    def fail(self, error: Exception) -> None:
        if isinstance(self.answer, Inbox):
            self.answer.end(error)
        elif not self.answer.done():
            self.answer.set_exception(error)


class Calling:
    """The requests of this side that wait for a response."""

    def __init__(
        self,
        dialect: Dialect,
        conversation: Conversation,
        channel: Channel,
        send: Callable[[Message], None],
        apply: Callable[[list[Effect]], None],
    ) -> None:
        self._dialect = dialect
        self._conversation = conversation
        self._channel = channel
        self._send = send
        self._apply = apply
        self._pending: dict[Id, _Pending] = {}
        self._count = 0
        self._turns: deque[asyncio.Future[None]] = deque()
        self._senders: set[asyncio.Task[None]] = set()
        """Tasks that send the further parts of requests."""
        self._no_responses: str | None = None
        """Why no response can arrive any more."""
        self._closed: str | None = None
        """Why no message can be sent any more."""

    async def ask(
        self,
        method: str,
        params: object,
        timeout: float | None,
        parts: AsyncIterable[object] | None,
        answer: Answer,
        id: Id | None = None,
        grace: float = 0.0,
    ) -> Id:
        """Send a request, after waiting for a free slot.

        Args:
            parts: Further parts of the request, sent as they become available.
            answer: Where the response is put.
            id: The request's id; None lets the dialect choose one.
            grace: Seconds that we wait beyond the timeout sent to the other side, for work that
                the other side does not count against it.
        """
        try:
            if not self._may_call():
                await self._turn_to_call()
            self._count += 1
            if id is None:
                id = self._dialect.new_id(self._count)
            self._send(Request(id, method, params, timeout, more=parts is not None))
        except BaseException:
            self._next_turn()  # this slot was not used
            raise
        until = None if timeout is None else timeout + grace
        self._conversation.ask(id, asyncio.get_running_loop().time(), until)
        self._pending[id] = _Pending(method, timeout, answer)
        if parts is not None:
            task = asyncio.create_task(self._send_parts(id, parts))
            self._senders.add(task)
            task.add_done_callback(self._senders.discard)
        return id

    def repeat(self, id: Id, method: str, params: object) -> None:
        if (pending := self._pending.get(id)) is not None:
            self._send(Request(id, method, params, pending.timeout))

    def forget(self, id: Id) -> None:
        """End a call. If its response has not arrived, cancel it on the other side."""
        if self._pending.pop(id, None) is not None:
            self._apply(self._conversation.abandon(id))
        self._next_turn()

    def deliver(self, reply: Reply) -> None:
        """Pass a response, or a part of one, to its caller."""
        id, more = reply.id, reply.more
        pending = self._pending.get(id) if more else self._pending.pop(id, None)
        if pending is None:
            return
        if not isinstance(pending.answer, Inbox):
            if not more and not pending.answer.done():
                pending.answer.set_result(reply)
        elif not pending.answer.put(reply):
            self._pending.pop(id, None)
            self._apply(self._conversation.abandon(id))
            what = f"{pending.method}: {limits.STREAM_PARTS} parts arrived and were not read"
            pending.fail(StreamOverrun(what))
        elif not more:
            pending.answer.end()

    def fail(self, id: Id, problem: Problem | None) -> None:
        """End a call without a result: with the other side's error, or with our own."""
        if (pending := self._pending.pop(id, None)) is not None:
            pending.fail(RpcError.carrying(problem) if problem else self._no_response(pending))

    def hang_up(self, why: str) -> None:
        """Expect no more responses, and wake the callers that wait for a free slot."""
        self._no_responses = self._no_responses or why
        for turn in self._turns:
            if not turn.done():
                turn.set_result(None)

    def end(self, why: str) -> set[asyncio.Task[None]]:
        """Send no more either. Returns the tasks that were cancelled and still run."""
        self._closed = why
        self.hang_up(why)
        for task in self._senders:
            task.cancel()
        return set(self._senders)

    async def room_to_send(self) -> None:
        """Wait while the other side has too much unread. Raises PeerGone once it is closed."""
        if self._closed is None and self._channel.unsent > limits.OUTBOUND_BYTES:
            await self._channel.drained()
        if self._closed is not None:
            raise PeerGone(self._closed)

    def _may_call(self) -> bool:
        return (
            self._conversation.calls < limits.CALLS_IN_FLIGHT
            and self._channel.unsent <= limits.OUTBOUND_BYTES
            and self._no_responses is None
        )

    async def _turn_to_call(self) -> None:
        while self._conversation.calls >= limits.CALLS_IN_FLIGHT and self._no_responses is None:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                with contextlib.suppress(ValueError):  # already removed: the slot was given to us
                    self._turns.remove(turn)
                raise
        await self.room_to_send()
        if self._no_responses is not None:
            raise PeerGone(self._no_responses)

    def _next_turn(self) -> None:
        while self._turns and self._conversation.calls < limits.CALLS_IN_FLIGHT:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                break

    async def _send_parts(self, id: Id, parts: AsyncIterable[object]) -> None:
        """Send the further parts of a request; an empty part is the last."""
        try:
            async for part in parts:
                await self.room_to_send()
                if id not in self._pending:
                    return
                hint = part.datatype if isinstance(part, Typed) else None
                data = part.data if isinstance(part, Typed) else part
                self._send(Part(id, data, more=True, datatype=hint))
                now = asyncio.get_running_loop().time()
                self._conversation.renew(id, now, ours=True)
            if id in self._pending:
                self._send(Part(id))
        except Exception as error:  # noqa: BLE001  the caller's own parts failed; its call raises
            if (pending := self._pending.get(id)) is not None:
                pending.fail(error)

    def _no_response(self, pending: _Pending) -> CallError:
        if self._no_responses is not None:
            return PeerGone(f"{pending.method}: {self._no_responses}")
        return CallTimedOut(f"{pending.method}: no answer within {pending.timeout:g} s")
