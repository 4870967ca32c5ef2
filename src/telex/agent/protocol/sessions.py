"""Sessions, models, tools, skills, context and shell (spec §5.4, §5.5, §5.8 to §5.15)."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from telex.agent.protocol.runs import Count


class SessionListParams(Struct, frozen=True):
    limit: int | None = None
    """50 where it is not said; 0 or less is all."""
    scope: Literal["current_workspace", "all"] | None = None
    """`current_workspace`: those whose last run was in one workspace. Where it is not said, all,
    unless a `workspace_root` is."""
    workspace_root: str | None = None
    """Which workspace; the one that runs of this connection would be in where it is not said.
    Ignored with the scope `all`."""


class SessionSummary(Struct, frozen=True, omit_defaults=True):
    session_id: str
    updated_at: str
    run_id: str | None = None
    """Its last run."""
    message_count: int | None = None
    last_user_message: str | None = None
    workspace_root: str | None = None
    """Of its last run: what the UI's context named, else the sandbox root."""


class SessionListResult(Struct, frozen=True):
    sessions: list[SessionSummary]
    current_workspace_root: str
    """What the scope `current_workspace` means here."""


class SessionHistoryParams(Struct, frozen=True):
    session_id: str
    max_runs: Count | None = None
    """The latest; 20 where it is not said."""
    max_events: Count | None = None
    """The latest; 1,500 where it is not said."""


class SessionHistoryResult(Struct, frozen=True):
    runs: int
    events_sent: int
    truncated: bool
    """There are earlier ones."""


ModelSource = Literal["config", "session"]
"""Where a choice of the model holds; with us in the whole runtime, which is `config`."""


class ModelListParams(Struct, frozen=True):
    provider: str | None = None
    include_details: bool | None = None


class ModelDetails(Struct, frozen=True, omit_defaults=True):
    release_date: str | None = None
    context_window: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    cost_per_1m_input_tokens_usd: float | None = None
    cost_per_1m_output_tokens_usd: float | None = None


class ModelListResult(Struct, frozen=True, omit_defaults=True):
    provider: str
    models: list[str]
    """Empty for a provider that is not configured."""
    source: ModelSource
    current: str | None = None
    """The model that runs use now, of whichever provider."""
    details: dict[str, ModelDetails] | None = None


class ModelSetParams(Struct, frozen=True):
    name: str
    provider: str | None = None


class ModelSetResult(Struct, frozen=True):
    provider: str
    name: str
    source: ModelSource


class ToolCallParams(Struct, frozen=True):
    name: str
    arguments: Raw | UnsetType = UNSET


class ToolCallResult(Struct, frozen=True):
    ok: bool
    """False when the tool failed; `result` says why."""
    result: Any


class McpListParams(Struct, frozen=True):
    scope: Literal["loaded", "configured"] | None = None


class McpServer(Struct, frozen=True, omit_defaults=True):
    id: str
    transport: Literal["http", "stdio"]
    enabled: bool
    state: Literal["disabled", "connecting", "auth_required", "ready", "error"]
    source: Literal["project", "global"] | None = None
    tools: int | None = None
    last_error: str | None = None
    last_connected_at: str | None = None


class McpListResult(Struct, frozen=True):
    servers: list[McpServer]


class SkillsListParams(Struct, frozen=True):
    cwd: str | None = None
    force_reload: bool | None = None


class Skill(Struct, frozen=True):
    id: str
    """Of the real path, so that it is the same by whichever way the skill was found."""
    name: str
    description: str
    path: str
    dir: str
    scope: Literal["repo", "user"]
    mtime_ms: int


class SkillProblem(Struct, frozen=True):
    """A skill that cannot be offered, and why."""

    path: str
    message: str


class SkillsListResult(Struct, frozen=True):
    skills: list[Skill]
    """Two of one name are both here."""
    errors: list[SkillProblem]
    truncated: bool
    """There are more than a catalogue holds."""


class AuthLogoutParams(Struct, frozen=True):
    clear_session: bool | None = None


class AuthLogoutResult(Struct, frozen=True, omit_defaults=True):
    ok: bool
    auth_cleared: bool
    session_cleared: bool
    cancelled: bool = False


class ContextInspectParams(Struct, frozen=True):
    include_agents: bool | None = None
    include_skills: bool | None = None


class InspectedUi(Struct, frozen=True, omit_defaults=True):
    cwd: str | None = None
    workspace_root: str | None = None
    active_file_path: str | None = None


class ContextInspectResult(Struct, frozen=True, omit_defaults=True):
    runtime_working_dir: str | None = None
    runtime_sandbox_root: str | None = None
    ui_context: InspectedUi | None = None
    agents: Any = None
    skills: Any = None


class ShellExecParams(Struct, frozen=True):
    command: str
    timeout_seconds: float | None = None
    cwd: str | None = None
    """Inside the sandbox root; the root where it is not said."""


class TruncatedStreams(Struct, frozen=True):
    """Which streams are excerpts."""

    stdout: bool
    stderr: bool
    combined: bool
    """One of them is, or the command was ended because it wrote too much."""


class ShellExecResult(Struct, frozen=True, omit_defaults=True):
    """`timed_out` and `overflowed` are ours: without them, a command that was ended looks like one
    that somebody else killed."""

    command_preview: str
    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str
    truncated: TruncatedStreams
    duration_ms: int
    stdout_cache_id: str | None = None
    """For the tool `tool_output_cache`, where only a part is shown."""
    stderr_cache_id: str | None = None
    timed_out: bool = False
    overflowed: bool = False
