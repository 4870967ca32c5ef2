"""The state machine of a conversation: two transition tables and the ids they apply to. Sans-IO.

Every transition stands in a table below, and no code outside this file decides one. The peer owns
bytes, tasks and futures; here a message or a point in time comes in and `Effect` values come out.
Time is passed in. `docs/explain/conversation.md` is generated from the same tables.

Theory. A conversation is symmetric, so each side keeps two sets of exchanges: the calls it made
(`ASKED`) and the requests it serves (`SERVED`). The two sets have separate ids, because both sides
may choose the same id. An exchange is one request and its response. The request creates it, the
steps of its table move it, and it is dropped in ENDED. A step that its state does not list is
absorbed: it changes nothing, and it is counted unless it is a late cancel. So a peer that repeats,
reorders or invents messages cannot break the conversation, and each exchange ends at most once.

A call is OPEN until the first part of a streamed response makes it STREAMING. The last part or a
failure ends it. The other side does not confirm a cancel, and its response may already be on the
way when we time out or cancel. So the caller gets its error at once, a cancel is sent, and the call
stays as ABANDONED: a response that arrives late is then recognised and absorbed, instead of being
taken for a mistake of the peer. `IDS_REMEMBERED` bounds how many abandoned calls are kept; a reply
to an older one counts as unknown.

A request is RECEIVING while further parts of it are expected, and SERVING once it is whole. Its
handler starts in either state, so it may respond before the last part. Three parties may end it:
the handler (ANSWERED), the request's own timeout (TIMED_OUT) and the caller (CANCELLED). The first
one wins and gives the only response; `answered` returns False to a handler that comes later. If a
request ends while RECEIVING, the rest of its parts is still on the way. Its id is then kept in
`_cut_short` until the last part, so that a part that repeats the command does not begin a second
request.

A deadline belongs to an exchange, and each packet of a stream renews it. The heap of deadlines is
not reordered for that: an entry that comes due too early is pushed again with the new deadline. The
deadline of a request can be paused, for example while a person is asked, because the caller's
timeout must not cover that.

A channel ends in two steps. EOF from the other side (`hang_up`) fails our calls, because no
response can arrive, but requests are still served. `close` ends both.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from telex.rpc import limits
from telex.rpc.errors import Condition, Problem
from telex.rpc.messages import Cancel, Failure, Id, Message, Notification, Part, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Callable


class State(Enum):
    """The states of both tables:

    RECEIVING and SERVING of requests, ENDED of both, else of calls.
    """

    OPEN = "open"
    STREAMING = "streaming"
    ABANDONED = "abandoned"
    RECEIVING = "receiving"
    SERVING = "serving"
    ENDED = "ended"


class Step(Enum):
    """The events that move an exchange. The values are column titles in the documentation."""

    PART = "part"
    LAST = "last part"
    FAILED = "failure"
    TIMED_OUT = "timeout"
    CANCELLED = "cancel"
    ANSWERED = "our response"
    CLOSED = "channel closes"


ASKED: Final[dict[State, dict[Step, State]]] = {
    State.OPEN: {
        Step.PART: State.STREAMING,
        Step.LAST: State.ENDED,
        Step.FAILED: State.ENDED,
        Step.TIMED_OUT: State.ABANDONED,
        Step.CANCELLED: State.ABANDONED,
        Step.CLOSED: State.ENDED,
    },
    State.STREAMING: {
        Step.PART: State.STREAMING,
        Step.LAST: State.ENDED,
        Step.FAILED: State.ENDED,
        Step.TIMED_OUT: State.ABANDONED,
        Step.CANCELLED: State.ABANDONED,
        Step.CLOSED: State.ENDED,
    },
    State.ABANDONED: {
        Step.PART: State.ABANDONED,
        Step.LAST: State.ENDED,
        Step.FAILED: State.ENDED,
        Step.CLOSED: State.ENDED,
    },
    State.ENDED: {},
}
SERVED: Final[dict[State, dict[Step, State]]] = {
    State.RECEIVING: {
        Step.PART: State.RECEIVING,
        Step.LAST: State.SERVING,
        Step.ANSWERED: State.ENDED,
        Step.TIMED_OUT: State.ENDED,
        Step.CANCELLED: State.ENDED,
        Step.CLOSED: State.ENDED,
    },
    State.SERVING: {
        Step.ANSWERED: State.ENDED,
        Step.TIMED_OUT: State.ENDED,
        Step.CANCELLED: State.ENDED,
        Step.CLOSED: State.ENDED,
    },
    State.ENDED: {},
}
_WAITING: Final = frozenset(
    state for table in (ASKED, SERVED) for state in table if Step.TIMED_OUT in table[state]
)


@dataclass(frozen=True, slots=True)
class Deliver:
    """Pass this response to the caller. It is the last unless it has `more`."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Fail:
    """End a call without a result: with the other side's problem, or None for a timeout."""

    id: Id
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin to serve this request."""

    request: Request


@dataclass(frozen=True, slots=True)
class Feed:
    """Pass a further part to the handler of a request."""

    part: Part


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop serving a request and respond with the problem, if there is one."""

    id: Id
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Send:
    message: Message


Effect = Deliver | Fail | Begin | Feed | Stop | Send


@dataclass(slots=True)
class Counts:
    """How many mistakes of the peer were absorbed."""

    late: int = 0
    """Replies to calls that were abandoned."""
    unknown: int = 0
    """Replies and parts with an unknown id; mostly duplicates."""
    repeated: int = 0
    """Requests that came again while they were being served."""
    malformed: int = 0
    faults: int = 0
    """Bytes that were not a frame."""
    notification_errors: int = 0
    """Errors of notifications, which get no response."""


@dataclass(slots=True, eq=False)
class _Exchange:
    """One request and its response, of either direction."""

    id: Id
    ours: bool
    state: State
    timeout: float | None = None
    due: float = 0.0
    """The deadline. Each packet of a stream renews it; the heap is corrected later."""

    def step(self, step: Step) -> bool:
        """Make a step. Returns False where the table has no such step: it is absorbed."""
        then = (ASKED if self.ours else SERVED)[self.state].get(step)
        if then is None:
            return False
        self.state = then
        return True


class Conversation:
    """The state of both directions of one channel. It does no I/O and has no clock."""

    def __init__(self, *, repeats: bool = False) -> None:
        """With `repeats`, a request that comes again while it is being served is counted and not
        refused: its answer is on its way."""
        self._repeats = repeats
        self.counts = Counts()
        self._asked: dict[Id, _Exchange] = {}
        self._served: dict[Id, _Exchange] = {}
        self._abandoned: OrderedDict[Id, _Exchange] = OrderedDict()
        self._cut_short: OrderedDict[Id, None] = OrderedDict()
        """Requests that ended before their last part arrived. The rest of the parts is absorbed,
        also a part that repeats the command."""
        self._deadlines: list[tuple[float, int, _Exchange]] = []
        """A heap. Exchanges that ended before their deadline are skipped, and swept at times."""
        self._serial = itertools.count()

    @property
    def calls(self) -> int:
        """How many calls of this side wait for a response."""
        return len(self._asked)

    @property
    def serving(self) -> int:
        """How many requests of the other side have no response yet."""
        return len(self._served)

    def ask(self, id: Id, now: float, timeout: float | None) -> None:
        """Register a request that this side sends."""
        if id in self._asked:
            raise ValueError(f"a call with the id {id!r} is already open")
        self._asked[id] = exchange = _Exchange(id, True, State.OPEN)
        self._expect_by(exchange, now, timeout)

    def receive(self, message: Message, now: float) -> list[Effect]:
        """Return the effects of a received message. Notifications have no state and no effect."""
        match message:
            case Reply(id, _, more):
                self.renew(id, now, ours=True)
                return self._answered(id, Step.PART if more else Step.LAST, Deliver(message))
            case Failure(id, problem) if id is not None:
                return self._answered(id, Step.FAILED, Fail(id, problem))
            case Request(id, more=more) | Part(id, _, more) if id in self._cut_short:
                self.counts.unknown += 1
                if not more:
                    del self._cut_short[id]
            case Request():
                return self._requested(message, now)
            case Part(id, _, more):
                self.renew(id, now, ours=False)
                return self._stepped(id, Step.PART if more else Step.LAST, Feed(message))
            case Cancel(id):
                self._cut_short.pop(id, None)  # no more parts will arrive
                return self._stepped(id, Step.CANCELLED, Stop(id, Problem.of(Condition.CANCELLED)))
            case Failure():
                self.counts.unknown += 1
            case Notification():
                pass
        return []

    def abandon(self, id: Id) -> list[Effect]:
        """Give up a call whose response is no longer wanted."""
        exchange = self._asked.get(id)
        if exchange is None or not exchange.step(Step.CANCELLED):
            return []
        self._give_up(exchange)
        return [Send(Cancel(id))]

    def is_served(self, id: Id) -> bool:
        """Whether a request still waits for our response."""
        return id in self._served

    def answered(self, id: Id) -> bool:
        """Record our last response to a request. Returns False if it has already ended."""
        exchange = self._served.pop(id, None)
        if exchange is None:
            return False
        if exchange.state is State.RECEIVING:
            self._cut(id)
        return exchange.step(Step.ANSWERED)

    def _cut(self, id: Id) -> None:
        self._cut_short[id] = None
        if len(self._cut_short) > limits.IDS_REMEMBERED:
            self._cut_short.popitem(last=False)

    def renew(self, id: Id, now: float, *, ours: bool) -> None:
        """Renew the deadline of a stream after one of its packets was received or sent."""
        exchange = (self._asked if ours else self._served).get(id)
        if exchange is not None and exchange.timeout is not None:
            exchange.due = now + exchange.timeout

    def next_deadline(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None

    def renew_calls(self, now: float) -> None:
        """Renew the deadlines of all calls of this side."""
        for id in self._asked:
            self.renew(id, now, ours=True)

    def expire(self, now: float, paused: Callable[[Id], bool] = lambda id: False) -> list[Effect]:
        """Time out the exchanges whose deadline has passed; calls of ours also send a cancel.

        Args:
            paused: Whether the deadline of a request is paused; such a deadline is renewed.
        """
        effects: list[Effect] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, exchange = heapq.heappop(self._deadlines)
            if not exchange.ours and exchange.state in _WAITING and paused(exchange.id):
                self.renew(exchange.id, now, ours=False)
            if exchange.due > now and exchange.state in _WAITING:
                self._push(exchange)
                continue
            receiving = exchange.state is State.RECEIVING
            if not exchange.step(Step.TIMED_OUT):
                continue
            if exchange.ours:
                self._give_up(exchange)
                effects += [Fail(exchange.id, None), Send(Cancel(exchange.id))]
            else:
                del self._served[exchange.id]
                if receiving:
                    self._cut(exchange.id)
                effects.append(Stop(exchange.id, Problem.of(Condition.TIMED_OUT)))
        return effects

    def hang_up(self) -> list[Effect]:
        """Fail every call, because no response can arrive. Requests are still served."""
        effects: list[Effect] = [Fail(id, None) for id in self._asked]
        for exchange in (*self._asked.values(), *self._abandoned.values()):
            exchange.step(Step.CLOSED)
        self._asked.clear()
        self._abandoned.clear()
        return effects

    def close(self, problem: Problem | None = None) -> list[Effect]:
        """End the conversation: fail every call, and stop every request, with this problem."""
        effects = self.hang_up() + [Stop(id, problem) for id in self._served]
        for exchange in self._served.values():
            exchange.step(Step.CLOSED)
        self._served.clear()
        self._deadlines.clear()
        return effects

    def _answered(self, id: Id, step: Step, effect: Effect) -> list[Effect]:
        """Handle a response: for an open call, an abandoned call, or an unknown id."""
        if (exchange := self._asked.get(id)) is not None:
            exchange.step(step)
            if exchange.state is State.ENDED:
                del self._asked[id]
            return [effect]
        if (exchange := self._abandoned.get(id)) is not None:
            exchange.step(step)
            if exchange.state is State.ENDED:
                del self._abandoned[id]
            self.counts.late += 1
        else:
            self.counts.unknown += 1
        return []

    def _give_up(self, exchange: _Exchange) -> None:
        del self._asked[exchange.id]
        self._abandoned[exchange.id] = exchange
        if len(self._abandoned) > limits.IDS_REMEMBERED:
            self._abandoned.popitem(last=False)

    def _requested(self, request: Request, now: float) -> list[Effect]:
        if (known := self._served.get(request.id)) is not None:
            if known.state is State.RECEIVING:  # a part may repeat the command
                part = Part(request.id, request.data, request.more, request.datatype)
                return self.receive(part, now)
            if self._repeats:
                self.counts.repeated += 1
                return []
            problem = Problem.of(Condition.REQUEST, "A request with this id is being served.")
            return [Send(Failure(request.id, problem))]
        state = State.RECEIVING if request.more else State.SERVING
        self._served[request.id] = exchange = _Exchange(request.id, False, state)
        self._expect_by(exchange, now, request.timeout)
        return [Begin(request)]

    def _stepped(self, id: Id, step: Step, effect: Effect) -> list[Effect]:
        """Handle a further packet for a request. A step that its state does not list is counted."""
        exchange = self._served.get(id)
        if exchange is None or not exchange.step(step):
            self.counts.unknown += step is not Step.CANCELLED  # a late cancel is not a mistake
            return []
        if exchange.state is State.ENDED:
            del self._served[id]
        return [effect]

    def _expect_by(self, exchange: _Exchange, now: float, timeout: float | None) -> None:
        if timeout is None:
            return
        if len(self._deadlines) > 64 + 2 * (len(self._asked) + len(self._served)):
            self._deadlines = [d for d in self._deadlines if d[2].state in _WAITING]
            heapq.heapify(self._deadlines)
        exchange.timeout, exchange.due = timeout, now + timeout
        self._push(exchange)

    def _push(self, exchange: _Exchange) -> None:
        heapq.heappush(self._deadlines, (exchange.due, next(self._serial), exchange))
