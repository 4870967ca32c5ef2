"""What needs permission without a run, and what explains it.

`tool.call` is judged and asked about like a core's call, and the question goes to the one who
called. A tool that failed, or that a rule denies, is `ok: false`; a person's no is -32003.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent import protocol
from telex.agent.permissions import explain_judgement
from telex.agent.permissions.confinement import describe_confinement
from telex.agent.permissions.confirmation import AllowedCall, FailedCall, RefusedCall
from telex.agent.protocol import extensions, sessions
from telex.agent.protocol.ui_requests import CONFIRM, UiConfirmRequestParams, UiConfirmResult
from telex.agent.tools.tool import ToolResult
from telex.agent.tools.tool_registry import BadArguments
from telex.processes.shielded import run_in_thread
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from telex.agent.protocol.events import AgentEvent
    from telex.agent.questions import UiAnswer
    from telex.agent.runtime import AgentRuntime
    from telex.agent.ui_connection import UiConnection


NO_SESSION = ""
"""The list of what a connection calls beside any run belongs to no session."""


class _OneConnection:
    """Asks who called, and nobody else."""

    def __init__(self, runtime: AgentRuntime, connection: UiConnection) -> None:
        self._questions = runtime.questions
        self._connection = connection

    async def emit(self, event: AgentEvent) -> None:
        """There is no run to tell it in; the question has the same in its details."""

    async def ask(self, method: str, params: msgspec.Struct, digest: bytes) -> UiAnswer | None:
        if not self._connection.can_be_asked(method):
            return None
        one = await self._questions.open(None, method, msgspec.json.encode(params), digest)
        one.send_to(self._connection)
        return await self._questions.wait(one)


async def tool_call(
    runtime: AgentRuntime, params: sessions.ToolCallParams, connection: UiConnection
) -> sessions.ToolCallResult:
    call = runtime.tools.prepare(params.name, _arguments(params.arguments))
    context = runtime.context.tool_context(connection.todos)
    asker = _OneConnection(runtime, connection)
    match await runtime.confirmer.confirm(call, context, asker):
        case FailedCall(result):
            return _answer(result)
        case RefusedCall(why, by_person=by_person):
            if by_person:
                raise RpcError(protocol.USER_CANCELLED, f"{params.name} was not run: {why}")
            return _answer(ToolResult(f"Permission denied: {why}", is_error=True))
        case AllowedCall(permitted, given):
            before = given.todos.entries
            result = await permitted.run(given)
            if given.todos.entries != before and connection.capabilities.supports_todos:
                listed = msgspec.to_builtins(given.todos.entries)
                await connection.notify("todos.update", extensions.TodosUpdate(NO_SESSION, listed))
            return _answer(result)


def _answer(result: ToolResult) -> sessions.ToolCallResult:
    value: Any = {"text": result.text, **result.details} if result.details else result.text
    return sessions.ToolCallResult(not result.is_error, value)


def _arguments(raw: msgspec.Raw | msgspec.UnsetType) -> bytes:
    given = b"null" if isinstance(raw, msgspec.UnsetType) else bytes(raw)
    return b"{}" if given == b"null" else given


async def permission_explain(
    runtime: AgentRuntime, params: extensions.PermissionExplainParams, connection: UiConnection
) -> extensions.PermissionExplainResult:
    call = runtime.tools.prepare(params.tool, _arguments(params.arguments))
    context = runtime.context.tool_context(connection.todos)
    try:
        judged = await run_in_thread(lambda _: runtime.confirmer.judge(call, context))
    except OSError as error:  # the directory it would run in is none
        raise BadArguments(f"bad arguments for {params.tool}: {error}") from error
    details = explain_judgement(runtime.confirmer.permissions.judge, judged)
    environment = context.environment
    held = await run_in_thread(
        lambda _: runtime.confirmer.confinement(judged, params.tool, environment)
    )
    root = context.sandbox.root
    details["kernel_sandbox"] = None if held is None else f"it {describe_confinement(held, root)}"
    return extensions.PermissionExplainResult(judged.decision.value, judged.why, details)


async def auth_logout(
    runtime: AgentRuntime, params: sessions.AuthLogoutParams, connection: UiConnection
) -> sessions.AuthLogoutResult:
    """Nothing is signed in to yet; what a yes clears is the connection's current session."""
    if runtime.runs:
        raise RpcError(protocol.BUSY, "a run goes on; wait for it, or cancel it")
    clears = params.clear_session is not False
    then = "the next run begins a new session" if clears else "the next run goes on as before"
    question = UiConfirmRequestParams(
        "Sign out?",
        f"No credentials are stored, so there is nothing to delete. Stored sessions stay; {then}.",
        danger_level="danger",
    )
    answer = await _OneConnection(runtime, connection).ask(CONFIRM, question, b"")
    if answer is None or not (isinstance(answer.value, UiConfirmResult) and answer.value.ok):
        return sessions.AuthLogoutResult(False, False, False, cancelled=True)
    if clears:
        connection.session_id = None
    return sessions.AuthLogoutResult(True, False, session_cleared=clears)
