"""Judge a tool call, create the question for the user, and bind the answer to what was shown.

The question shows every byte that will be used, escaped, and has a digest of it. Only the call that
was shown runs: with the paths as they were resolved when it was judged, on the file as it was then,
and with the digest computed again after the answer. If anything differs, nothing runs. The resolved
paths are also used for calls that are allowed without a question. Those run in the kernel sandbox
too; calls that the user approved do not (`confinement`).

Used for the calls of a core and for `tool.call`. `confirm` returns an outcome, or a question that
the caller sends; `settle` turns the answer into an outcome.
"""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from telex.agent.permissions.judge import Judgement
from telex.agent.permissions.question_text import link_notes, question_message
from telex.agent.permissions.reader_environment import (
    needs_reader_environment,
    unattended_environment,
)
from telex.agent.permissions.terminal_confirmation import (
    JUDGED_TOOLS,
    REMEMBER_TERMINAL,
    JudgedTerminal,
    judge_do,
    judge_open,
)
from telex.agent.permissions.tool_rules import PATH_ARGUMENTS, PATH_TOOLS, SHELL_TOOL
from telex.agent.permissions.workspace_permissions import REMEMBERED
from telex.agent.protocol import events
from telex.agent.protocol.ui_requests import UiConfirmRequestParams, UiConfirmResult
from telex.agent.sandbox_files import OutsideSandbox, Sandbox
from telex.agent.tools.terminal_tools import (
    NO_TERMINALS,
    TerminalDo,
    TerminalOpen,
    facts_of,
    find_terminal,
    types_something,
    wait_for_person,
)
from telex.agent.tools.tool import Preview, ToolFailed, ToolResult
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.agent.permissions import Judgement, RememberScope
    from telex.agent.permissions.workspace_permissions import WorkspacePermissions
    from telex.agent.questions import UiAnswer
    from telex.agent.store import NotStorable
    from telex.agent.tools.tool import ToolContext
    from telex.agent.tools.tool_registry import PreparedCall
    from telex.processes.sandbox import Confinement, Kernel

WHY = "Why you are asked: "
NO_CONFIRM = "no user can be asked here"
WANTS_OUT = "the agent requests to run the command outside the kernel sandbox"
OUTSIDE_SANDBOX = "outside_sandbox"
"""The argument of the shell tool with which an agent requests that."""
TOO_MANY_FILES = (
    f"the command may use more files than an answer can cover ({AGENT_BOUND_PATHS} paths), so the "
    "user was not asked; split the command, or write the long text to a file first"
)
REFUSED_BEFORE = (
    "the user refused this before and asked to remember it "
    "(to list and forget remembered answers, run: telex agent remembered)"
)


@dataclass(frozen=True, slots=True)
class AllowedCall:
    """The call may run, with these arguments and in this context."""

    call: PreparedCall
    context: ToolContext


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """The call must not run. `stop`: the user refused without a reason, so the run ends."""

    why: str
    stop: bool = False
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class FailedCall:
    """The call would fail, so the user was not asked."""

    result: ToolResult


CallOutcome = AllowedCall | RefusedCall | FailedCall


@dataclass(frozen=True, slots=True)
class ConfirmQuestion:
    """A call that the user must decide about: send `params`, then pass the answer to `settle`."""

    judged: Judgement
    call: PreparedCall
    context: ToolContext
    files: BoundFiles
    params: UiConfirmRequestParams
    digest: bytes
    events: tuple[events.AgentEvent, ...]
    """The events that announce the question in a run."""
    terminal: JudgedTerminal | None = None
    """Of a call that opens a terminal or types into one."""


class Confirmer:
    """Judges and confirms the calls of one workspace."""

    def __init__(self, permissions: WorkspacePermissions, kernel: Kernel | None = None) -> None:
        """Create the confirmer; tests pass a `kernel` other than the running one."""
        self.permissions = permissions
        self._kernel = kernel

    def judge(self, call: PreparedCall, context: ToolContext) -> Judgement:
        """Judge a call; reads the disk and blocks. Raise `OutsideSandbox` or `OSError` for a path
        that the call cannot use. Typed text depends on its terminal, so only a run judges it."""
        if isinstance(call.arguments, TerminalOpen):
            try:
                return judge_open(call.arguments, self.permissions.judge, context).judged
            except ToolFailed as failed:
                return Judgement(Permission.ASK, str(failed))
        return self._judge(_request(call, context), context)

    def confinement(
        self, judged: Judgement, tool: str, environment: Mapping[str, str]
    ) -> Confinement | None:
        """Return the kernel sandbox of the call; None if it runs without one. Blocks."""
        return confinement(judged, self.permissions.judge, tool, environment, self._kernel)

    def _judge(self, request: PermissionRequest, context: ToolContext) -> Judgement:
        judged = self.permissions.judge.judge(request)
        wants_out = request.tool == SHELL_TOOL and request.arguments.get(OUTSIDE_SANDBOX)
        if wants_out and self.confinement(judged, request.tool, context.environment) is not None:
            return replace(judged, decision=Permission.ASK, why=WANTS_OUT, rule=None, remember=())
        return judged

    async def confirm(
        self, call: PreparedCall, context: ToolContext, call_id: str | None = None
    ) -> CallOutcome | ConfirmQuestion:
        """Judge the call. Return a question if the user has to decide."""
        if call.tool.name in JUDGED_TOOLS:
            return await self._confirm_terminal(call, context, call_id)
        request = await run_in_thread(lambda _: _request_or_failure(call, context))
        if isinstance(request, ToolResult):
            return FailedCall(request)
        judged = await run_in_thread(lambda _: self._judge(request, context))
        resolved = _with_resolved_paths(call, request, judged)
        context = replace(context, sandbox=context.sandbox.exactly())
        match judged.decision:
            case Permission.ALLOW:
                return await run_in_thread(lambda _: self._allow(judged, resolved, context))
            case Permission.DENY:
                return RefusedCall(_denial(judged))
        preview = await resolved.preview(context)
        if isinstance(preview, ToolResult):
            return FailedCall(preview)
        if preview is not None:
            resolved = resolved.pinned(preview)
        files = await run_in_thread(lambda _: self._bound_files(judged, resolved, context))
        if not files.is_complete:
            return RefusedCall(TOO_MANY_FILES)
        digest = _digest(resolved, context, files)
        message = question_message(resolved, call, preview, context)
        return ConfirmQuestion(
            judged,
            resolved,
            context,
            files,
            self._question(judged, resolved, [message, *link_notes(files)], digest),
            digest.encode(),
            _announcement(resolved, preview, call_id),
        )

    async def _confirm_terminal(
        self, call: PreparedCall, context: ToolContext, call_id: str | None
    ) -> CallOutcome | ConfirmQuestion:
        """Judge a call that opens a terminal or types into one."""
        try:
            found = await self._judge_terminal(call.arguments, context)
        except (ToolFailed, OutsideSandbox, OSError) as error:
            return FailedCall(ToolResult(str(error), is_error=True))
        if isinstance(found, ToolResult):
            return FailedCall(found)
        judged = found.judged
        match judged.decision:
            case Permission.ALLOW:
                return AllowedCall(call, found.context)
            case Permission.DENY:
                return RefusedCall(_denial(judged))
        files = await run_in_thread(lambda _: self._files_of_terminal(found))
        if not files.is_complete:
            return RefusedCall(TOO_MANY_FILES)
        digest = _digest(call, context, files, found.moment)
        params = self._question(judged, call, [found.message, *link_notes(files)], digest)
        params = msgspec.structs.replace(
            params, title="Open program?" if found.terminal is None else "Type into terminal?"
        )
        if found.terminal is not None:
            params = msgspec.structs.replace(
                params, message=f"{params.message}\n\n{REMEMBER_TERMINAL}", allow_remember=True
            )
        announced = _announcement(call, None, call_id)
        return ConfirmQuestion(
            judged, call, found.context, files, params, digest.encode(), announced, found
        )

    async def _judge_terminal(
        self, asked: TerminalOpen | TerminalDo, context: ToolContext
    ) -> JudgedTerminal | ToolResult:
        """Raises ToolFailed, OutsideSandbox and OSError."""
        judge = self.permissions.judge
        if isinstance(asked, TerminalOpen):
            return await run_in_thread(lambda _: judge_open(asked, judge, context))
        access = context.terminals
        if access is None:
            raise ToolFailed(NO_TERMINALS)
        one = find_terminal(asked, access)
        facts = await facts_of(one, access)
        if facts.holder is not None and types_something(asked):
            return await wait_for_person(one, facts.holder, context)
        return await run_in_thread(lambda _: judge_do(asked, one, facts, judge, context))

    def _files_of_terminal(self, found: JudgedTerminal) -> BoundFiles:
        """Return the files of a program that is opened."""
        if not found.command:
            return BoundFiles({}, is_complete=True)
        paths, sandbox = self.permissions.judge.paths, Sandbox(found.context.sandbox.root)
        return find_bound_files(found.judged, paths, sandbox, Path(found.cwd), found.command)

    async def _settle_terminal(
        self, question: ConfirmQuestion, before: JudgedTerminal, answer: UiAnswer
    ) -> CallOutcome:
        """Return the outcome of an answer about a terminal. A yes counts only while the same
        program reads, and nobody has typed since."""
        call, context = question.call, question.context
        outcome = _outcome(answer.value, call, context)
        if not isinstance(outcome, AllowedCall):
            return outcome
        try:
            now = await self._judge_terminal(call.arguments, context)
        except (ToolFailed, OutsideSandbox, OSError) as error:
            return FailedCall(ToolResult(str(error), is_error=True))
        if isinstance(now, ToolResult):
            return FailedCall(now)
        if now.judged.decision is Permission.DENY:
            return RefusedCall(_denial(now.judged))
        files = await run_in_thread(lambda _: self._files_of_terminal(now))
        if changed := _changed(question.files, files):
            return RefusedCall(changed)
        if now.moment != before.moment:
            return RefusedCall(
                "the terminal has changed since the question (another program reads it, or "
                "somebody typed); nothing was typed. Look at the screen and decide again"
            )
        if answer.digest != _digest(call, context, files, now.moment).encode():
            return RefusedCall("the answer belongs to another question; nothing was run")
        if before.terminal is not None and answer.value.remember:
            before.terminal.allowed = True
        return outcome

    async def settle(self, question: ConfirmQuestion, answer: UiAnswer | None) -> CallOutcome:
        """Return the outcome of an answer; `answer` is None if no UI can ask the user.

        A yes counts only while the call and its files are as they were shown.
        """
        judged, call, context = question.judged, question.call, question.context
        if answer is None:
            return RefusedCall(f"{NO_CONFIRM}; {judged.why}")
        if question.terminal is not None:
            return await self._settle_terminal(question, question.terminal, answer)
        outcome = _outcome(answer.value, call, context)
        if isinstance(outcome, AllowedCall):
            now = await run_in_thread(lambda _: self._bound_files(judged, call, context))
            if changed := _changed(question.files, now):
                return RefusedCall(changed)
            if answer.digest != _digest(call, context, now).encode():
                return RefusedCall("the answer belongs to another question; nothing was run")
        await self._remember(judged, answer)
        return outcome

    def _allow(self, judged: Judgement, call: PreparedCall, context: ToolContext) -> AllowedCall:
        environment = self._unattended_environment(judged, context)
        confined = self.confinement(judged, call.tool.name, environment)
        if confined is not None:
            environment = without_service_sockets(environment)
        return AllowedCall(call, replace(context, environment=environment, confinement=confined))

    def _unattended_environment(self, judged: Judgement, context: ToolContext) -> dict[str, str]:
        # A remembered text has only repeatable commands. Any other text that a rule allows runs in
        # the user's environment, as if the user had typed it.
        rule = judged.rule
        is_text = rule is not None and rule.text is not None and rule.layer != REMEMBERED
        is_unrestricted = is_text or self.permissions.mode is Mode.FULL
        only_reads = not is_unrestricted and needs_reader_environment(judged.pieces)
        return unattended_environment(
            context.environment, self.permissions.root, only_reads=only_reads
        )

    def _bound_files(
        self, judged: Judgement, call: PreparedCall, context: ToolContext
    ) -> BoundFiles:
        if call.tool.name != SHELL_TOOL:
            return BoundFiles({}, is_complete=True)
        given, paths = call.arguments, self.permissions.judge.paths
        sandbox = Sandbox(context.sandbox.root)
        return find_bound_files(judged, paths, sandbox, Path(given.cwd), given.command)

    def _question(
        self, judged: Judgement, call: PreparedCall, message: list[str], digest: str
    ) -> UiConfirmRequestParams:
        scope = judged.remember[:1]
        paragraphs = [*message, f"{WHY}{in_sentence(judged.why)}."]
        paragraphs += [self._remember_offer(each) for each in scope]
        return UiConfirmRequestParams(
            title="Run command?" if call.tool.name == SHELL_TOOL else "Run tool?",
            message="\n\n".join(paragraphs),
            confirm_label="Allow",
            cancel_label="Deny",
            danger_level="danger" if judged.not_understood else "normal",
            allow_remember=bool(scope),
            allow_reason=True,
            details={"digest": digest, **explain_judgement(self.permissions.judge, judged)},
        )

    def _remember_offer(self, scope: RememberScope) -> str:
        """Describe the narrowest scope, which is the one that is remembered. Wider scopes are in
        the details, for rules that the user writes."""
        return (
            f"Remember (don't ask again): {in_sentence(scope.description)}.\n"
            "Your answer, yes or no, then applies to exactly that, "
            f"in the workspace {in_quotes(self.permissions.root)}."
        )

    async def _remember(self, judged: Judgement, answer: UiAnswer) -> None:
        result = answer.value
        if not (isinstance(result, UiConfirmResult) and result.remember and judged.remember):
            return
        await self.permissions.answers.remember(
            self.permissions.root,
            judged.remember[0],
            allowed=result.ok,
            by=answer.by,
            request_id=answer.request_id,
        )


def too_long(problem: NotStorable) -> RefusedCall:
    """Return the outcome for a question that the store refuses."""
    return RefusedCall(f"the call is too long to show in a question: {problem}")


def _outcome(answer: Any, call: PreparedCall, context: ToolContext) -> CallOutcome:
    match answer:
        case UiConfirmResult(ok=True):
            return AllowedCall(call, context)
        case UiConfirmResult(reason=str(reason)) if reason.strip():
            return RefusedCall(reason.strip(), by_person=True)
        case UiConfirmResult():
            return RefusedCall("the user refused", stop=True, by_person=True)
    return RefusedCall("the question was not answered", stop=True)


def _request(call: PreparedCall, context: ToolContext) -> PermissionRequest:
    """Return the request to judge. Raise `OutsideSandbox` or `OSError` for a path that the tool
    could not use anyway."""
    arguments = msgspec.to_builtins(call.arguments)
    cwd = context.cwd
    if call.tool.name == SHELL_TOOL:
        cwd = context.sandbox.directory(arguments.get("cwd") or ".", context.cwd)
    elif call.tool.name in PATH_TOOLS:
        for name in PATH_ARGUMENTS:
            if name in arguments:
                context.sandbox.place(arguments[name], context.cwd)
    return PermissionRequest(call.tool.name, arguments, os.fspath(cwd))


def _request_or_failure(call: PreparedCall, context: ToolContext) -> PermissionRequest | ToolResult:
    try:
        return _request(call, context)
    except (OutsideSandbox, OSError) as error:
        return ToolResult(str(error), is_error=True)


def _with_resolved_paths(
    call: PreparedCall, request: PermissionRequest, judged: Judgement
) -> PreparedCall:
    """Return the call with the resolved paths that were judged in place of the given ones."""
    if call.tool.name == SHELL_TOOL:
        return call.with_arguments(cwd=request.cwd)
    touched = [path for piece in judged.pieces for path in piece.touched]
    if call.tool.name not in PATH_TOOLS or not touched:
        return call
    return call.with_arguments(
        **{name: touched[0].real for name in PATH_ARGUMENTS if name in request.arguments}
    )


def _changed(then: BoundFiles, now: BoundFiles) -> str:
    """Return which file changed after the question was asked; empty if none did."""
    for path, before in then.files.items():
        after = now.files.get(path)
        if after is not None and before.leads != after.leads:
            return f"{in_quotes(path)} leads to {in_quotes(after.leads)} now; nothing was done"
        if before != after:
            return f"{in_quotes(path)} has changed since the question; nothing was run"
    return ""


def _denial(judged: Judgement) -> str:
    if judged.rule is None:
        return judged.why
    remembered = REFUSED_BEFORE if judged.rule.layer == REMEMBERED else ""
    return judged.rule.reason or remembered or judged.why


def _digest(
    call: PreparedCall, context: ToolContext, bound: BoundFiles, moment: tuple[Any, ...] = ()
) -> str:
    """Hash the tool, its directory, its arguments to the last byte, and the files it names; of a
    call that types, also who reads it."""
    named = {in_line(path): [*map(in_line, astuple(file))] for path, file in bound.files.items()}
    parts = msgspec.json.encode(call.arguments), msgspec.json.encode(named)
    moments = (msgspec.json.encode(moment),) if moment else ()
    return digest(call.tool.name, os.fspath(context.cwd), *parts, *moments)


def _announcement(
    call: PreparedCall, preview: Preview[Any] | None, call_id: str | None
) -> tuple[events.AgentEvent, ...]:
    ready = events.PermissionReadyEvent(call.tool.name, call_id)
    if preview is None:
        return (ready,)
    shown = events.PermissionPreviewEvent(
        call.tool.name,
        call_id,
        file_path=in_line(preview.path),
        diff=preview.diff,
        truncated=preview.truncated,
    )
    return shown, ready
