"""The calls one peer has open: where their answers go, and when the next may go out.

At most `CALLS_IN_FLIGHT` are open at once and none goes out while the other side leaves too much
unread: callers wait their turn, in order. What an answer means is `state`'s to say; here it finds
the caller. Used by `Peer` only; `serving` is the same for the other direction.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.rpc import limits
from telex.rpc.errors import CallError, CallTimedOut, PeerGone, RpcError, StreamOverrun
from telex.rpc.inbox import Inbox
from telex.rpc.messages import Id, Message, Part, Reply, Request, Typed

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable

    from telex.rpc.channel import Channel
    from telex.rpc.dialects import Dialect
    from telex.rpc.errors import Problem
    from telex.rpc.state import Conversation, Effect

Answer = asyncio.Future[Reply] | Inbox[Reply]
"""Where an answer goes: whole, or in parts."""


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
    """The requests of ours that wait for an answer."""

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
        self._pouring: set[asyncio.Task[None]] = set()
        self._deaf: str | None = None
        """Why no answer can come any more."""
        self._gone: str | None = None
        """Why nothing can be sent any more."""

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
        """Send a request, when it is its turn. The answer goes where it is told to. The other side
        is told the timeout, and may take so much longer (`grace`) for what it does not count."""
        try:
            if not self._may_call():
                await self._turn_to_call()
            self._count += 1
            if id is None:
                id = self._dialect.new_id(self._count)
            self._send(Request(id, method, params, timeout, more=parts is not None))
        except BaseException:
            self._next_turn()  # ours was not used
            raise
        until = None if timeout is None else timeout + grace
        self._conversation.ask(id, asyncio.get_running_loop().time(), until)
        self._pending[id] = _Pending(method, timeout, answer)
        if parts is not None:
            task = asyncio.create_task(self._pour(id, parts))
            self._pouring.add(task)
            task.add_done_callback(self._pouring.discard)
        return id

    def repeat(self, id: Id, method: str, params: object) -> None:
        if (pending := self._pending.get(id)) is not None:
            self._send(Request(id, method, params, pending.timeout))

    def forget(self, id: Id) -> None:
        """The caller is done; if the answer has not come, it is not wanted any more."""
        if self._pending.pop(id, None) is not None:
            self._apply(self._conversation.abandon(id))
        self._next_turn()

    def deliver(self, reply: Reply) -> None:
        """An answer came, or a part of one."""
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
            what = f"{pending.method}: {limits.STREAM_PARTS} parts came and were not taken"
            pending.fail(StreamOverrun(what))
        elif not more:
            pending.answer.end()

    def fail(self, id: Id, problem: Problem | None) -> None:
        """A call ends without a result: they said why, or there is silence."""
        if (pending := self._pending.pop(id, None)) is not None:
            pending.fail(RpcError.carrying(problem) if problem else self._silence(pending))

    def hang_up(self, why: str) -> None:
        """No more answers; those who wait their turn need not."""
        self._deaf = self._deaf or why
        for turn in self._turns:
            if not turn.done():
                turn.set_result(None)

    def end(self, why: str) -> set[asyncio.Task[None]]:
        """No more sending either. Returns the tasks that are on their way out."""
        self._gone = why
        self.hang_up(why)
        for task in self._pouring:
            task.cancel()
        return set(self._pouring)

    async def room_to_send(self) -> None:
        """Wait while too much is unread over there. Raises PeerGone once there is no there."""
        if self._gone is None and self._channel.unsent > limits.OUTBOUND_BYTES:
            await self._channel.drained()
        if self._gone is not None:
            raise PeerGone(self._gone)

    def _may_call(self) -> bool:
        return (
            self._conversation.calls < limits.CALLS_IN_FLIGHT
            and self._channel.unsent <= limits.OUTBOUND_BYTES
            and self._deaf is None
        )

    async def _turn_to_call(self) -> None:
        while self._conversation.calls >= limits.CALLS_IN_FLIGHT and self._deaf is None:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                with contextlib.suppress(ValueError):  # already out: the turn was given to us
                    self._turns.remove(turn)
                raise
        await self.room_to_send()
        if self._deaf is not None:
            raise PeerGone(self._deaf)

    def _next_turn(self) -> None:
        while self._turns and self._conversation.calls < limits.CALLS_IN_FLIGHT:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                break

    async def _pour(self, id: Id, parts: AsyncIterable[object]) -> None:
        """Send the further parts of a request; an empty one is the last."""
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
        except Exception as error:  # noqa: BLE001  the caller's own parts failed, and it is told
            if (pending := self._pending.get(id)) is not None:
                pending.fail(error)

    def _silence(self, pending: _Pending) -> CallError:
        if self._deaf is not None:
            return PeerGone(f"{pending.method}: {self._deaf}")
        return CallTimedOut(f"{pending.method}: no answer within {pending.timeout:g} s")
