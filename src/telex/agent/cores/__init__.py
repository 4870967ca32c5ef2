"""The interface of cores: a core gets the input of the person, and decides what a run does.

    class Core(Protocol):
        def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]: ...

A core yields events. Every action with an effect goes through its context, which asks for
permission, emits the events of each call, and refuses after the run is cancelled. So a core needs
no knowledge of connections, storage or cancellation, and a core that ignores a cancel can do no
harm.

    builtin    no language model: executes plain commands
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
    """The input of the person. `compact`: compact the context first."""

    text: str
    compact: bool = False


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a text or reasoning event, which follows whole. Sent, never stored."""

    kind: Literal["text", "reasoning"]
    content: str


@dataclass(frozen=True, slots=True)
class ContextLeft:
    """How much of the context window is left. Sent when it has changed."""

    percent: int


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """The cost of one model call; only for diagnostics."""

    call: LlmCall


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event as JSON, which may have members that no type in `protocol.events` has."""

    event: Raw


CoreOutput = AgentEvent | RawEvent | TextDelta | ContextLeft | ModelCalled


@dataclass(frozen=True, slots=True)
class ToolCallOutcome:
    """The result of a tool call. A call denied with a reason is an error with that reason."""

    text: str
    is_error: bool = False


class TurnStopped(Exception):
    """The person denied a call without a reason, which ends the turn. A core must not catch it."""


class CoreContext(Protocol):
    """The actions of a core. Every method may raise `TurnStopped` and `asyncio.CancelledError`."""

    @property
    def run_id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def ui_context(self) -> bytes | None:
        """The context that the UI sent (open file, selection): a `UiContext` in JSON."""
        ...

    async def call(
        self, tool: str, arguments: Mapping[str, object] | bytes, title: str = ""
    ) -> ToolCallOutcome:
        """Call a tool if it is permitted, and emit the events of the call."""
        ...

    async def confirm(self, title: str, message: str) -> UiConfirmResult | None:
        """Ask a yes-or-no question. None, which counts as no, if no UI can be asked."""
        ...

    async def prompt(self, title: str, message: str, *, secret: bool = False) -> str | None:
        """Ask for a line of text. None if no UI answers."""
        ...

    async def pick(
        self, title: str, items: Sequence[PickItem], *, multi: bool = False
    ) -> list[str]:
        """Ask for a choice; return the ids of the chosen items. Empty if no UI answers."""
        ...

    async def steered(self) -> str | None:
        """Return the oldest unread text of `run.steer`; None if there is none."""
        ...


class Core(Protocol):
    """The interface of a core. One object serves all runs of a runtime, also at the same time."""

    @property
    def name(self) -> str:
        """The name of the model in `model.list`."""
        ...

    @property
    def details(self) -> ModelDetails: ...

    def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        """Run one turn. The run ends when the core yields `final` or stops."""
        ...
