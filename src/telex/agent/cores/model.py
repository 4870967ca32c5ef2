"""The core of a language model: it calls the model, runs the tools that the model asks for, and
calls the model again with their results, until the model has its answer.

    model ─> tool calls ─> results ─> model ─> … ─> answer

Before a call the conversation is compacted if it fills the context window. The calls of one run are
bounded in number, tokens and cost (`RunBounds`); a run that reaches a bound ends and says so. Texts
of `run.steer` are read between two calls. The conversation is in the store, so the core has no
state of its own: after a restart it continues where the conversation ends.
"""

from __future__ import annotations

import logging
import re
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from telex.agent.compaction import SUMMARY_TASK, cut_index, summary_text, transcript
from telex.agent.conversation import user_message
from telex.agent.cores import ContextLeft, ModelCalled, TextDelta
from telex.agent.limits import AGENT_MODEL_STEPS
from telex.agent.messages import (
    AssistantMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    UserMessage,
    replace_images,
)
from telex.agent.models import Finished, ModelRequest, ModelSettings, Retrying
from telex.agent.models.errors import ContextTooLong, ModelFailure
from telex.agent.protocol import events
from telex.agent.protocol.runs import CacheUse, LlmCall, Usage
from telex.agent.tools.tool import new_id
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence

    from telex.agent.cores import CoreContext, CoreOutput, RunInput
    from telex.agent.messages import Message, ToolSpec
    from telex.agent.models import LanguageModel, StopReason
    from telex.agent.protocol.sessions import ModelDetails

log = logging.getLogger("telex.agent")

COMPACT_AT: Final = 0.85
"""The part of the context window at which a conversation is compacted: the rest is for the answer,
and for a result of a tool."""
KEEP: Final = 0.25
"""The part of the context window that the kept messages may have after a compaction."""
_UNKNOWN_WINDOW: Final = 128_000
"""Tokens of a context window that nobody configured. It bounds what a compaction keeps."""
NOT_SEEN: Final = TextPart("[an image, which this model does not see]")
_ENDS: Final[dict[StopReason, str]] = {
    "length": "[The answer is cut off: the model reached its limit of output tokens.]",
    "refused": "[The provider stopped the answer by its filter.]",
}
_FAILURE_KINDS: Final[
    dict[str, Literal["rate_limit", "overloaded", "timeout", "network", "provider"]]
] = {
    "rate_limited": "rate_limit",
    "provider_failed": "overloaded",
    "timed_out": "timeout",
    "unreachable": "network",
    "stream_ended_early": "network",
}


@dataclass(frozen=True, slots=True)
class RunBounds:
    """The most that one run may spend; None for no bound."""

    steps: int = AGENT_MODEL_STEPS
    """Calls of the model."""
    tokens: int | None = None
    cost_usd: float | None = None
    """Needs a model whose costs are known."""


class CostUnknown(Exception):
    """A run has a bound for its cost, and the costs of its model are not configured."""


class ModelCore:
    """A core for one language model."""

    def __init__(
        self,
        model: LanguageModel,
        provider: str,
        cost: Callable[[Usage], float | None] = lambda usage: None,
        *,
        settings: ModelSettings | None = None,
        bounds: RunBounds | None = None,
        attempts: int = 1,
    ) -> None:
        """
        Args:
            cost: Returns the price of a call in US dollars; None if it is unknown.
            attempts: How often the model tries a call; for the event `llm.retry`.
        """
        self.model = model
        self.provider = provider
        self.cost = cost
        self.settings = settings or ModelSettings()
        self.bounds = bounds or RunBounds()
        self.attempts = attempts

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def details(self) -> ModelDetails:
        return self.model.details

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        if self.bounds.cost_usd is not None and self.cost(Usage(1, 1, 2)) is None:
            raise CostUnknown(
                f"the costs of {self.name} are not known, so --max-cost cannot be kept; add costs "
                f"to [models.{self.name}], or leave --max-cost out"
            )
        turn = _ModelTurn(self, context, await context.instructions(), await context.tools())
        if asked.compact and not turn.calls:
            async with aclosing(turn.compact(forced=True)) as outputs:
                async for output in outputs:
                    yield output
            if not asked.text.strip():
                return
        while True:
            while await context.steered() is not None:
                pass  # it is part of the conversation now
            if (reached := turn.reached_bound()) is not None:
                yield events.FinalEvent(reached)
                return
            async with aclosing(turn.call()) as outputs:
                async for output in outputs:
                    yield output
            answer = turn.answer
            if answer.tool_calls or context.has_steering:
                await context.step(answer)
                turn.use_tools(await context.tools())
            else:
                yield _with_end(answer, turn.stop_reason)
                return


@dataclass(slots=True)
class _ModelTurn:
    """The calls of one run."""

    core: ModelCore
    context: CoreContext
    system: str
    tools: tuple[ToolSpec, ...]
    calls: int = field(init=False)
    """Calls of the model in this run, also before a restart."""
    answer: AssistantMessage = field(init=False)
    stop_reason: StopReason = "stop"
    _names: _ToolNames = field(init=False)
    _window: int | None = field(init=False)
    """The context window; if the provider refused a conversation, at most the size of that."""
    _without_messages: int = field(init=False)
    """The tokens of the instructions and tools."""
    _tokens: int = 0
    _cost: float = 0.0
    _correction: float = 1.0
    """The real number of tokens of the last input, divided by its estimate."""

    def __post_init__(self) -> None:
        self._window = self.core.details.context_window
        said = self.context.run_messages
        self.calls = sum(isinstance(message, AssistantMessage) for message in said)
        self._names = _ToolNames(tool.name for tool in self.tools)
        self._without_messages = self.core.model.estimate_tokens(self._request(()))

    def use_tools(self, tools: tuple[ToolSpec, ...]) -> None:
        """Offer these tools from now on: those of a server may change. Names that the model has
        seen stay as they are."""
        if tools == self.tools:
            return
        self.tools = tools
        self._without_messages = self.core.model.estimate_tokens(self._request(()))

    def reached_bound(self) -> str | None:
        """Return what to say if the run may not call the model again."""
        bounds = self.core.bounds
        if self.calls >= bounds.steps:
            calls = "1 call" if bounds.steps == 1 else f"{bounds.steps} calls"
            return _bound_text(f"{calls} of the model", "--max-steps")
        if bounds.tokens is not None and self._tokens >= bounds.tokens:
            return _bound_text(f"{bounds.tokens} tokens", "--max-tokens")
        if bounds.cost_usd is not None and self._cost >= bounds.cost_usd:
            return _bound_text(f"{bounds.cost_usd:g} US dollars", "--max-cost")
        return None

    # A call.

    async def call(self) -> AsyncGenerator[CoreOutput, None]:
        """Call the model with the conversation, and set `answer`. Compact it if it is too long: by
        its size, or because the provider says so."""
        compacted = False
        while True:
            messages = await self.context.messages()
            size = await self._size(messages)
            if not compacted and self._window is not None and size > COMPACT_AT * self._window:
                compacted = True
                async with aclosing(self.compact()) as outputs:
                    async for output in outputs:
                        yield output
                continue
            try:
                async with aclosing(self._call(self._request(messages))) as outputs:
                    async for output in outputs:
                        yield output
                return
            except ContextTooLong:
                if compacted:
                    raise
                self._window = int(min(self._window or inf, size))

    def _request(self, messages: Sequence[Message]) -> ModelRequest:
        tools = tuple(replace(tool, name=self._names.to_wire(tool.name)) for tool in self.tools)
        thread = self.context.session_id
        return ModelRequest(self.system, self._to_wire(messages), tools, self.core.settings, thread)

    async def _call(self, request: ModelRequest) -> AsyncGenerator[CoreOutput, None]:
        self.calls += 1
        estimate = self.core.model.estimate_tokens(request)
        call = _Call(self.core, self.context.run_id, self.calls - 1)
        try:
            async with aclosing(self.core.model.stream(request)) as stream:
                async for event in stream:
                    match event:
                        case TextDelta():
                            yield event
                        case Retrying():
                            yield call.retry_event(event)
                        case Usage():
                            call.usage = event
                        case Finished(stop_reason, message):
                            self.stop_reason = stop_reason
                            self.answer = self._from_wire(message, request.messages)
        except ModelFailure as failure:
            if failure.partial is not None and failure.partial.text:
                yield events.TextEvent(failure.partial.text, _now())  # it was shown in pieces
            raise
        self._count(call, estimate)
        yield ModelCalled(call.diagnostics(self.stop_reason))
        used = estimate if call.usage is None else call.usage.total_tokens
        if self._window is not None:
            yield ContextLeft(max(0, min(100, round(100 * (1 - used / self._window)))))

    def _count(self, call: _Call, estimate: int) -> None:
        spent = call.usage
        if spent is None:  # a server that does not count must not make a run boundless
            output = self.core.model.estimate_tokens(ModelRequest("", (self.answer,)))
            spent = Usage(estimate, output, estimate + output)
        elif spent.input_tokens and estimate:
            self._correction = min(1.5, max(0.25, spent.input_tokens / estimate))
        self._tokens += spent.total_tokens
        self._cost += self.core.cost(spent) or 0.0

    # The context window.

    async def _size(self, messages: Sequence[Message]) -> float:
        """Return the tokens of a call with these messages, in all likelihood."""
        return self._without_messages * self._correction + sum(await self._sizes(messages))

    async def _sizes(self, messages: Sequence[Message]) -> list[float]:
        """Return the tokens of each message. In a thread: 100,000 messages take a second."""
        estimate, correction = self.core.model.estimate_tokens, self._correction
        return await run_in_thread(
            lambda _: [estimate(ModelRequest("", (one,))) * correction for one in messages]
        )

    async def compact(self, *, forced: bool = False) -> AsyncGenerator[CoreOutput, None]:
        """Replace the beginning of the conversation by a summary that the model writes; if it is
        forced, all but the input of this run. A summary that fails leaves the conversation as it
        is."""
        yield events.CompactionStartEvent(_now())
        messages = await self.context.messages()
        window = self._window or _UNKNOWN_WINDOW
        sizes = await self._sizes(messages)
        at = len(messages) - 1 if forced else cut_index(messages, sizes, KEEP * window)
        removed, kept = messages[:at], messages[at:]
        summary = ""
        if len(removed) > 1:
            # A token has at least one byte, so the transcript fits.
            text = f"{SUMMARY_TASK}\n\n{transcript(removed, window // 2)}"
            request = ModelRequest(self.system, (user_message(text),), (), self.core.settings)
            try:
                async with aclosing(self._call(request)) as outputs:
                    async for output in outputs:
                        if isinstance(output, events.LlmRetryEvent | ModelCalled | ContextLeft):
                            yield output
                summary = self.answer.text.strip()
            except ModelFailure as failure:
                log.warning("run %s: no summary: %s", self.context.run_id, failure)
        if summary:
            text = summary_text(summary, removed, kept, self.context.open_todos)
            await self.context.compact(text, len(kept))
        yield events.CompactionCompleteEvent(_now(), compacted=bool(summary))

    # The form of the wire.

    def _to_wire(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages as a provider takes them: with names of tools that it allows, and
        without messages that have nothing for a model."""
        return tuple(
            self._renamed(one, self._names.to_wire) if isinstance(one, AssistantMessage) else one
            for one in self._seen(messages)
            if _has_content(one)
        )

    def _seen(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages without images that the model cannot see: another one could."""
        if self.core.details.supports_images is not False:
            return messages
        return replace_images(messages, lambda part: True, NOT_SEEN)

    def _from_wire(self, message: AssistantMessage, before: Sequence[Message]) -> AssistantMessage:
        """Return an answer with the real names of tools, and ids of calls that are new in the
        conversation: some servers number the calls of each answer from 0."""
        used = {
            call.id
            for one in before
            if isinstance(one, AssistantMessage)
            for call in one.tool_calls
        }
        parts: list[TextPart | ReasoningPart | ToolCallPart] = []
        for part in self._renamed(message, self._names.from_wire).parts:
            if isinstance(part, ToolCallPart):
                if part.id in used:
                    part = replace(part, id=f"{part.id}_{new_id()[:8]}")
                used.add(part.id)
            parts.append(part)
        return replace(message, parts=tuple(parts))

    def _renamed(self, message: AssistantMessage, name: Callable[[str], str]) -> AssistantMessage:
        parts = tuple(
            replace(part, name=name(part.name)) if isinstance(part, ToolCallPart) else part
            for part in message.parts
        )
        return replace(message, parts=parts)


def _has_content(message: Message) -> bool:
    match message:
        case UserMessage(parts):
            return any(not isinstance(part, TextPart) or part.text for part in parts)
        case AssistantMessage():
            return bool(message.text or message.tool_calls)
    return True


def _with_end(answer: AssistantMessage, stop_reason: StopReason) -> AssistantMessage:
    """Add to an answer that it is not whole, if it is not."""
    if (note := _ENDS.get(stop_reason)) is None:
        return answer
    gap = "\n\n" if answer.text else ""
    return replace(answer, parts=(*answer.parts, TextPart(gap + note)))


def _bound_text(bound: str, option: str) -> str:
    return (
        f"Stopped: the run reached its bound of {bound} ({option}). The work may be unfinished; "
        "send a message to continue."
    )


_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_CHARS: Final = 64


class _ToolNames:
    """Names of tools as all providers allow them, and back. A tool of a plugin has a dot."""

    def __init__(self, names: Iterable[str]) -> None:
        self._wire: dict[str, str] = {}
        self._real: dict[str, str] = {}
        for name in names:
            self.to_wire(name)

    def to_wire(self, name: str) -> str:
        if (known := self._wire.get(name)) is not None:
            return known
        wire = short = _NOT_IN_NAMES.sub("_", name)[:_NAME_CHARS] or "_"
        number = 1
        while wire in self._real:
            number += 1
            wire = f"{short[: _NAME_CHARS - 4]}_{number}"
        self._wire[name], self._real[wire] = wire, name
        return wire

    def from_wire(self, wire: str) -> str:
        return self._real.get(wire, wire)


class _Call:
    """The facts of one call, for `run.diagnostics`."""

    def __init__(self, core: ModelCore, run_id: str, number: int) -> None:
        self._core = core
        self._run_id = run_id
        self._number = number
        self._began, self._since = datetime.now(UTC), time.monotonic()
        self.usage: Usage | None = None

    @property
    def cost(self) -> float | None:
        return None if self.usage is None else self._core.cost(self.usage)

    def retry_event(self, retrying: Retrying) -> events.LlmRetryEvent:
        asked = retrying.reason.retry_after is not None
        return events.LlmRetryEvent(
            self._core.provider,
            _FAILURE_KINDS.get(retrying.reason.code, "provider"),
            retrying.attempt + 1,
            max(self._core.attempts, retrying.attempt + 1),
            round(retrying.seconds * 1000),
            "retry-after" if asked else "backoff",
        )

    def diagnostics(self, stop_reason: StopReason) -> LlmCall:
        spent = time.monotonic() - self._since
        return LlmCall(
            self._run_id,
            self._number,
            self._core.name,
            _timestamp(self._began),
            _timestamp(datetime.now(UTC)),
            round(spent * 1000),
            _cache_use(self.usage),
            self._core.provider,
            stop_reason,
            self.usage,
            self.cost,
        )


def _cache_use(usage: Usage | None) -> CacheUse:
    if usage is None or usage.input_cached_tokens is None:
        return CacheUse()
    read, written = usage.input_cached_tokens, usage.input_cache_creation_tokens or 0
    ratio = read / usage.input_tokens if usage.input_tokens else None
    return CacheUse("hit" if read else "miss", read, written, ratio)


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _now() -> int:
    return time.time_ns() // 1_000_000
