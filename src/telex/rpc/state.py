"""What may follow what in a conversation: two tables and the ids they apply to. Sans-IO.

Rules: every transition stands in a table below, and nothing outside this file decides one. Bytes,
tasks and futures are the peer's; here a message or a moment comes in and `Effect` values come out.
Time is passed in. `docs/explain/conversation.md` is drawn from the same tables.

`ASKED` is the life of a call this side made. It ends when the other side has said all it has to
say; a call that we gave up on lingers as ABANDONED so that its late replies are recognised and
absorbed instead of being taken for a peer's mistake. `SERVED` is the life of a request the other
side made; it ends with the one last answer, whoever gives it.
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
    OPEN = "open"
    STREAMING = "streaming"
    ABANDONED = "abandoned"
    RECEIVING = "receiving"
    SERVING = "serving"
    ENDED = "ended"


class Step(Enum):
    PART = "a part"
    LAST = "the last part"
    FAILED = "a failure"
    TIMED_OUT = "time is up"
    CANCELLED = "a cancel"
    ANSWERED = "our last answer"
    CLOSED = "the channel closes"


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
    """An answer for a call of ours; the last unless it says `more`."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Fail:
    """A call of ours ends without a result: they said so, or time is up (no problem then)."""

    id: Id
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Begin:
    """Serve this request."""

    request: Request


@dataclass(frozen=True, slots=True)
class Feed:
    """A further part for a request that is being served."""

    part: Part


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop serving a request; answer with the problem, if there is one."""

    id: Id
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Send:
    message: Message


Effect = Deliver | Fail | Begin | Feed | Stop | Send


@dataclass(slots=True)
class Counts:
    """What was absorbed instead of breaking the conversation."""

    late: int = 0
    """Replies to calls we had given up on."""
    unknown: int = 0
    """Replies and parts with an id nobody here knows: duplicates, mostly."""
    malformed: int = 0
    faults: int = 0
    """Bytes that were not even a frame."""
    untold: int = 0
    """Errors of notifications, which nobody is told."""


@dataclass(slots=True, eq=False)
class _Exchange:
    """One request and its answer, whoever asked."""

    id: Id
    ours: bool
    state: State
    timeout: float | None = None
    due: float = 0.0
    """When time is up. Each packet of a stream begins it anew, and the heap is put right later."""

    def step(self, step: Step) -> bool:
        """Move on. False where the table has no such step: it is absorbed."""
        then = (ASKED if self.ours else SERVED)[self.state].get(step)
        if then is None:
            return False
        self.state = then
        return True


class Conversation:
    """Both directions of one channel. One object, no I/O, no clock of its own."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._asked: dict[Id, _Exchange] = {}
        self._served: dict[Id, _Exchange] = {}
        self._abandoned: OrderedDict[Id, _Exchange] = OrderedDict()
        self._cut_short: OrderedDict[Id, None] = OrderedDict()
        """Requests of theirs that ended before their last part came: the rest is absorbed, also
        where it says the command again."""
        self._deadlines: list[tuple[float, int, _Exchange]] = []
        """A heap. Exchanges that ended before their time are skipped, and swept out at times."""
        self._serial = itertools.count()

    @property
    def calls(self) -> int:
        """How many calls of ours are waiting for an answer."""
        return len(self._asked)

    @property
    def serving(self) -> int:
        """How many requests of theirs have no answer yet."""
        return len(self._served)

    def ask(self, id: Id, now: float, timeout: float | None) -> None:
        """A request of ours goes out."""
        if id in self._asked:
            raise ValueError(f"a call with the id {id!r} is already open")
        self._asked[id] = exchange = _Exchange(id, True, State.OPEN)
        self._expect_by(exchange, now, timeout)

    def receive(self, message: Message, now: float) -> list[Effect]:
        """What a message that came means. Notifications have no state and mean nothing here."""
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
                self._cut_short.pop(id, None)  # nothing more comes
                return self._stepped(id, Step.CANCELLED, Stop(id, Problem.of(Condition.CANCELLED)))
            case Failure():
                self.counts.unknown += 1
            case Notification():
                pass
        return []

    def abandon(self, id: Id) -> list[Effect]:
        """We no longer want the answer to this call."""
        exchange = self._asked.get(id)
        if exchange is None or not exchange.step(Step.CANCELLED):
            return []
        self._give_up(exchange)
        return [Send(Cancel(id))]

    def is_served(self, id: Id) -> bool:
        """Whether a request still waits for an answer from us."""
        return id in self._served

    def answered(self, id: Id) -> bool:
        """We give the last answer to a request. False if it is not ours to give any more."""
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
        """A packet of a stream came or goes out: the time for it begins anew."""
        exchange = (self._asked if ours else self._served).get(id)
        if exchange is not None and exchange.timeout is not None:
            exchange.due = now + exchange.timeout

    def next_deadline(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None

    def renew_calls(self, now: float) -> None:
        """The time for every call of ours begins anew."""
        for id in self._asked:
            self.renew(id, now, ours=True)

    def expire(self, now: float, still: Callable[[Id], bool] = lambda id: False) -> list[Effect]:
        """What time ends: calls of ours, with a cancel for them, and requests of theirs, but for
        those whose time stands `still`: it begins anew."""
        effects: list[Effect] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, exchange = heapq.heappop(self._deadlines)
            if not exchange.ours and exchange.state in _WAITING and still(exchange.id):
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
        """No answer can come any more: every call fails. What they asked is still served."""
        effects: list[Effect] = [Fail(id, None) for id in self._asked]
        for exchange in (*self._asked.values(), *self._abandoned.values()):
            exchange.step(Step.CLOSED)
        self._asked.clear()
        self._abandoned.clear()
        return effects

    def close(self, tell: Problem | None = None) -> list[Effect]:
        """The end: every call fails, and nothing is served, with a word to them if there is one."""
        effects = self.hang_up() + [Stop(id, tell) for id in self._served]
        for exchange in self._served.values():
            exchange.step(Step.CLOSED)
        self._served.clear()
        self._deadlines.clear()
        return effects

    def _answered(self, id: Id, step: Step, effect: Effect) -> list[Effect]:
        """An answer came for a call of ours, or for one we have given up on, or for none."""
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
            if known.state is State.RECEIVING:  # a part may say the command again
                part = Part(request.id, request.data, request.more, request.datatype)
                return self.receive(part, now)
            problem = Problem.of(Condition.REQUEST, "A request with this id is being served.")
            return [Send(Failure(request.id, problem))]
        state = State.RECEIVING if request.more else State.SERVING
        self._served[request.id] = exchange = _Exchange(request.id, False, state)
        self._expect_by(exchange, now, request.timeout)
        return [Begin(request)]

    def _stepped(self, id: Id, step: Step, effect: Effect) -> list[Effect]:
        """Another packet for a request of theirs. What its state does not expect is counted."""
        exchange = self._served.get(id)
        if exchange is None or not exchange.step(step):
            self.counts.unknown += step is not Step.CANCELLED  # a cancel may always be too late
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
