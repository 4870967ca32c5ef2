"""Language models: one interface over the wire dialects of all providers.

    model = await registry.open("local")    # a `ModelRegistry`, which knows the configuration
    async with aclosing(model.stream(ModelRequest(system, messages, tools))) as events:
        async for event in events:
            match event:
                case TextDelta(kind, content): ...        # show it
                case ToolCallReady(call): ...             # execute it after `Finished`, not before
                case Retrying(): ...                      # withdraw what was shown of this answer
                case Usage(): ...                         # the tokens of this call
                case Finished(stop_reason, message): ...  # the whole answer; the last event

An answer is whole only if `Finished` came. Every other end raises a `ModelFailure` (`errors`)
that says what happened; nothing is yielded after it. A cancelled stream closes its connection at
once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from telex.agent.messages import (
    AssistantMessage,
    Message,
    TextDelta,
    ToolCallPart,
    ToolSpec,
)
from telex.agent.protocol.runs import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from telex.agent.models.errors import ModelFailure
    from telex.agent.protocol.sessions import ModelDetails

Effort: TypeAlias = Literal["none", "low", "medium", "high"]
StopReason: TypeAlias = Literal["stop", "tool_calls", "length", "refused"]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of one call. None: the default of the model."""

    max_output_tokens: int | None = None
    temperature: float | None = None
    effort: Effort | None = None
    """How long the model may reason before it answers."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The input of one call: instructions, conversation and tools."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: ModelSettings = field(default_factory=ModelSettings)
    thread: str = ""
    """The id of the thread. Providers that ask for one use it to find their cache of the prompt."""


@dataclass(frozen=True, slots=True)
class ToolCallReady:
    """A tool call whose arguments are complete. It is also part of the message of `Finished`, and
    must not be executed before that: the stream may still break."""

    call: ToolCallPart


@dataclass(frozen=True, slots=True)
class Retrying:
    """An attempt failed, and another one follows."""

    attempt: int
    """The number of the attempt that failed, from 1."""
    seconds: float
    """The wait before the next attempt."""
    reason: ModelFailure
    discarded: bool = False
    """Whether the failed attempt yielded a part of its answer. That part is void: a UI withdraws
    it, and the next attempt yields a whole answer."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is whole. Always the last event."""

    stop_reason: StopReason
    """`length`: the model reached its limit of tokens. `refused`: a filter stopped the answer."""
    message: AssistantMessage
    reported: str = ""
    """The reason in the provider's own word."""


ModelEvent: TypeAlias = TextDelta | ToolCallReady | Usage | Retrying | Finished


class LanguageModel(Protocol):
    """A model that can be called. One object serves all runs, also at the same time."""

    @property
    def name(self) -> str:
        """The name in the configuration, as in `[models.NAME]`."""
        ...

    @property
    def details(self) -> ModelDetails: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Call the model once, with retries where that is safe. Close the generator.

        Raises:
            ModelFailure: The answer is not whole; the class says why.
        """
        ...

    def estimate_tokens(self, request: ModelRequest) -> int:
        """Return how many tokens the input has, rather too many than too few."""
        ...
