"""One run from its start to its end: its events and messages, steering, cancellation and cost.

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
import time
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.conversation import to_stored, user_message
from telex.agent.cores import ContextLeft, ModelCalled, RawEvent, TextDelta, TurnStopped
from telex.agent.feeds import EventPublisher, Notice
from telex.agent.limits import AGENT_CANCEL_SECONDS, AGENT_STEERED
from telex.agent.messages import AssistantMessage, ReasoningPart, TextPart, UserMessage
from telex.agent.protocol import events, runs
from telex.agent.protocol.extensions import DeltaNotify, TodosUpdate
from telex.agent.protocol.runs import LlmCall, ModelTotals, RunSummary, SummaryDiagnostics, Usage
from telex.agent.run_settings import run_settings, with_steering
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
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from telex.agent.cores import Core, CoreOutput, RunInput
    from telex.agent.feeds import RunFeed
    from telex.agent.messages import Message
    from telex.agent.questions import Questions
    from telex.agent.run_context import RunContext
    from telex.agent.store import Store, StoredEvent


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


@dataclass(frozen=True, slots=True)
class RunLog:
    """The part of a run that is stored already; empty for a new run."""

    order: EventOrder = field(default_factory=EventOrder)
    """The position after its last event."""
    last_seq: int = -1
    steering_read: int = 0
    """The number of texts of `run.steer` that the core has read."""

    @staticmethod
    def of(events: Iterable[StoredEvent], messages: Sequence[Message]) -> RunLog:
        """Read the log of a run that is resumed. Raises `EventOutOfOrder`."""
        order, last_seq = EventOrder(), -1
        for event in events:
            _take(order, event.event)
            last_seq = event.seq
        return RunLog(order, last_seq, steering_read(messages))


def steering_read(messages: Sequence[Message]) -> int:
    """Count the messages of the person after the input of the run."""
    return max(0, sum(isinstance(message, UserMessage) for message in messages) - 1)


class AgentRun:
    """One run. Call `begin` exactly once; await `ended`."""

    def __init__(
        self,
        run_id: str,
        session_id: str,
        store: Store,
        questions: Questions,
        costs: RunCosts | None = None,
        meta: bytes | None = None,
        log: RunLog | None = None,
    ) -> None:
        self.run_id = run_id
        self.session_id = session_id
        self.phases = RunPhases()
        self._waits_because: str | None = None
        self.costs = costs
        """None unless diagnostics are enabled."""
        log = log or RunLog()
        self.order = log.order
        self._meta = meta
        self._steered = deque(run_settings(meta).steered[log.steering_read :])
        """Texts of `run.steer` that the core has not read yet."""
        self._steering = asyncio.Lock()
        self.publisher = EventPublisher(run_id, store, log.last_seq)
        self.feeds = self.publisher.feeds
        self._store = store
        self._questions = questions
        self._open_questions = 0
        self._model = ""
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
        context: RunContext,
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

    async def _run_core(self, core: Core, asked: RunInput, context: RunContext) -> None:
        try:
            self.publish_status()
            self._model = core.name
            await self._consume(core, asked, context)
            await self.publisher.wait_stored()
            self.phases.step(RunTransition.DONE)
        except TurnStopped:
            await self._end_turn()
        except (StoreError, EventOutOfOrder) as problem:
            log.info("run %s failed: %s", self.run_id, problem)
            self._fail(str(problem))
        except Exception as error:
            if type(error).__module__.partition(".")[0] == "telex":  # its text is meant for users
                log.info("run %s failed: %s", self.run_id, error)
                self._fail(str(error))
            else:
                log.exception("run %s failed", self.run_id)
                self._fail(FAILED_MESSAGE)

    async def _consume(self, core: Core, asked: RunInput, context: RunContext) -> None:
        async with aclosing(core.run(asked, context)) as outputs:  # type: ignore[type-var]  # a generator
            await context.finish_calls()
            async for output in outputs:
                await self._handle(output)
                if self.order.position is EventPosition.OVER:
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
                await self._store_and_publish(bytes(raw), None, None)
            case AssistantMessage():
                await self.emit_reasoning(output)
                await self.emit(events.FinalEvent(output.text), message=output)
            case events.TextEvent(content) | events.FinalEvent(content) if content:
                said = AssistantMessage((TextPart(content),), self._model)
                await self.emit(output, message=said)
            case _:
                await self.emit(output)

    async def emit_reasoning(self, message: AssistantMessage) -> None:
        for part in message.parts:
            if isinstance(part, ReasoningPart) and part.text:
                await self.emit(events.ReasoningEvent(part.text, _now()))

    async def emit(
        self,
        event: events.AgentEvent,
        meta: Mapping[str, object] | None = None,
        message: Message | None = None,
    ) -> None:
        """Store an event, with the message of the conversation that it completes; then send it."""
        await self._store_and_publish(
            msgspec.json.encode(event),
            None if not meta else msgspec.json.encode(meta),
            None if message is None else to_stored(message),
        )

    async def _store_and_publish(
        self, event: bytes, meta: bytes | None, message: bytes | None
    ) -> None:
        await self.publisher.wait_for_room()
        self.check()
        if _take(self.order, event) == "final":
            self._store_unread_steering()
        self.publisher.publish_event(event, meta, message)

    def _store_unread_steering(self) -> None:
        """Add the texts that the core has not read by its end to the history."""
        while self._steered:
            text = self._steered.popleft()
            event = msgspec.json.encode(events.HiddenUserMessageEvent(text))
            self.publisher.publish_event(event, None, to_stored(user_message(text)))

    async def _store_last_steering(self) -> None:
        try:
            self._store_unread_steering()
        except StoreError as problem:
            log.error("run %s: unread steering is not stored: %s", self.run_id, problem)
        await self.publisher.wait_sent()

    def publish_todos(self, todos: Any) -> None:
        update = TodosUpdate(self.session_id, todos, self.run_id)
        self.publisher.publish_notice("todos.update", update, lambda can: bool(can.supports_todos))

    def say_why_it_waits(self, why: str | None) -> None:
        """Send the status with the reason why the run waits; with None, without one."""
        self._waits_because = why
        self.publish_status()

    def publish_status(self) -> None:
        self.publisher.publish_notice("run.status", self._status_notice())

    def send_status_to(self, feed: RunFeed) -> None:
        feed.add_notice(Notice("run.status", self._status_notice()))

    def _status_notice(self) -> runs.RunStatusNotify:
        message = self._message if self.phases.ended else self._waits_because
        return runs.RunStatusNotify(self.run_id, self.status, message)

    def check(self) -> None:
        """Raise `CancelledError` unless the run may act. A core that swallowed its cancel gets it
        again here."""
        if not self.phases.may_act:
            raise asyncio.CancelledError(f"run {self.run_id} is {self.phases.phase.value}")

    # Questions: their state in this run. `Questions` asks them.

    def question_opened(self) -> bool:
        """Count a question that is about to be sent. False: the run may not ask any more."""
        if not self.phases.step(RunTransition.ASKED):
            return False
        self._open_questions += 1
        if self._open_questions == 1:
            self.publish_status()
            self.awaiting_answer.set()
        return True

    def question_closed(self) -> None:
        self._open_questions -= 1
        if not self._open_questions:
            self.awaiting_answer.clear()
            if self.phases.step(RunTransition.ANSWERED):
                self.publish_status()

    # Steering.

    async def steer(self, text: str) -> bool:
        """Store a text for the core to read. False once the run has ended. Raises `NotStorable`."""
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
        over = self.order.position is EventPosition.OVER or self.phases.phase is RunPhase.CANCELLING
        return not (over or self.phases.ended) and len(self._steered) < AGENT_STEERED

    @property
    def has_steering(self) -> bool:
        return bool(self._steered)

    def next_steering(self) -> str | None:
        """Return the oldest unread text."""
        return self._steered.popleft() if self._steered else None


class _EventHead(msgspec.Struct):
    """The members of an event that its place in the order depends on."""

    type: str
    step_id: object = None
    tool_call_id: object = None


_HEAD = msgspec.json.Decoder(_EventHead)


def _take(order: EventOrder, event: bytes) -> str:
    """Move to the position after an event, and return its kind."""
    try:
        head = _HEAD.decode(event)
    except msgspec.DecodeError as error:
        raise EventOutOfOrder(f"an event without a type: {error}") from error
    step_id = head.step_id if isinstance(head.step_id, str) else None
    call_id = head.tool_call_id if isinstance(head.tool_call_id, str) else None
    order.take(head.type, step_id, call_id)
    return head.type


def _now() -> int:
    return time.time_ns() // 1_000_000


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
