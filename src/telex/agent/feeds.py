"""A run's events and notices on their way to the UIs: stored, then sent, in order, each once.

`EventPublisher` (one for each run) stores an event and then hands it to each `RunFeed` (one for
each run and connection), which sends it as fast as its UI reads. `RunSubscriptions` (one for each
runtime) knows which connection has a feed of which run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw

from telex.agent.limits import AGENT_EVENTS_AHEAD, AGENT_FEED_ITEMS, AGENT_FEED_RETRY_SECONDS
from telex.agent.protocol.runs import AgentEventNotify
from telex.agent.store import StoredEvent
from telex.agent.store.errors import StoreError
from telex.rpc.errors import PeerGone

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.agent_run import AgentRun
    from telex.agent.protocol.runs import RunStatusNotify, UiCapabilities
    from telex.agent.questions import Questions
    from telex.agent.store import Store, StoredEvent
    from telex.agent.ui_connection import UiConnection


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


class RunFeed:
    """One run's events and notices for one connection, however slowly it reads.

    What happens live is queued. When the queue is full, or a UI comes later (`run.attach`), events
    are left to the store and read from there, by sequence number, until the feed has caught
    up; so a slow reader costs no memory, holds up nobody, and misses nothing. Notices that are not
    events (a status, the context) keep only their latest value meanwhile, each kind and each
    withdrawn question by itself. Questions take their place in the same queue: a UI gets what a
    question is about before the question.

    Close it, or `finish` it: then it ends when everything is sent.
    """

    def __init__(
        self, run_id: str, connection: UiConnection, store: Store, *, after: int | None = None
    ) -> None:
        """With `after`, the events behind that number come first, from the store."""
        self.connection = connection
        self.run_id = run_id
        self._store = store
        self._queue: deque[StoredEvent | Notice | Callable[[], None]] = deque()
        self._held: dict[tuple[object, ...], Notice] = {}
        self._held_questions: list[Callable[[], None]] = []
        self._behind = after is not None
        self._sent = -1 if after is None else after
        self._latest = -1
        """The last event that was added."""
        self._old = -1 if after is None else MOST
        """The last event that happened before this feed began: all, unless somebody knows."""
        self._finished = asyncio.Event()
        self._wake = asyncio.Event()
        self.task = asyncio.create_task(self._pump())

    def begin_after(self, last_seq: int) -> None:
        """Events up to this one happened before the feed began: they are a replay."""
        self._old = self._latest = last_seq

    async def wait_sent(self) -> None:
        """Wait until a feed that is finished has sent everything, or nobody listens."""
        await asyncio.wait({self.task})

    def add_event(self, event: StoredEvent) -> None:
        self._latest = event.seq
        if not self._is_behind():
            self._queue.append(event)
        self._wake.set()

    def add_notice(self, notice: Notice) -> None:
        if self._is_behind():
            self._held.pop(notice.about, None)  # the latest comes last: after an end comes nothing
            self._held[notice.about] = notice
        else:
            self._queue.append(notice)
        self._wake.set()

    def add_delta(self, notice: Notice) -> None:
        """Dropped where the feed is behind."""
        if not self._behind and len(self._queue) < AGENT_FEED_ITEMS:
            self._queue.append(notice)
            self._wake.set()

    def _is_behind(self) -> bool:
        if len(self._queue) >= AGENT_FEED_ITEMS:
            self._behind = True
        return self._behind

    def add_question(self, send: Callable[[], None]) -> None:
        """`send` is called when all that happened before has been sent."""
        if self._behind:
            self._held_questions.append(send)
        else:
            self._queue.append(send)
        self._wake.set()

    def finish(self) -> None:
        """Nothing comes any more."""
        self._finished.set()
        self._wake.set()

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
                elif self._finished.is_set():
                    return
                else:
                    self._wake.clear()
                    await self._wake.wait()
        except PeerGone:
            pass  # the connection's end closes what is left of it

    async def _catch_up(self) -> None:
        """As far as the store goes now. What happened meanwhile is the next round's."""
        try:
            async for event in self._store.events(self.run_id, self._sent):
                await self._send(event)
        except StoreError as problem:
            log.error("run %s cannot be sent for now: %s", self.run_id, problem)
            if not await self._finished_within(AGENT_FEED_RETRY_SECONDS):
                return
        else:
            if self._sent < self._latest:
                return
        self._behind = False
        self._queue.extend(self._held.values())
        self._queue.extend(self._held_questions)
        self._held.clear()
        self._held_questions.clear()

    async def _finished_within(self, seconds: float) -> bool:
        """Then the end is sent without what came before it: the UI can attach again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._finished.wait()
        return self._finished.is_set()

    async def _send(self, item: StoredEvent | Notice | Callable[[], None]) -> None:
        peer = self.connection.peer
        if isinstance(item, Notice):
            await peer.notify(item.method, item.params)
        elif callable(item):
            item()
        elif item.seq > self._sent:
            self._sent = item.seq
            await peer.notify("agent.event", event_notice(item, replay=item.seq <= self._old))


def event_notice(event: StoredEvent, *, replay: bool) -> AgentEventNotify:
    """As it is sent: the stored bytes, and whether it is a replay."""
    meta = UNSET if event.meta is None else Raw(event.meta)
    if replay:
        meta = REPLAYED if event.meta is None else _with_replay(event.meta)
    return AgentEventNotify(event.run_id, event.seq, Raw(event.event), meta)


def _with_replay(meta: bytes) -> Raw:
    members = msgspec.json.decode(meta, type=dict[str, Raw])
    return Raw(msgspec.json.encode({**members, "replay": True}))


@dataclass(slots=True)
class _PendingEvent:
    """An event that is not stored yet, and what is to be sent after it."""

    event: bytes
    meta: bytes | None
    stored: asyncio.Future[int]
    then: list[Callable[[RunFeed], None]] = field(default_factory=list)


class EventPublisher:
    """Stores the events of one run, then sends them, in order.

    A core need not wait for the disk after each event: a few are on their way to the store at once,
    and the store commits together what waits together. Still nothing is sent before it is stored,
    and what is no event (a status, a delta) keeps its place between the events. Whoever is about to
    act or to ask awaits `wait_stored`, so nothing is done that the store does not know about.

    Events are numbered here, and the store takes only the next number: when one could not be
    stored, none behind it is.
    """

    MAX_DELTAS = AGENT_FEED_ITEMS
    """That wait behind one event."""

    def __init__(self, run_id: str, store: Store, last_seq: int = -1) -> None:
        self.feeds: set[RunFeed] = set()
        self.last_seq = last_seq
        """Of the last event that was sent."""
        self._run_id = run_id
        self._store = store
        self._next = last_seq + 1
        self._pending: deque[_PendingEvent] = deque()
        self._problem: BaseException | None = None

    async def wait_for_room(self) -> None:
        """Until another event may be published. Raises why an earlier one could not be stored."""
        while len(self._pending) >= AGENT_EVENTS_AHEAD:
            await asyncio.wait({self._pending[0].stored})
        self._check()

    def publish_event(self, event: bytes, meta: bytes | None) -> None:
        """Raises `NotKept`, and then it is neither stored nor sent."""
        stored = self._store.appending(self._run_id, event, meta, self._next)
        self._next += 1
        self._pending.append(_PendingEvent(event, meta, stored))
        stored.add_done_callback(self._stored)

    def publish_notice(
        self, method: str, params: object, to: Callable[[UiCapabilities], bool] = lambda can: True
    ) -> None:
        """Sent to the UIs with that capability, after all events that were published before."""
        notice = Notice(method, params)
        self._after_pending(
            lambda feed: feed.add_notice(notice) if to(feed.connection.capabilities) else None
        )

    def publish_delta(self, method: str, params: object) -> None:
        """Dropped where too much waits."""
        if self._pending and len(self._pending[-1].then) >= self.MAX_DELTAS:
            return
        notice = Notice(method, params)
        self._after_pending(
            lambda feed: (
                feed.add_delta(notice) if feed.connection.capabilities.supports_deltas else None
            )
        )

    async def wait_stored(self) -> None:
        """Until all that was published is stored. Raises why it is not."""
        await self.wait_sent()
        self._check()

    async def wait_sent(self) -> None:
        """Until nothing is on its way, stored or not."""
        while self._pending:
            await asyncio.wait({self._pending[-1].stored})

    def _check(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _stored(self, answer: asyncio.Future[int]) -> None:
        """The store answers in the order in which it was asked."""
        published = self._pending.popleft()
        if (problem := answer.exception()) is not None:
            self._problem = self._problem or problem
        else:
            self.last_seq = answer.result()
            event = StoredEvent(self._run_id, self.last_seq, 0, published.event, published.meta)
            self._send_to_feeds(lambda feed: feed.add_event(event))
        for send in published.then:
            self._send_to_feeds(send)

    def _after_pending(self, send: Callable[[RunFeed], None]) -> None:
        if self._pending:
            self._pending[-1].then.append(send)
        else:
            self._send_to_feeds(send)

    def _send_to_feeds(self, send: Callable[[RunFeed], None]) -> None:
        for feed in self.feeds:
            send(feed)


class RunSubscriptions:
    """Which connection has a feed of which run.

    A run that waits since before a restart goes on when a UI comes that can answer; one that cannot
    may watch it meanwhile, and gets what follows when it goes on.
    """

    def __init__(self, runs: dict[str, AgentRun], questions: Questions, store: Store) -> None:
        self._runs = runs
        """Those that go on."""
        self._questions = questions
        self._store = store
        self._watching: set[RunFeed] = set()

    def subscribe(
        self, run: AgentRun, connection: UiConnection, after: int | None = None
    ) -> RunFeed:
        """Send this connection the run from now on; with `after`, what was before too."""
        known = run.run_id in connection.feeds
        feed = self.open_feed(run.run_id, connection, after)
        run.feeds.add(feed)
        if not known:  # one that attaches anew was here
            (run.departures.add if connection.gone else run.departures.reconnected)(
                connection.capabilities
            )
        return feed

    def open_feed(self, run_id: str, connection: UiConnection, after: int | None) -> RunFeed:
        """A new feed, in place of the one that the connection had."""
        if (earlier := connection.feeds.pop(run_id, None)) is not None:
            self._drop_feed(run_id, connection, earlier)
            earlier.close()
        feed = connection.feeds[run_id] = RunFeed(run_id, connection, self._store, after=after)
        feed.task.add_done_callback(lambda _: self._drop_feed(run_id, connection, feed))
        return feed

    def _drop_feed(self, run_id: str, connection: UiConnection, feed: RunFeed) -> None:
        if (run := self._runs.get(run_id)) is not None:
            run.feeds.discard(feed)
        self._watching.discard(feed)
        if connection.feeds.get(run_id) is feed:
            del connection.feeds[run_id]

    def watch(self, feed: RunFeed) -> None:
        self._watching.add(feed)

    def take_watchers(self, run_id: str) -> set[RunFeed]:
        """The feeds that watch a run which goes on, or ends, now. They watch no longer."""
        found = {feed for feed in self._watching if feed.run_id == run_id}
        self._watching -= found
        return found

    def publish_end(self, status: RunStatusNotify) -> None:
        """A run that was watched ended without going on."""
        for feed in self.take_watchers(status.run_id):
            feed.add_notice(Notice("run.status", status))
            feed.finish()

    def disconnect(self, connection: UiConnection) -> None:
        """The connection is closed: it is sent nothing more."""
        self.half_close(connection)
        for run_id, feed in connection.feeds.items():
            if (run := self._runs.get(run_id)) is not None:
                run.feeds.discard(feed)
        connection.close()

    def half_close(self, connection: UiConnection) -> None:
        """The UI's input ended: it answers nothing more. Its open questions wait for it, if it may
        come back."""
        if connection.gone:
            return
        connection.gone = True
        for run_id, feed in connection.feeds.items():
            if (run := self._runs.get(run_id)) is not None:
                run.departures.add(connection.capabilities)
            else:
                feed.finish()
        self._questions.disconnected(connection)
