"""One end of a symmetric conversation: the one asyncio shell around dialect and state.

    async with Peer(channel, JsonRpc(), methods) as peer:
        sessions = await peer.call("session.list", returns=SessionList)

Either side calls, notifies and serves. `outgoing_calls` holds our open calls, `handler_tasks` their
requests; `state` says what may follow what, and the dialect what a message looks like. A call that
times out or is cancelled sends a cancellation to the other side; late and duplicate replies are
absorbed and counted; closing fails what is pending with a clear error and leaves no task behind.
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
from telex.rpc.inbox import Inbox
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
from telex.rpc.outgoing_calls import Calling
from telex.rpc.state import Begin, Conversation, Counts, Deliver, Effect, Fail, Feed, Send, Stop
from telex.rpc.trace import Trace, from_environment
from telex.wire import limits as wire_limits
from telex.wire.events import Event, Fault, Frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
    from types import TracebackType

    from telex.rpc.channel import Channel
    from telex.rpc.dialects import Dialect

T = TypeVar("T")

DEFAULT_TIMEOUT: Final = -1.0
"""As long as the dialect says."""

BINARY: Final = b"\xff"
"""How a frame begins that is no message: neither JSON nor any other UTF-8 text does."""

_ONE_LINE: Final = bytes.maketrans(b"\n\r\t", b"   ")

_REDACT: Final = Redactor().redact
"""What an error sentence passes on its way out, unless a peer is given a redactor of its own."""


class NoBinary(TypeError):
    """Bytes that are no message, for a channel that has messages only."""


class MessageTooLarge(ValueError):
    """A message of ours that no peer would take."""


class Peer:
    """Give it a channel, which it opens. Close it, or use it as a context manager."""

    def __init__(
        self,
        channel: Channel,
        dialect: Dialect,
        methods: Methods | None = None,
        *,
        redact: Callable[[str], str] | None = None,
        trace: Trace | None = None,
        at_once: int = limits.CALLS_IN_FLIGHT,
        hold_up: bool = False,
        still: Callable[[Id], bool] = lambda id: False,
        on_binary: Callable[[bytes], None] | None = None,
    ) -> None:
        """`at_once` requests of theirs run at a time: 1 keeps them in order. With `hold_up`, parts
        that come faster than they are taken hold up all that they say, and their stream does not
        fail. `still` says of a request whose time is up whether it stood still: then it begins
        anew. `on_binary` gets the frames that begin with `BINARY`, where the channel carries them;
        they are no messages."""
        self._channel = channel
        self._dialect = dialect
        self._trace = trace or from_environment()
        self._conversation = talk = Conversation()
        self._calling = Calling(dialect, talk, channel, self._send, self._apply)
        self._serving = Serving(self, methods or Methods(), talk, channel, at_once, hold_up)
        self._redact = redact or _REDACT
        self._on_binary = on_binary
        self._still = still
        self._stopped: set[Id] = set()
        """Requests of theirs whose time does not run."""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        channel.open(self)

    @property
    def counts(self) -> Counts:
        """What was absorbed so far."""
        return self._conversation.counts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        """Ask, and wait for the whole answer. An `id` of the caller's must be new in this
        conversation, and none that the dialect would choose. We wait `grace` longer than the other
        side is told to take: it may have a person to ask, whose time does not count.

        Raises a `CallError`: what the other side said, or why it said nothing. Cancelling it tells
        the other side, which may have acted by then.
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
        """Say a request of ours once more, for who lost it; nothing if its answer has come."""
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
        """Ask, and get the answer in parts as they come. Leaving early tells the other side.

        With `returns=Reply` the messages themselves, for who needs to see their datatype.
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
        """Tell. Waits while the other side leaves too much unread."""
        await self._calling.room_to_send()
        self._send(Notification(method, params))

    @property
    def carries_binary(self) -> bool:
        """Whether `send_binary` can be used."""
        return self._channel.binary

    async def send_binary(self, data: bytes) -> None:
        """Bytes beside the conversation, in order with it, for the other side's `on_binary`."""
        if not self.carries_binary:
            raise NoBinary("this channel carries messages only")
        await self._calling.room_to_send()
        self._channel.send(BINARY + data)

    async def close(
        self, why: str = "this side closed the conversation", tell: Problem | None = None
    ) -> None:
        """End the conversation and wait until nothing of it is left. Idempotent. What they asked
        and we have not answered is answered with `tell`, or that this side is closing."""
        self._end(why, tell or Problem.of(Condition.CLOSING))
        await self._channel.close()
        await self.closed()

    async def closed(self) -> None:
        """Wait until the conversation is over, by either side, and its tasks are gone."""
        await self._ended.wait()
        tasks = {*self._leaving, *([self._closing] if self._closing else [])}
        if tasks := {task for task in tasks if not task.done()} - {asyncio.current_task()}:
            await asyncio.wait(tasks)

    def renew(self) -> None:
        """We were stopped for a while: the time for each of our calls begins anew."""
        self._conversation.renew_calls(self._loop.time())

    @contextmanager
    def clock_stopped(self, id: Id) -> Iterator[None]:
        """While something happens that is not the caller's to wait for, its request cannot time
        out; afterwards its time begins anew."""
        self._stopped.add(id)
        try:
            yield
        finally:
            self._stopped.discard(id)
            self._conversation.renew(id, self._loop.time(), ours=False)

    def untold(self, problem: Problem) -> None:
        """From `serving`: a notification failed, which is counted, traced, and never answered."""
        self.counts.untold += 1
        if self._trace is not None:
            self._trace.rpc("--", Failure(None, problem))

    def received(self, events: list[Event]) -> None:
        """From the channel: frames, and the faults between them."""
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
        """From the channel: they say no more. What we asked has no answer; what they asked does."""
        self._calling.hang_up("the other side stopped talking")
        self._apply(self._conversation.hang_up())
        self._serving.when_idle(self._leave)

    def lost(self, why: str) -> None:
        """From the channel: it is closed."""
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
                self._take(member, len(body) // len(message.members), answer)
        else:
            self._take(message, len(body), self._send)

    def _take(
        self, message: Message | Malformed, size: int, answer: Callable[[Message], None]
    ) -> None:
        """One message: a job for the handlers, an answer for a call, or a mistake to answer."""
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
                self._serving.stop(id, problem)
            case Send(cancel):
                if self._dialect.cancels:
                    self._send(cancel)
            case Begin():
                raise AssertionError("a request begins where it is taken")

    def _send(self, message: Message) -> None:
        message = self._told(message)
        if self._trace is not None:
            self._trace.rpc(">>", message)
        body = self._dialect.encode(message)
        if len(body) > wire_limits.LINE_BYTES:
            body = self._dialect.encode(_instead_of(message, len(body)))
        self._send_body(body)

    def _send_batch(self, answers: list[Message]) -> None:
        body = self._dialect.encode_batch([self._told(answer) for answer in answers])
        if len(body) > wire_limits.LINE_BYTES:
            body = self._dialect.encode(_too_large(None, len(body)))
        self._send_body(body)

    def _told(self, message: Message) -> Message:
        """An error's sentence passes the redactor on its way out; everything else as it is."""
        if not isinstance(message, Failure):
            return message
        problem = message.problem
        sentence = self._redact(problem.message).encode("utf-8", "backslashreplace").decode()
        return Failure(message.id, Problem(problem.code, sentence, problem.data))

    def _send_body(self, body: bytes) -> None:
        if b"\n" in body or b"\r" in body or b"\t" in body:
            body = body.translate(_ONE_LINE)  # of a caller's raw JSON; inside strings there is none
        if self._trace is not None:
            self._trace.wire(">>", body)
        self._channel.send(body)

    def _arm(self) -> None:
        """Have the clock look at the conversation when its next deadline comes."""
        deadline = self._conversation.next_deadline()
        if deadline is None or (self._timer is not None and self._timer.when() <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._apply(self._conversation.expire(self._loop.time(), self._stands_still))
        self._arm()

    def _stands_still(self, id: Id) -> bool:
        return id in self._stopped or self._still(id)

    def _leave(self) -> None:
        if not self._ended.is_set():
            self._closing = asyncio.create_task(self.close("the other side finished"))

    def _end(self, why: str, tell: Problem | None = None) -> None:
        """Once: fail what is pending, stop what is served."""
        if self._ended.is_set():
            return
        self._leaving = self._calling.end(why)
        self._apply(self._conversation.close(tell))
        self._leaving |= self._serving.end()
        if self._timer is not None:
            self._timer.cancel()
        self._ended.set()


class _BatchAnswers:
    """Collects the answers to a batch, and sends them in one frame when all are there."""

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
    """An answer too large becomes a failure; a request too large is its caller's mistake."""
    if isinstance(message, (Reply, Failure)):
        return _too_large(message.id, size)
    raise MessageTooLarge(
        f"a message of {size} bytes; at most {wire_limits.LINE_BYTES} can be sent"
    )


def _too_large(id: Id | None, size: int) -> Failure:
    detail = f"The answer has {size} bytes; at most {wire_limits.LINE_BYTES} can be sent."
    return Failure(id, Problem.of(Condition.INTERNAL, detail))


@lru_cache(maxsize=256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _decoded(method: str, reply: Reply, kind: Any) -> Any:
    """The answer as the caller's type. Binary and absent data have no JSON to decode."""
    data = reply.data
    if kind is Reply:
        return reply
    if isinstance(data, bytes) or (data is ABSENT and kind is Any):
        return data
    try:
        return _decoder(kind).decode(b"null" if data is ABSENT else data)  # type: ignore[arg-type]  # Raw, from the dialect
    except msgspec.DecodeError as error:
        raise UnexpectedReply(f"{method}: {error}") from None
