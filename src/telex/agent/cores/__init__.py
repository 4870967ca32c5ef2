"""What decides in a run: a core is given what the person said, and yields what it does about it.

    class Core(Protocol):
        def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]: ...

It yields events; everything that has an effect it does through its context, which asks for
permission, emits the events of each call, and refuses once the run is cancelled. So a core needs to
know nothing of connections, storage or cancelling, and one that ignores a cancel can do no harm.

    builtin    no language model: obeys plain commands
    scripted   plays a file of steps, for tests and demos
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from telex.agent.protocol.events import AgentEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from msgspec import Raw

    from telex.agent.protocol.runs import LlmCall
    from telex.agent.protocol.sessions import ModelDetails
    from telex.agent.protocol.ui_requests import PickItem, UiConfirmResult


@dataclass(frozen=True, slots=True)
class RunInput:
    """What the person said. `compact`: make the context smaller first."""

    text: str
    compact: bool = False


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the text or reasoning that follows whole. Sent, never stored."""

    kind: Literal["text", "reasoning"]
    content: str


@dataclass(frozen=True, slots=True)
class ContextLeft:
    """How much room is left, sent when it changed."""

    percent: int


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """What one call of a model cost; for diagnostics alone."""

    call: LlmCall


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event as its JSON, with members that we do not know."""

    event: Raw


CoreOutput = AgentEvent | RawEvent | TextDelta | ContextLeft | ModelCalled


@dataclass(frozen=True, slots=True)
class ToolCallOutcome:
    """What came of a tool call. One that was denied with a reason is an error with that reason."""

    text: str
    is_error: bool = False


class TurnStopped(Exception):
    """The person said no and nothing else: the turn is over. A core lets it pass."""


class CoreContext(Protocol):
    """What a core can do. Every method may raise `TurnStopped` and `asyncio.CancelledError`."""

    @property
    def run_id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def ui_context(self) -> bytes | None:
        """Where the person works, as the UI sent it: an `UiContext` in JSON."""
        ...

    async def call(
        self, tool: str, arguments: Mapping[str, object] | bytes, title: str = ""
    ) -> ToolCallOutcome:
        """Call a tool, if it is permitted; its events are emitted on the way."""
        ...

    async def confirm(self, title: str, message: str) -> UiConfirmResult | None:
        """None where nobody can be asked; then it is a no."""
        ...

    async def prompt(self, title: str, message: str, *, secret: bool = False) -> str | None:
        """None where nobody answers."""
        ...

    async def pick(
        self, title: str, items: Sequence[PickItem], *, multi: bool = False
    ) -> list[str]:
        """Empty where nobody chooses."""
        ...

    async def steered(self) -> str | None:
        """What the person said meanwhile, oldest first."""
        ...


class Core(Protocol):
    """A way to think."""

    @property
    def name(self) -> str:
        """As `model.list` has it."""
        ...

    @property
    def details(self) -> ModelDetails: ...

    def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        """Until it has yielded `final`, or is closed."""
        ...
