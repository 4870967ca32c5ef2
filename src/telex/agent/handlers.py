"""Handlers of the protocol's methods: each takes the runtime, the parameters and the connection.

Parameters and results are those of `protocol.METHODS`; `server` registers the handlers by name.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, UnsetType

from telex.agent import protocol
from telex.agent.errors import SeqBeyondEnd
from telex.agent.feeds import Notice, event_notice
from telex.agent.images import read_input
from telex.agent.messages import TextPart
from telex.agent.model_catalogue import ADAPTER, ModelName
from telex.agent.permissions import explain_judgement
from telex.agent.permissions.confinement import describe_confinement
from telex.agent.permissions.confirmation import (
    AllowedCall,
    ConfirmQuestion,
    FailedCall,
    RefusedCall,
    too_long,
)
from telex.agent.protocol import extensions, runs, sessions
from telex.agent.protocol.ui_requests import (
    CLIPBOARD,
    CONFIRM,
    UiConfirmRequestParams,
    UiConfirmResult,
)
from telex.agent.runtime import RunRequest
from telex.agent.slash_commands import UnknownCommand
from telex.agent.store import NotStorable, Status, StoreError, StoreRefused, UnknownThread
from telex.agent.tools.tool import ToolResult
from telex.agent.tools.tool_registry import BadArguments
from telex.processes.shielded import run_in_thread
from telex.rpc.errors import Condition, RpcError
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.agent_run import AgentRun
    from telex.agent.images import StoredInput
    from telex.agent.model_catalogue import ModelChoice
    from telex.agent.permissions.confirmation import CallOutcome
    from telex.agent.questions import UiAnswer
    from telex.agent.runtime import AgentRuntime
    from telex.agent.slash_commands import LoadedInput
    from telex.agent.store import StoredRun
    from telex.agent.tools.tool import ToolContext
    from telex.agent.tools.tool_registry import PreparedCall
    from telex.agent.ui_connection import UiConnection


SERVER: Final = runs.PeerInfo("telex-agent", __version__)
NO_SESSION: Final = ""
"""The session id of a to-do list that a connection changes outside any run."""


# Runs.


async def initialize(
    runtime: AgentRuntime, params: runs.InitializeParams, connection: UiConnection
) -> runs.InitializeResult:
    """Return our protocol version whatever the UI's version is; the UI decides whether it
    continues. The workspace is open by now."""
    can = runs.ServerCapabilities(supports_run_diagnostics=runtime.diagnostics)
    return runs.InitializeResult(
        protocol.VERSION, SERVER, can, workspace=connection.workspace.describe()
    )


async def run_start(
    runtime: AgentRuntime, params: runs.RunStartParams, connection: UiConnection
) -> runs.RunStartResult:
    """Start a run in the named session, else in the connection's current one, else in a new one.

    Runs of one connection are started one at a time: a second `run.start` in the same read finds
    the session of the first, and is refused because that session is busy.
    """
    if params.session_id is not None and params.new_session:
        raise RpcError(Condition.PARAMS, "`session_id` and `new_session` exclude each other.")
    raw, images = _one_line(bytes(params.input)), connection.workspace.context.images
    said = await run_in_thread(lambda _: read_input(raw, images))
    meta = _raw_or_none(params.meta)
    if meta is not None:
        msgspec.json.decode(meta, type=dict[str, Raw])
    ui_context = _context(params.ui_context)
    async with connection.starting:
        current = None if params.new_session else connection.session_id
        session_id = current if params.session_id is None else params.session_id
        asked = RunRequest(
            said,
            await _called(runtime, said, session_id, connection),
            session_id,
            bool(params.force_compaction),
            meta,
            ui_context,
        )
        started = await _started(runtime, asked, connection)
        connection.session_id = started.session_id
    return started


async def _called(
    runtime: AgentRuntime, said: StoredInput, session_id: str | None, connection: UiConnection
) -> LoadedInput | None:
    """Return what `/name` in the input loads. The TUI of another agent has commands of its own: it
    gets a name that telex does not know."""
    try:
        return await connection.workspace.context.slash_commands.load(_typed_text(said))
    except UnknownCommand:
        choice = await runtime.models.current(session_id, connection.model)
        if choice.provider != ADAPTER:
            raise
        return None


def _typed_text(said: StoredInput) -> str:
    """Return the text with which the input begins."""
    first = said.message.parts[0]
    return first.text if isinstance(first, TextPart) else ""


async def _started(
    runtime: AgentRuntime, asked: RunRequest, connection: UiConnection
) -> runs.RunStartResult:
    try:
        return await runtime.start(asked, connection)
    except StoreRefused:
        raise
    except StoreError as problem:
        code = protocol.INTERNAL if asked.session_id is None else protocol.SESSION_LOAD_FAILED
        raise RpcError(code, str(problem)) from problem


async def run_cancel(
    runtime: AgentRuntime, params: runs.RunCancelParams, connection: UiConnection
) -> runs.RunCancelResult:
    return await runtime.cancel(params.run_id, params.reason, connection)


def ui_context_update(runtime: AgentRuntime, params: Raw, connection: UiConnection) -> None:
    """Replace the whole context of the connection."""
    connection.ui_context = _context(params)


async def run_steer(
    runtime: AgentRuntime, params: extensions.RunSteerParams, connection: UiConnection
) -> extensions.RunSteerResult:
    """Queue a text for the core, which reads it at its next step. `ok` is false once the run has
    ended."""
    if (run := runtime.runs.get(params.run_id)) is not None:
        return extensions.RunSteerResult(await run.steer(params.text), run.status)
    stored = await runtime.store.run(params.run_id)
    return extensions.RunSteerResult(False, stored.status.value)


async def run_diff(
    runtime: AgentRuntime, params: extensions.RunDiffParams, connection: UiConnection
) -> extensions.RunDiffResult:
    """Return the diffs that are stored in the meta of each `tool_result`, also of an old run."""
    found: list[extensions.FileDiff] = []
    async for event in runtime.store.events(params.run_id):
        if event.meta is not None:
            details = msgspec.json.decode(event.meta, type=_Meta).details
            if details.diff and details.path:
                found.append(extensions.FileDiff(details.path, details.diff, details.truncated))
    return extensions.RunDiffResult(params.run_id, found)


class _Details(msgspec.Struct):
    path: str = ""
    diff: str = ""
    truncated: bool = False


class _Meta(msgspec.Struct):
    details: _Details = msgspec.field(default_factory=_Details)


def _context(raw: Raw | UnsetType) -> bytes | None:
    """Validate a UI context, and return it as received."""
    given = _raw_or_none(raw)
    if given is not None:
        msgspec.json.decode(given, type=runs.UiContext)
    return given


def _raw_or_none(raw: Raw | UnsetType) -> bytes | None:
    given = b"null" if isinstance(raw, UnsetType) else bytes(raw)
    return None if given == b"null" else _one_line(given)


def _one_line(raw: bytes) -> bytes:
    """Remove line breaks between members, which a body sent over HTTP may have. Stored JSON has
    none."""
    return msgspec.json.format(raw, indent=-1) if b"\n" in raw or b"\r" in raw else raw


async def run_attach(
    runtime: AgentRuntime, params: extensions.RunAttachParams, connection: UiConnection
) -> extensions.RunAttachResult:
    """Subscribe to an active run, resume a suspended one, or replay one that ended. The feed begins
    after the response is sent, because its task runs in a later step of the event loop."""
    after = -1 if params.after_seq is None else params.after_seq
    stored = await _find_run(runtime, params.run_id, after, connection)
    begin: Callable[[], None] | str = ""
    if stored.status is Status.AWAITING_UI and params.run_id not in runtime.runs:
        begin = await runtime.resume(stored, connection)
    if (run := runtime.runs.get(params.run_id)) is not None:
        _subscribe(runtime, run, connection, after)
        if not isinstance(begin, str):
            begin()
        return extensions.RunAttachResult(run.run_id, run.session_id, run.status)
    if not stored.status.ended:
        stored = await runtime.store.run(params.run_id)  # it may have ended meanwhile
    if not stored.status.ended and isinstance(begin, str) and begin:
        stored = replace(stored, message=f"not resumed: {begin}")
    _watch(runtime, stored, connection, after)
    return extensions.RunAttachResult(stored.run_id, stored.session_id, stored.status.value)


async def _find_run(
    runtime: AgentRuntime, run_id: str, after: int, connection: UiConnection
) -> StoredRun:
    """Return the stored run, and end it if its runtime has died without ending it.

    Raises `UnknownRun`, `SeqBeyondEnd`, and `RunNotOurs` if another runtime has the run.
    """
    store = runtime.store
    stored = await store.run(run_id)
    if not stored.status.ended and run_id not in runtime.runs:
        await store.end_if_abandoned(run_id)
        stored = await store.run(run_id)
    if after > (last := await store.last_seq(run_id)):
        raise SeqBeyondEnd(f"after_seq is {after}, and the last event of run {run_id} is {last}")
    may_return = bool(connection.capabilities.supports_run_attach)
    if may_return and not (stored.status.ended or stored.may_return):
        await store.may_return(run_id)
    return stored


def _subscribe(runtime: AgentRuntime, run: AgentRun, connection: UiConnection, after: int) -> None:
    feed = runtime.subscriptions.subscribe(run, connection, after)
    feed.begin_after(run.publisher.last_seq)
    if not run.phases.ended:  # else the last status is about to be sent to all feeds
        run.send_status_to(feed)
    for question in runtime.questions.of_run(run.run_id):
        runtime.questions.offer(question, feed)


def _watch(runtime: AgentRuntime, stored: StoredRun, connection: UiConnection, after: int) -> None:
    feed = runtime.subscriptions.open_feed(stored.run_id, connection, after)
    status: runs.RunStatus = stored.status.value
    notice = runs.RunStatusNotify(stored.run_id, status, stored.message)
    feed.add_notice(Notice("run.status", notice))
    if stored.status.ended or connection.input_ended:
        feed.finish()
    else:
        runtime.subscriptions.watch(feed)


# Sessions, models, skills, context and shell.


async def session_list(
    runtime: AgentRuntime, params: sessions.SessionListParams, connection: UiConnection
) -> sessions.SessionListResult:
    limit = 50 if params.limit is None else params.limit
    current = connection.workspace.context.workspace(connection.ui_context)
    try:
        threads = await runtime.store.threads(
            limit if limit > 0 else None, _wanted_workspace(params, current, connection)
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
    params: sessions.SessionListParams, current: str, connection: UiConnection
) -> str | None:
    """Return the workspace whose sessions are listed; None for all workspaces."""
    if params.scope == "all":
        return None
    if params.workspace_root:
        return connection.workspace.context.resolve_workspace(params.workspace_root)
    return current if params.scope is not None else None


async def session_history(
    runtime: AgentRuntime, params: sessions.SessionHistoryParams, connection: UiConnection
) -> sessions.SessionHistoryResult:
    """Send the events as notifications, marked as a replay, before the response."""
    most_runs = 20 if params.max_runs is None else params.max_runs
    most = 1500 if params.max_events is None else params.max_events
    sent = 0
    try:
        history = await runtime.store.history(params.session_id, most_runs, most)
        async for event in history:
            notice = event_notice(event, connection.capabilities, replay=True)
            await connection.peer.notify("agent.event", notice)
            sent += 1
    except UnknownThread:
        raise
    except StoreError as problem:
        raise RpcError(protocol.SESSION_LOAD_FAILED, str(problem)) from problem
    return sessions.SessionHistoryResult(history.runs, sent, history.truncated)


async def model_list(
    runtime: AgentRuntime, params: sessions.ModelListParams, connection: UiConnection
) -> sessions.ModelListResult:
    """List the models of one provider, by default that of the current model."""
    current = await runtime.models.current(connection.session_id, connection.model)
    provider = current.provider if params.provider is None else params.provider
    found = await runtime.models.of_provider(provider)
    details = {choice.name: choice.core.details for choice in found}
    return sessions.ModelListResult(
        provider,
        list(details),
        current.source,
        current.name,
        details if params.include_details and found else None,
    )


async def model_set(
    runtime: AgentRuntime, params: sessions.ModelSetParams, connection: UiConnection
) -> sessions.ModelSetResult:
    """Choose the model for runs that begin from now on: on every connection, or in one session."""
    if params.reset:
        await _choose_for_session(runtime, None, connection)
    elif params.name is None:
        raise RpcError(Condition.PARAMS, "`name` is missing; give it, or `reset`.")
    else:
        chosen = await runtime.models.find(params.name, params.provider)
        if params.scope == "session":
            await _choose_for_session(runtime, chosen, connection)
        else:
            runtime.models.set_default(chosen)
            return sessions.ModelSetResult(chosen.provider, chosen.name, "config")
    current = await runtime.models.current(connection.session_id, connection.model)
    return sessions.ModelSetResult(current.provider, current.name, current.source)


async def _choose_for_session(
    runtime: AgentRuntime, chosen: ModelChoice | None, connection: UiConnection
) -> None:
    if connection.session_id is not None:
        await runtime.models.set_for_session(connection.session_id, chosen)
    else:
        connection.model = None if chosen is None else ModelName(chosen.provider, chosen.name)


async def mcp_list(
    runtime: AgentRuntime, params: sessions.McpListParams, connection: UiConnection
) -> sessions.McpListResult:
    """List the MCP servers of the connection's workspace, also during runs. `loaded` are those that
    are enabled, which are started now; `configured` are all, and none is started."""
    mcp = connection.workspace.mcp
    if mcp is None:
        return sessions.McpListResult([])
    return sessions.McpListResult(mcp.list_servers(start=params.scope != "configured"))


async def skills_list(
    runtime: AgentRuntime, params: sessions.SkillsListParams, connection: UiConnection
) -> sessions.SkillsListResult:
    return await connection.workspace.context.list_skills(
        params.cwd, reload=bool(params.force_reload)
    )


async def context_inspect(
    runtime: AgentRuntime, params: sessions.ContextInspectParams, connection: UiConnection
) -> sessions.ContextInspectResult:
    return await connection.workspace.context.inspect(params, connection.ui_context)


async def shell_exec(
    runtime: AgentRuntime, params: sessions.ShellExecParams, connection: UiConnection
) -> sessions.ShellExecResult:
    """Run the person's own command, outside any run. It needs no permission, and is killed when its
    connection closes."""
    return await connection.workspace.context.run_shell(params)


# Calls of tools outside a run, and questions to the connection that sent a request.


async def tool_call(
    runtime: AgentRuntime, params: sessions.ToolCallParams, connection: UiConnection
) -> sessions.ToolCallResult:
    """Run a tool outside any run, after the same judgement as in a run. The question goes only to
    the connection that made the call. A tool that failed, or that a rule denies, is `ok: false`; a
    no of the person is -32003."""
    call = connection.workspace.tools.prepare(params.name, _arguments(params.arguments))
    context = connection.workspace.context.tool_context(connection.todos)
    if connection.can_be_asked(CLIPBOARD):
        context = replace(context, read_clipboard=connection.read_clipboard)
    match await _confirm(runtime, call, context, connection):
        case FailedCall(result):
            return _call_result(result, connection)
        case RefusedCall(why, by_person=by_person):
            if by_person:
                raise RpcError(protocol.USER_CANCELLED, f"{params.name} was not run: {why}")
            return _call_result(ToolResult(f"Permission denied: {why}", is_error=True), connection)
        case AllowedCall(permitted, given):
            before = given.todos.entries
            result = await permitted.run(given)
            if given.todos.entries != before and connection.capabilities.supports_todos:
                listed = msgspec.to_builtins(given.todos.entries)
                await connection.notify("todos.update", extensions.TodosUpdate(NO_SESSION, listed))
            return _call_result(result, connection)


async def _confirm(
    runtime: AgentRuntime, call: PreparedCall, context: ToolContext, connection: UiConnection
) -> CallOutcome:
    """Judge the call, and ask the connection that made it. The events of the question are dropped,
    because there is no run to which they belong; its details have the same information."""
    confirmer = connection.workspace.confirmer
    found = await confirmer.confirm(call, context)
    if not isinstance(found, ConfirmQuestion):
        return found
    try:
        answer = await _ask(runtime, connection, found.params, found.digest)
    except NotStorable as problem:
        return too_long(problem)
    return await confirmer.settle(found, answer)


async def _ask(
    runtime: AgentRuntime,
    connection: UiConnection,
    params: UiConfirmRequestParams,
    digest: bytes = b"",
) -> UiAnswer | None:
    """Send a question only to the connection that made the call; None if it cannot show one."""
    encoded = msgspec.json.encode(params)
    return await runtime.questions.ask_connection(connection, CONFIRM, encoded, digest)


def _call_result(result: ToolResult, connection: UiConnection) -> sessions.ToolCallResult:
    details = dict(result.details)
    if result.image and connection.capabilities.supports_images:
        details["screenshot_base64"] = base64.b64encode(result.image).decode()
    value: Any = {"text": result.text, **details} if details else result.text
    return sessions.ToolCallResult(not result.is_error, value)


def _arguments(raw: Raw | UnsetType) -> bytes:
    return _raw_or_none(raw) or b"{}"


async def permission_explain(
    runtime: AgentRuntime, params: extensions.PermissionExplainParams, connection: UiConnection
) -> extensions.PermissionExplainResult:
    """Judge a call without running it, and return the reasons."""
    call = connection.workspace.tools.prepare(params.tool, _arguments(params.arguments))
    context = connection.workspace.context.tool_context(connection.todos)
    confirmer = connection.workspace.confirmer
    try:
        judged = await run_in_thread(lambda _: confirmer.judge(call, context))
    except OSError as error:  # the working directory is not a directory
        raise BadArguments(f"invalid arguments for {params.tool}: {error}") from error
    details = explain_judgement(confirmer.permissions.judge, judged)
    confined = await run_in_thread(
        lambda _: confirmer.confinement(judged, params.tool, context.environment)
    )
    root = context.sandbox.root
    details["kernel_sandbox"] = confined and f"it {describe_confinement(confined, root)}"
    return extensions.PermissionExplainResult(judged.decision.value, judged.why, details)


async def auth_logout(
    runtime: AgentRuntime, params: sessions.AuthLogoutParams, connection: UiConnection
) -> sessions.AuthLogoutResult:
    """Ask to sign out. A yes deletes the keys that `telex agent login` stored, and clears the
    connection's current session."""
    if runtime.runs:
        raise RpcError(protocol.BUSY, "a run is active; wait for it, or cancel it")
    clears = params.clear_session is not False
    then = "starts a new session" if clears else "continues the current session"
    question = UiConfirmRequestParams(
        "Sign out?",
        "The keys that `telex agent login` stored are deleted; keys in variables and commands are "
        f"not. Stored sessions stay; the next run {then}.",
        danger_level="danger",
    )
    answer = await _ask(runtime, connection, question)
    if answer is None or not (isinstance(answer.value, UiConfirmResult) and answer.value.ok):
        return sessions.AuthLogoutResult(False, False, False, cancelled=True)
    if clears:
        connection.session_id = None
    forgotten = await run_in_thread(lambda _: runtime.models.forget_keys())
    return sessions.AuthLogoutResult(True, bool(forgotten), session_cleared=clears)
