"""What one run tells: each event stored, then sent, in the order in which it was said.

A core need not wait for the disk after each event: a few are on their way to the store at once, and
the store commits together what waits together. Still nothing is sent before it is stored, and what
is no event (a status, a delta) keeps its place between the events. Whoever is about to act or to
ask waits until everything is `settled`, so nothing is done that the store does not know about.

The events are numbered here, and the store takes only the next number: when one could not be
stored, none behind it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from telex.agent.feeds import Notice
from telex.agent.store import Event
from telex.wire.limits import AGENT_EVENTS_AHEAD, AGENT_FEED_ITEMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.feeds import Feed
    from telex.agent.store import Store
    from telex.protocols.agent_ui.running import UiCapabilities


@dataclass(slots=True)
class _Said:
    """An event that is on its way, and what was told after it."""

    event: bytes
    meta: bytes | None
    stored: asyncio.Future[int]
    then: list[Callable[[Feed], None]] = field(default_factory=list)


class Telling:
    def __init__(self, run_id: str, store: Store, last_seq: int = -1) -> None:
        self.feeds: set[Feed] = set()
        self.last_seq = last_seq
        """Of the last event that was sent."""
        self._run_id = run_id
        self._store = store
        self._next = last_seq + 1
        self._on_the_way: deque[_Said] = deque()
        self._problem: BaseException | None = None

    async def room(self) -> None:
        """Until another event may be said. Raises why an earlier one could not be stored."""
        while len(self._on_the_way) >= AGENT_EVENTS_AHEAD:
            await asyncio.wait({self._on_the_way[0].stored})
        self._check()

    def event(self, event: bytes, meta: bytes | None) -> None:
        """Raises `NotKept`, and then it was not said."""
        stored = self._store.appending(self._run_id, event, meta, self._next)
        self._next += 1
        self._on_the_way.append(_Said(event, meta, stored))
        stored.add_done_callback(self._stored)

    def notice(
        self, method: str, params: object, to: Callable[[UiCapabilities], bool] = lambda can: True
    ) -> None:
        """To those who can hear it, after all events that were said before."""
        notice = Notice(method, params)
        self._in_turn(lambda feed: feed.notice(notice) if to(feed.connection.can) else None)

    def delta(self, method: str, params: object) -> None:
        """What may be missed."""
        if self._on_the_way and len(self._on_the_way[-1].then) >= AGENT_FEED_ITEMS:
            return
        notice = Notice(method, params)
        self._in_turn(
            lambda feed: feed.delta(notice) if feed.connection.can.supports_deltas else None
        )

    async def settled(self) -> None:
        """Until all that was said is stored. Raises why it is not."""
        await self.sent()
        self._check()

    async def sent(self) -> None:
        """Until nothing is on its way, stored or not."""
        while self._on_the_way:
            await asyncio.wait({self._on_the_way[-1].stored})

    def _check(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _stored(self, answer: asyncio.Future[int]) -> None:
        """The store answers in the order in which it was asked."""
        said = self._on_the_way.popleft()
        if (problem := answer.exception()) is not None:
            self._problem = self._problem or problem
        else:
            self.last_seq = answer.result()
            event = Event(self._run_id, self.last_seq, 0, said.event, said.meta)
            self._now(lambda feed: feed.event(event))
        for tell in said.then:
            self._now(tell)

    def _in_turn(self, tell: Callable[[Feed], None]) -> None:
        if self._on_the_way:
            self._on_the_way[-1].then.append(tell)
        else:
            self._now(tell)

    def _now(self, tell: Callable[[Feed], None]) -> None:
        for feed in self.feeds:
            tell(feed)
