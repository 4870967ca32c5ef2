"""One connected UI with its capabilities and context, and the UIs that have left a run.

A question has the same id on every connection and after every restart (`ui_<n>`, assigned by the
store), so a UI that reconnects recognizes the question.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from msgspec import Raw

from telex.agent import protocol
from telex.agent.protocol import REQUESTS, ui_requests
from telex.agent.protocol.runs import UiCapabilities
from telex.agent.tools.todo import TodoList
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import PeerGone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from telex.agent.feeds import RunFeed
    from telex.agent.store import StoredQuestion
    from telex.rpc.peer import Peer


DIALECT: Final = JsonRpc(codes=protocol.CODES, null_ids=False)


def can_answer(can: UiCapabilities, method: str) -> bool:
    match method:
        case ui_requests.CONFIRM:
            return bool(can.supports_confirm)
        case ui_requests.PROMPT:
            return bool(can.supports_prompt)
        case ui_requests.PICK:
            return bool(can.supports_pick)
    return False


class UiConnection:
    """The server's side of one connected UI: requests and notifications to it, and its state.

    The capabilities are those of `initialize`; before it, none.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.name = "a UI"
        self.capabilities = UiCapabilities()
        self.initialized = False
        self.input_ended = False
        """Its input has ended, so that it can answer nothing more, or its connection is closed."""
        self.ui_context: bytes | None = None
        self.session_id: str | None = None
        """The current session, in which a run starts that names no session."""
        self.starting = asyncio.Lock()
        """Held while the session of a new run is chosen and stored."""
        self.feeds: dict[str, RunFeed] = {}
        self.todos = TodoList()
        """The todo list of `tool.call`, which belongs to no run."""
        self._in_service = 0
        self._idle = asyncio.Event()
        self._idle.set()

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

    async def notify(self, method: str, params: object) -> None:
        """Send a notification that belongs to no run. Does nothing after a disconnect."""
        with contextlib.suppress(PeerGone):
            await self.peer.notify(method, params)

    def close(self) -> None:
        self.input_ended = True
        for feed in list(self.feeds.values()):
            feed.close()


class Departures:
    """The UIs that left one run and may reconnect: an open question may wait for them. Pure.

    UIs have no identity. So a UI that connects counts as one that left if it can answer everything
    that the other could, and announced `supports_run_attach` as well. A UI that only watches cannot
    answer, so it never counts as a reconnect.
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
