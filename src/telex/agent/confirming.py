"""May this call be made? Judged first, asked where the judgement says so, and bound to the answer.

The person is shown every byte that will be used, escaped, and the question carries a digest of it.
What runs is the call that was shown: arguments that are pinned to the file as it was then, and a
digest made again from them after the answer. If the two differ, nothing runs.

Used for the calls of a core and for `tool.call`; whoever asks says how (`Asker`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from telex.agent.judging import Decision, Request, digest, explained, shown
from telex.agent.judging.environment import automatic
from telex.agent.sandbox import OutsideSandbox
from telex.agent.store import NotKept
from telex.agent.tools.tool import Preview, ToolResult
from telex.agent.uninterrupted import in_thread
from telex.protocols.agent_ui import events
from telex.protocols.agent_ui.asking import CONFIRM, UiConfirmRequestParams, UiConfirmResult

if TYPE_CHECKING:
    from telex.agent.judging import Judgement, Scope
    from telex.agent.permissions import Permissions
    from telex.agent.questions import Answer
    from telex.agent.store import Store
    from telex.agent.tools.registry import Prepared
    from telex.agent.tools.tool import ToolContext

NO_CONFIRM = "UI confirm not supported"


class Asker(Protocol):
    """Who can be asked on behalf of a call."""

    async def emit(self, event: events.Event) -> None: ...

    async def ask(self, method: str, params: msgspec.Struct, digest: bytes) -> Answer | None:
        """None: there is nobody who could be asked."""
        ...


@dataclass(frozen=True, slots=True)
class Allowed:
    """Run this, in that."""

    call: Prepared
    context: ToolContext


@dataclass(frozen=True, slots=True)
class Refused:
    """It does not run, and why. `stop`: the person said no and nothing else."""

    why: str
    stop: bool = False
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """It would fail, so nobody was asked."""

    result: ToolResult


Verdict = Allowed | Refused | Failed


class Confirming:
    """One for each runtime."""

    def __init__(self, permissions: Permissions, store: Store) -> None:
        self.permissions = permissions
        self._store = store

    def judge(self, call: Prepared, context: ToolContext) -> Judgement:
        """Looks where paths lead; blocks. Raises what the sandbox and the system say."""
        return self.permissions.judge.judge(_request(call, context))

    async def verdict(
        self, call: Prepared, context: ToolContext, asker: Asker, call_id: str | None = None
    ) -> Verdict:
        try:
            judged = await in_thread(lambda _: self.judge(call, context))
        except (OutsideSandbox, OSError) as error:
            return Failed(ToolResult(str(error), is_error=True))
        match judged.decision:
            case Decision.ALLOW:
                safe = automatic(context.environment, self.permissions.root)
                return Allowed(call, replace(context, environment=safe))
            case Decision.DENY:
                return Refused(_reason(judged))
        return await self._asked(judged, call, context, asker, call_id)

    async def _asked(
        self,
        judged: Judgement,
        call: Prepared,
        context: ToolContext,
        asker: Asker,
        call_id: str | None,
    ) -> Verdict:
        preview = await call.preview(context)
        if isinstance(preview, ToolResult):
            return Failed(preview)
        if preview is not None:
            call = call.pinned(preview)
            await asker.emit(_previewed(call, preview, call_id))
        await asker.emit(events.PermissionReady(call.tool.name, call_id))
        bound = _digest(call, context)
        params = self._question(judged, call, context, bound)
        try:
            answer = await asker.ask(CONFIRM, params, bound.encode())
        except NotKept as problem:
            return Refused(f"it is too long to be shown: {problem}")
        if answer is None:
            return Refused(f"{NO_CONFIRM}; {judged.why}")
        if answer.digest != _digest(call, context).encode():
            return Refused("the answer is about something else; nothing was run")
        await self._remember(judged, answer)
        return _told(answer.value, call, context)

    def _question(
        self, judged: Judgement, call: Prepared, context: ToolContext, bound: str
    ) -> UiConfirmRequestParams:
        scope = judged.remember[:1]
        lines = [_message(call, context)]
        lines += [f"Why you are asked: {shown(judged.why)}."]
        lines += [self._offer(one) for one in scope]
        return UiConfirmRequestParams(
            title="Run command?" if call.tool.name == "shell" else "Run tool?",
            message="\n\n".join(lines),
            confirm_label="Allow",
            cancel_label="Deny",
            danger_level="danger" if judged.not_understood else "normal",
            allow_remember=bool(scope),
            allow_reason=True,
            details={"digest": bound, **explained(self.permissions.judge, judged)},
        )

    def _offer(self, scope: Scope) -> str:
        """The one thing that is remembered. Wider ones are in the details, for rules by hand."""
        return (
            f"Remember (don't ask again): {shown(scope.says)}. Your answer, yes or no, then counts "
            f"for that and nothing else, in the workspace {shown(self.permissions.root)}."
        )

    async def _remember(self, judged: Judgement, answer: Answer) -> None:
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


def _told(said: Any, call: Prepared, context: ToolContext) -> Verdict:
    match said:
        case UiConfirmResult(ok=True):
            return Allowed(call, context)
        case UiConfirmResult(reason=str(reason)) if reason.strip():
            return Refused(reason.strip(), by_person=True)
    return Refused("the person said no", stop=True, by_person=True)


def _request(call: Prepared, context: ToolContext) -> Request:
    arguments = msgspec.to_builtins(call.arguments)
    cwd = context.cwd
    if call.tool.name == "shell":
        cwd = context.sandbox.directory(arguments.get("cwd") or ".", context.cwd)
    return Request(call.tool.name, arguments, os.fspath(cwd))


def _reason(judged: Judgement) -> str:
    written = judged.rule.reason if judged.rule is not None else ""
    return written or judged.why


def _digest(call: Prepared, context: ToolContext) -> str:
    """Of the tool, where it runs, and its arguments to the last byte."""
    return digest(call.tool.name, os.fspath(context.cwd), msgspec.json.encode(call.arguments))


def _message(call: Prepared, context: ToolContext) -> str:
    """All that the call will use: a command as it is, other arguments one after the other."""
    given = msgspec.to_builtins(call.arguments)
    ours = isinstance(call.arguments, msgspec.Struct)
    lines: list[str] = []
    if call.tool.name == "shell":
        lines = [shown(given.pop("command")), f"in {shown(os.fspath(context.cwd))}"]
    else:
        lines = [shown(call.tool.name)]
    for name, value in given.items():
        # A default of ours says nothing; a plugin is given what it is given.
        if ours and (value is None or (name, value) == ("cwd", ".")):
            continue
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        lines.append(f"{shown(name)}: {shown(text)}")
    return "\n".join(lines)


def _previewed(call: Prepared, preview: Preview[Any], call_id: str | None) -> events.Event:
    return events.PermissionPreview(
        call.tool.name,
        call_id,
        file_path=preview.path,
        diff=preview.diff,
        truncated=preview.truncated,
    )
