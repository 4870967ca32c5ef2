"""What happens in a run: the thirteen kinds of `AgentEvent`, which `agent.event` carries.

The spec names the type and leaves it to the original's source; these are its members. An event is
stored and sent again as the bytes it was, so members that are not listed here survive.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct


class AgentEvent(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Any of them. `timestamp` is milliseconds since the epoch."""


class TextEvent(AgentEvent, frozen=True, tag="text"):
    """Something said on the way; a UI does not depend on it, for `final` has the answer."""

    content: str
    timestamp: int | None = None


class ReasoningEvent(AgentEvent, frozen=True, tag="reasoning"):
    content: str
    timestamp: int | None = None


class LlmRetryEvent(AgentEvent, frozen=True, tag="llm.retry"):
    """A model's provider did not answer, and is asked again."""

    provider: str
    failure_kind: Literal["rate_limit", "overloaded", "timeout", "network", "provider"]
    next_attempt: int
    max_attempts: int
    delay_ms: int
    delay_source: Literal["retry-after", "reset-header", "provider-body", "backoff"]
    status: int | None = None


class StepStartEvent(AgentEvent, frozen=True, tag="step_start"):
    step_id: str
    title: str
    step_number: int


class ToolCallEvent(AgentEvent, frozen=True, tag="tool_call"):
    tool: str
    args: dict[str, Any]
    """`{"_raw": …}` where the arguments were no object."""
    tool_call_id: str
    raw_args: str | None = None
    display_name: str | None = None


class ToolResultEvent(AgentEvent, frozen=True, tag="tool_result"):
    tool: str
    result: str
    tool_call_id: str
    is_error: bool = False
    screenshot_base64: str | None = None


class PermissionPreviewEvent(AgentEvent, frozen=True, tag="permission.preview"):
    """What a call would change, before anybody is asked."""

    tool: str
    tool_call_id: str | None = None
    file_path: str | None = None
    language: str | None = None
    diff: str | None = None
    summary: str | None = None
    truncated: bool = False


class PermissionReadyEvent(AgentEvent, frozen=True, tag="permission.ready"):
    tool: str
    tool_call_id: str | None = None


class StepCompleteEvent(AgentEvent, frozen=True, tag="step_complete"):
    step_id: str
    status: Literal["completed", "error"]
    duration_ms: int


class CompactionStartEvent(AgentEvent, frozen=True, tag="compaction_start"):
    timestamp: int


class CompactionCompleteEvent(AgentEvent, frozen=True, tag="compaction_complete"):
    timestamp: int
    compacted: bool
    """False where nothing could be made smaller; always said."""


class HiddenUserMessageEvent(AgentEvent, frozen=True, tag="hidden_user_message"):
    """What the person said: in a replay with the number -1, and where a run was steered."""

    content: str


class FinalEvent(AgentEvent, frozen=True, tag="final"):
    """The turn is over, and this is its answer."""

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
