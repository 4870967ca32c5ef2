"""May this call be made? Judged first, asked where the judgement says so, and bound to the answer.

The person is shown every byte that will be used, escaped, and the question carries a digest of it.
What runs is the call that was shown: in the places that its paths led to when it was judged, on the
file as it was then, with the digest made again after the answer. If anything differs, nothing runs.
The places hold also for what is allowed without a question, and so does the kernel's sandbox, which
holds nothing that the person said yes to (`confinement`).

Used for the calls of a core and for `tool.call`; whoever asks says how (`Asker`).
"""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from telex.agent.limits import AGENT_BOUND_PATHS
from telex.agent.permissions import (
    Mode,
    Permission,
    PermissionRequest,
    digest,
    explain_judgement,
    in_line,
    in_quotes,
    in_sentence,
)
from telex.agent.permissions.bound_files import BoundFiles, find_bound_files
from telex.agent.permissions.confinement import confinement, without_service_sockets
from telex.agent.permissions.question_text import link_notes, question_message
from telex.agent.permissions.reader_environment import (
    needs_reader_environment,
    unattended_environment,
)
from telex.agent.permissions.tool_rules import PATH_ARGUMENTS, PATH_TOOLS, SHELL_TOOL
from telex.agent.permissions.workspace_permissions import REMEMBERED
from telex.agent.protocol import events
from telex.agent.protocol.ui_requests import CONFIRM, UiConfirmRequestParams, UiConfirmResult
from telex.agent.sandbox_files import OutsideSandbox, Sandbox
from telex.agent.store import NotStorable
from telex.agent.tools.tool import Preview, ToolResult
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.agent.permissions import Judgement, RememberScope
    from telex.agent.permissions.workspace_permissions import WorkspacePermissions
    from telex.agent.questions import UiAnswer
    from telex.agent.store import Store
    from telex.agent.tools.tool import ToolContext
    from telex.agent.tools.tool_registry import PreparedCall
    from telex.processes.sandbox import Confinement, Kernel

WHY = "Why you are asked: "
NO_CONFIRM = "nobody here can be asked"
WANTS_OUT = "the agent asks to run it outside the kernel's sandbox"
OUTSIDE_SANDBOX = "outside_sandbox"
"""The argument of the shell tool that asks for it."""
TOO_MANY_FILES = (
    f"it may use more files than an answer can be bound to ({AGENT_BOUND_PATHS} paths), so that "
    "nobody was asked: give it in parts, or write the long text to a file first"
)
SAID_NO_BEFORE = "you said no to this before (`telex agent remembered` lists and forgets it)"


class Asker(Protocol):
    """Who can be asked on behalf of a call."""

    async def emit(self, event: events.AgentEvent) -> None: ...

    async def ask(self, method: str, params: msgspec.Struct, digest: bytes) -> UiAnswer | None:
        """None: there is nobody who could be asked."""
        ...


@dataclass(frozen=True, slots=True)
class AllowedCall:
    """Run this, in that."""

    call: PreparedCall
    context: ToolContext


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """It does not run, and why. `stop`: the person said no and nothing else."""

    why: str
    stop: bool = False
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class FailedCall:
    """It would fail, so nobody was asked."""

    result: ToolResult


CallOutcome = AllowedCall | RefusedCall | FailedCall


class Confirmer:
    """One for each runtime."""

    def __init__(
        self, permissions: WorkspacePermissions, store: Store, kernel: Kernel | None = None
    ) -> None:
        """`kernel` is another than this one, for tests."""
        self.permissions = permissions
        self._store = store
        self._kernel = kernel

    def judge(self, call: PreparedCall, context: ToolContext) -> Judgement:
        """Looks where paths lead; blocks. Raises what the sandbox and the system say."""
        return self._judged(_request(call, context), context)

    def confinement(
        self, judged: Judgement, tool: str, environment: Mapping[str, str]
    ) -> Confinement | None:
        """What the kernel would hold the call to; blocks."""
        return confinement(judged, self.permissions.judge, tool, environment, self._kernel)

    def _judged(self, request: PermissionRequest, context: ToolContext) -> Judgement:
        judged = self.permissions.judge.judge(request)
        wants_out = request.tool == SHELL_TOOL and request.arguments.get(OUTSIDE_SANDBOX)
        if wants_out and self.confinement(judged, request.tool, context.environment) is not None:
            return replace(judged, decision=Permission.ASK, why=WANTS_OUT, rule=None, remember=())
        return judged

    async def confirm(
        self, call: PreparedCall, context: ToolContext, asker: Asker, call_id: str | None = None
    ) -> CallOutcome:
        request = await run_in_thread(lambda _: _judgeable(call, context))
        if isinstance(request, ToolResult):
            return FailedCall(request)
        judged = await run_in_thread(lambda _: self._judged(request, context))
        there = _there(call, request, judged)
        context = replace(context, sandbox=context.sandbox.exactly())
        match judged.decision:
            case Permission.ALLOW:
                return await run_in_thread(lambda _: self._allowed(judged, there, context))
            case Permission.DENY:
                return RefusedCall(_reason(judged))
        preview = await there.preview(context)
        if isinstance(preview, ToolResult):
            return FailedCall(preview)
        if preview is not None:
            there = there.pinned(preview)
            await asker.emit(_previewed(there, preview, call_id))
        await asker.emit(events.PermissionReadyEvent(call.tool.name, call_id))
        said = question_message(there, call, preview, context)
        return await self._asked(judged, there, context, asker, said)

    def _allowed(self, judged: Judgement, call: PreparedCall, context: ToolContext) -> AllowedCall:
        environment = self._safe(judged, context)
        held = self.confinement(judged, call.tool.name, environment)
        if held is not None:
            environment = without_service_sockets(environment)
        return AllowedCall(call, replace(context, environment=environment, confinement=held))

    def _safe(self, judged: Judgement, context: ToolContext) -> dict[str, str]:
        # A remembered text is one of readers; another text that a rule names is as the person's.
        rule = judged.rule
        is_text = rule is not None and rule.text is not None and rule.layer != REMEMBERED
        is_free = is_text or self.permissions.mode is Mode.FULL
        only_reads = not is_free and needs_reader_environment(judged.pieces)
        return unattended_environment(
            context.environment, self.permissions.root, only_reads=only_reads
        )

    async def _asked(
        self, judged: Judgement, call: PreparedCall, context: ToolContext, asker: Asker, said: str
    ) -> CallOutcome:
        files = await run_in_thread(lambda _: self._files(judged, call, context))
        if not files.is_whole:
            return RefusedCall(TOO_MANY_FILES)
        bound = _digest(call, context, files)
        try:
            whole = "\n\n".join([said, *link_notes(files)])
            params = self._question(judged, call, whole, bound)
            answer = await asker.ask(CONFIRM, params, bound.encode())
        except NotStorable as problem:
            return RefusedCall(f"it is too long to be shown: {problem}")
        if answer is None:
            return RefusedCall(f"{NO_CONFIRM}; {judged.why}")
        verdict = _told(answer.value, call, context)
        if isinstance(verdict, AllowedCall):
            now = await run_in_thread(lambda _: self._files(judged, call, context))
            if changed := _changed(files, now):
                return RefusedCall(changed)
            if answer.digest != _digest(call, context, now).encode():
                return RefusedCall("the answer is about something else; nothing was run")
        await self._remember(judged, answer)
        return verdict

    def _files(self, judged: Judgement, call: PreparedCall, context: ToolContext) -> BoundFiles:
        if call.tool.name != SHELL_TOOL:
            return BoundFiles({}, is_whole=True)
        given, paths = call.arguments, self.permissions.judge.paths
        sandbox = Sandbox(context.sandbox.root)
        return find_bound_files(judged, paths, sandbox, Path(given.cwd), given.command)

    def _question(
        self, judged: Judgement, call: PreparedCall, said: str, bound: str
    ) -> UiConfirmRequestParams:
        scope = judged.remember[:1]
        lines = [said, f"{WHY}{in_sentence(judged.why)}."]
        lines += [self._offer(one) for one in scope]
        return UiConfirmRequestParams(
            title="Run command?" if call.tool.name == SHELL_TOOL else "Run tool?",
            message="\n\n".join(lines),
            confirm_label="Allow",
            cancel_label="Deny",
            danger_level="danger" if judged.not_understood else "normal",
            allow_remember=bool(scope),
            allow_reason=True,
            details={"digest": bound, **explain_judgement(self.permissions.judge, judged)},
        )

    def _offer(self, scope: RememberScope) -> str:
        """The one thing that is remembered. Wider ones are in the details, for rules by hand."""
        return (
            f"Remember (don't ask again): {in_sentence(scope.says)}.\n"
            "Your answer, yes or no, then counts for that and nothing else, "
            f"in the workspace {in_quotes(self.permissions.root)}."
        )

    async def _remember(self, judged: Judgement, answer: UiAnswer) -> None:
        said = answer.value
        if not (isinstance(said, UiConfirmResult) and said.remember and judged.remember):
            return
        await self.permissions.remember(
            self._store,
            judged.remember[0],
            allowed=said.ok,
            by=answer.by,
            request_id=answer.request_id,
        )


def _told(said: Any, call: PreparedCall, context: ToolContext) -> CallOutcome:
    match said:
        case UiConfirmResult(ok=True):
            return AllowedCall(call, context)
        case UiConfirmResult(reason=str(reason)) if reason.strip():
            return RefusedCall(reason.strip(), by_person=True)
        case UiConfirmResult():
            return RefusedCall("the person said no", stop=True, by_person=True)
    return RefusedCall("nobody answered the question", stop=True)


def _request(call: PreparedCall, context: ToolContext) -> PermissionRequest:
    """What leads out of the sandbox would fail, so it is not judged."""
    arguments = msgspec.to_builtins(call.arguments)
    cwd = context.cwd
    if call.tool.name == SHELL_TOOL:
        cwd = context.sandbox.directory(arguments.get("cwd") or ".", context.cwd)
    elif call.tool.name in PATH_TOOLS:
        for name in PATH_ARGUMENTS:
            if name in arguments:
                context.sandbox.place(arguments[name], context.cwd)
    return PermissionRequest(call.tool.name, arguments, os.fspath(cwd))


def _judgeable(call: PreparedCall, context: ToolContext) -> PermissionRequest | ToolResult:
    try:
        return _request(call, context)
    except (OutsideSandbox, OSError) as error:
        return ToolResult(str(error), is_error=True)


def _there(call: PreparedCall, request: PermissionRequest, judged: Judgement) -> PreparedCall:
    """The same call with the very places that were judged, without links."""
    if call.tool.name == SHELL_TOOL:
        return call.with_arguments(cwd=request.cwd)
    touched = [one for piece in judged.pieces for one in piece.touched]
    if call.tool.name not in PATH_TOOLS or not touched:
        return call
    return call.with_arguments(
        **{name: touched[0].real for name in PATH_ARGUMENTS if name in request.arguments}
    )


def _changed(then: BoundFiles, now: BoundFiles) -> str:
    """What is no longer as it was when the question was asked; empty if all is."""
    for path, before in then.files.items():
        after = now.files.get(path)
        if after is not None and before.leads != after.leads:
            return f"{in_quotes(path)} leads to {in_quotes(after.leads)} by now; nothing was done"
        if before != after:
            return f"{in_quotes(path)} has changed since the question; nothing was run"
    return ""


def _reason(judged: Judgement) -> str:
    if judged.rule is None:
        return judged.why
    before = SAID_NO_BEFORE if judged.rule.layer == REMEMBERED else ""
    return judged.rule.reason or before or judged.why


def _digest(call: PreparedCall, context: ToolContext, bound: BoundFiles) -> str:
    """Of the tool, where it runs, its arguments to the last byte, and the files it names."""
    named = {in_line(path): [*map(in_line, astuple(one))] for path, one in bound.files.items()}
    parts = msgspec.json.encode(call.arguments), msgspec.json.encode(named)
    return digest(call.tool.name, os.fspath(context.cwd), *parts)


def _previewed(call: PreparedCall, preview: Preview[Any], call_id: str | None) -> events.AgentEvent:
    return events.PermissionPreviewEvent(
        call.tool.name,
        call_id,
        file_path=in_line(preview.path),
        diff=preview.diff,
        truncated=preview.truncated,
    )
