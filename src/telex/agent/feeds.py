"""One run's news for one connection, in order, each event once, however slowly it is read.

What happens live is queued. When the queue is full, or for a UI that comes later (`run.attach`),
events are left to the store and read from there, by sequence number, until the feed has caught up;
so a slow reader costs no memory, holds up nobody, and misses nothing. Notices that are not events
(a status, the context) keep only their latest value meanwhile, each kind and each question that is
taken back by itself. Questions take their place in the same queue: a UI hears what a question is
about before it is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw

from telex.agent.store.problems import StoreProblem
from telex.protocols.agent_ui.running import AgentEventNotify
from telex.rpc.errors import PeerGone
from telex.wire.limits import AGENT_FEED_ITEMS, AGENT_FEED_RETRY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.connection import Connection
    from telex.agent.store import Event, Store

log = logging.getLogger("telex.agent")

MOST: Final = 1 << 62
REPLAYED: Final = Raw(b'{"replay":true}')


@dataclass(frozen=True, slots=True)
class Notice:
    method: str
    params: object

    @property
    def about(self) -> tuple[object, ...]:
        """A later notice about the same replaces this one."""
        return self.method, type(self.params), getattr(self.params, "id", None)


class Feed:
    """Close it, or `finish` it: then it ends when everything is sent."""

    def __init__(
        self, run_id: str, connection: Connection, store: Store, *, after: int | None = None
    ) -> None:
        """With `after`, the events behind that number come first, from the store."""
        self.connection = connection
        self.run_id = run_id
        self._store = store
        self._queue: deque[Event | Notice | Callable[[], None]] = deque()
        self._held: dict[tuple[object, ...], Notice] = {}
        self._held_questions: list[Callable[[], None]] = []
        self._behind = after is not None
        self._sent = -1 if after is None else after
        self._latest = -1
        """The last event that happened, as far as we were told."""
        self._old = -1 if after is None else MOST
        """The last event that happened before this feed began: all, unless somebody knows."""
        self._over = asyncio.Event()
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._pump())

    def begin_after(self, last_seq: int) -> None:
        """Events up to this one happened before the feed began: they are a replay."""
        self._old = self._latest = last_seq

    async def sent(self) -> None:
        """Wait until a feed that is finished has sent everything, or nobody listens."""
        await asyncio.wait({self.task})

    def event(self, event: Event) -> None:
        self._latest = event.seq
        if not self._is_behind():
            self._queue.append(event)
        self._news.set()

    def notice(self, notice: Notice) -> None:
        if self._is_behind():
            self._held.pop(notice.about, None)  # the latest comes last: after an end comes nothing
            self._held[notice.about] = notice
        else:
            self._queue.append(notice)
        self._news.set()

    def delta(self, notice: Notice) -> None:
        """Something that may be missed."""
        if not self._behind and len(self._queue) < AGENT_FEED_ITEMS:
            self._queue.append(notice)
            self._news.set()

    def _is_behind(self) -> bool:
        if len(self._queue) >= AGENT_FEED_ITEMS:
            self._behind = True
        return self._behind

    def question(self, put: Callable[[], None]) -> None:
        """Called when all that happened before has been sent."""
        if self._behind:
            self._held_questions.append(put)
        else:
            self._queue.append(put)
        self._news.set()

    def finish(self) -> None:
        """Nothing comes any more."""
        self._over.set()
        self._news.set()

    def close(self) -> None:
        """Nobody listens any more."""
        self.task.cancel()

    async def _pump(self) -> None:
        try:
            while True:
                while self._queue:
                    await self._send(self._queue.popleft())
                if self._behind:
                    await self._catch_up()
                elif self._over.is_set():
                    return
                else:
                    self._news.clear()
                    await self._news.wait()
        except PeerGone:
            pass  # the connection's end closes what is left of it

    async def _catch_up(self) -> None:
        """As far as the store goes now. What happened meanwhile is the next round's."""
        try:
            async for event in self._store.events(self.run_id, self._sent):
                await self._send(event)
        except StoreProblem as problem:
            log.error("run %s cannot be told on for now: %s", self.run_id, problem)
            if not await self._over_within(AGENT_FEED_RETRY_SECONDS):
                return
        else:
            if self._sent < self._latest:
                return
        self._behind = False
        self._queue.extend(self._held.values())
        self._queue.extend(self._held_questions)
        self._held.clear()
        self._held_questions.clear()

    async def _over_within(self, seconds: float) -> bool:
        """Then the end is told without what came before it: who hears that can attach."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()
        return self._over.is_set()

    async def _send(self, item: Event | Notice | Callable[[], None]) -> None:
        peer = self.connection.peer
        if isinstance(item, Notice):
            await peer.notify(item.method, item.params)
        elif callable(item):
            item()
        elif item.seq > self._sent:
            self._sent = item.seq
            await peer.notify("agent.event", event_notice(item, replay=item.seq <= self._old))


def event_notice(event: Event, *, replay: bool) -> AgentEventNotify:
    """As it is sent: the stored bytes, and whether it is said again."""
    meta = UNSET if event.meta is None else Raw(event.meta)
    if replay:
        meta = REPLAYED if event.meta is None else _with_replay(event.meta)
    return AgentEventNotify(event.run_id, event.seq, Raw(event.event), meta)


def _with_replay(meta: bytes) -> Raw:
    members = msgspec.json.decode(meta, type=dict[str, Raw])
    return Raw(msgspec.json.encode({**members, "replay": True}))
