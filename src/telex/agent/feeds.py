"""Delivery of a run's events and notices to the UIs: stored, then sent, in order, each once.

`EventPublisher` (one per run) stores an event and then passes it to each `RunFeed` (one per run and
connection), which sends it as fast as its UI reads. `RunSubscriptions` (one per runtime) records
which connection has a feed of which run.
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
_IMAGE: Final = b'"screenshot_base64"'
REPLAYED: Final = Raw(b'{"replay":true}')


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification to a UI that is not stored: a status, a delta, a withdrawn question."""

    method: str
    params: object

    @property
    def about(self) -> tuple[object, ...]:
        """The subject: in a feed that is behind, a later notice about it replaces this one."""
        return self.method, type(self.params), getattr(self.params, "id", None)


class RunFeed:
    """The events and notices of one run for one connection, however slowly the connection reads.

    Live events are queued. When the queue is full, or a UI attaches later (`run.attach`), the feed
    reads events from the store instead, by sequence number, until it has caught up. So a slow
    reader uses no memory, blocks neither the run nor other UIs, and misses nothing. Meanwhile only
    the latest notice about each subject is kept (`Notice.about`). Questions are queued between the
    events, so a UI receives the events that a question is about before the question.

    Call `close` to stop at once, or `finish` to stop when everything is sent.
    """

    def __init__(
        self, run_id: str, connection: UiConnection, store: Store, *, after: int | None = None
    ) -> None:
        """With `after`, begin with the stored events after that sequence number."""
        self.connection = connection
        self.run_id = run_id
        self._store = store
        self._queue: deque[StoredEvent | Notice | Callable[[], None]] = deque()
        self._held: dict[tuple[object, ...], Notice] = {}
        self._held_questions: list[Callable[[], None]] = []
        self._behind = after is not None
        self._sent = -1 if after is None else after
        self._latest = -1
        """The sequence number of the last event that was added."""
        self._old = -1 if after is None else MOST
        """The last event from before this feed began; all events until `begin_after` is called."""
        self._finished = asyncio.Event()
        self._wake = asyncio.Event()
        self.task = asyncio.create_task(self._pump())

    def begin_after(self, last_seq: int) -> None:
        """Mark events up to this one as a replay: they happened before the feed began."""
        self._old = self._latest = last_seq

    async def wait_sent(self) -> None:
        """Wait until a finished feed has sent everything, or is closed."""
        await asyncio.wait({self.task})

    def add_event(self, event: StoredEvent) -> None:
        self._latest = event.seq
        if not self._is_behind():
            self._queue.append(event)
        self._wake.set()

    def add_notice(self, notice: Notice) -> None:
        if self._is_behind():
            self._held.pop(notice.about, None)  # the latest goes last: nothing follows an end
            self._held[notice.about] = notice
        else:
            self._queue.append(notice)
        self._wake.set()

    def add_delta(self, notice: Notice) -> None:
        """Queue a delta, or drop it if the feed is behind: the whole event repeats its content."""
        if not self._behind and len(self._queue) < AGENT_FEED_ITEMS:
            self._queue.append(notice)
            self._wake.set()

    def _is_behind(self) -> bool:
        if len(self._queue) >= AGENT_FEED_ITEMS:
            self._behind = True
        return self._behind

    def add_question(self, send: Callable[[], None]) -> None:
        """Call `send` after everything that was added before has been sent."""
        if self._behind:
            self._held_questions.append(send)
        else:
            self._queue.append(send)
        self._wake.set()

    async def wait_turn(self) -> None:
        """Wait until everything that was added before has been sent, or the feed is closed."""
        reached = asyncio.Event()
        self.add_question(reached.set)
        waiting = asyncio.create_task(reached.wait())
        try:
            await asyncio.wait({waiting, self.task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    def finish(self) -> None:
        """Stop when everything is sent. Nothing may be added after this."""
        self._finished.set()
        self._wake.set()

    def close(self) -> None:
        """Stop sending at once: the connection is closed, or has another feed of this run."""
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
            pass  # `RunSubscriptions.disconnect` cleans up

    async def _catch_up(self) -> None:
        """Send what the store has now. Events that are added meanwhile are left to the next
        call."""
        try:
            async for event in self._store.events(self.run_id, self._sent):
                await self._send(event)
        except StoreError as problem:
            log.error("run %s: stored events cannot be read yet: %s", self.run_id, problem)
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
        """Wait for `finish` between two tries to read the store. True: stop trying, and send the
        end without the missing events; the UI can attach again to get them."""
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
            can = self.connection.capabilities
            await peer.notify("agent.event", event_notice(item, can, replay=item.seq <= self._old))


def event_notice(event: StoredEvent, can: UiCapabilities, *, replay: bool) -> AgentEventNotify:
    """Return the notification for a stored event; `replay` adds `"replay": true` to its meta. A UI
    that shows no images gets none."""
    meta = UNSET if event.meta is None else Raw(event.meta)
    if replay:
        meta = REPLAYED if event.meta is None else _with_replay(event.meta)
    shown = event.event if can.supports_images else _without_image(event.event)
    return AgentEventNotify(event.run_id, event.seq, Raw(shown), meta)


def _without_image(event: bytes) -> bytes:
    if _IMAGE not in event:
        return event
    members = msgspec.json.decode(event, type=dict[str, Raw])
    return msgspec.json.encode({k: v for k, v in members.items() if k != "screenshot_base64"})


def _with_replay(meta: bytes) -> Raw:
    members = msgspec.json.decode(meta, type=dict[str, Raw])
    return Raw(msgspec.json.encode({**members, "replay": True}))


@dataclass(slots=True)
class _PendingEvent:
    """An event that is being stored, and the notices to send after it."""

    event: bytes
    meta: bytes | None
    stored: asyncio.Future[int]
    then: list[Callable[[RunFeed], None]] = field(default_factory=list)


class EventPublisher:
    """Stores the events of one run, then sends them, in order.

    A core does not wait for the disk after each event: several events are being stored at once, and
    the store puts events that wait at the same time into one commit. Still no event is sent before
    it is stored, and notices (a status, a delta) keep their place between the events. Code that is
    about to act or to ask awaits `wait_stored` first, so that every earlier event is stored.

    Events are numbered here, and the store accepts only the next number: if an event could not be
    stored, no later event is stored.
    """

    MAX_DELTAS = AGENT_FEED_ITEMS
    """Deltas that may wait for one event to be stored."""

    def __init__(self, run_id: str, store: Store, last_seq: int = -1) -> None:
        self.feeds: set[RunFeed] = set()
        self.last_seq = last_seq
        """The sequence number of the last event that was sent."""
        self._run_id = run_id
        self._store = store
        self._next = last_seq + 1
        self._pending: deque[_PendingEvent] = deque()
        self._problem: BaseException | None = None

    async def wait_for_room(self) -> None:
        """Wait until another event may be published. Raises the error of an earlier event that
        could not be stored."""
        while len(self._pending) >= AGENT_EVENTS_AHEAD:
            await asyncio.wait({self._pending[0].stored})
        self._check()

    def publish_event(self, event: bytes, meta: bytes | None, message: bytes | None = None) -> None:
        """Store an event and the message that belongs to it, then send the event. Raises
        `NotStorable`; then it is neither stored nor sent."""
        stored = self._store.appending(self._run_id, event, meta, self._next, message)
        self._next += 1
        self._pending.append(_PendingEvent(event, meta, stored))
        stored.add_done_callback(self._stored)

    def publish_notice(
        self, method: str, params: object, to: Callable[[UiCapabilities], bool] = lambda can: True
    ) -> None:
        """Send a notice to the UIs that `to` selects, after all events published before."""
        notice = Notice(method, params)
        self._after_pending(
            lambda feed: feed.add_notice(notice) if to(feed.connection.capabilities) else None
        )

    def publish_delta(self, method: str, params: object) -> None:
        """Send a delta to the UIs that support it, or drop it if `MAX_DELTAS` wait already."""
        if self._pending and len(self._pending[-1].then) >= self.MAX_DELTAS:
            return
        notice = Notice(method, params)
        self._after_pending(
            lambda feed: (
                feed.add_delta(notice) if feed.connection.capabilities.supports_deltas else None
            )
        )

    async def wait_stored(self) -> None:
        """Wait until every published event is stored. Raises the error if one could not be."""
        await self.wait_sent()
        self._check()

    async def wait_sent(self) -> None:
        """Wait until every published event was either stored and sent, or failed."""
        while self._pending:
            await asyncio.wait({self._pending[-1].stored})

    def _check(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _stored(self, answer: asyncio.Future[int]) -> None:
        """Send an event that is stored now. The store completes appends in order, so it is the
        first pending one."""
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
    """The feeds of one runtime: which connection is subscribed to which run.

    A run that awaits an answer since before a restart is resumed when a UI attaches that can
    answer. A UI that cannot answer may watch the run until then, and receives what follows.
    """

    def __init__(self, runs: dict[str, AgentRun], questions: Questions, store: Store) -> None:
        self._runs = runs
        """The active runs."""
        self._questions = questions
        self._store = store
        self._watching: set[RunFeed] = set()

    def subscribe(
        self, run: AgentRun, connection: UiConnection, after: int | None = None
    ) -> RunFeed:
        """Send the run to this connection from now on; with `after`, stored events first."""
        known = run.run_id in connection.feeds
        feed = self.open_feed(run.run_id, connection, after)
        run.feeds.add(feed)
        if not known:  # else the connection attaches again, and never left
            (run.departures.add if connection.input_ended else run.departures.reconnected)(
                connection.capabilities
            )
        return feed

    def open_feed(self, run_id: str, connection: UiConnection, after: int | None) -> RunFeed:
        """Open a feed, in place of the connection's earlier feed of this run."""
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
        """Remove and return the feeds that watch a run, which is resumed or ends now."""
        found = {feed for feed in self._watching if feed.run_id == run_id}
        self._watching -= found
        return found

    def publish_end(self, status: RunStatusNotify) -> None:
        """Send the last status of a run that ended without being resumed to its watchers."""
        for feed in self.take_watchers(status.run_id):
            feed.add_notice(Notice("run.status", status))
            feed.finish()

    def disconnect(self, connection: UiConnection) -> None:
        """Close the feeds of a closed connection."""
        self.half_close(connection)
        for run_id, feed in connection.feeds.items():
            if (run := self._runs.get(run_id)) is not None:
                run.feeds.discard(feed)
        connection.close()

    def half_close(self, connection: UiConnection) -> None:
        """Handle the end of a UI's input: it answers nothing more. Its open questions stay open if
        the UI may reconnect."""
        if connection.input_ended:
            return
        connection.end_input()
        for run_id, feed in connection.feeds.items():
            if (run := self._runs.get(run_id)) is not None:
                run.departures.add(connection.capabilities)
            else:
                feed.finish()
        self._questions.disconnected(connection)
