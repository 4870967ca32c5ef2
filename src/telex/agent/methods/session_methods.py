"""Handlers of `session.*`, `model.*`, `mcp.list`, `skills.list`, `context.*`, `shell.exec`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from telex.agent import protocol
from telex.agent.feeds import event_notice
from telex.agent.protocol import sessions
from telex.agent.runtime import PROVIDER
from telex.agent.store import StoreError, UnknownThread
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from telex.agent.runtime import AgentRuntime
    from telex.agent.ui_connection import UiConnection


SOURCE: Final = "config"
"""A model is chosen for the whole runtime, never for one session."""


async def session_list(
    runtime: AgentRuntime, params: sessions.SessionListParams, connection: UiConnection
) -> sessions.SessionListResult:
    limit = 50 if params.limit is None else params.limit
    current = runtime.context.workspace(connection.ui_context)
    try:
        threads = await runtime.store.threads(
            limit if limit > 0 else None, _wanted_workspace(runtime, params, current)
        )
    except StoreError as problem:
        raise RpcError(protocol.SESSION_LIST_FAILED, str(problem)) from problem
    return sessions.SessionListResult(
        [
            sessions.SessionSummary(
                thread.session_id,
                datetime.fromtimestamp(thread.updated_at / 1000, UTC)
                .isoformat(timespec="milliseconds")
                .replace("+00:00", "Z"),
                thread.last_run_id,
                thread.message_count,
                thread.last_user_message,
                thread.workspace,
            )
            for thread in threads
        ],
        current,
    )


def _wanted_workspace(
    runtime: AgentRuntime, params: sessions.SessionListParams, current: str
) -> str | None:
    """None: sessions of every workspace are listed."""
    if params.scope == "all":
        return None
    if params.workspace_root:
        return runtime.context.resolve_workspace(params.workspace_root)
    return current if params.scope is not None else None


async def session_history(
    runtime: AgentRuntime, params: sessions.SessionHistoryParams, connection: UiConnection
) -> sessions.SessionHistoryResult:
    """Everything is sent before the answer, marked as a replay."""
    runs = 20 if params.max_runs is None else params.max_runs
    most = 1500 if params.max_events is None else params.max_events
    sent = 0
    try:
        history = await runtime.store.history(params.session_id, runs, most)
        async for event in history:
            await connection.peer.notify("agent.event", event_notice(event, replay=True))
            sent += 1
    except UnknownThread:
        raise
    except StoreError as problem:
        raise RpcError(protocol.SESSION_LOAD_FAILED, str(problem)) from problem
    return sessions.SessionHistoryResult(history.runs, sent, history.truncated)


async def model_list(
    runtime: AgentRuntime, params: sessions.ModelListParams, connection: UiConnection
) -> sessions.ModelListResult:
    if params.provider not in (None, PROVIDER):
        return sessions.ModelListResult(params.provider, [], SOURCE, runtime.model)
    details = {name: core.details for name, core in runtime.cores.items()}
    ordered = sorted(details, key=lambda name: details[name].release_date or "", reverse=True)
    return sessions.ModelListResult(
        PROVIDER, ordered, SOURCE, runtime.model, details if params.include_details else None
    )


async def model_set(
    runtime: AgentRuntime, params: sessions.ModelSetParams, connection: UiConnection
) -> sessions.ModelSetResult:
    """For the runs that begin from now on, on every connection."""
    runtime.select_model(params.name, params.provider)
    return sessions.ModelSetResult(PROVIDER, params.name, SOURCE)


async def mcp_list(
    runtime: AgentRuntime, params: sessions.McpListParams, connection: UiConnection
) -> sessions.McpListResult:
    """No MCP server can be configured yet, so none is loaded either."""
    return sessions.McpListResult([])


async def skills_list(
    runtime: AgentRuntime, params: sessions.SkillsListParams, connection: UiConnection
) -> sessions.SkillsListResult:
    return await runtime.context.list_skills(params.cwd, reload=bool(params.force_reload))


async def context_inspect(
    runtime: AgentRuntime, params: sessions.ContextInspectParams, connection: UiConnection
) -> sessions.ContextInspectResult:
    return await runtime.context.inspect(params, connection.ui_context)


async def shell_exec(
    runtime: AgentRuntime, params: sessions.ShellExecParams, connection: UiConnection
) -> sessions.ShellExecResult:
    """The person's own command, beside any run: nobody is asked, and the end of its connection
    ends it."""
    return await runtime.context.run_shell(params)
