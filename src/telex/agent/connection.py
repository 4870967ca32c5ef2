"""One UI that is connected: what it can do, where its person works, and how it is asked.

A question has the same id on every connection and after every restart (`ui_<n>`, the store's), so a
UI that comes back knows it again.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from msgspec import Raw

from telex.agent.tools.todo import Todos
from telex.protocols.agent_ui import asking, codes
from telex.protocols.agent_ui.running import UiCapabilities
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import PeerGone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent.feeds import Feed
    from telex.agent.store import Question
    from telex.rpc.peer import Peer

DIALECT: Final = JsonRpc(codes=codes.CODES, null_ids=False)


def can_answer(can: UiCapabilities, method: str) -> bool:
    match method:
        case asking.CONFIRM:
            return bool(can.supports_confirm)
        case asking.PROMPT:
            return bool(can.supports_prompt)
        case asking.PICK:
            return bool(can.supports_pick)
    return False


class Connection:
    """Known once `initialize` came."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.name = "a UI"
        self.can = UiCapabilities()
        self.initialized = False
        self.gone = False
        """It hears no more questions, or nothing at all."""
        self.ui_context: bytes | None = None
        self.session_id: str | None = None
        """The current session: where a run that names none goes on."""
        self.starting = asyncio.Lock()
        """Held while a run's session is decided and stored."""
        self.feeds: dict[str, Feed] = {}
        self.todos = Todos()
        """For tools that it calls beside any run."""
        self._in_service = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """While a request of theirs is worked on."""
        self._in_service += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_service -= 1
            if not self._in_service:
                self._idle.set()

    async def served(self) -> None:
        """Until no request of theirs is worked on."""
        await self._idle.wait()

    def can_be_asked(self, method: str) -> bool:
        return not self.gone and can_answer(self.can, method)

    async def ask(self, question: Question) -> bytes:
        """Its answer, as it came. Raises `CallError`. There is no time limit: people have lunch."""
        answer: Raw = await self.peer.call(
            question.method, Raw(question.params), returns=Raw, timeout=None, id=question.id
        )
        return bytes(answer)

    def ask_again(self, question: Question) -> None:
        """For who lost it; whichever answer comes is the answer."""
        with contextlib.suppress(PeerGone):
            self.peer.repeat(question.id, question.method, Raw(question.params))

    async def tell(self, method: str, params: object) -> None:
        """Beside any run; silently nothing where it is gone."""
        with contextlib.suppress(PeerGone):
            await self.peer.notify(method, params)

    def close(self) -> None:
        self.gone = True
        for feed in list(self.feeds.values()):
            feed.close()
