"""One run from its start to its end: what it tells, what it asks, and how it is stopped.

Two tasks. The work is the core's, and may be cancelled at any await; the supervisor waits for it
and ends the run, and is never cancelled. So a run has its end in the store and its last status on
the wire whatever happens to the work, even before its first step. After a cancel the run refuses
whatever its core still tries (`check`). Events that are on their way to the store then (`telling`)
are waited for, and sent before the last status: nothing comes after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.away import Away
from telex.agent.cores import ContextLeft, Delta, ModelCalled, RawEvent, TurnStopped
from telex.agent.feeds import Notice
from telex.agent.questions import answer_of
from telex.agent.recalling import STALE, CannotGoOn, Recall
from telex.agent.run_states import Order, OutOfOrder, Phase, Phases, Place, Step
from telex.agent.store import RunEnded, Status, StoreProblem
from telex.agent.telling import Telling
from telex.agent.uninterrupted import to_the_end
from telex.protocols.agent_ui import events, running
from telex.protocols.agent_ui.extensions import DeltaNotify, TodosUpdate
from telex.wire.limits import AGENT_CANCEL_SECONDS, AGENT_STEERED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.agent.cores import Context, Core, Input, Said
    from telex.agent.feeds import Feed
    from telex.agent.questions import Answer, Open, Questions
    from telex.agent.spending import Spending
    from telex.agent.store import Store

log = logging.getLogger("telex.agent")

STOPPED = "Permission request was denied. Turn stopped; say what to do instead."
_TOLD: Final[dict[Phase, running.RunStatus]] = {
    Phase.RUNNING: "running",
    Phase.AWAITING_UI: "awaiting_ui",
    Phase.CANCELLING: "running",
    Phase.COMPLETED: "completed",
    Phase.ERROR: "error",
    Phase.CANCELLED: "cancelled",
}
FAILED = "something went wrong inside; the log has the details"


class Run:
    """`begin` it once; `cancel` it at most; `ended` waits."""

    def __init__(
        self,
        run_id: str,
        session_id: str,
        store: Store,
        questions: Questions,
        spending: Spending | None = None,
        recall: Recall | None = None,
        meta: bytes | None = None,
    ) -> None:
        self.run_id = run_id
        self.session_id = session_id
        self.phases = Phases()
        self.steered: deque[str] = deque()
        """What the person said meanwhile, until the core takes it."""
        self.meta = meta
        """As it is stored."""
        self.steering = asyncio.Lock()
        self.spent = spending
        """Where diagnostics are asked for."""
        self.recall = recall or Recall()
        """What it did before a restart; nothing, mostly."""
        self.telling = Telling(run_id, store, self.recall.last_seq)
        self.feeds = self.telling.feeds
        self._store = store
        self._questions = questions
        self._order = Order()
        self._context_left: int | None = None
        self._message: str | None = None
        self._work: asyncio.Task[None] | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._left_behind = asyncio.Event()
        self.suspended = False
        self.away = Away()
        self.waits = asyncio.Event()
        """Set while it waits for an answer."""

    # Its life.

    def begin(
        self, core: Core, asked: Input, context: Context, then: Callable[[Run], None]
    ) -> None:
        self._work = asyncio.create_task(self._think(core, asked, context))
        self._supervisor = asyncio.create_task(self._supervise(self._work, then))

    @property
    def status(self) -> running.RunStatus:
        """As it is told: a run that is being cancelled runs until nothing of it does."""
        return _TOLD[self.phases.phase]

    async def cancel(self, reason: str | None = None) -> bool:
        """Stop it, and wait until nothing of it runs; whether it was this that ended it."""
        if self.phases.step(Step.CANCEL):
            self._message = reason
            self._stop()
        await self.ended()
        return self.phases.phase is Phase.CANCELLED

    async def suspend(self) -> None:
        """The runtime ends. What waits for an answer that may come later is left as it is."""
        self.suspended = any(one.can_wait for one in self._questions.of_run(self.run_id))
        await self.cancel("the runtime ended")

    def _stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(AGENT_CANCEL_SECONDS, self._left_behind.set)

    async def ended(self) -> None:
        if self._supervisor is not None:
            await asyncio.wait({self._supervisor})

    async def ended_or_waits(self) -> None:
        waits = asyncio.create_task(self.waits.wait())
        over = asyncio.create_task(self.ended())
        await asyncio.wait({waits, over}, return_when=asyncio.FIRST_COMPLETED)
        for task in (waits, over):
            task.cancel()

    async def _supervise(self, work: asyncio.Task[None], then: Callable[[Run], None]) -> None:
        leaving = asyncio.create_task(self._left_behind.wait())
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if self.phases.phase is Phase.CANCELLING:
            self._patience.cancel()
        try:
            await self._end(work)
        finally:
            then(self)

    async def _end(self, work: asyncio.Task[None]) -> None:
        await self.telling.sent()
        if not work.done():
            log.error("run %s: its core does not stop; what it does is refused", self.run_id)
        if not (self.phases.ended or self.phases.step(Step.STOPPED)):
            self.phases.step(Step.FAILED)  # cancelled by somebody who is not us
            self._message = self._message or FAILED
        if not self.suspended:
            for one in self._questions.of_run(self.run_id):  # of a task that the core left
                await self._questions.drop(one)
            await self._tell_the_rest()
            await self._store_end()
        if self.spent is not None:
            self.telling.notice("run.diagnostics", self.spent.summary(self.run_id))
        if not self.suspended:
            self.tell_status()
        for feed in self.feeds:
            feed.finish()

    async def _store_end(self) -> None:
        status = Status(self.phases.phase.value)
        try:
            await self._store.end_run(self.run_id, status, self._message)
        except RunEnded:
            pass  # the store ended it: it is as it should be
        except StoreProblem as problem:
            log.error("the end of run %s is not stored: %s", self.run_id, problem)

    async def _think(self, core: Core, asked: Input, context: Context) -> None:
        try:
            self.tell_status()
            await self._play(core, asked, context)
            await self.telling.settled()
            self.phases.step(Step.DONE)
        except TurnStopped:
            await self._stopped()
        except (StoreProblem, OutOfOrder, CannotGoOn) as problem:
            log.warning("run %s failed: %s", self.run_id, problem)
            self._fail(str(problem))
        except Exception as error:
            if type(error).__module__.startswith("telex."):  # a sentence of ours
                log.warning("run %s failed: %s", self.run_id, error)
                self._fail(str(error))
            else:
                log.exception("run %s failed", self.run_id)
                self._fail(FAILED)

    async def _play(self, core: Core, asked: Input, context: Context) -> None:
        async with aclosing(core.run(asked, context)) as said:  # type: ignore[type-var]  # a generator
            async for one in said:
                await self._take(one)
                if self._order.place is Place.OVER:
                    return
        await self.emit(events.Final(""))

    async def _stopped(self) -> None:
        try:
            await self.emit(events.Final(STOPPED))
            await self.telling.settled()
            self.phases.step(Step.DONE)
        except (StoreProblem, OutOfOrder) as problem:
            self._fail(str(problem))

    def _fail(self, message: str) -> None:
        self._message = message
        self.phases.step(Step.FAILED)

    # What it tells.

    async def _take(self, said: Said) -> None:
        self.check()
        match said:
            case Delta(kind, content):
                if self.recall.over:  # else the whole has been told
                    self.telling.delta(f"{kind}.delta", DeltaNotify(self.run_id, content))
            case ContextLeft(percent):
                if percent != self._context_left:
                    self._context_left = percent
                    self.telling.notice(
                        "run.context", running.RunContextNotify(self.run_id, percent)
                    )
            case ModelCalled(call):
                if self.spent is not None:
                    self.spent.add(call)
                    self.telling.notice(
                        "run.diagnostics", running.LlmCallDiagnostics(self.run_id, call)
                    )
            case RawEvent(raw):
                await self._store_and_tell(bytes(raw), None)
            case _:
                await self.emit(said)

    async def emit(self, event: events.Event, meta: Mapping[str, object] | None = None) -> None:
        """Store an event, then send it."""
        kept = None if not meta else msgspec.json.encode(meta)
        await self._store_and_tell(msgspec.json.encode(event), kept)

    async def _store_and_tell(self, event: bytes, meta: bytes | None) -> None:
        await self.telling.room()
        self.check()
        kind = _kind(event)
        self._order.take(kind)
        if self.recall.told(event):
            return
        if kind == "final":
            self._tell_untaken()
        self.telling.event(event, meta)

    def _tell_untaken(self) -> None:
        """What the person said and the core did not hear before its end: still it was said."""
        while self.steered:
            said = events.HiddenUserMessage(self.steered.popleft())
            self.telling.event(msgspec.json.encode(said), None)

    async def _tell_the_rest(self) -> None:
        try:
            self._tell_untaken()
        except StoreProblem as problem:
            log.error("run %s: what was said to it is not stored: %s", self.run_id, problem)
        await self.telling.sent()

    def tell_todos(self, todos: Any) -> None:
        told = TodosUpdate(self.session_id, todos, self.run_id)
        self.telling.notice("todos.update", told, lambda can: bool(can.supports_todos))

    def tell_status(self) -> None:
        self.telling.notice("run.status", self._now())

    def tell_status_to(self, feed: Feed) -> None:
        feed.notice(Notice("run.status", self._now()))

    def _now(self) -> running.RunStatusNotify:
        message = self._message if self.phases.ended else None
        return running.RunStatusNotify(self.run_id, self.status, message)

    def check(self) -> None:
        """Whether it may act. A core that swallowed its cancel hears of it again here."""
        if not self.phases.may_act:
            raise asyncio.CancelledError(f"run {self.run_id} is {self.phases.phase.value}")

    # What it asks.

    async def ask(self, method: str, params: bytes, digest: bytes = b"") -> Answer | None:
        """None: nobody is there who could be asked."""
        await self.telling.settled()
        self.check()
        if not digest and (closed := self.recall.closed(method, params)) is not None:
            return answer_of(*closed)
        if not digest and self.recall.unasked:
            return None
        here = any(feed.connection.can_be_asked(method) for feed in self.feeds)
        if not here and not self.away.may_answer(method):
            return None
        if (open_since := self.recall.question(method, params, digest)) is not None:
            return await self._await_answer(self._questions.adopt(open_since))
        await self._withdraw_stale()
        one = await self._questions.begin(self.run_id, method, params, digest)
        return await self._await_answer(one)

    async def ready_to_act(self) -> None:
        """The store knows all that was told and asked; a crash from here on is the run's end."""
        await self.telling.settled()
        await self._withdraw_stale()

    async def _withdraw_stale(self) -> None:
        for stale in self.recall.stale():
            await self._store.withdraw(stale.id, STALE)

    async def _await_answer(self, one: Open) -> Answer:
        if not self.phases.step(Step.ASKED):
            await to_the_end(self._questions.drop(one))
            self.check()
        self.tell_status()
        one.may_return = lambda: self.away.may_answer(one.question.method)
        for feed in list(self.feeds):
            self.offer(one, feed)
        self.waits.set()
        answer = await self._questions.wait(one)
        self.waits.clear()
        if not self.phases.step(Step.ANSWERED):
            self.check()
        self.tell_status()
        return answer

    def offer(self, one: Open, feed: Feed) -> None:
        """Put a question to one UI, after what it is about."""
        if feed.connection.can_be_asked(one.question.method):
            one.expect(feed.connection)
            feed.question(lambda: one.put(feed.connection))

    # What is said to it.

    def can_be_steered(self) -> bool:
        over = self._order.place is Place.OVER or self.phases.phase is Phase.CANCELLING
        return not (over or self.phases.ended) and len(self.steered) < AGENT_STEERED

    def take(self) -> str | None:
        """What was said meanwhile, oldest first; after a restart, where it was heard before."""
        if not self.recall.over:
            return self.recall.steered()
        return self.steered.popleft() if self.steered else None


class _Kind(msgspec.Struct):
    type: str


_KIND = msgspec.json.Decoder(_Kind)


def _kind(event: bytes) -> str:
    try:
        return _KIND.decode(event).type
    except msgspec.DecodeError as error:
        raise OutOfOrder(f"an event without a type: {error}") from error
