"""Runs the handlers of one peer: how many at once, in which order, and their responses.

Plain handlers respond at once; coroutines and async generators get a task each. At most
`CALLS_IN_FLIGHT` run at once, or fewer if the peer is configured so, and none is started while the
other side leaves our responses unread. Further requests wait in a queue, and when the queue is full
the channel is no longer read. There is no other backpressure. Replies to our own calls never wait
in the queue, so two telex peers can flood each other without a deadlock.

Used by `Peer` only.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw

from telex.rpc import limits
from telex.rpc.errors import Condition, Problem, RpcError
from telex.rpc.messages import (
    ABSENT,
    Failure,
    Id,
    Last,
    Message,
    Notification,
    Part,
    Reply,
    Request,
    Typed,
)
from telex.rpc.outgoing_calls import Inbox

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from telex.rpc.channel import Channel
    from telex.rpc.methods import Method, Methods
    from telex.rpc.peer import Peer
    from telex.rpc.state import Conversation
    from telex.rpc.unknown_members import UnknownMember

log = logging.getLogger("telex.rpc")

_NO_PARTS: Final[Inbox[Part]] = Inbox()
_NO_PARTS.end()


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of a request, for a handler that has a second parameter."""

    peer: Peer
    id: Id | None
    """None for a notification."""
    method: str
    parts: Inbox[Part]
    """The further parts of a request that has several; otherwise empty."""
    in_parts: bool = False
    """Whether the request has several parts."""

    def clock_stopped(self) -> AbstractContextManager[None]:
        """Pause the deadline of the request. A notification has no deadline."""
        return nullcontext() if self.id is None else self.peer.clock_stopped(self.id)


class Job:
    """One message to serve, and where its responses go."""

    __slots__ = ("answer", "id", "message", "parts", "size", "warnings", "work")

    def __init__(
        self, message: Request | Notification, size: int, answer: Callable[[Message], None]
    ) -> None:
        self.message = message
        self.size = size
        self.answer = answer
        self.id = message.id if isinstance(message, Request) else None
        self.parts = _NO_PARTS
        self.work: Coroutine[Any, Any, object] | None = None
        self.warnings: tuple[str, ...] = ()
        """Sentences to add to the result."""


class Serving:
    """The requests of the other side that wait or run here."""

    def __init__(
        self,
        peer: Peer,
        methods: Methods,
        conversation: Conversation,
        channel: Channel,
        at_once: int,
        pause_reading: bool,
    ) -> None:
        self._at_once = at_once
        self._pause_reading = pause_reading
        self._lagging: set[Job] = set()
        """Jobs with a full inbox, for which the channel is paused."""
        self._peer = peer
        self._methods = methods
        self._conversation = conversation
        self._channel = channel
        self._queue: deque[Job] = deque()
        self._queued_bytes = 0
        self._paused = False
        self._jobs: dict[Id, Job] = {}
        self._tasks: dict[asyncio.Task[None], Job] = {}
        self._room: asyncio.Task[None] | None = None
        self._when_idle: Callable[[], None] | None = None

    def begin(self, job: Job) -> None:
        """Serve a message now, or as soon as there is room."""
        if job.id is not None:
            self._jobs[job.id] = job
            if isinstance(job.message, Request) and job.message.more:
                job.parts = Inbox(partial(self._caught_up, job) if self._pause_reading else None)
        if (not self._queue and self._has_room()) or self._may_skip_queue(job):
            self._start(job)
            return
        self._queue.append(job)
        self._queued_bytes += job.size
        self._bound_queue()
        self._await_room()

    def feed(self, part: Part) -> None:
        """Pass a further part of a request to its handler."""
        job = self._jobs.get(part.id)
        if job is None:
            return
        if not job.parts.put(part):
            self._fail(job, Problem.of(Condition.REQUEST, "Its parts arrive too fast."))
            self._cancel(job)
        elif not part.more:
            job.parts.end()
        elif self._pause_reading and job.parts.full:
            self._lagging.add(job)
            self._bound_queue()

    def _caught_up(self, job: Job) -> None:
        self._lagging.discard(job)
        self._bound_queue()

    def stop(self, id: Id, problem: Problem | None) -> None:
        """Stop serving a request that the state has ended. The problem, if any, is its response."""
        job = self._jobs.pop(id, None)
        if job is None:
            return
        if job in self._queue:
            self._queue.remove(job)
            self._queued_bytes -= job.size
            self._caught_up(job)
        self._cancel(job)
        if problem is not None:
            job.answer(Failure(id, problem))

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call back once no request waits or runs, possibly at once."""
        self._when_idle = then
        self._start_queued()

    def end(self) -> set[asyncio.Task[None]]:
        """Stop everything. Returns the tasks that were cancelled and still run."""
        self._queue.clear()
        self._jobs.clear()
        leaving = {*self._tasks, *([self._room] if self._room else [])} - {asyncio.current_task()}
        for task in leaving:
            task.cancel()
        return leaving

    def _has_room(self) -> bool:
        return len(self._tasks) < self._at_once and self._channel.unsent <= limits.OUTBOUND_BYTES

    def _may_skip_queue(self, job: Job) -> bool:
        """Whether to serve a plain handler although all slots are taken: it may end one of them."""
        method = self._methods.get(job.message.method)
        return (
            self._at_once > 1
            and method is not None
            and method.quick
            and self._channel.unsent <= limits.OUTBOUND_BYTES
        )

    def _bound_queue(self) -> None:
        """Stop reading when the queue is full; resume when half of it is empty."""
        count, weight = len(self._queue), self._queued_bytes
        full = count >= limits.REQUESTS_QUEUED or weight >= limits.QUEUED_BYTES
        few = count <= limits.REQUESTS_QUEUED // 2 and weight <= limits.QUEUED_BYTES // 2
        if not self._paused and (full or self._lagging):
            self._paused = True
            self._channel.pause()
        elif self._paused and few and not self._lagging:
            self._paused = False
            self._channel.resume()

    def _await_room(self) -> None:
        """Watch for unread responses to drain. The end of a running job starts queued jobs too."""
        if self._room is None and self._channel.unsent > limits.OUTBOUND_BYTES:
            self._room = asyncio.create_task(self._when_drained())

    async def _when_drained(self) -> None:
        try:
            await self._channel.drained()
        finally:
            self._room = None
        self._start_queued()

    def _start_queued(self) -> None:
        while self._queue and self._has_room():
            job = self._queue.popleft()
            self._queued_bytes -= job.size
            self._start(job)
        self._bound_queue()
        if self._queue:
            self._await_room()
        elif not self._tasks and self._when_idle is not None:
            self._when_idle()

    def _start(self, job: Job) -> None:
        method = self._methods.get(job.message.method)
        if method is None:
            self._fail(job, self._unknown(job))
            return
        try:
            unknown = method.unknown_members(job.message.data)
            if unknown and method.members == "refuse":
                self._fail(job, _refused(unknown))
                return
            if unknown:
                self._report(job, method, unknown)
            arguments = method.arguments(job.message.data)
        except msgspec.DecodeError as error:
            self._fail(job, Problem.of(Condition.PARAMS, _cut(str(error))))
            return
        if method.wants_call:
            in_parts = isinstance(job.message, Request) and job.message.more
            call = CallContext(self._peer, job.id, method.name, job.parts, in_parts)
            arguments = (*arguments, call)
        self._run(job, method, arguments)

    def _report(self, job: Job, method: Method, unknown: tuple[UnknownMember, ...]) -> None:
        """Put unknown members into the result or, once each, into the log."""
        if method.members == "warn":
            job.warnings = tuple(map(str, unknown))
            return
        for member in unknown:
            key = (method.name, member.path, member.name)
            if key not in _logged and len(_logged) < limits.MEMBERS_LOGGED:
                _logged.add(key)
                log.warning("%s: %r", method.name, str(member))

    def _unknown(self, job: Job) -> Problem:
        """Return the error for an unknown method. For a notification no nearest names are sought,
        because nothing is sent."""
        if job.id is None:
            return Problem.of(Condition.METHOD)
        return self._methods.unknown(job.message.method)

    def _run(self, job: Job, method: Method, arguments: tuple[object, ...]) -> None:
        if method.streams:
            self._spawn(job, self._stream(job, method.handler(*arguments)))
            return
        try:
            outcome = method.handler(*arguments)
        except Exception as error:  # noqa: BLE001  any exception of a handler becomes its response
            self._fail(job, self._problem(job, error))
            return
        if asyncio.iscoroutine(outcome):
            job.work = outcome
            self._spawn(job, self._finish(job, outcome))
        else:
            self._reply(job, outcome)

    def _spawn(self, job: Job, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks[task] = job
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        job = self._tasks.pop(task)
        self._lagging.discard(job)
        if not task.cancelled():
            task.result()  # no exception is expected here; the loop's handler would report one
        elif job.work is not None:
            job.work.close()  # cancelled before its first step: avoids a "never awaited" warning
        self._start_queued()

    async def _finish(self, job: Job, outcome: Coroutine[Any, Any, object]) -> None:
        try:
            result = await outcome
        except Exception as error:  # noqa: BLE001  any exception of a handler becomes its response
            self._fail(job, self._problem(job, error))
        else:
            self._reply(job, result)

    async def _stream(self, job: Job, parts: AsyncGenerator[object, None]) -> None:
        try:
            async with aclosing(parts):
                async for part in parts:
                    if isinstance(part, Last):
                        self._reply(job, part.data)
                        return
                    self._reply(job, part, more=True)
                    await self._channel.drained()
        except Exception as error:  # noqa: BLE001  any exception of a handler becomes its response
            self._fail(job, self._problem(job, error))
        else:
            self._answer(job, Reply(job.id) if job.id is not None else None)

    def _reply(self, job: Job, result: object, more: bool = False) -> None:
        if job.id is None:
            return
        hint = result.datatype if isinstance(result, Typed) else None
        value = result.data if isinstance(result, Typed) else result
        try:
            reply = Reply(job.id, _with_warnings(_encoded(value), job.warnings), more, hint)
        except Exception as error:  # noqa: BLE001  a result that is no JSON is the handler's mistake
            self._fail(job, self._problem(job, error))
            return
        if not more:
            self._answer(job, reply)
        elif self._conversation.is_served(job.id):
            self._conversation.renew(job.id, asyncio.get_running_loop().time(), ours=False)
            job.answer(reply)

    def _fail(self, job: Job, problem: Problem) -> None:
        if job.id is None:
            self._peer.notification_failed(problem)
        else:
            told = _with_warnings_in_data(problem, job.warnings) if job.warnings else problem
            self._answer(job, Failure(job.id, told))

    def _answer(self, job: Job, message: Message | None) -> None:
        """Send the last response, unless a cancel or a timeout has ended the request."""
        if job.id is None or message is None:
            return
        self._jobs.pop(job.id, None)
        if self._conversation.answered(job.id):
            job.answer(message)

    def _cancel(self, job: Job) -> None:
        job.parts.end()
        for task, running in self._tasks.items():
            if running is job and task is not asyncio.current_task():
                task.cancel()

    def _problem(self, job: Job, error: Exception) -> Problem:
        """Return the error to send. The text of an unexpected exception stays in our log."""
        if isinstance(error, RpcError):
            problem = error.problem
            try:
                return Problem(problem.code, problem.message, _encoded(problem.data))
            except Exception as unencodable:  # noqa: BLE001  as with a result
                error = unencodable
        log.error("the handler of %r failed", job.message.method, exc_info=error)
        return Problem.of(Condition.INTERNAL)


_logged: set[tuple[str, str, str]] = set()
"""Unknown members that were logged: method, path and name."""


def _refused(unknown: tuple[UnknownMember, ...]) -> Problem:
    members = [{"name": one.name, "at": one.path, "nearest": one.nearest} for one in unknown]
    return Problem.of(Condition.PARAMS, "; ".join(map(str, unknown)), {"unknown": members})


def _cut(sentence: str) -> str:
    """Shorten a sentence of the decoder, which repeats a value that does not fit. Its end, which
    names the place, is kept."""
    return sentence if len(sentence) <= 300 else f"{sentence[:150]}…{sentence[-120:]}"


def _with_warnings_in_data(problem: Problem, warnings: tuple[str, ...]) -> Problem:
    """Add the member `warnings` to the data of an error, if they are an object or missing."""
    data = {} if problem.data is UNSET else msgspec.json.decode(msgspec.json.encode(problem.data))
    if not isinstance(data, dict):
        return problem
    return replace(problem, data={**data, "warnings": warnings})


def _with_warnings(encoded: object, warnings: tuple[str, ...]) -> object:
    """Add the member `warnings` to a result that is an object."""
    if not warnings or not isinstance(encoded, Raw) or (text := bytes(encoded))[:1] != b"{":
        return encoded
    comma = b"," if text[1:-1].strip() else b""
    return Raw(text[:-1] + comma + b'"warnings":' + msgspec.json.encode(warnings) + b"}")


def _encoded(value: object) -> object:
    """Return a value as it is sent.

    Encoding here reports a mistake to the handler's own request.
    """
    return value if value is ABSENT or isinstance(value, bytes) else Raw(msgspec.json.encode(value))
