"""The interface of cores: a core decides what a run does.

    class Core(Protocol):
        def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]: ...

A core yields events and, at its end, its answer. Every action with an effect goes through its
context, which asks for permission, emits the events of each call, and refuses after the run is
cancelled. So a core needs no knowledge of connections, storage or cancellation, and a core that
ignores a cancel can do no harm. A cancel is the cancellation of the task that runs the core.

The context stores what a core says as neutral messages (`telex.agent.messages`), and each call with
its result. After a restart the runtime finishes the calls that had no result, and runs a core with
the conversation up to there: the same core, or that of another model. So a core begins by looking
at the messages of its run (`CoreContext.run_messages`), and continues after them.

    builtin       no language model: executes plain commands
    scripted      plays a file of steps, for tests and demos
    model         a language model that calls tools until it has its answer
    adapter_core  the TUI of another agent, in a terminal that an adapter drives
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from telex.agent.messages import AssistantMessage
from telex.agent.messages import TextDelta as TextDelta
from telex.agent.protocol.events import AgentEvent

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import AsyncIterator, Mapping, Sequence

    from msgspec import Raw

    from telex.agent.messages import Message, ToolResultMessage, ToolSpec
    from telex.agent.permissions import Judgement
    from telex.agent.protocol.runs import LlmCall
    from telex.agent.protocol.sessions import ModelDetails
    from telex.agent.protocol.ui_requests import PickItem, UiConfirmResult


@dataclass(frozen=True, slots=True)
class RunInput:
    """The input of the person. `compact`: compact the context first."""

    text: str
    """The typed text; the prompt of a command that the input called; a skill behind the text that
    called it."""
    compact: bool = False
    is_skill: bool = False
    """Whether the input called a skill."""


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


CoreOutput = AgentEvent | RawEvent | TextDelta | ContextLeft | ModelCalled | AssistantMessage
"""An `AssistantMessage` is the answer: it is stored, and sent as the `final` event."""


@dataclass(frozen=True, slots=True)
class ToolCallOutcome:
    """The result of a tool call. A call denied with a reason is an error with that reason."""

    text: str
    is_error: bool = False


class TurnStopped(Exception):
    """The person denied a call without a reason, which ends the turn. A core must not catch it."""


class CoreContext(Protocol):
    """The conversation that a core continues, and its actions.

    Every coroutine may raise `TurnStopped` and `asyncio.CancelledError`. `data` of an action is any
    JSON of the core, which is stored with the call and stays unread by others.
    """

    @property
    def run_id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def ui_context(self) -> bytes | None:
        """The context that the UI sent (open file, selection): a `UiContext` in JSON."""
        ...

    @property
    def run_messages(self) -> Sequence[Message]:
        """The messages of this run, from the input of the person on."""
        ...

    async def messages(self) -> Sequence[Message]:
        """Return the conversation of the thread until now, with this run at its end. Each call has
        a result. A summary stands for the messages that `compact` removed."""
        ...

    async def tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools that the core may call."""
        ...

    async def instructions(self) -> str:
        """Return the instructions for a model: its task, the project's AGENTS.md files, the skills,
        and what the person has open."""
        ...

    async def step(self, message: AssistantMessage) -> tuple[ToolResultMessage, ...]:
        """Store an answer of a model that calls tools, run the calls and return their results.

        Calls of tools that only read run side by side; each other call runs alone, in order."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, object] | bytes,
        title: str = "",
        data: Raw | None = None,
    ) -> ToolCallOutcome:
        """Call one tool if it is permitted, and emit the events of the call."""
        ...

    async def confirm(
        self,
        title: str,
        message: str,
        *,
        data: Raw | None = None,
        gone: Future[None] | None = None,
    ) -> UiConfirmResult | None:
        """Ask a yes-or-no question. None, which counts as no, if no UI can be asked.

        When `gone` of a question is done, what it is about is gone: it is withdrawn, unanswered."""
        ...

    async def prompt(
        self,
        title: str,
        message: str,
        *,
        secret: bool = False,
        data: Raw | None = None,
        gone: Future[None] | None = None,
    ) -> str | None:
        """Ask for a line of text. None if no UI answers."""
        ...

    async def pick(
        self,
        title: str,
        items: Sequence[PickItem],
        *,
        multi: bool = False,
        data: Raw | None = None,
        gone: Future[None] | None = None,
    ) -> list[str]:
        """Ask for a choice; return the ids of the chosen items. Empty if no UI answers."""
        ...

    @property
    def cwd(self) -> str:
        """The directory of the workspace, in which programs start."""
        ...

    @property
    def program_environment(self) -> Mapping[str, str]:
        """The variables of a program that a core starts: those of the person, without secrets."""
        ...

    async def judge_program(self, argv: Sequence[str]) -> Judgement:
        """Judge the start of a program that the person uses on a terminal. It is judged as the
        shell command that would start it, and without a rule for it the person is asked."""
        ...

    @property
    def is_suspended(self) -> bool:
        """Whether the run is stopped because its runtime ends, and is resumed in the next one."""
        ...

    async def steered(self) -> str | None:
        """Return the oldest unread text of `run.steer`; None if there is none."""
        ...

    @property
    def has_steering(self) -> bool:
        """Whether `steered` would return a text."""
        ...

    @property
    def open_todos(self) -> str:
        """The entries of the todo list that are not done, as text."""
        ...

    async def compact(self, summary: str, kept: int) -> None:
        """Replace the conversation by a summary and its last `kept` messages."""
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
        """Run one turn. The run ends when the core yields its answer or `final`, or stops."""
        ...


@runtime_checkable
class ClosableCore(Core, Protocol):
    """A core that holds something beyond its runs."""

    async def close(self) -> None:
        """End what the core holds. The runtime calls this once, after all runs have stopped."""
        ...
