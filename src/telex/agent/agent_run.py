"""One run from its start to its end: its events, questions, steering, cancellation and cost.

A run has two tasks. The work task runs the core, and may be cancelled at any await. The supervisor
task waits for the work task and then ends the run; the supervisor is never cancelled. So the end of
a run is stored and its last status is sent whatever happens to the work, even if it is cancelled
before its first step. After a cancel, `check` refuses everything that the core still tries. Events
that are still being stored at that time are awaited and sent before the last status, which is the
last message about a run.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.cores import ContextLeft, ModelCalled, RawEvent, TextDelta, TurnStopped
from telex.agent.feeds import EventPublisher, Notice
from telex.agent.limits import AGENT_CANCEL_SECONDS, AGENT_STEERED
from telex.agent.protocol import events, runs
from telex.agent.protocol.extensions import DeltaNotify, TodosUpdate
from telex.agent.protocol.runs import LlmCall, ModelTotals, RunSummary, SummaryDiagnostics, Usage
from telex.agent.questions import stored_answer
from telex.agent.run_replay import (
    STALE_QUESTION,
    Replay,
    ReplayDiverged,
    run_settings,
    with_steering,
)
from telex.agent.run_states import (
    EventOrder,
    EventOutOfOrder,
    EventPosition,
    RunPhase,
    RunPhases,
    RunTransition,
)
from telex.agent.store import RunEnded, Status, StoreError
from telex.agent.ui_connection import Departures
from telex.processes.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.agent.cores import Core, CoreContext, CoreOutput, RunInput
    from telex.agent.feeds import RunFeed
    from telex.agent.questions import OpenQuestion, Questions, UiAnswer
    from telex.agent.store import Store


log = logging.getLogger("telex.agent")

STOPPED_ANSWER = "Permission request was denied. Turn stopped; say what to do instead."
_WIRE_STATUS: Final[dict[RunPhase, runs.RunStatus]] = {
    RunPhase.RUNNING: "running",
    RunPhase.AWAITING_UI: "awaiting_ui",
    RunPhase.CANCELLING: "running",
    RunPhase.COMPLETED: "completed",
    RunPhase.ERROR: "error",
    RunPhase.CANCELLED: "cancelled",
}
FAILED_MESSAGE = "internal error; the log has the details"


class AgentRun:
    """One run. Call `begin` exactly once; await `ended`."""

    def __init__(
        self,
        run_id: str,
        session_id: str,
        store: Store,
        questions: Questions,
        costs: RunCosts | None = None,
        replay: Replay | None = None,
        meta: bytes | None = None,
    ) -> None:
        self.run_id = run_id
        self.session_id = session_id
        self.phases = RunPhases()
        self.costs = costs
        """None unless diagnostics are enabled."""
        self.replay = replay or Replay()
        """The stored events of a run that continues after a restart; empty for a new run."""
        self._meta = meta
        self._steered = deque(self.replay.unread_steering(run_settings(meta).steered))
        """Texts of `run.steer` that the core has not read yet."""
        self._steering = asyncio.Lock()
        self.publisher = EventPublisher(run_id, store, self.replay.last_seq)
        self.feeds = self.publisher.feeds
        self._store = store
        self._questions = questions
        self._order = EventOrder()
        self._context_left: int | None = None
        self._message: str | None = None
        self._work: asyncio.Task[None] | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._core_abandoned = asyncio.Event()
        self.suspended = False
        self.departures = Departures()
        self.awaiting_answer = asyncio.Event()
        """Set while the run awaits the answer to a question."""

    # Start and end.

    def begin(
        self,
        core: Core,
        asked: RunInput,
        context: CoreContext,
        on_end: Callable[[AgentRun], None],
    ) -> None:
        """Start both tasks. `on_end` is called once, after the end is stored and published."""
        self._work = asyncio.create_task(self._run_core(core, asked, context))
        self._supervisor = asyncio.create_task(self._supervise(self._work, on_end))

    @property
    def status(self) -> runs.RunStatus:
        """The status on the wire: `running` while a cancel is in progress."""
        return _WIRE_STATUS[self.phases.phase]

    async def cancel(self, reason: str | None = None) -> bool:
        """Stop the run and wait until it has ended. True if it ended as cancelled."""
        if self.phases.step(RunTransition.CANCEL):
            self._message = reason
            self._stop()
        await self.ended()
        return self.phases.phase is RunPhase.CANCELLED

    async def suspend(self) -> None:
        """Stop because the runtime ends. A run whose question may be answered later is stored as it
        is, to be resumed."""
        open_questions = self._questions.of_run(self.run_id)
        self.suspended = any(question.can_wait for question in open_questions)
        await self.cancel("the runtime ended")

    def _stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
        loop = asyncio.get_running_loop()
        self._cancel_timer = loop.call_later(AGENT_CANCEL_SECONDS, self._core_abandoned.set)

    async def ended(self) -> None:
        """Wait for the end of the run. Returns at once for a run that has not begun."""
        if self._supervisor is not None:
            await asyncio.wait({self._supervisor})

    async def ended_or_awaiting_answer(self) -> None:
        awaiting = asyncio.create_task(self.awaiting_answer.wait())
        ended = asyncio.create_task(self.ended())
        await asyncio.wait({awaiting, ended}, return_when=asyncio.FIRST_COMPLETED)
        for task in (awaiting, ended):
            task.cancel()

    async def _supervise(
        self, work: asyncio.Task[None], on_end: Callable[[AgentRun], None]
    ) -> None:
        abandoned = asyncio.create_task(self._core_abandoned.wait())
        await asyncio.wait({work, abandoned}, return_when=asyncio.FIRST_COMPLETED)
        abandoned.cancel()
        if self.phases.phase is RunPhase.CANCELLING:
            self._cancel_timer.cancel()
        try:
            await self._end(work)
        finally:
            on_end(self)

    async def _end(self, work: asyncio.Task[None]) -> None:
        await self.publisher.wait_sent()
        if not work.done():
            log.error("run %s: the core ignores its cancel; its actions are refused", self.run_id)
        if not (self.phases.ended or self.phases.step(RunTransition.STOPPED)):
            self.phases.step(RunTransition.FAILED)  # the work task was cancelled from outside
            self._message = self._message or FAILED_MESSAGE
        if not self.suspended:
            for question in self._questions.of_run(self.run_id):  # of a task that the core left
                await self._questions.withdraw(question)
            await self._store_last_steering()
            await self._store_end()
        if self.costs is not None:
            self.publisher.publish_notice("run.diagnostics", self.costs.summary(self.run_id))
        if not self.suspended:
            self.publish_status()
        for feed in self.feeds:
            feed.finish()

    async def _store_end(self) -> None:
        status = Status(self.phases.phase.value)
        try:
            await self._store.end_run(self.run_id, status, self._message)
        except RunEnded:
            pass  # the store has ended the run already
        except StoreError as problem:
            log.error("the end of run %s is not stored: %s", self.run_id, problem)

    async def _run_core(self, core: Core, asked: RunInput, context: CoreContext) -> None:
        try:
            self.publish_status()
            await self._consume(core, asked, context)
            await self.publisher.wait_stored()
            self.phases.step(RunTransition.DONE)
        except TurnStopped:
            await self._end_turn()
        except (StoreError, EventOutOfOrder, ReplayDiverged) as problem:
            log.warning("run %s failed: %s", self.run_id, problem)
            self._fail(str(problem))
        except Exception as error:
            if type(error).__module__.partition(".")[0] == "telex":  # its text is meant for users
                log.warning("run %s failed: %s", self.run_id, error)
                self._fail(str(error))
            else:
                log.exception("run %s failed", self.run_id)
                self._fail(FAILED_MESSAGE)

    async def _consume(self, core: Core, asked: RunInput, context: CoreContext) -> None:
        async with aclosing(core.run(asked, context)) as outputs:  # type: ignore[type-var]  # a generator
            async for output in outputs:
                await self._handle(output)
                if self._order.position is EventPosition.OVER:
                    return
        await self.emit(events.FinalEvent(""))

    async def _end_turn(self) -> None:
        try:
            await self.emit(events.FinalEvent(STOPPED_ANSWER))
            await self.publisher.wait_stored()
            self.phases.step(RunTransition.DONE)
        except (StoreError, EventOutOfOrder) as problem:
            self._fail(str(problem))

    def _fail(self, message: str) -> None:
        self._message = message
        self.phases.step(RunTransition.FAILED)

    # Events and notices.

    async def _handle(self, output: CoreOutput) -> None:
        self.check()
        match output:
            case TextDelta(kind, content):
                if self.replay.finished:  # else the whole event was sent before
                    self.publisher.publish_delta(f"{kind}.delta", DeltaNotify(self.run_id, content))
            case ContextLeft(percent):
                if percent != self._context_left:
                    self._context_left = percent
                    self.publisher.publish_notice(
                        "run.context", runs.RunContextNotify(self.run_id, percent)
                    )
            case ModelCalled(call):
                if self.costs is not None:
                    self.costs.add(call)
                    self.publisher.publish_notice(
                        "run.diagnostics", runs.LlmCallDiagnostics(self.run_id, call)
                    )
            case RawEvent(raw):
                await self._store_and_publish(bytes(raw), None)
            case _:
                await self.emit(output)

    async def emit(
        self, event: events.AgentEvent, meta: Mapping[str, object] | None = None
    ) -> None:
        """Store an event, then send it. An event of the replay is neither stored nor sent again."""
        encoded_meta = None if not meta else msgspec.json.encode(meta)
        await self._store_and_publish(msgspec.json.encode(event), encoded_meta)

    async def _store_and_publish(self, event: bytes, meta: bytes | None) -> None:
        await self.publisher.wait_for_room()
        self.check()
        kind = _kind(event)
        self._order.take(kind)
        if self.replay.matches_next(event):
            return
        if kind == "final":
            self._store_unread_steering()
        self.publisher.publish_event(event, meta)

    def _store_unread_steering(self) -> None:
        """Add the texts that the core has not read by its end to the history."""
        while self._steered:
            message = events.HiddenUserMessageEvent(self._steered.popleft())
            self.publisher.publish_event(msgspec.json.encode(message), None)

    async def _store_last_steering(self) -> None:
        try:
            self._store_unread_steering()
        except StoreError as problem:
            log.error("run %s: unread steering is not stored: %s", self.run_id, problem)
        await self.publisher.wait_sent()

    def publish_todos(self, todos: Any) -> None:
        update = TodosUpdate(self.session_id, todos, self.run_id)
        self.publisher.publish_notice("todos.update", update, lambda can: bool(can.supports_todos))

    def publish_status(self) -> None:
        self.publisher.publish_notice("run.status", self._status_notice())

    def send_status_to(self, feed: RunFeed) -> None:
        feed.add_notice(Notice("run.status", self._status_notice()))

    def _status_notice(self) -> runs.RunStatusNotify:
        message = self._message if self.phases.ended else None
        return runs.RunStatusNotify(self.run_id, self.status, message)

    def check(self) -> None:
        """Raise `CancelledError` unless the run may act. A core that swallowed its cancel gets it
        again here."""
        if not self.phases.may_act:
            raise asyncio.CancelledError(f"run {self.run_id} is {self.phases.phase.value}")

    # Questions.

    async def ask(
        self, method: str, question: msgspec.Struct, digest: bytes = b""
    ) -> UiAnswer | None:
        """Ask the UIs, and return the first answer. None: no UI can be asked."""
        await self.publisher.wait_stored()
        self.check()
        params = msgspec.json.encode(msgspec.structs.replace(question, run_id=self.run_id))
        if not digest and (closed := self.replay.next_answer(method, params)) is not None:
            return stored_answer(*closed)
        if not digest and self.replay.continues:
            return None  # no UI could be asked before the restart
        connected = any(feed.connection.can_be_asked(method) for feed in self.feeds)
        if not connected and not self.departures.can_answer(method):
            return None
        if (stored := self.replay.take_open_question(method, params, digest)) is not None:
            return await self._await_answer(self._questions.reopen(stored))
        await self._withdraw_stale()
        opened = await self._questions.open(self.run_id, method, params, digest)
        return await self._await_answer(opened)

    async def ready_to_act(self) -> None:
        """Wait until every event and question is stored. A crash after this ends the run: it cannot
        be resumed, because the tool may have had its effect."""
        await self.publisher.wait_stored()
        await self._withdraw_stale()

    async def _withdraw_stale(self) -> None:
        for stale in self.replay.take_stale_questions():
            await self._store.withdraw(stale.id, STALE_QUESTION)

    async def _await_answer(self, opened: OpenQuestion) -> UiAnswer:
        if not self.phases.step(RunTransition.ASKED):
            await run_shielded(self._questions.withdraw(opened))
            self.check()
        self.publish_status()
        opened.departed_can_answer = lambda: self.departures.can_answer(opened.question.method)
        for feed in list(self.feeds):
            self.offer(opened, feed)
        self.awaiting_answer.set()
        answer = await self._questions.wait(opened)
        self.awaiting_answer.clear()
        if not self.phases.step(RunTransition.ANSWERED):
            self.check()
        self.publish_status()
        return answer

    def offer(self, opened: OpenQuestion, feed: RunFeed) -> None:
        """Send a question to the UI of a feed, after the events that were published before it."""
        if feed.connection.can_be_asked(opened.question.method):
            opened.expect(feed.connection)
            feed.add_question(lambda: opened.send_to(feed.connection))

    # Steering.

    async def steer(self, text: str) -> bool:
        """Store a text for the core to read. False once the run has ended. Raises `NotKept`."""
        return await run_shielded(self._steer(text))

    async def _steer(self, text: str) -> bool:
        async with self._steering:  # the stored list grows by one text at a time
            if not self._can_be_steered():
                return False
            meta = with_steering(self._meta, text)
            try:
                await self._store.set_run_meta(self.run_id, meta)
            except RunEnded:
                return False
            self._meta = meta
            if not self._can_be_steered():
                return self.suspended  # the resumed run reads it
            self._steered.append(text)
            return True

    def _can_be_steered(self) -> bool:
        over = (
            self._order.position is EventPosition.OVER or self.phases.phase is RunPhase.CANCELLING
        )
        return not (over or self.phases.ended) and len(self._steered) < AGENT_STEERED

    def next_steering(self) -> str | None:
        """Return the oldest unread text; in a replay, only where the core read it before."""
        if not self.replay.finished:
            return self.replay.next_steering()
        return self._steered.popleft() if self._steered else None


class _Kind(msgspec.Struct):
    type: str


_KIND = msgspec.json.Decoder(_Kind)


def _kind(event: bytes) -> str:
    try:
        return _KIND.decode(event).type
    except msgspec.DecodeError as error:
        raise EventOutOfOrder(f"an event without a type: {error}") from error


_NOTHING = Usage(0, 0, 0)


class RunCosts:
    """The total cost of the model calls of one run, for `run.diagnostics`. Pure."""

    def __init__(self) -> None:
        self._calls: list[LlmCall] = []

    def add(self, call: LlmCall) -> None:
        self._calls.append(call)

    def summary(self, run_id: str) -> SummaryDiagnostics:
        models = dict.fromkeys(call.model for call in self._calls)
        by_model = {model: _sum([c for c in self._calls if c.model == model]) for model in models}
        whole = _sum(self._calls)
        return SummaryDiagnostics(
            run_id,
            RunSummary(
                whole.calls,
                whole.total_tokens,
                whole.input_tokens,
                whole.output_tokens,
                whole.cached_input_tokens,
                whole.cache_creation_tokens,
                whole.cost_usd,
                by_model,
            ),
        )


def _sum(calls: list[LlmCall]) -> ModelTotals:
    used = [call.usage or _NOTHING for call in calls]
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    return ModelTotals(
        len(calls),
        sum(usage.input_tokens for usage in used),
        sum(usage.output_tokens for usage in used),
        sum(usage.input_cached_tokens or 0 for usage in used),
        sum(usage.input_cache_creation_tokens or 0 for usage in used),
        sum(usage.total_tokens for usage in used),
        sum(costs) if costs else None,
    )
