"""The functions of a client that answer the runtime's questions: confirm, prompt, pick, clipboard.

`UiCallbacks` serves the four requests of the runtime. Each question runs in a task of its own
that outlives the connection it came by: question ids are unique in a store, so a question that is
sent again after a reconnect gets the answer of the function that is still running, or has
returned. A person is asked once, however often the connection is lost.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict, TypeVar

import msgspec

from telex.agent import limits, protocol
from telex.agent.protocol import ui_requests
from telex.agent.protocol.runs import PeerInfo, UiCapabilities, WorkspaceChoice
from telex.agent.protocol.ui_requests import (
    ClipboardImage,
    ClipboardText,
    UiClipboardReadParams,
    UiClipboardReadResult,
    UiConfirmRequestParams,
    UiConfirmResult,
    UiPickRequestParams,
    UiPickResult,
    UiPromptRequestParams,
    UiPromptResult,
)
from telex.rpc.errors import RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.methods import Methods

log = logging.getLogger("telex.agent")

T = TypeVar("T")
Answer: TypeAlias = T | Awaitable[T]

Confirm = Callable[[UiConfirmRequestParams], Answer[UiConfirmResult | bool]]
"""Answers a confirm: True, False, or a `UiConfirmResult` with `remember` or a `reason`."""
Prompt = Callable[[UiPromptRequestParams], Answer[UiPromptResult | str | None]]
"""Answers a prompt: the text, or None where the person cancelled."""
Pick = Callable[[UiPickRequestParams], Answer[UiPickResult | Sequence[str]]]
"""Answers a pick: the ids of the chosen items, none where the person cancelled."""
Clipboard = Callable[[UiClipboardReadParams], Answer[UiClipboardReadResult | str | bytes | None]]
"""Reads the clipboard: a text, the bytes of an image, or None where the person refused."""

Question = (
    UiConfirmRequestParams | UiPromptRequestParams | UiPickRequestParams | UiClipboardReadParams
)
Invoke = Callable[[Callable[[Any], Any], Question], Awaitable[Any]]


class UiOptions(TypedDict, total=False):
    """The options that `spawn`, `connect` and `in_process` have in common, as keyword arguments.

    A function that is missing is a capability that is not announced: without `confirm`, the
    runtime denies what would need one. Each function may be a plain or an async one. In
    `async with` a plain one runs in the event loop, so it must return soon. In `with` it runs in
    the thread that waits for the run of the question, so it may use `input`. If no thread waits
    for that run, it runs in a thread for such questions. A function that raises has not answered:
    the runtime takes that as a no, unless another UI answers. In `with` the exception is raised in
    the thread that waits for the run; otherwise it is logged.

    Args:
        confirm: Called with a `UiConfirmRequestParams`. Show all of its `message`. Return True or
            False, or a `UiConfirmResult` to remember the answer or to give a reason.
        prompt: Called with a `UiPromptRequestParams`. Return the text, or None to cancel.
        pick: Called with a `UiPickRequestParams`. Return the ids of the chosen items.
        clipboard: Called with a `UiClipboardReadParams` after the person allowed the call. Return
            the text or the image (as bytes) that the person copied, or None to refuse.
        deltas: Receive text while it is generated, as `RunDelta` in `messages`. False by default.
        client: Name and version of the UI, for the runtime's log; those of telex by default.
        keep_questions: Leave open questions open when this client leaves, for the next one that
            attaches to the run. Otherwise the runtime answers them with no. By default True where
            `reconnect` is not 0.
        capabilities: Further capabilities of the UI, such as `supports_markdown`.
        workspace: The root and the mode to work in, as a `WorkspaceChoice`. By default those of the
            runtime, or of this program's directory on a server that has none. The runtime refuses a
            weaker mode than its own, unless it runs for the same user behind a unix socket.

    Example:
        with telex.agent.spawn(confirm=lambda question: True) as agent:
            print(agent.run_start("run touch notes").wait().answer)
    """

    confirm: Confirm
    prompt: Prompt
    pick: Pick
    clipboard: Clipboard
    deltas: bool
    client: PeerInfo
    keep_questions: bool
    capabilities: UiCapabilities
    workspace: WorkspaceChoice


# Not in the class body, where a TypedDict allows annotations only. Its annotations are bound to
# this module by now.
UiOptions.__module__ = "telex.agent"


@dataclass(slots=True)
class _PendingAnswer:
    params: Question
    answer: asyncio.Task[Any]
    served: int = 0
    """How many requests of the current connection wait for the answer; 0 after a loss."""


class UiCallbacks:
    """Serves the requests of the runtime for which there is a function. Close it."""

    def __init__(
        self, options: UiOptions, in_turn: Callable[[str | None], Awaitable[None]]
    ) -> None:
        """`in_turn` returns when the events of a run before its question have been handled."""
        self._confirm = options.get("confirm")
        self._prompt = options.get("prompt")
        self._pick = options.get("pick")
        self._clipboard = options.get("clipboard")
        self._in_turn = in_turn
        self._asked: dict[str, _PendingAnswer] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.invoke: Invoke = call_in_loop
        """How a function is called; the blocking twin calls it in another thread."""

    def add_to(self, methods: Methods) -> None:
        """Serve the questions for which there is a function."""
        if self._confirm is not None:
            methods.add(ui_requests.CONFIRM, self._serve_confirm)
        if self._prompt is not None:
            methods.add(ui_requests.PROMPT, self._serve_prompt)
        if self._pick is not None:
            methods.add(ui_requests.PICK, self._serve_pick)
        if self._clipboard is not None:
            methods.add(ui_requests.CLIPBOARD, self._serve_clipboard)

    def announced(self, capabilities: UiCapabilities) -> UiCapabilities:
        """Return the capabilities with those of the functions."""
        return msgspec.structs.replace(
            capabilities,
            supports_confirm=self._confirm is not None,
            supports_prompt=self._prompt is not None,
            supports_pick=self._pick is not None,
            supports_clipboard_read=self._clipboard is not None,
            supports_parallel_questions=True,
        )

    def withdraw(self, id: str) -> None:
        """Cancel the function that answers a question: the runtime needs no answer any more."""
        if (asked := self._asked.pop(id, None)) is not None:
            asked.answer.cancel()

    def run_continues(self, run_id: str) -> None:
        """The run waits for no answer: withdraw those of its questions that came by a connection
        that was lost. Another UI answered them meanwhile."""
        for id, asked in list(self._asked.items()):
            if asked.params.run_id == run_id and not asked.served and not asked.answer.done():
                self.withdraw(id)

    def run_ended(self, run_id: str) -> None:
        """Withdraw all questions of a run, and forget their answers."""
        for id, asked in list(self._asked.items()):
            if asked.params.run_id == run_id:
                self.withdraw(id)

    def withdraw_all(self) -> None:
        """There is no connection any more, and there will be none."""
        for id in list(self._asked):
            self.withdraw(id)

    async def close(self) -> None:
        """Withdraw all questions, and wait until their functions have ended.

        An async function that ignores its cancellation is logged, and left running.
        """
        self.withdraw_all()
        if not self._tasks:
            return
        seconds = limits.AGENT_CLIENT_CALLBACK_CANCEL_SECONDS
        _, running = await asyncio.wait(self._tasks, timeout=seconds)
        if running:
            log.error(
                "%d functions that answer questions were cancelled and still run after %s seconds; "
                "the client is closed without them",
                len(running),
                seconds,
            )

    async def _serve_confirm(
        self, params: UiConfirmRequestParams, call: CallContext
    ) -> UiConfirmResult:
        answer = await self._answer(self._confirm, params, call)
        if isinstance(answer, bool):
            return UiConfirmResult(ok=answer)
        return _checked(answer, UiConfirmResult, "a bool or a UiConfirmResult")

    async def _serve_prompt(
        self, params: UiPromptRequestParams, call: CallContext
    ) -> UiPromptResult:
        answer = await self._answer(self._prompt, params, call)
        if answer is None or isinstance(answer, str):
            return UiPromptResult(answer)
        return _checked(answer, UiPromptResult, "a str, None or a UiPromptResult")

    async def _serve_pick(self, params: UiPickRequestParams, call: CallContext) -> UiPickResult:
        answer = await self._answer(self._pick, params, call)
        if isinstance(answer, (list, tuple)) and all(isinstance(id, str) for id in answer):
            return UiPickResult(list(answer))
        return _checked(answer, UiPickResult, "a list of ids or a UiPickResult")

    async def _serve_clipboard(
        self, params: UiClipboardReadParams, call: CallContext
    ) -> UiClipboardReadResult:
        answer = await self._answer(self._clipboard, params, call)
        if answer is None:
            return UiClipboardReadResult(ok=False, cancelled=True)
        if isinstance(answer, (str, bytes)):
            return _clipboard_result(answer, params.max_bytes)
        wanted = "a str, bytes, None or a UiClipboardReadResult"
        return _checked(answer, UiClipboardReadResult, wanted)

    async def _answer(self, function: Any, params: Question, call: CallContext) -> Any:
        """The function's answer; for a question that came before, the answer that it has or gets.

        A cancel from outside means that the connection was lost, and leaves the function running.
        """
        asked = self._find(str(call.id), params) or self._begin(str(call.id), function, params)
        asked.served += 1
        try:
            return await asyncio.shield(asked.answer)
        except asyncio.CancelledError:
            if asked.answer.cancelled():
                raise RpcError(protocol.USER_CANCELLED, "the question was withdrawn") from None
            raise
        finally:
            asked.served -= 1
            if params.run_id is None or (asked.answer.done() and _failed(asked.answer)):
                self._forget(str(call.id), asked)

    def _find(self, id: str, params: Question) -> _PendingAnswer | None:
        """A question that came before. The same id with other params belongs to another store."""
        asked = self._asked.get(id)
        if asked is not None and asked.params != params:
            self.withdraw(id)
            return None
        return asked

    def _begin(self, id: str, function: Any, params: Question) -> _PendingAnswer:
        answer = asyncio.create_task(self._ask(function, params))
        self._tasks.add(answer)
        answer.add_done_callback(self._tasks.discard)
        asked = self._asked[id] = _PendingAnswer(params, answer)
        return asked

    def _forget(self, id: str, asked: _PendingAnswer) -> None:
        """No request will wait for this answer again."""
        if self._asked.get(id) is asked:
            self.withdraw(id)

    async def _ask(self, function: Callable[[Any], Any], params: Question) -> Any:
        await self._in_turn(params.run_id)
        return await self.invoke(function, params)


async def call_in_loop(function: Callable[[Any], Any], params: Question) -> Any:
    """Call a plain or an async function in the running event loop."""
    answer = function(params)
    return await answer if inspect.isawaitable(answer) else answer


def _failed(answer: asyncio.Task[Any]) -> bool:
    return answer.cancelled() or answer.exception() is not None


def _clipboard_result(copied: str | bytes, most: int | None) -> UiClipboardReadResult:
    size = len(copied.encode("utf-8", "replace") if isinstance(copied, str) else copied)
    if most is not None and size > most:
        return UiClipboardReadResult(ok=False, error=f"it has {size} bytes, and may have {most}")
    if isinstance(copied, str):
        return UiClipboardReadResult(ok=True, items=[ClipboardText(copied, size)])
    from telex.agent.images import data_url, image_type  # few clipboards have an image

    image = ClipboardImage(data_url(copied), image_type(copied), bytes=size)
    return UiClipboardReadResult(ok=True, items=[image])


def _checked(answer: Any, kind: type[T], wanted: str) -> T:
    if not isinstance(answer, kind):
        raise TypeError(f"the function answered {answer!r}; return {wanted}")
    return answer
