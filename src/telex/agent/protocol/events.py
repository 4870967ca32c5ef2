"""The events of a run: the thirteen kinds of `AgentEvent`, which `agent.event` carries.

The spec names the type without its members; these are the members in the source of the original
implementation. An event is stored and replayed as its original bytes, so members that are not
listed here are preserved.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct


class AgentEvent(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Base of all events. A `timestamp` is in milliseconds since the epoch."""


class TextEvent(AgentEvent, frozen=True, tag="text"):
    """Text of the agent before its answer. A UI may ignore it: `final` has the answer."""

    content: str
    timestamp: int | None = None


class ReasoningEvent(AgentEvent, frozen=True, tag="reasoning"):
    """The reasoning of the model before it acts."""

    content: str
    timestamp: int | None = None


class LlmRetryEvent(AgentEvent, frozen=True, tag="llm.retry"):
    """A request to the provider of a model failed, and is retried."""

    provider: str
    failure_kind: Literal["rate_limit", "overloaded", "timeout", "network", "provider"]
    next_attempt: int
    max_attempts: int
    delay_ms: int
    delay_source: Literal["retry-after", "reset-header", "provider-body", "backoff"]
    status: int | None = None


class StepStartEvent(AgentEvent, frozen=True, tag="step_start"):
    """A step begins: one tool call with all its events."""

    step_id: str
    title: str
    step_number: int


class ToolCallEvent(AgentEvent, frozen=True, tag="tool_call"):
    """A tool is about to be called."""

    tool: str
    args: dict[str, Any]
    """`{"_raw": …}` if the arguments were not a JSON object."""
    tool_call_id: str
    raw_args: str | None = None
    display_name: str | None = None


class ToolResultEvent(AgentEvent, frozen=True, tag="tool_result"):
    """A tool returned, failed or was denied."""

    tool: str
    result: str
    tool_call_id: str
    is_error: bool = False
    screenshot_base64: str | None = None


class PermissionPreviewEvent(AgentEvent, frozen=True, tag="permission.preview"):
    """The change that a call would make. Sent before the person is asked."""

    tool: str
    tool_call_id: str | None = None
    file_path: str | None = None
    language: str | None = None
    diff: str | None = None
    summary: str | None = None
    truncated: bool = False


class PermissionReadyEvent(AgentEvent, frozen=True, tag="permission.ready"):
    """The runtime is about to ask the person about a call."""

    tool: str
    tool_call_id: str | None = None


class StepCompleteEvent(AgentEvent, frozen=True, tag="step_complete"):
    """A step has ended: its tool call has returned, failed or was denied."""

    step_id: str
    status: Literal["completed", "error"]
    duration_ms: int


class CompactionStartEvent(AgentEvent, frozen=True, tag="compaction_start"):
    """The core begins to compact its context."""

    timestamp: int


class CompactionCompleteEvent(AgentEvent, frozen=True, tag="compaction_complete"):
    """The core has compacted its context, or could not."""

    timestamp: int
    compacted: bool
    """False if nothing could be compacted. Always present."""


class HiddenUserMessageEvent(AgentEvent, frozen=True, tag="hidden_user_message"):
    """A message of the person: the input of a run, in a replay with the number -1; or a text of
    `run.steer`, where the core read it."""

    content: str


class FinalEvent(AgentEvent, frozen=True, tag="final"):
    """The end of the turn, with its answer."""

    content: str


EVENTS: tuple[type[AgentEvent], ...] = (
    TextEvent,
    ReasoningEvent,
    LlmRetryEvent,
    StepStartEvent,
    ToolCallEvent,
    ToolResultEvent,
    PermissionPreviewEvent,
    PermissionReadyEvent,
    StepCompleteEvent,
    CompactionStartEvent,
    CompactionCompleteEvent,
    HiddenUserMessageEvent,
    FinalEvent,
)
