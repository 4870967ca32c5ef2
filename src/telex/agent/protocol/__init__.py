"""The agent UI protocol, version 0: the messages between a UI and a runtime, as types and tables.

The spec is Codelia's `ui-protocol.md`. Unknown members are tolerated everywhere, and preserved
where they are stored (`event`, `meta`, `input`, `ui_context`). `null` means the same as an omitted
member.

    runs         initialize, runs, notifications
    events       the kinds of event in a run
    sessions     sessions, models, tools, skills, context, shell
    ui_requests  confirm, prompt, pick, clipboard
    extensions   additions of telex, each with a capability

This module has the version, the error codes and the reserved namespaces (§4, §8, §9).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from telex.agent.protocol import extensions, runs, sessions, ui_requests
from telex.rpc.errors import RESERVED, Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = "0"

INTERNAL: Final = -32000
BUSY: Final = -32001
"""The session has an active run, the limit of runs is reached, or another runtime has the run."""
RUN_NOT_FOUND: Final = -32002
USER_CANCELLED: Final = -32003
"""The person said no."""
SESSION_NOT_FOUND: Final = -32004
SESSION_LOAD_FAILED: Final = -32005
"""The session exists but cannot be read."""
SESSION_LIST_FAILED: Final = -32006

CODES: Final[Mapping[Condition, int]] = MappingProxyType(
    {**RESERVED, Condition.INTERNAL: INTERNAL, Condition.CLOSING: INTERNAL}
)
"""§9 uses -32000 for the internal error, which JSON-RPC numbers -32603."""

RESERVED_NAMESPACES: Final = ("artifact", "workspace", "history", "todos", "shell")
"""§8: namespaces reserved for later versions of the protocol."""

METHODS: Final[dict[str, tuple[Any, Any]]] = {
    "initialize": (runs.InitializeParams, runs.InitializeResult),
    "run.start": (runs.RunStartParams, runs.RunStartResult),
    "run.cancel": (runs.RunCancelParams, runs.RunCancelResult),
    "session.list": (sessions.SessionListParams, sessions.SessionListResult),
    "session.history": (sessions.SessionHistoryParams, sessions.SessionHistoryResult),
    "model.list": (sessions.ModelListParams, sessions.ModelListResult),
    "model.set": (sessions.ModelSetParams, sessions.ModelSetResult),
    "tool.call": (sessions.ToolCallParams, sessions.ToolCallResult),
    "mcp.list": (sessions.McpListParams, sessions.McpListResult),
    "skills.list": (sessions.SkillsListParams, sessions.SkillsListResult),
    "context.inspect": (sessions.ContextInspectParams, sessions.ContextInspectResult),
    "auth.logout": (sessions.AuthLogoutParams, sessions.AuthLogoutResult),
    "shell.exec": (sessions.ShellExecParams, sessions.ShellExecResult),
    "ui.context.update": (runs.UiContext, None),
    "run.attach": (extensions.RunAttachParams, extensions.RunAttachResult),
    "run.steer": (extensions.RunSteerParams, extensions.RunSteerResult),
    "run.diff": (extensions.RunDiffParams, extensions.RunDiffResult),
    "permission.explain": (extensions.PermissionExplainParams, extensions.PermissionExplainResult),
    "workspace.list": (extensions.WorkspaceListParams, extensions.WorkspaceListResult),
    "workspace.read": (extensions.WorkspaceReadParams, extensions.WorkspaceReadResult),
    "workspace.search": (extensions.WorkspaceSearchParams, extensions.WorkspaceSearchResult),
    "artifact.read": (extensions.ArtifactReadParams, extensions.ArtifactReadResult),
    "history.export": (extensions.HistoryExportParams, extensions.HistoryExportResult),
    "history.undo": (extensions.HistoryUndoParams, extensions.HistoryUndoResult),
    "todos.get": (extensions.TodosGetParams, extensions.TodosResult),
    "todos.set": (extensions.TodosSetParams, extensions.TodosResult),
    "commands.list": (extensions.CommandsListParams, extensions.CommandsListResult),
    "terminal.list": (extensions.TerminalListParams, extensions.TerminalListResult),
}
"""Requests from a UI to the runtime: parameters and result."""

REQUESTS: Final[dict[str, tuple[Any, Any]]] = {
    ui_requests.CONFIRM: (ui_requests.UiConfirmRequestParams, ui_requests.UiConfirmResult),
    ui_requests.PROMPT: (ui_requests.UiPromptRequestParams, ui_requests.UiPromptResult),
    ui_requests.PICK: (ui_requests.UiPickRequestParams, ui_requests.UiPickResult),
    ui_requests.CLIPBOARD: (ui_requests.UiClipboardReadParams, ui_requests.UiClipboardReadResult),
}
"""Requests from the runtime to a UI: parameters and result."""

NOTIFICATIONS: Final[dict[str, Any]] = {
    "agent.event": runs.AgentEventNotify,
    "run.status": runs.RunStatusNotify,
    "run.context": runs.RunContextNotify,
    "run.diagnostics": runs.RunDiagnosticsNotify,
    "ui.request.cancel": extensions.UiRequestCancel,
    "text.delta": extensions.DeltaNotify,
    "reasoning.delta": extensions.DeltaNotify,
    "todos.update": extensions.TodosUpdate,
}
"""Notifications from the runtime to a UI."""
