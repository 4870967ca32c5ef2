"""The context that a core gets in one run: it calls tools and asks the person.

A tool call emits the events that UIs expect: step_start, tool_call, permission.preview and
permission.ready if the person is asked, tool_result, step_complete. A call that the person denied
with a reason returns that reason to the core, which continues. A denial without a reason stops the
turn.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.cores import ToolCallOutcome, TurnStopped
from telex.agent.permissions import in_line
from telex.agent.permissions.confirmation import (
    AllowedCall,
    ConfirmQuestion,
    FailedCall,
    RefusedCall,
    too_long,
)
from telex.agent.permissions.question_text import agent_title, escaped_lines
from telex.agent.protocol import events
from telex.agent.protocol.ui_requests import (
    CONFIRM,
    PICK,
    PROMPT,
    PickItem,
    UiConfirmRequestParams,
    UiConfirmResult,
    UiPickRequestParams,
    UiPromptRequestParams,
)
from telex.agent.store import NotStorable
from telex.agent.tools.tool import ToolResult
from telex.agent.tools.tool_registry import BadArguments, UnknownTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from telex.agent.agent_run import AgentRun
    from telex.agent.permissions.confirmation import CallOutcome, Confirmer
    from telex.agent.tools.todo import TodoList
    from telex.agent.tools.tool import ToolContext
    from telex.agent.tools.tool_registry import PreparedCall, ToolRegistry

DENIED = "Permission denied: "


class RunContext:
    """The `CoreContext` of one run."""

    def __init__(
        self,
        run: AgentRun,
        tools: ToolRegistry,
        confirmer: Confirmer,
        context: ToolContext,
        ui_context: bytes | None,
        save_todos: Callable[[str, TodoList], Awaitable[None]],
    ) -> None:
        self._run = run
        self._tools = tools
        self._confirmer = confirmer
        self._context = context
        self._steps = 0
        self._save_todos = save_todos
        self.ui_context = ui_context

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def session_id(self) -> str:
        return self._run.session_id

    # The tools.

    async def call(
        self, tool: str, arguments: Mapping[str, object] | bytes, title: str = ""
    ) -> ToolCallOutcome:
        self._run.check()
        self._steps += 1
        began, step_id = time.monotonic(), f"step_{self._steps}"
        call_id = self._run.replay.next_call_id() or uuid.uuid4().hex
        await self._run.emit(events.StepStartEvent(step_id, title or tool, self._steps))
        await self._run.emit(_tool_call_event(tool, arguments, call_id))
        result, stop = await self._call_or_replay(tool, arguments, call_id)
        event = events.ToolResultEvent(tool, result.text, call_id, result.is_error)
        await self._run.emit(event, {"details": result.details} if result.details else None)
        spent = round((time.monotonic() - began) * 1000)
        await self._run.emit(
            events.StepCompleteEvent(step_id, "error" if result.is_error else "completed", spent)
        )
        if stop:
            raise TurnStopped(result.text)
        return ToolCallOutcome(result.text, result.is_error)

    async def _call_or_replay(
        self, tool: str, arguments: Mapping[str, object] | bytes, call_id: str
    ) -> tuple[ToolResult, bool]:
        """Return the result of the tool, or the reason why it was not called; and whether the turn
        stops."""
        if (stored := self._run.replay.next_result()) is not None:
            return stored, False
        try:
            call = self._tools.prepare(tool, arguments)
        except UnknownTool:
            return ToolResult(f"Error: Unknown tool '{tool}'", is_error=True), False
        except BadArguments as bad:
            return ToolResult(f"Error: {bad}", is_error=True), False
        match await self._confirmed(call, call_id):
            case FailedCall(result):
                return result, False
            case RefusedCall(why, stop):
                return ToolResult(DENIED + why, is_error=True), stop
            case AllowedCall(permitted, context):
                return await self._run_permitted(permitted, context), False

    async def _confirmed(self, call: PreparedCall, call_id: str) -> CallOutcome:
        """Judge the call, and ask the person if the judgement requires it."""
        found = await self._confirmer.confirm(call, self._context, call_id)
        if not isinstance(found, ConfirmQuestion):
            return found
        for event in found.events:
            await self._run.emit(event)
        try:
            answer = await self._run.ask(CONFIRM, found.params, found.digest)
        except NotStorable as problem:
            return too_long(problem)
        return await self._confirmer.settle(found, answer)

    async def _run_permitted(self, call: PreparedCall, context: ToolContext) -> ToolResult:
        """Run the tool. This is the only place where a call of a core has an effect.

        Every event and question is stored before. `check` runs in the same step of the event loop
        in which the tool starts, so no cancel fits between them.
        """
        await self._run.ready_to_act()
        self._run.check()
        before = context.todos.entries
        result = await call.run(context)
        if context.todos.entries != before:
            await self._save_todos(self.session_id, context.todos)
            self._run.publish_todos(msgspec.to_builtins(context.todos.entries))
        return result

    # The person.

    async def confirm(self, title: str, message: str) -> UiConfirmResult | None:
        params = UiConfirmRequestParams(
            agent_title(title), escaped_lines(message), allow_reason=True
        )
        answer = await self._answer_value(CONFIRM, params)
        return answer if isinstance(answer, UiConfirmResult) else None

    async def prompt(self, title: str, message: str, *, secret: bool = False) -> str | None:
        params = UiPromptRequestParams(agent_title(title), escaped_lines(message), secret=secret)
        answer = await self._answer_value(PROMPT, params)
        return None if answer is None else answer.value

    async def pick(
        self, title: str, items: Sequence[PickItem], *, multi: bool = False
    ) -> list[str]:
        escaped = [
            PickItem(item.id, in_line(item.label), _escaped_or_none(item.detail)) for item in items
        ]
        answer = await self._answer_value(
            PICK, UiPickRequestParams(agent_title(title), escaped, multi=multi)
        )
        offered = {item.id for item in items}
        chosen = [] if answer is None else [id for id in answer.ids if id in offered]
        return chosen if multi else chosen[:1]

    async def _answer_value(self, method: str, params: msgspec.Struct) -> Any:
        answer = await self._run.ask(method, params)
        return None if answer is None else answer.value

    async def steered(self) -> str | None:
        self._run.check()
        if (text := self._run.next_steering()) is not None:
            await self._run.emit(events.HiddenUserMessageEvent(text))
        return text


def _escaped_or_none(text: str | None) -> str | None:
    return None if text is None else in_line(text)


def _tool_call_event(
    tool: str, arguments: Mapping[str, object] | bytes, call_id: str
) -> events.ToolCallEvent:
    raw = arguments if isinstance(arguments, bytes) else msgspec.json.encode(arguments)
    try:
        args = msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError:
        text = raw.decode("utf-8", "replace")
        return events.ToolCallEvent(tool, {"_raw": text}, call_id, raw_args=text)
    return events.ToolCallEvent(tool, args, call_id)
