"""Sessions, models, tools, skills, context and shell (spec §5.4, §5.5, §5.8 to §5.15)."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from telex.agent.protocol.runs import Count


class SessionListParams(Struct, frozen=True):
    limit: int | None = None
    """Default 50; 0 or less lists all."""
    scope: Literal["current_workspace", "all"] | None = None
    """`current_workspace`: only sessions whose last run was in one workspace. Default: all, unless
    `workspace_root` is given."""
    workspace_root: str | None = None
    """The workspace to list. Default: the one that runs of this connection would be in. Ignored
    with the scope `all`."""


class SessionSummary(Struct, frozen=True, omit_defaults=True):
    """A stored session, with its last run and message."""

    session_id: str
    updated_at: str
    run_id: str | None = None
    """The last run of the session."""
    message_count: int | None = None
    last_user_message: str | None = None
    workspace_root: str | None = None
    """The workspace of the last run: the one that the UI context named, else the sandbox root."""


class SessionListResult(Struct, frozen=True):
    """The stored sessions, the last used one first."""

    sessions: list[SessionSummary]
    current_workspace_root: str
    """The workspace that the scope `current_workspace` lists for this connection."""


class SessionHistoryParams(Struct, frozen=True):
    session_id: str
    max_runs: Count | None = None
    """The number of latest runs; default 20."""
    max_events: Count | None = None
    """The number of latest events; default 1,500."""


class SessionHistoryResult(Struct, frozen=True):
    runs: int
    events_sent: int
    truncated: bool
    """There are earlier runs or events."""


ModelSource = Literal["config", "session"]
"""The scope of a model choice: every session without a choice of its own (`config`), or one."""


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
    supports_images: bool | None = None
    """Addition of telex: whether the model sees images; missing if that is not known."""


class ModelListResult(Struct, frozen=True, omit_defaults=True):
    """The models of a provider, the newest first."""

    provider: str
    models: list[str]
    """Empty if the provider is not configured."""
    source: ModelSource
    current: str | None = None
    """The model that the next run of this connection uses, of any provider."""
    details: dict[str, ModelDetails] | None = None


class ModelSetParams(Struct, frozen=True):
    name: str | None = None
    """Needed unless `reset`."""
    provider: str | None = None
    """By default that of the current model, else any that has the model."""
    scope: ModelSource | None = None
    """Addition of the original: `session` chooses the model of the connection's current session, or
    of the next one it begins. Default: `config`."""
    reset: bool | None = None
    """Addition of the original: remove the choice of the session."""


class ModelSetResult(Struct, frozen=True):
    """The model that runs use from now on."""

    provider: str
    name: str
    source: ModelSource


class ToolCallParams(Struct, frozen=True):
    name: str
    arguments: Raw | UnsetType = UNSET


class ToolCallResult(Struct, frozen=True):
    """The answer to `tool.call`."""

    ok: bool
    """False if the tool failed; then `result` is the reason."""
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
    """The MCP servers of the runtime, with their state."""

    servers: list[McpServer]


class SkillsListParams(Struct, frozen=True):
    cwd: str | None = None
    force_reload: bool | None = None


class Skill(Struct, frozen=True, omit_defaults=True):
    id: str
    """A hash of the real path, so that a skill found through a link has the same id."""
    name: str
    description: str
    path: str
    dir: str
    scope: Literal["repo", "user"]
    mtime_ms: int
    not_offered: str | None = None
    """Addition of telex: why the agent does not use the skill. Default: it does."""


class SkillProblem(Struct, frozen=True):
    """A skill that is not listed, and the reason."""

    path: str
    message: str


class SkillsListResult(Struct, frozen=True):
    """The skills that were found, and the invalid ones with their problems."""

    skills: list[Skill]
    """Two skills with the same name are both listed."""
    errors: list[SkillProblem]
    truncated: bool
    """There are more skills than a catalogue holds."""


class AuthLogoutParams(Struct, frozen=True):
    clear_session: bool | None = None


class AuthLogoutResult(Struct, frozen=True, omit_defaults=True):
    """The result of `auth.logout`: whether credentials and the current session were cleared."""

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
    """The directories of the runtime, the UI context, the AGENTS.md files and the skills."""

    runtime_working_dir: str | None = None
    runtime_sandbox_root: str | None = None
    ui_context: InspectedUi | None = None
    agents: Any = None
    skills: Any = None


class ShellExecParams(Struct, frozen=True):
    command: str
    timeout_seconds: float | None = None
    cwd: str | None = None
    """A directory inside the sandbox root. Default: the runtime's working directory."""


class TruncatedStreams(Struct, frozen=True):
    """Whether `stdout` and `stderr` of a result are excerpts."""

    stdout: bool
    stderr: bool
    combined: bool
    """One of the streams is an excerpt, or the command was killed because it wrote too much."""


class ShellExecResult(Struct, frozen=True, omit_defaults=True):
    """The result of a command. `timed_out` and `overflowed` are additions of telex: without them, a
    command that telex killed looks like one that another process killed."""

    command_preview: str
    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str
    truncated: TruncatedStreams
    duration_ms: int
    stdout_cache_id: str | None = None
    """The id of the whole output for the tool `tool_output_cache`, if `stdout` is an excerpt."""
    stderr_cache_id: str | None = None
    timed_out: bool = False
    overflowed: bool = False
