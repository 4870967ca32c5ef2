"""The context that a core gets in one run: the conversation, its tool calls and its questions.

A tool call emits the events that UIs expect: step_start, tool_call, permission.preview and
permission.ready if the person is asked, tool_result, step_complete. A call that the person denied
with a reason returns that reason to the core, which continues. A denial without a reason stops the
turn.

Calls of tools that only read run side by side. Any other call runs alone: it is judged, asked about
and run after the call before it has its result. So while a question is open nothing with an effect
is running, and a run that is suspended at a question can be resumed: no call had an effect without
its result being stored.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shlex
import time
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from telex.agent.command_runner import agent_environment
from telex.agent.conversation import (
    message_text,
    result_message,
    to_stored,
    unanswered_calls,
    user_message,
    with_all_results,
)
from telex.agent.cores import ToolCallOutcome, TurnStopped
from telex.agent.images import save_image
from telex.agent.instructions import build_instructions
from telex.agent.limits import AGENT_SCREENSHOT_BYTES
from telex.agent.messages import (
    AssistantMessage,
    ReasoningPart,
    ToolCallPart,
    ToolResultMessage,
    decode_message,
)
from telex.agent.permissions import Mode, Permission, PermissionRequest, in_line
from telex.agent.permissions.confirmation import (
    AllowedCall,
    ConfirmQuestion,
    FailedCall,
    RefusedCall,
    too_long,
)
from telex.agent.permissions.question_text import agent_title, escaped_lines
from telex.agent.permissions.tool_rules import SHELL_ARGUMENT, SHELL_TOOL
from telex.agent.protocol import REQUESTS, events
from telex.agent.protocol.ui_requests import (
    CLIPBOARD,
    CONFIRM,
    PICK,
    PROMPT,
    PickItem,
    UiConfirmRequestParams,
    UiConfirmResult,
    UiPickRequestParams,
    UiPickResult,
    UiPromptRequestParams,
    UiPromptResult,
)
from telex.agent.store import NotStorable
from telex.agent.terminals import TerminalAccess, UnknownTerminal
from telex.agent.tools.clipboard import CLIPBOARD_READ, NO_CLIPBOARD
from telex.agent.tools.file_tools import VIEW_IMAGE
from telex.agent.tools.skill_load import SKILL_LOAD
from telex.agent.tools.terminal_tools import TERMINAL_TOOLS
from telex.agent.tools.tool import ToolFailed, ToolResult, new_id
from telex.agent.tools.tool_registry import BadArguments, UnknownTool
from telex.config.errors import ConfigError
from telex.processes.shielded import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence

    from telex.agent.agent_run import AgentRun
    from telex.agent.feeds import RunFeed
    from telex.agent.messages import ImagePart, Message, ToolSpec
    from telex.agent.permissions import Judgement
    from telex.agent.permissions.confirmation import CallOutcome
    from telex.agent.protocol.ui_requests import UiClipboardReadParams, UiClipboardReadResult
    from telex.agent.questions import Questions, UiAnswer
    from telex.agent.store import Store, StoredQuestion
    from telex.agent.terminals import ThreadTerminals
    from telex.agent.tools.todo import TodoList
    from telex.agent.tools.tool import ReadClipboard, ToolContext
    from telex.agent.tools.tool_registry import PreparedCall
    from telex.agent.ui_connection import UiConnection
    from telex.agent.workspace import Workspace

DENIED: Final = "Permission denied: "
STOPPED: Final = "Not run: the person stopped the turn at another call."
NO_ANSWER: Final = "No UI answered."
STALE_QUESTION: Final = "what it was about has changed"
"""Stored as the reason why an open question was withdrawn when its run was resumed."""


class RunContext:
    """The `CoreContext` of one run."""

    def __init__(
        self,
        run: AgentRun,
        model: str,
        workspace: Workspace,
        store: Store,
        questions: Questions,
        todos: TodoList,
        ui_context: bytes | None,
        save_todos: Callable[[str, TodoList], Awaitable[None]],
        messages: Iterable[Message],
        pending: Iterable[StoredQuestion] = (),
        *,
        terminals: ThreadTerminals,
        sees_images: bool = True,
    ) -> None:
        """`messages` are those of the run that are stored already, at least its input. `pending`
        are the questions that were open when its runtime ended. `sees_images`: whether the model
        may see images."""
        self._run = run
        self._model = model
        self._workspace = workspace
        self._sees_images = sees_images
        self._store = store
        self._questions = questions
        self._terminals = terminals
        self._context = replace(
            workspace.context.tool_context(todos),
            read_clipboard=self._clipboard(None),
            conversation=self.messages,
            terminals=TerminalAccess(
                terminals, partial(self._ask_secret, None), run.say_why_it_waits
            ),
        )
        self._save_todos = save_todos
        self.ui_context = ui_context
        self.run_messages = list(messages)
        self._pending = {question.call: question for question in pending}
        self._stepping = asyncio.Lock()
        """Held by one step, so that nothing has an effect beside it."""

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def session_id(self) -> str:
        return self._run.session_id

    # The conversation.

    async def messages(self) -> Sequence[Message]:
        return [message for _, message in await self._whole_conversation()]

    async def compact(self, summary: str, kept: int) -> None:
        whole = await self._whole_conversation()
        positions = [-1 if position is None else position for position, _ in whole]
        tail = [position for position in positions[len(whole) - kept :] if position >= 0]
        first_kept = min(tail, default=max(positions) + 1)
        self._run.check()
        await self._store.append_message(self.run_id, to_stored(user_message(summary)), first_kept)

    async def _whole_conversation(self) -> list[tuple[int | None, Message]]:
        """Return the messages with their positions in the store; None for one that is only
        added here."""
        await self._run.publisher.wait_stored()
        stored = await self._store.messages(self.session_id)
        whole = await run_in_thread(
            lambda _: with_all_results([decode_message(one.message) for one in stored])
        )
        return [
            (None if index is None else stored[index].position, message) for index, message in whole
        ]

    async def _store_message(self, message: Message) -> None:
        await self._store.append_message(self.run_id, to_stored(message))
        self.run_messages.append(message)

    async def tools(self) -> tuple[ToolSpec, ...]:
        specs = await self._workspace.tools.specs()
        hidden = set() if self._sees_images else {VIEW_IMAGE.name}
        if not self._clipboards():
            hidden.add(CLIPBOARD_READ.name)
        if not (await self._workspace.context.offered_skills()).skills:
            hidden.add(SKILL_LOAD.name)
        return tuple(spec for spec in specs if spec.name not in hidden)

    async def instructions(self) -> str:
        uis = [feed.connection.capabilities for feed in self._run.feeds]
        markdown = all(can.supports_markdown for can in uis)
        return await build_instructions(self._workspace, self.ui_context, markdown=markdown)

    @property
    def is_suspended(self) -> bool:
        return self._run.suspended

    @property
    def has_steering(self) -> bool:
        return self._run.has_steering

    @property
    def open_todos(self) -> str:
        entries = self._context.todos.entries
        return "\n".join(
            f"- [{entry.status}] {entry.content}"
            for entry in entries
            if entry.status in ("pending", "in_progress")
        )

    async def steered(self) -> str | None:
        self._run.check()
        if (text := self._run.next_steering()) is not None:
            message = user_message(text)
            await self._run.emit(events.HiddenUserMessageEvent(text), message=message)
            self.run_messages.append(message)
        return text

    # The tools.

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, object] | bytes,
        title: str = "",
        data: Raw | None = None,
    ) -> ToolCallOutcome:
        raw = arguments if isinstance(arguments, bytes) else msgspec.json.encode(arguments)
        call = ToolCallPart(new_id(), tool, Raw(raw))
        if not _is_object(raw):
            call = ToolCallPart(call.id, tool, Raw(b"{}"), raw.decode("utf-8", "replace"))
        (result,) = await self._step(self._saying(call, data), title)
        return ToolCallOutcome(message_text(result), result.is_error)

    def _saying(self, call: ToolCallPart, data: Raw | None) -> AssistantMessage:
        state = () if data is None else (ReasoningPart("", self._model, data),)
        return AssistantMessage((*state, call), self._model)

    async def step(self, message: AssistantMessage) -> tuple[ToolResultMessage, ...]:
        return await self._step(message, "")

    async def _step(self, message: AssistantMessage, title: str) -> tuple[ToolResultMessage, ...]:
        async with self._stepping:
            self._run.check()
            await self._run.emit_reasoning(message)
            if message.text:
                await self._run.emit(events.TextEvent(message.text, _now()))
            if not message.tool_calls:
                await self._store_message(message)
                return ()
            self.run_messages.append(message)
            return await self._run_calls(message.tool_calls, message, title)

    async def finish_calls(self) -> None:
        """Finish the calls that had no result when the runtime ended. None of them had an
        effect. Raises `TurnStopped`."""
        if not self._pending:
            return
        async with self._stepping:
            await self._run_calls(unanswered_calls(self.run_messages), None, "")

    async def _run_calls(
        self, calls: Sequence[ToolCallPart], message: AssistantMessage | None, title: str
    ) -> tuple[ToolResultMessage, ...]:
        """Run the calls of one message in order. The message is stored with the first event."""
        results: list[ToolResultMessage] = []
        for side_by_side, group in groupby(calls, self._only_reads):
            together = list(group)
            batches = [together] if side_by_side else [[call] for call in together]
            for batch in batches:
                turn = _Turn(alone=len(batch) == 1)
                results += await self._run_batch(batch, message, title, turn)
                message = None
                if turn.stopped.is_set():
                    await self._store_not_run(calls[len(results) :])
                    raise TurnStopped(message_text(results[-1]))
        return tuple(results)

    def _only_reads(self, call: ToolCallPart) -> bool:
        return self._workspace.tools.only_reads(call.name)

    async def _run_batch(
        self,
        calls: list[ToolCallPart],
        message: AssistantMessage | None,
        title: str,
        turn: _Turn,
    ) -> list[ToolResultMessage]:
        if len(calls) == 1:
            return [await self._call(calls[0], message, title, turn)]
        step_ids = [await self._announce(calls[0], message, title)]
        step_ids += [await self._announce(call, None, title) for call in calls[1:]]
        running = [
            asyncio.create_task(self._finish(call, step_id, turn))
            for call, step_id in zip(calls, step_ids, strict=True)
        ]
        try:
            results = await asyncio.gather(*running)
        except BaseException:
            for task in running:
                task.cancel()
            await asyncio.wait(running)
            raise
        self.run_messages += results
        return results

    async def _call(
        self, call: ToolCallPart, message: AssistantMessage | None, title: str, turn: _Turn
    ) -> ToolResultMessage:
        asked = self._pending.get(call.id)
        if asked is not None and asked.method == call.name:  # a question of the core itself
            await self._ask_person(call)
            result = self.run_messages[-1]
            assert isinstance(result, ToolResultMessage)
            return result
        step_id = await self._announce(call, message, title)
        result = await self._finish(call, step_id, turn)
        self.run_messages.append(result)
        return result

    async def _announce(
        self, call: ToolCallPart, message: AssistantMessage | None, title: str
    ) -> str:
        """Emit the beginning of a step, unless it was emitted before a restart. Return its id."""
        if (step := self._run.order.step_of(call.id)) is not None:
            return step.step_id or ""
        number = self._run.order.steps + 1
        step_id = f"step_{number}"
        begin = events.StepStartEvent(step_id, title or call.name, number)
        await self._run.emit(begin, message=message)
        details = self._terminal_details(call)
        await self._run.emit(
            _tool_call_event(call), {"details": details} if details is not None else None
        )
        return step_id

    def _terminal_details(self, call: ToolCallPart) -> dict[str, object] | None:
        """Return the members that name the terminal of a call; None for any other call."""
        if call.name not in {tool.name for tool in TERMINAL_TOOLS} or call.malformed is not None:
            return None
        try:
            named = msgspec.json.decode(call.arguments, type=_NamesTerminal)
            return {"terminal": self._terminals.find(named.session).details}
        except (msgspec.DecodeError, UnknownTerminal):
            return None

    async def _finish(self, call: ToolCallPart, step_id: str, turn: _Turn) -> ToolResultMessage:
        began = time.monotonic()
        result, image = await self._with_stored_image(await self._result(call, turn))
        details, screenshot = result.details, None
        if image is not None:
            details = {**details, "image": image.reference}
            if len(result.image) <= AGENT_SCREENSHOT_BYTES:
                screenshot = base64.b64encode(result.image).decode()
        message = result_message(call.id, result.text, result.is_error, image)
        await self._run.emit(
            events.ToolResultEvent(call.name, result.text, call.id, result.is_error, screenshot),
            {"details": details} if details else None,
            message,
        )
        spent = round((time.monotonic() - began) * 1000)
        await self._run.emit(
            events.StepCompleteEvent(step_id, "error" if result.is_error else "completed", spent)
        )
        return message

    async def _with_stored_image(self, result: ToolResult) -> tuple[ToolResult, ImagePart | None]:
        """Store the image of a result. If that fails, the result says so, because the call has had
        its effect."""
        if not result.image:
            return result, None
        images = self._workspace.context.images
        try:
            image = await run_in_thread(lambda _: save_image(result.image, "the image", images))
        except (OSError, ConfigError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            text = f"{result.text}\n[the image could not be stored: {why}]"
            return replace(result, text=text, image=b""), None
        return result, image

    async def _store_not_run(self, calls: Iterable[ToolCallPart]) -> None:
        for call in calls:
            message = to_stored(result_message(call.id, STOPPED, is_error=True))
            await self._store.append_message(self.run_id, message)

    async def _result(self, call: ToolCallPart, turn: _Turn) -> ToolResult:
        """Return the result of the tool, or the reason why it was not called."""
        given = call.arguments if call.malformed is None else call.malformed.encode()
        try:
            prepared = self._workspace.tools.prepare(call.name, given)
        except UnknownTool:
            return ToolResult(f"Error: Unknown tool '{call.name}'", is_error=True)
        except BadArguments as bad:
            return ToolResult(f"Error: {bad}", is_error=True)
        if call.malformed is not None:  # an empty text: `prepare` takes it for no arguments
            text = f"Error: the arguments of {call.name} are missing"
            return ToolResult(text, is_error=True)
        match await self._confirmed(prepared, call.id, turn):
            case FailedCall(result):
                return result
            case RefusedCall(why, stop):
                if stop:
                    turn.stopped.set()
                return ToolResult(DENIED + why, is_error=True)
            case AllowedCall(permitted, context):
                return await self._run_permitted(permitted, context)

    async def _confirmed(self, call: PreparedCall, call_id: str, turn: _Turn) -> CallOutcome:
        """Judge the call, and ask the person if the judgement requires it."""
        confirmer = self._workspace.confirmer
        found = await confirmer.confirm(call, self._context_of(call_id), call_id)
        digest = found.digest if isinstance(found, ConfirmQuestion) else None
        stored = self._pending.pop(call_id, None)
        if stored is not None and stored.digest != digest:
            await self._store.withdraw(stored.id, STALE_QUESTION)
            stored = None
        if not isinstance(found, ConfirmQuestion):
            return found
        if stored is None:
            for event in found.events:
                await self._run.emit(event)
        asking = self._ask(CONFIRM, found.params, found.digest, call_id, stored)
        try:
            answer = await turn.unless_stopped(asking)
        except NotStorable as problem:
            return too_long(problem)
        except TurnStopped:
            return RefusedCall(STOPPED)
        outcome = await confirmer.settle(found, answer)
        if isinstance(outcome, AllowedCall) and answer is not None:
            context = replace(outcome.context, read_clipboard=self._clipboard(answer.connection))
            return replace(outcome, context=context)
        return outcome

    def _context_of(self, call_id: str) -> ToolContext:
        """Return the context of one call, whose question for a secret belongs to it."""
        access = self._context.terminals
        assert access is not None
        asking = partial(self._ask_secret, call_id)
        return replace(self._context, terminals=replace(access, ask_secret=asking))

    async def _run_permitted(self, call: PreparedCall, context: ToolContext) -> ToolResult:
        """Run the tool. This is the only place where a call of a core has an effect.

        Every event and question is stored before. `check` runs in the same step of the event loop
        in which the tool starts, so no cancel fits between them.
        """
        await self._run.publisher.wait_stored()
        self._run.check()
        before = context.todos.entries
        result = await call.run(context)
        if context.todos.entries != before:
            await self._save_todos(self.session_id, context.todos)
            self._run.publish_todos(msgspec.to_builtins(context.todos.entries))
        return result

    # Programs of a core.

    @property
    def cwd(self) -> str:
        return os.fspath(self._context.cwd)

    @property
    def program_environment(self) -> Mapping[str, str]:
        return agent_environment(self._context.environment, self._context.redactor)

    async def judge_program(self, argv: Sequence[str]) -> Judgement:
        permissions = self._workspace.confirmer.permissions
        request = PermissionRequest(SHELL_TOOL, {SHELL_ARGUMENT: shlex.join(argv)}, self.cwd)
        judged = await run_in_thread(lambda _: permissions.judge.judge(request))
        unruled = judged.rule is None and permissions.mode is not Mode.FULL
        if judged.decision is Permission.ALLOW and unruled:
            # A command that only reads is allowed in the kernel's sandbox, and this has none.
            return replace(judged, decision=Permission.ASK)
        return judged

    # The person.

    def _clipboards(self) -> list[RunFeed]:
        """Return the feeds of the UIs that can read a clipboard."""
        return [feed for feed in self._run.feeds if feed.connection.can_be_asked(CLIPBOARD)]

    def _clipboard(self, by: UiConnection | None) -> ReadClipboard:
        """Return the function that reads the clipboard of the UI whose person allowed it, else of
        the only UI that can."""

        async def read(params: UiClipboardReadParams) -> UiClipboardReadResult:
            able = self._clipboards()
            named = [feed for feed in able if feed.connection is by]
            if not able:
                raise ToolFailed(NO_CLIPBOARD)
            if not named and len(able) > 1:
                raise ToolFailed("several UIs can read a clipboard, and none of them was asked")
            (feed,) = named or able
            if not self._run.question_opened():
                self._run.check()
            try:
                await feed.wait_turn()
                asked = msgspec.structs.replace(params, run_id=self.run_id)
                return await feed.connection.read_clipboard(asked)
            finally:
                self._run.question_closed()

        return read

    async def _ask_secret(self, call_id: str | None, title: str, message: str) -> str | None:
        """Ask for a text that is neither stored nor returned to the core."""
        params = UiPromptRequestParams(in_line(title), escaped_lines(message), secret=True)
        answer = await self._ask(PROMPT, params, b"", call_id, None)
        value = None if answer is None else answer.value
        return value.value if isinstance(value, UiPromptResult) else None

    async def confirm(
        self,
        title: str,
        message: str,
        *,
        data: Raw | None = None,
        gone: asyncio.Future[None] | None = None,
    ) -> UiConfirmResult | None:
        params = UiConfirmRequestParams(
            agent_title(title), escaped_lines(message), allow_reason=True
        )
        answer = await self._question(CONFIRM, params, data, gone)
        return answer if isinstance(answer, UiConfirmResult) else None

    async def prompt(
        self,
        title: str,
        message: str,
        *,
        secret: bool = False,
        data: Raw | None = None,
        gone: asyncio.Future[None] | None = None,
    ) -> str | None:
        params = UiPromptRequestParams(agent_title(title), escaped_lines(message), secret=secret)
        answer = await self._question(PROMPT, params, data, gone)
        return answer.value if isinstance(answer, UiPromptResult) else None

    async def pick(
        self,
        title: str,
        items: Sequence[PickItem],
        *,
        multi: bool = False,
        data: Raw | None = None,
        gone: asyncio.Future[None] | None = None,
    ) -> list[str]:
        escaped = [
            PickItem(item.id, in_line(item.label), _escaped_or_none(item.detail)) for item in items
        ]
        params = UiPickRequestParams(agent_title(title), escaped, multi=multi)
        answer = await self._question(PICK, params, data, gone)
        return _chosen(params, answer) if isinstance(answer, UiPickResult) else []

    async def _question(
        self,
        method: str,
        params: msgspec.Struct,
        data: Raw | None,
        gone: asyncio.Future[None] | None,
    ) -> Any:
        """Ask the person. The question is stored as a call, and its answer as the result."""
        call = ToolCallPart(new_id(), method, Raw(msgspec.json.encode(params)))
        async with self._stepping:
            self._run.check()
            await self._store_message(self._saying(call, data))
            return await self._ask_person(call, gone)

    async def _ask_person(
        self, call: ToolCallPart, gone: asyncio.Future[None] | None = None
    ) -> Any:
        params = msgspec.json.decode(call.arguments, type=REQUESTS[call.name][0])
        asking = self._ask(call.name, params, b"", call.id, self._pending.pop(call.id, None))
        answer = await (asking if gone is None else _unless_gone(asking, gone))
        value = None if answer is None else answer.value
        await self._store_message(_answer_message(call.id, params, value))
        return value

    async def _ask(
        self,
        method: str,
        params: msgspec.Struct,
        digest: bytes,
        call_id: str | None,
        stored: StoredQuestion | None,
    ) -> UiAnswer | None:
        """Ask the UIs of the run, after the events before the question are stored."""
        await self._run.publisher.wait_stored()
        self._run.check()
        encoded = msgspec.json.encode(msgspec.structs.replace(params, run_id=self.run_id))
        answer = await self._questions.ask_run(self._run, method, encoded, digest, call_id, stored)
        self._run.check()
        return answer


async def _unless_gone(
    asking: Coroutine[Any, Any, UiAnswer | None], gone: asyncio.Future[None]
) -> UiAnswer | None:
    """Return the answer; None if what was asked about is gone before."""
    answer = asyncio.create_task(asking)
    either: set[asyncio.Future[Any]] = {answer, gone}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else None
    finally:
        if not answer.done():
            answer.cancel()
            await asyncio.wait({answer})


class _NamesTerminal(msgspec.Struct):
    session: str | None = None


class _Turn:
    """Calls that run side by side. If the person denies one without a reason, the turn stops, and
    the questions about the others are withdrawn."""

    def __init__(self, alone: bool) -> None:
        self._alone = alone
        self.stopped = asyncio.Event()

    async def unless_stopped(self, asking: Coroutine[Any, Any, UiAnswer | None]) -> UiAnswer | None:
        """Return the answer. Raises `TurnStopped` if the turn stops before."""
        if self._alone:
            return await asking
        answer = asyncio.create_task(asking)
        stopped = asyncio.create_task(self.stopped.wait())
        try:
            await asyncio.wait({answer, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise TurnStopped(STOPPED)
            return answer.result()
        finally:
            stopped.cancel()
            if not answer.done():
                answer.cancel()
                await asyncio.wait({answer})


def _answer_message(call_id: str, params: msgspec.Struct, value: Any) -> ToolResultMessage:
    match value:
        case UiConfirmResult(ok=ok):
            return result_message(call_id, "yes" if ok else "no")
        case UiPromptResult(value=str(text)):
            secret = isinstance(params, UiPromptRequestParams) and params.secret
            return result_message(call_id, "[a secret]" if secret else text)
        case UiPickResult():
            return result_message(call_id, "\n".join(_chosen(params, value)))
    return result_message(call_id, NO_ANSWER, is_error=True)


def _chosen(params: msgspec.Struct, answer: UiPickResult) -> list[str]:
    assert isinstance(params, UiPickRequestParams)
    offered = {item.id for item in params.items}
    chosen = [id for id in answer.ids if id in offered]
    return chosen if params.multi else chosen[:1]


def _escaped_or_none(text: str | None) -> str | None:
    return None if text is None else in_line(text)


def _is_object(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def _tool_call_event(call: ToolCallPart) -> events.ToolCallEvent:
    if call.malformed is not None:
        return events.ToolCallEvent(
            call.name, {"_raw": call.malformed}, call.id, raw_args=call.malformed
        )
    try:
        args = msgspec.json.decode(call.arguments, type=dict[str, Any])
    except msgspec.DecodeError:  # numbers that no Python type holds
        text = bytes(call.arguments).decode("utf-8", "replace")
        return events.ToolCallEvent(call.name, {"_raw": text}, call.id, raw_args=text)
    return events.ToolCallEvent(call.name, args, call.id)


def _now() -> int:
    return time.time_ns() // 1_000_000
