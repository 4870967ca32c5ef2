"""One connected UI with its capabilities and context, and the UIs that have left a run.

A question has the same id on every connection and after every restart (`ui_<n>`, assigned by the
store), so a UI that reconnects recognizes the question.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from telex.agent import protocol
from telex.agent.protocol import REQUESTS, ui_requests
from telex.agent.protocol.extensions import UiRequestCancel
from telex.agent.protocol.runs import UiCapabilities
from telex.agent.tools.todo import TodoList
from telex.agent.tools.tool import ToolFailed, new_id
from telex.redaction import Redactor
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import CallError, PeerGone

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator

    from telex.agent.feeds import RunFeed
    from telex.agent.model_catalogue import ModelName
    from telex.agent.protocol.runs import InitializeParams
    from telex.agent.store import StoredQuestion
    from telex.agent.workspace import Workspace
    from telex.rpc.peer import Peer


DIALECT: Final = JsonRpc(codes=protocol.CODES, null_ids=False)
_LEFT: Final = "the UI left before it gave the clipboard"
_BEFORE: Final = Redactor()
"""The redactor before the workspace is open."""


def can_answer(can: UiCapabilities, method: str) -> bool:
    match method:
        case ui_requests.CONFIRM:
            return bool(can.supports_confirm)
        case ui_requests.PROMPT:
            return bool(can.supports_prompt)
        case ui_requests.PICK:
            return bool(can.supports_pick)
        case ui_requests.CLIPBOARD:
            return bool(can.supports_clipboard_read)
    return False


class UiConnection:
    """The server's side of one connected UI: requests and notifications to it, and its state.

    The capabilities are those of `initialize`; before it, none.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.name = "a UI"
        """The name and version that the UI gives itself."""
        self.identity = peer.identity
        self.capabilities = UiCapabilities()
        self.initialized = False
        """Whether `initialize` was received and has not failed."""
        self._opening: asyncio.Task[Workspace] | None = None
        self._left = asyncio.Event()
        self.ui_context: bytes | None = None
        self.session_id: str | None = None
        """The current session, in which a run starts that names no session."""
        self.model: ModelName | None = None
        """The model that was chosen for the next session, while there was no current one."""
        self.starting = asyncio.Lock()
        """Held while the session of a new run is chosen and stored."""
        self.feeds: dict[str, RunFeed] = {}
        self.todos = TodoList()
        """The todo list of `tool.call`, which belongs to no run."""
        self._in_service = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def input_ended(self) -> bool:
        """Whether its input has ended, so that it can answer nothing more, or its connection is
        closed."""
        return self._left.is_set()

    def end_input(self) -> None:
        self._left.set()

    @property
    def author(self) -> str:
        """The UI as the author of an answer. The identity stands first: a UI chooses its name."""
        return f"{self.identity} as {self.name}"

    def initialize(self, params: InitializeParams, opening: Coroutine[Any, Any, Workspace]) -> None:
        """Accept `initialize`, and begin to open the workspace. If that fails, the UI may send
        another one."""
        self.capabilities = params.ui_capabilities or UiCapabilities()
        self.name = f"{params.client.name} {params.client.version}"
        self.initialized = True
        self._opening = asyncio.create_task(opening)
        self._opening.add_done_callback(self._opened)

    def _opened(self, opening: asyncio.Task[Workspace]) -> None:
        self.initialized = not opening.cancelled() and opening.exception() is None

    async def wait_opened(self) -> None:
        """Wait until the workspace is open. Raises what prevents that."""
        assert self._opening is not None
        await asyncio.shield(self._opening)

    @property
    def workspace(self) -> Workspace:
        """The workspace of this connection, which every request after `initialize` waits for."""
        assert self._opening is not None
        return self._opening.result()

    def redact(self, text: str) -> str:
        is_open = self.initialized and self._opening is not None and self._opening.done()
        return (self.workspace.context.redactor if is_open else _BEFORE).redact(text)

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Count a request of this UI as in progress, for `wait_idle`."""
        self._in_service += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_service -= 1
            if not self._in_service:
                self._idle.set()

    async def wait_idle(self) -> None:
        """Wait until no request of this UI is in progress."""
        await self._idle.wait()

    def can_be_asked(self, method: str) -> bool:
        return not self.input_ended and can_answer(self.capabilities, method)

    async def ask(self, question: StoredQuestion) -> bytes:
        """Send a question and return the answer, undecoded. There is no time limit: people have
        lunch.

        Raises:
            CallError: the UI returned an error, or disconnected.
        """
        answer: Raw = await self.peer.call(
            question.method, Raw(question.params), returns=Raw, timeout=None, id=question.id
        )
        return bytes(answer)

    def ask_again(self, question: StoredQuestion) -> None:
        """Repeat the request with the same id, for a UI that lost it. The first answer counts."""
        with contextlib.suppress(PeerGone):
            self.peer.repeat(question.id, question.method, Raw(question.params))

    async def read_clipboard(
        self, params: ui_requests.UiClipboardReadParams
    ) -> ui_requests.UiClipboardReadResult:
        """Ask for the clipboard of the person. A cancel withdraws the request. Raises `ToolFailed`.

        Unlike a question it is not stored: the answer is in the result of the tool, and after a
        restart the person is asked again."""
        id = f"ui_clipboard_{new_id()}"
        returns = ui_requests.UiClipboardReadResult
        asking: asyncio.Future[ui_requests.UiClipboardReadResult] = asyncio.ensure_future(
            self.peer.call(ui_requests.CLIPBOARD, params, returns=returns, timeout=None, id=id)
        )
        leaving = asyncio.ensure_future(self._left.wait())
        try:
            either: set[asyncio.Future[Any]] = {asking, leaving}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise ToolFailed(_LEFT)
            return asking.result()
        except PeerGone as error:
            raise ToolFailed(_LEFT) from error
        except CallError as error:
            raise ToolFailed(f"the UI did not give the clipboard: {str(error)[:500]}") from error
        except asyncio.CancelledError:
            if self.capabilities.supports_request_cancel:
                withdrawn = UiRequestCancel(id, "withdrawn", params.run_id)
                await self.notify("ui.request.cancel", withdrawn)
            raise
        finally:
            asking.cancel()
            leaving.cancel()

    async def notify(self, method: str, params: object) -> None:
        """Send a notification that belongs to no run. Does nothing after a disconnect."""
        with contextlib.suppress(PeerGone):
            await self.peer.notify(method, params)

    def close(self) -> None:
        self.end_input()
        if self._opening is not None:
            self._opening.cancel()
        for feed in list(self.feeds.values()):
            feed.close()


class Departures:
    """The UIs that left one run and may reconnect: an open question may wait for them. Pure.

    A UI that reconnects may be another process. So a UI that connects counts as one that left if it
    can answer everything that the other could, and announced `supports_run_attach` as well. A UI
    that only watches cannot answer, so it never counts as a reconnect.
    """

    def __init__(self) -> None:
        self._left: list[UiCapabilities] = []

    def add(self, can: UiCapabilities) -> None:
        if can.supports_run_attach:
            self._left.append(can)

    def reconnected(self, can: UiCapabilities) -> None:
        """A reconnect consumes one departure."""
        for departed in self._left:
            if can.supports_run_attach and _covers(can, departed):
                self._left.remove(departed)
                return

    def can_answer(self, method: str) -> bool:
        return any(can_answer(can, method) for can in self._left)


def unknown_ui(methods: Iterable[str]) -> UiCapabilities:
    """Return the capabilities that a UI must have had to be asked these methods.

    After a restart nothing else is known about the UIs that left.
    """
    asked = set(methods)
    return UiCapabilities(
        supports_confirm=ui_requests.CONFIRM in asked,
        supports_prompt=ui_requests.PROMPT in asked,
        supports_pick=ui_requests.PICK in asked,
        supports_run_attach=True,
    )


def _covers(can: UiCapabilities, other: UiCapabilities) -> bool:
    return all(can_answer(can, method) or not can_answer(other, method) for method in REQUESTS)
