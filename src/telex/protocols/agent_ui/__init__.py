"""The agent UI protocol, version 0, as data: what a UI and a runtime say to each other.

The spec is Codelia's `ui-protocol.md`. Unknown members are tolerated everywhere, and survive where
they are stored (`event`, `meta`, `input`, `ui_context`). `null` is as good as omitted.

    codes       version, error numbers, names kept free
    running     initialize, runs, notifications
    events      the kinds of event in a run
    sessions    sessions, models, tools, skills, surroundings, shell
    asking      confirm, prompt, pick
    extensions  ours, by capability
"""

from __future__ import annotations

from typing import Any, Final

from telex.protocols.agent_ui import asking, extensions, running, sessions

METHODS: Final[dict[str, tuple[Any, Any]]] = {
    "initialize": (running.InitializeParams, running.InitializeResult),
    "run.start": (running.RunStartParams, running.RunStartResult),
    "run.cancel": (running.RunCancelParams, running.RunCancelResult),
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
    "ui.context.update": (running.UiContext, None),
    "run.attach": (extensions.RunAttachParams, extensions.RunAttachResult),
    "run.steer": (extensions.RunSteerParams, extensions.RunSteerResult),
    "run.diff": (extensions.RunDiffParams, extensions.RunDiffResult),
    "permission.explain": (extensions.PermissionExplainParams, extensions.PermissionExplainResult),
}
"""What a UI asks of the runtime: parameters and result."""

REQUESTS: Final[dict[str, tuple[Any, Any]]] = {
    asking.CONFIRM: (asking.UiConfirmRequestParams, asking.UiConfirmResult),
    asking.PROMPT: (asking.UiPromptRequestParams, asking.UiPromptResult),
    asking.PICK: (asking.UiPickRequestParams, asking.UiPickResult),
}
"""What the runtime asks of a UI."""

NOTIFICATIONS: Final[dict[str, Any]] = {
    "agent.event": running.AgentEventNotify,
    "run.status": running.RunStatusNotify,
    "run.context": running.RunContextNotify,
    "run.diagnostics": running.RunDiagnosticsNotify,
    "ui.request.cancel": extensions.UiRequestCancel,
    "text.delta": extensions.DeltaNotify,
    "reasoning.delta": extensions.DeltaNotify,
    "todos.update": extensions.TodosUpdate,
}
"""What the runtime tells a UI."""
