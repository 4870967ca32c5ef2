"""`initialize`, runs, and their notifications (spec §4, §5.1 to 5.3, §5.6, §5.7, §6.1)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

RunStatus = Literal["running", "awaiting_ui", "completed", "error", "cancelled"]
Mode = Literal["minimal", "trusted", "full"]
EndStatus = Literal["completed", "error", "cancelled"]
Count = Annotated[int, Meta(ge=0)]


class PeerInfo(Struct, frozen=True):
    """Name and version of a UI or of the runtime."""

    name: str
    version: str


class UiCapabilities(Struct, frozen=True, omit_defaults=True):
    """The capabilities of a UI; an omitted one is false. The last six are not in the spec."""

    supports_confirm: bool | None = False
    supports_prompt: bool | None = False
    supports_pick: bool | None = False
    supports_markdown: bool | None = False
    supports_images: bool | None = False
    supports_clipboard_read: bool | None = False
    supports_permission_preflight_events: bool | None = False
    """Has no effect: events are numbered without gaps, so every UI gets every event."""
    supports_run_attach: bool | None = False
    """The UI may reconnect: a question that it leaves open waits for it."""
    supports_request_cancel: bool | None = False
    """The UI understands `ui.request.cancel`."""
    supports_parallel_questions: bool | None = False
    """The UI can show several open questions of one run. Else it gets one after the other."""
    supports_deltas: bool | None = False
    supports_todos: bool | None = False


class ServerCapabilities(Struct, frozen=True):
    """The capabilities of the runtime. The last fifteen are not in the spec."""

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
    supports_workspace: bool = True
    supports_workspace_files: bool = True
    supports_artifacts: bool = True
    supports_history: bool = True
    supports_image_input: bool = True
    supports_commands: bool = True
    supports_terminals: bool = True


class WorkspaceChoice(Struct, frozen=True, omit_defaults=True):
    """The workspace that a UI asks for."""

    root: str | None = None
    """An absolute path. By default the root of the server, else that of the UI's directory."""
    mode: Mode | None = None
    """By default the mode of the server."""


class WorkspaceInfo(Struct, frozen=True):
    """The workspace of a connection, in which its runs and tools work."""

    root: str
    cwd: str
    """The directory that relative paths start from."""
    mode: Mode
    trusted: bool
    """Whether the user trusts the project's configuration, with its rules."""


class InitializeParams(Struct, frozen=True, omit_defaults=True):
    protocol_version: str
    client: PeerInfo
    ui_capabilities: UiCapabilities | None = None
    workspace: WorkspaceChoice | None = None
    """Not in the spec (`supports_workspace`)."""


class Tui(Struct, frozen=True):
    theme: str


class InitializeResult(Struct, frozen=True, omit_defaults=True):
    protocol_version: str
    server: PeerInfo
    server_capabilities: ServerCapabilities | None = None
    tui: Tui | None = None
    workspace: WorkspaceInfo | None = None
    """Not in the spec (`supports_workspace`)."""


class Position(Struct, frozen=True):
    """A place in a file, counted from 0."""

    line: Count
    column: Count


class Range(Struct, frozen=True):
    """A part of a file; `end` is exclusive."""

    start: Position
    end: Position


class ActiveFile(Struct, frozen=True, omit_defaults=True):
    """The file that the person has open."""

    path: str
    language_id: str | None = None


class Selection(Struct, frozen=True, omit_defaults=True):
    """The part of a file that the person has selected."""

    path: str
    range: Range
    selected_text: str | None = None


class UiContext(Struct, frozen=True, omit_defaults=True):
    """`UiContextSnapshot`: the directory, file and selection that the person works on. Stored as
    the received bytes."""

    cwd: str | None = None
    workspace_root: str | None = None
    active_file: ActiveFile | None = None
    selection: Selection | None = None
    extensions: dict[str, Any] | None = None


class TextInput(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class ImageUrl(Struct, frozen=True, omit_defaults=True):
    """An image of an input."""

    url: str
    """A `data:` URL in base64, of which the image is stored, or an `https://` URL, which the
    provider of the model loads."""
    detail: Literal["auto", "low", "high"] | None = None
    media_type: Literal["image/png", "image/jpeg", "image/webp", "image/gif"] | None = None
    """Of a `data:` URL the first bytes of the image count."""


class TextInputPart(Struct, frozen=True, tag_field="type", tag="text"):
    """A text between images."""

    text: str


class ImageInputPart(Struct, frozen=True, tag_field="type", tag="image_url"):
    """An image between texts."""

    image_url: ImageUrl


class PartsInput(Struct, frozen=True, tag_field="type", tag="parts"):
    """An input with images (`supports_image_input`), as the original has it."""

    parts: Annotated[list[TextInputPart | ImageInputPart], Meta(min_length=1)]


class RunStartParams(Struct, frozen=True):
    input: Raw
    """A `TextInput` or a `PartsInput`, stored as received; images are stored apart."""
    session_id: str | None = None
    """The session of the run. Default: the connection's current session, which is that of its last
    run; a new session if the connection has none."""
    force_compaction: bool | None = None
    """Compact the core's context first."""
    ui_context: Raw | UnsetType = UNSET
    """A `UiContext`, as in `ui.context.update`."""
    meta: Raw | UnsetType = UNSET
    """An object for the UI's own use, stored with the run."""
    new_session: bool | None = None
    """Addition of telex: begin a new session although the connection has one. Excludes
    `session_id`."""


class RunStartResult(Struct, frozen=True):
    run_id: str
    """Part of every notification of this run."""
    session_id: str
    """For the next run in the same session."""


class RunCancelParams(Struct, frozen=True):
    run_id: str
    reason: str | None = None


class RunCancelResult(Struct, frozen=True):
    """The answer to `run.cancel`."""

    ok: bool
    """False if the run had ended before."""
    status: RunStatus


class AgentEventNotify(Struct, frozen=True, omit_defaults=True):
    """One event of a run; `event` and `meta` as they are stored."""

    run_id: str
    seq: int
    event: Raw
    meta: Raw | UnsetType = UNSET


class RunStatusNotify(Struct, frozen=True, omit_defaults=True):
    """The status of a run, whenever it changes. An end comes once, as the last message."""

    run_id: str
    status: RunStatus
    message: str | None = None
    """Why the run failed, or why it was cancelled; with `awaiting_ui`, why it was not resumed."""


class RunContextNotify(Struct, frozen=True):
    """How much of the context window is left, whenever that changes."""

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
    """The tokens, time and cost of one model call. Only with diagnostics."""

    run_id: str
    call: LlmCall


class SummaryDiagnostics(Struct, frozen=True, tag_field="kind", tag="run_summary"):
    """The total tokens and cost of all model calls of a run, sent at its end. Only with
    diagnostics."""

    run_id: str
    summary: RunSummary


RunDiagnosticsNotify = LlmCallDiagnostics | SummaryDiagnostics
