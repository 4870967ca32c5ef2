"""One connected UI: its capabilities, its context, its questions; and the UIs that left a run.

A question has the same id on every connection and after every restart (`ui_<n>`, the store's), so a
UI that comes back knows it again.
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
    """Its capabilities are known once `initialize` came."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.name = "a UI"
        self.capabilities = UiCapabilities()
        self.initialized = False
        self.gone = False
        """It can be asked nothing more, or its connection is closed."""
        self.ui_context: bytes | None = None
        self.session_id: str | None = None
        """The current session: where a run that names none goes on."""
        self.starting = asyncio.Lock()
        """Held while a run's session is decided and stored."""
        self.feeds: dict[str, RunFeed] = {}
        self.todos = TodoList()
        """For tools that it calls beside any run."""
        self._in_service = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """While a request of this UI is worked on."""
        self._in_service += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_service -= 1
            if not self._in_service:
                self._idle.set()

    async def wait_idle(self) -> None:
        """Until no request of this UI is worked on."""
        await self._idle.wait()

    def can_be_asked(self, method: str) -> bool:
        return not self.gone and can_answer(self.capabilities, method)

    async def ask(self, question: StoredQuestion) -> bytes:
        """Its answer, as it came. Raises `CallError`. There is no time limit: people have lunch."""
        answer: Raw = await self.peer.call(
            question.method, Raw(question.params), returns=Raw, timeout=None, id=question.id
        )
        return bytes(answer)

    def ask_again(self, question: StoredQuestion) -> None:
        """For who lost it; whichever answer comes is the answer."""
        with contextlib.suppress(PeerGone):
            self.peer.repeat(question.id, question.method, Raw(question.params))

    async def notify(self, method: str, params: object) -> None:
        """Beside any run; silently nothing where it is gone."""
        with contextlib.suppress(PeerGone):
            await self.peer.notify(method, params)

    def close(self) -> None:
        self.gone = True
        for feed in list(self.feeds.values()):
            feed.close()


class Departures:
    """The UIs that left one run and may come back: an open question may wait for them. Pure.

    A UI has no name that would tell it from another, so one that connects is taken for one that
    left if it can answer all that the other could, and may come back as well. A UI that only
    watches is another one.
    """

    def __init__(self) -> None:
        self._left: list[UiCapabilities] = []

    def add(self, can: UiCapabilities) -> None:
        if can.supports_run_attach:
            self._left.append(can)

    def reconnected(self, can: UiCapabilities) -> None:
        """A reconnect consumes one departure."""
        for one in self._left:
            if can.supports_run_attach and _covers(can, one):
                self._left.remove(one)
                return

    def can_answer(self, method: str) -> bool:
        return any(can_answer(can, method) for can in self._left)


def unknown_ui(methods: Iterable[str]) -> UiCapabilities:
    """The capabilities of a UI that was asked these, as after a restart: nothing else is known."""
    asked = set(methods)
    return UiCapabilities(
        supports_confirm=ui_requests.CONFIRM in asked,
        supports_prompt=ui_requests.PROMPT in asked,
        supports_pick=ui_requests.PICK in asked,
        supports_run_attach=True,
    )


def _covers(can: UiCapabilities, other: UiCapabilities) -> bool:
    return all(can_answer(can, method) or not can_answer(other, method) for method in REQUESTS)
