"""One end of a symmetric conversation: the asyncio shell around dialect and state.

    async with Peer(channel, JsonRpc(), methods) as peer:
        sessions = await peer.call("session.list", returns=SessionList)

Either side calls, notifies and serves. `outgoing_calls` holds our open calls, `handler_tasks` the
requests of the other side; `state` decides the transitions, and the dialect encodes the messages. A
call that times out or is cancelled sends a cancel to the other side. Late and duplicate replies are
absorbed and counted. Closing fails the pending calls with a clear error and leaves no task behind.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from telex.redaction import Redactor
from telex.rpc import limits
from telex.rpc.errors import Condition, Problem, UnexpectedReply
from telex.rpc.handler_tasks import Job, Serving
from telex.rpc.messages import (
    ABSENT,
    Batch,
    Failure,
    Id,
    Malformed,
    Message,
    Notification,
    Reply,
    Request,
)
from telex.rpc.methods import Methods
from telex.rpc.outgoing_calls import Calling, Inbox
from telex.rpc.state import Begin, Conversation, Counts, Deliver, Effect, Fail, Feed, Send, Stop
from telex.rpc.trace import Trace, from_environment
from telex.wire import limits as wire_limits
from telex.wire.events import Event, Fault, Frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator

    from telex.rpc.channel import Channel
    from telex.rpc.dialects import Dialect
    from telex.rpc.identity import Identity

T = TypeVar("T")

DEFAULT_TIMEOUT: Final = -1.0
"""Use the timeout of the dialect."""

BINARY: Final = b"\xff"
"""First byte of a binary frame. Neither JSON nor any other UTF-8 text begins with it."""

_ONE_LINE: Final = bytes.maketrans(b"\n\r\t", b"   ")

_REDACT: Final = Redactor().redact
"""The redactor of error messages, unless a peer is given its own."""


class NoBinary(TypeError):
    """Binary data was sent on a channel that carries only messages."""


class MessageTooLarge(ValueError):
    """A message of this side is larger than any peer accepts."""


class Peer:
    """One end of a conversation over a channel, which it opens.

    Close it, or use it as a context manager.
    """

    def __init__(
        self,
        channel: Channel,
        dialect: Dialect,
        methods: Methods | None = None,
        *,
        redact: Callable[[str], str] | None = None,
        trace: Trace | None = None,
        at_once: int = limits.CALLS_IN_FLIGHT,
        pause_reading: bool = False,
        deadline_paused: Callable[[Id], bool] = lambda id: False,
        on_binary: Callable[[bytes], None] | None = None,
        repeats: bool = False,
        answer_cancelled: bool = True,
    ) -> None:
        """Open the channel and begin to serve.

        Args:
            at_once: How many requests run at a time; 1 keeps them in order.
            pause_reading: When the parts of a request arrive faster than its handler reads them,
                stop reading from the channel instead of failing that request.
            deadline_paused: Called with the id of a request whose deadline has passed; True renews
                the deadline.
            on_binary: Gets the frames that begin with `BINARY`, where the channel carries them;
                they are not messages.
            repeats: Ignore a request that comes again while it is being served, because its answer
                is on its way. Otherwise a repeated id is refused.
            answer_cancelled: Answer a cancelled request with an error; otherwise it gets no
                response.
        """
        self._channel = channel
        self._dialect = dialect
        self._trace = trace or from_environment()
        self._conversation = talk = Conversation(repeats=repeats)
        self._calling = Calling(dialect, talk, channel, self._send, self._apply)
        self._serving = Serving(self, methods or Methods(), talk, channel, at_once, pause_reading)
        self._redact = redact or _REDACT
        self._on_binary = on_binary
        self._answer_cancelled = answer_cancelled
        self._deadline_paused = deadline_paused
        self._paused: set[Id] = set()
        """Requests of the other side whose deadline is paused."""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._why_ended = ""
        channel.open(self)

    @property
    def counts(self) -> Counts:
        """How many mistakes of the other side were absorbed so far."""
        return self._conversation.counts

    @property
    def why_ended(self) -> str:
        """Why the conversation is over; empty while it is not."""
        return self._why_ended

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(
        self,
        method: str,
        params: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = DEFAULT_TIMEOUT,
        parts: AsyncIterable[object] | None = None,
        id: Id | None = None,
        grace: float = 0.0,
    ) -> T:
        """Send a request and wait for the whole response.

        Cancelling the call sends a cancel to the other side, which may have acted by then.

        Args:
            id: A request id, new in this conversation and not one that the dialect would choose.
            grace: Seconds that this side waits beyond the timeout it sends. The other side may
                have to ask a person, whose time does not count.

        Raises:
            CallError: The error that the other side returned, or the reason why there was no
                response.
        """
        seconds = self._dialect.default_timeout if timeout == DEFAULT_TIMEOUT else timeout
        answer: asyncio.Future[Reply] = self._loop.create_future()
        asked = await self._calling.ask(method, params, seconds, parts, answer, id, grace)
        try:
            self._arm()
            reply = await answer
        finally:
            self._calling.forget(asked)
        result: T = _decoded(method, reply, returns)
        return result

    def repeat(self, id: Id, method: str, params: object = ABSENT) -> None:
        """Send an open request again, for a receiver that lost it; does nothing once answered."""
        self._calling.repeat(id, method, params)

    async def stream(
        self,
        method: str,
        params: object = ABSENT,
        *,
        returns: type[T] | Any = Any,
        timeout: float | None = None,
        parts: AsyncIterable[object] | None = None,
        grace: float = 0.0,
    ) -> AsyncIterator[T]:
        """Send a request and yield the parts of the response as they arrive.

        Leaving the iteration early sends a cancel. `returns=Reply` yields the messages themselves,
        for callers that need their datatype.
        """
        inbox: Inbox[Reply] = Inbox()
        id = await self._calling.ask(method, params, timeout, parts, inbox, grace=grace)
        try:
            self._arm()
            async for reply in inbox:
                if reply.data is not ABSENT:
                    yield _decoded(method, reply, returns)
        finally:
            self._calling.forget(id)

    async def notify(self, method: str, params: object = ABSENT) -> None:
        """Send a notification. Waits while the other side has too much unread."""
        await self._calling.room_to_send()
        self._send(Notification(method, params))

    @property
    def carries_binary(self) -> bool:
        """Whether `send_binary` can be used."""
        return self._channel.binary

    @property
    def identity(self) -> Identity:
        """The identity of the other side."""
        return self._channel.identity

    async def send_binary(self, data: bytes) -> None:
        """Send bytes besides messages, in order with them, for the other side's `on_binary`."""
        if not self.carries_binary:
            raise NoBinary("this channel carries messages only")
        await self._calling.room_to_send()
        self._channel.send(BINARY + data)

    async def close(
        self, why: str = "this side closed the conversation", problem: Problem | None = None
    ) -> None:
        """End the conversation and wait until its tasks have ended. Idempotent.

        Requests without a response get `problem`, or an error that this peer is closing.
        """
        self._end(why, problem or Problem.of(Condition.CLOSING))
        await self._channel.close()
        await self.closed()

    async def closed(self) -> None:
        """Wait until the conversation has ended, by either side, and its tasks too."""
        await self._ended.wait()
        tasks = {*self._leaving, *([self._closing] if self._closing else [])}
        if tasks := {task for task in tasks if not task.done()} - {asyncio.current_task()}:
            await asyncio.wait(tasks)

    def renew(self) -> None:
        """Renew the deadline of each of our calls, after this process was stopped for a while."""
        self._conversation.renew_calls(self._loop.time())

    @contextmanager
    def clock_stopped(self, id: Id) -> Iterator[None]:
        """Pause the deadline of a request, for work that the caller's timeout must not cover.

        Afterwards the deadline is renewed.
        """
        self._paused.add(id)
        try:
            yield
        finally:
            self._paused.discard(id)
            self._conversation.renew(id, self._loop.time(), ours=False)

    def notification_failed(self, problem: Problem) -> None:
        """From `handler_tasks`: count and trace a failed notification, which gets no response."""
        self.counts.notification_errors += 1
        if self._trace is not None:
            self._trace.rpc("--", Failure(None, problem))

    def received(self, events: list[Event]) -> None:
        """From the channel: handle frames, and the faults between them."""
        for event in events:
            match event:
                case Frame(body):
                    self._receive(body)
                case Fault():
                    self.counts.faults += 1
                    if (answer := self._dialect.answer_to(event)) is not None:
                        self._send(answer)
                case _:
                    raise TypeError(f"a channel delivers frames and faults, not {event}")

    def finished(self) -> None:
        """From the channel: fail our calls after EOF, but still serve the open requests."""
        self._calling.hang_up("the other side ended its output")
        self._apply(self._conversation.hang_up())
        self._serving.when_idle(self._leave)

    def lost(self, why: str) -> None:
        """From the channel: end the conversation, because the channel closed."""
        self._end(why)

    def _receive(self, body: bytes) -> None:
        if self._on_binary is not None and body.startswith(BINARY) and self.carries_binary:
            self._on_binary(body[1:])
            return
        if self._trace is not None:
            self._trace.wire("<<", body)
        message = self._dialect.decode(body)
        if isinstance(message, Batch):
            answer = _BatchAnswers(message, self._send_batch)
            for member in message.members:
                self._dispatch(member, len(body) // len(message.members), answer)
        else:
            self._dispatch(message, len(body), self._send)

    def _dispatch(
        self, message: Message | Malformed, size: int, answer: Callable[[Message], None]
    ) -> None:
        """Handle one message: start a handler, complete a call, or respond to a mistake."""
        if self._trace is not None:
            self._trace.rpc("<<", message)
        if isinstance(message, Malformed):
            self.counts.malformed += 1
            if message.answer is not None:
                answer(message.answer)
            if message.spoils is not None:
                spoilt = Failure(message.spoils, message.problem)
                self._apply(self._conversation.receive(spoilt, self._loop.time()))
        elif isinstance(message, Notification):
            self._serving.begin(Job(message, size, answer))
        else:
            for effect in self._conversation.receive(message, self._loop.time()):
                match effect:
                    case Begin(request):
                        self._serving.begin(Job(request, size, answer))
                        self._arm()
                    case Send(refusal):
                        answer(refusal)
                    case _:
                        self._perform(effect)

    def _apply(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Deliver(reply):
                self._calling.deliver(reply)
            case Fail(id, problem):
                self._calling.fail(id, problem)
            case Feed(part):
                self._serving.feed(part)
            case Stop(id, problem):
                silent = problem is not None and problem.code is Condition.CANCELLED
                silent = silent and not self._answer_cancelled
                self._serving.stop(id, None if silent else problem)
            case Send(cancel):
                if self._dialect.cancels:
                    self._send(cancel)
            case Begin():
                raise AssertionError("Begin is handled in _dispatch")

    def _send(self, message: Message) -> None:
        message = self._redacted(message)
        if self._trace is not None:
            self._trace.rpc(">>", message)
        body = self._dialect.encode(message)
        if len(body) > wire_limits.LINE_BYTES:
            body = self._dialect.encode(_instead_of(message, len(body)))
        self._send_body(body)

    def _send_batch(self, answers: list[Message]) -> None:
        body = self._dialect.encode_batch([self._redacted(answer) for answer in answers])
        if len(body) > wire_limits.LINE_BYTES:
            body = self._dialect.encode(_too_large(None, len(body)))
        self._send_body(body)

    def _redacted(self, message: Message) -> Message:
        """Return the message with its error sentence redacted; other messages are unchanged."""
        if not isinstance(message, Failure):
            return message
        problem = message.problem
        sentence = self._redact(problem.message).encode("utf-8", "backslashreplace").decode()
        return Failure(message.id, Problem(problem.code, sentence, problem.data))

    def _send_body(self, body: bytes) -> None:
        if b"\n" in body or b"\r" in body or b"\t" in body:
            body = body.translate(_ONE_LINE)  # layout of a caller's raw JSON, never inside strings
        if self._trace is not None:
            self._trace.wire(">>", body)
        self._channel.send(body)

    def _arm(self) -> None:
        """Set the timer to the next deadline of the conversation."""
        deadline = self._conversation.next_deadline()
        if deadline is None or (self._timer is not None and self._timer.when() <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._apply(self._conversation.expire(self._loop.time(), self._is_paused))
        self._arm()

    def _is_paused(self, id: Id) -> bool:
        return id in self._paused or self._deadline_paused(id)

    def _leave(self) -> None:
        if not self._ended.is_set():
            self._closing = asyncio.create_task(self.close("the other side finished"))

    def _end(self, why: str, problem: Problem | None = None) -> None:
        """Fail the pending calls and stop the handlers. Only the first call has an effect."""
        if self._ended.is_set():
            return
        self._why_ended = why
        self._leaving = self._calling.end(why)
        self._apply(self._conversation.close(problem))
        self._leaving |= self._serving.end()
        if self._timer is not None:
            self._timer.cancel()
        self._ended.set()


class _BatchAnswers:
    """Collects the responses to a batch, and sends them in one frame when all are present."""

    def __init__(self, batch: Batch, send: Callable[[list[Message]], None]) -> None:
        self._missing = sum(_wants_answer(member) for member in batch.members)
        self._send = send
        self._answers: list[Message] = []

    def __call__(self, answer: Message) -> None:
        self._answers.append(answer)
        self._missing -= 1
        if self._missing == 0:
            self._send(self._answers)


def _wants_answer(member: Message | Malformed) -> bool:
    return isinstance(member, Request) or (
        isinstance(member, Malformed) and member.answer is not None
    )


def _instead_of(message: Message, size: int) -> Failure:
    """Return a failure in place of a response that is too large. Raises for other messages."""
    if isinstance(message, (Reply, Failure)):
        return _too_large(message.id, size)
    raise MessageTooLarge(
        f"a message of {size} bytes; at most {wire_limits.LINE_BYTES} can be sent"
    )


def _too_large(id: Id | None, size: int) -> Failure:
    detail = f"The result has {size} bytes; at most {wire_limits.LINE_BYTES} can be sent."
    return Failure(id, Problem.of(Condition.INTERNAL, detail))


@lru_cache(maxsize=256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _decoded(method: str, reply: Reply, kind: Any) -> Any:
    """Return the response in the caller's type. Binary and absent data have no JSON to decode."""
    data = reply.data
    if kind is Reply:
        return reply
    if isinstance(data, bytes) or (data is ABSENT and kind is Any):
        return data
    try:
        return _decoder(kind).decode(b"null" if data is ABSENT else data)  # type: ignore[arg-type]  # Raw, from the dialect
    except msgspec.DecodeError as error:
        raise UnexpectedReply(f"{method}: {error}") from None
