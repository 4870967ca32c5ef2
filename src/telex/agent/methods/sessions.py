"""Sessions and models."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from telex.agent.feeds import event_notice
from telex.agent.runtime import PROVIDER
from telex.agent.store import StoreProblem, UnknownThread
from telex.protocols.agent_ui import codes, sessions
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from telex.agent.connection import Connection
    from telex.agent.runtime import Runtime

SOURCE: Final = "config"
"""A model is chosen for the whole runtime, never for one session."""


async def session_list(
    runtime: Runtime, params: sessions.SessionListParams, connection: Connection
) -> sessions.SessionListResult:
    limit = 50 if params.limit is None else params.limit
    current = runtime.surroundings.workspace(connection.ui_context)
    try:
        threads = await runtime.store.threads(
            limit if limit > 0 else None, _wanted_workspace(runtime, params, current)
        )
    except StoreProblem as problem:
        raise RpcError(codes.SESSION_LIST_FAILED, str(problem)) from problem
    return sessions.SessionListResult(
        [
            sessions.Session(
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
    runtime: Runtime, params: sessions.SessionListParams, current: str
) -> str | None:
    """None: sessions of every workspace are listed."""
    if params.scope == "all":
        return None
    if params.workspace_root:
        return runtime.surroundings.resolved(params.workspace_root)
    return current if params.scope is not None else None


async def session_history(
    runtime: Runtime, params: sessions.SessionHistoryParams, connection: Connection
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
    except StoreProblem as problem:
        raise RpcError(codes.SESSION_LOAD_FAILED, str(problem)) from problem
    return sessions.SessionHistoryResult(history.runs, sent, history.truncated)


async def model_list(
    runtime: Runtime, params: sessions.ModelListParams, connection: Connection
) -> sessions.ModelListResult:
    if params.provider not in (None, PROVIDER):
        return sessions.ModelListResult(params.provider, [], SOURCE, runtime.model)
    details = {name: core.details for name, core in runtime.cores.items()}
    ordered = sorted(details, key=lambda name: details[name].release_date or "", reverse=True)
    return sessions.ModelListResult(
        PROVIDER, ordered, SOURCE, runtime.model, details if params.include_details else None
    )


async def model_set(
    runtime: Runtime, params: sessions.ModelSetParams, connection: Connection
) -> sessions.ModelSetResult:
    """For the runs that begin from now on, on every connection."""
    runtime.choose(params.name, params.provider)
    return sessions.ModelSetResult(PROVIDER, params.name, SOURCE)
