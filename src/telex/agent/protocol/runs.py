"""`initialize`, runs, and their notifications (spec §4, §5.1 to 5.3, §5.6, §5.7, §6.1)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

RunStatus = Literal["running", "awaiting_ui", "completed", "error", "cancelled"]
EndStatus = Literal["completed", "error", "cancelled"]
Count = Annotated[int, Meta(ge=0)]


class PeerInfo(Struct, frozen=True):
    """Name and version of a UI, or of the runtime."""

    name: str
    version: str


class UiCapabilities(Struct, frozen=True, omit_defaults=True):
    """What a UI can do; what it does not say, it cannot. The last five are ours."""

    supports_confirm: bool | None = False
    supports_prompt: bool | None = False
    supports_pick: bool | None = False
    supports_markdown: bool | None = False
    supports_images: bool | None = False
    supports_clipboard_read: bool | None = False
    supports_permission_preflight_events: bool | None = False
    """Changes nothing: events are numbered without holes, so every UI gets every one."""
    supports_run_attach: bool | None = False
    """It may come back: a question that it leaves open waits for it."""
    supports_request_cancel: bool | None = False
    """It understands `ui.request.cancel`."""
    supports_deltas: bool | None = False
    supports_todos: bool | None = False


class ServerCapabilities(Struct, frozen=True):
    """What the runtime can do. The last nine are ours."""

    supports_run_cancel: bool = True
    supports_ui_requests: bool = True
    supports_mcp_list: bool = True
    supports_skills_list: bool = True
    supports_context_inspect: bool = True
    supports_tool_call: bool = True
    supports_shell_exec: bool = True
    supports_run_diagnostics: bool = False
    supports_permission_preflight_events: bool = True
    supports_run_attach: bool = True
    supports_request_cancel: bool = True
    supports_deltas: bool = True
    supports_run_steer: bool = True
    supports_todos: bool = True
    supports_run_diff: bool = True
    supports_permission_explain: bool = True


class InitializeParams(Struct, frozen=True):
    protocol_version: str
    client: PeerInfo
    ui_capabilities: UiCapabilities | None = None


class Tui(Struct, frozen=True):
    theme: str


class InitializeResult(Struct, frozen=True, omit_defaults=True):
    protocol_version: str
    server: PeerInfo
    server_capabilities: ServerCapabilities | None = None
    tui: Tui | None = None


class Position(Struct, frozen=True):
    line: Count
    column: Count


class Range(Struct, frozen=True):
    start: Position
    end: Position


class ActiveFile(Struct, frozen=True, omit_defaults=True):
    path: str
    language_id: str | None = None


class Selection(Struct, frozen=True, omit_defaults=True):
    path: str
    range: Range
    selected_text: str | None = None


class UiContext(Struct, frozen=True, omit_defaults=True):
    """`UiContextSnapshot`: where the person works. The bytes are kept as they came."""

    cwd: str | None = None
    workspace_root: str | None = None
    active_file: ActiveFile | None = None
    selection: Selection | None = None
    extensions: dict[str, Any] | None = None


class TextInput(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class RunStartParams(Struct, frozen=True):
    input: Raw
    """A `TextInput`, kept as it came."""
    session_id: str | None = None
    """Go on with this one; otherwise with the connection's current session, the last that a run
    of it was in, and with a new one where it has none."""
    force_compaction: bool | None = None
    """Make the core's context smaller first."""
    ui_context: Raw | UnsetType = UNSET
    """A `UiContext`, as in `ui.context.update`."""
    meta: Raw | UnsetType = UNSET
    """An object of the UI's own, stored with the run."""
    new_session: bool | None = None
    """Ours: begin another session although the connection has one. Not together with
    `session_id`."""


class RunStartResult(Struct, frozen=True):
    run_id: str
    """Stands in every notification of this run."""
    session_id: str
    """For the next run that goes on here."""


class RunCancelParams(Struct, frozen=True):
    run_id: str
    reason: str | None = None


class RunCancelResult(Struct, frozen=True):
    ok: bool
    """False when it had ended before."""
    status: RunStatus


class AgentEventNotify(Struct, frozen=True, omit_defaults=True):
    """`event` and `meta` as they are stored."""

    run_id: str
    seq: int
    event: Raw
    meta: Raw | UnsetType = UNSET


class RunStatusNotify(Struct, frozen=True, omit_defaults=True):
    run_id: str
    status: RunStatus
    message: str | None = None
    """Why it failed, or why it was cancelled."""


class RunContextNotify(Struct, frozen=True):
    run_id: str
    context_left_percent: Annotated[int, Meta(ge=0, le=100)]


class Usage(Struct, frozen=True, omit_defaults=True):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_cached_tokens: int | None = None
    input_cache_creation_tokens: int | None = None
    input_image_tokens: int | None = None


class CacheUse(Struct, frozen=True):
    hit_state: Literal["hit", "miss", "unknown"] = "unknown"
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_ratio: float | None = None


class LlmCall(Struct, frozen=True):
    run_id: str
    seq: int
    model: str
    request_ts: str
    response_ts: str
    latency_ms: int
    cache: CacheUse
    provider: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    provider_meta_summary: str | None = None


class ModelTotals(Struct, frozen=True):
    calls: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    cache_creation_tokens: int
    total_tokens: int
    cost_usd: float | None = None


class RunSummary(Struct, frozen=True):
    total_calls: int = 0
    total_tokens: int = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    total_cached_input_tokens: int = 0
    total_cache_creation_tokens: int = 0
    total_cost_usd: float | None = None
    by_model: dict[str, ModelTotals] = {}


class LlmCallDiagnostics(Struct, frozen=True, tag_field="kind", tag="llm_call"):
    run_id: str
    call: LlmCall


class SummaryDiagnostics(Struct, frozen=True, tag_field="kind", tag="run_summary"):
    run_id: str
    summary: RunSummary


RunDiagnosticsNotify = LlmCallDiagnostics | SummaryDiagnostics
