"""Questions to UIs. Each question is stored before it is sent, answered once, and has the digest of
its subject.

`Questions` owns a question from its first moment to its last: it stores the question, sends it to
the UIs of the run, waits for the answer and withdraws it. The code that asks calls `ask_run` or
`ask_connection`, and gets the answer.

The first answer wins; the store decides which answer was first. An answer counts only from a
connection that was asked, while the question is open. A UI that returns an error, an invalid answer
or disconnects has not answered. When no UI is left that could answer, the question closes without
an answer, which has the effect of a no. A UI that announced `supports_run_attach` may reconnect, so
its question stays open until then, also across a restart.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from telex.agent.feeds import Notice
from telex.agent.protocol import REQUESTS
from telex.agent.protocol.extensions import UiRequestCancel
from telex.agent.protocol.ui_requests import PROMPT, UiPromptRequestParams
from telex.agent.store import ClosedQuestion, StoreError
from telex.processes.shielded import run_shielded
from telex.rpc.errors import CallError, PeerGone

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.agent_run import AgentRun
    from telex.agent.feeds import RunFeed
    from telex.agent.store import Store, StoredQuestion
    from telex.agent.ui_connection import UiConnection

log = logging.getLogger("telex.agent")

CloseReason = Literal["answered", "withdrawn"]


@dataclass(frozen=True, slots=True)
class UiAnswer:
    """A person's answer to a question with this digest. `value` is None if no UI answered."""

    value: Any
    digest: bytes
    request_id: str
    by: str
    connection: UiConnection | None = None
    """The UI that answered, if it is connected still."""


def _answer_type(question: StoredQuestion) -> Any:
    return REQUESTS[question.method][1]


SECRET: Final = b'{"value":null}'
"""Stands in the store for the answer to a question for a secret."""


def is_secret_question(question: StoredQuestion) -> bool:
    """Return whether the answer to a question is a secret."""
    if question.method != PROMPT:
        return False
    return msgspec.json.decode(question.params, type=UiPromptRequestParams).secret


def _no_departures() -> bool:
    return False


@dataclass(slots=True, eq=False)
class OpenQuestion:
    """A question without an answer yet, the connections it was sent to, and their answers.

    `closed` resolves with the first stored answer, or without one when no UI can answer any more.
    """

    question: StoredQuestion
    store: Store
    closed: asyncio.Future[ClosedQuestion]
    asked: dict[UiConnection, asyncio.Task[None]] = field(default_factory=dict)
    expected: set[UiConnection] = field(default_factory=set)
    """Connections that will be asked: once their feed has sent all earlier events, and once an
    earlier question is closed, if they take one at a time."""
    offered: set[UiConnection] = field(default_factory=set)
    """Connections whose feed sends the question, or has sent it."""
    answered: set[UiConnection] = field(default_factory=set)
    departed_can_answer: Callable[[], bool] = _no_departures
    """Whether a disconnected UI could answer and may reconnect."""
    winner: UiConnection | None = None
    """The connection that gave the answer."""
    secret: bytes | None = None
    """The answer to a question for a secret, which is never stored: the store has `SECRET`."""

    @property
    def can_wait(self) -> bool:
        """Whether a UI that was asked may reconnect later and answer."""
        known = (*self.asked, *self.expected)
        connected = self.question.run_id is not None and any(
            connection.capabilities.supports_run_attach for connection in known
        )
        return self.departed_can_answer() or connected

    def expect(self, connection: UiConnection) -> None:
        self.expected.add(connection)

    def send_to(self, connection: UiConnection) -> None:
        """Ask this UI. A UI that has attached again gets the request again."""
        self.expected.discard(connection)
        if self.closed.done() or connection.input_ended or connection in self.answered:
            return
        if (task := self.asked.get(connection)) is not None and not task.done():
            connection.ask_again(self.question)  # the pending request keeps waiting for its answer
        else:
            self.asked[connection] = asyncio.create_task(self._ask(connection))

    def disconnected(self, connection: UiConnection) -> None:
        """Stop waiting for this connection. The caller has updated `departed_can_answer` before."""
        self.expected.discard(connection)
        if connection in self.answered:
            return
        if (task := self.asked.get(connection)) is not None:
            task.cancel()
        self.close_if_unanswerable(but=connection)

    async def _ask(self, connection: UiConnection) -> None:
        try:
            raw = await connection.ask(self.question)
            msgspec.json.decode(raw, type=_answer_type(self.question))
        except PeerGone:
            await asyncio.Event().wait()  # until `disconnected` cancels this task and decides
            return
        except (CallError, msgspec.DecodeError) as problem:
            log.info("%s: no answer from %s: %s", self.question.id, connection.name, problem)
            self.close_if_unanswerable(but=connection)
            return
        self.answered.add(connection)
        await self._store_answer(raw, connection)

    async def _store_answer(self, raw: bytes, connection: UiConnection) -> None:
        secret = is_secret_question(self.question)
        kept = SECRET if secret else raw
        try:
            closed = await self.store.answer(self.question.id, kept, connection.author)
        except StoreError as problem:
            if not self.closed.done():
                self.closed.set_exception(problem)
            return
        if closed.won:
            self.winner = connection
            self.secret = raw if secret else None
        if not self.closed.done():
            self.closed.set_result(closed)

    def close_if_unanswerable(self, but: UiConnection | None = None) -> None:
        waiting = {c for c, task in self.asked.items() if not task.done()} - {but}
        if waiting or self.expected or self.departed_can_answer() or self.closed.done():
            return
        self.closed.set_result(
            ClosedQuestion(True, None, "no UI could answer", 0, self.question.digest)
        )


class Questions:
    """The open questions of one runtime."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[str, OpenQuestion] = {}
        self.suspending = False
        """The runtime ends: questions that may be answered later stay open in the store."""

    def of_run(self, run_id: str) -> list[OpenQuestion]:
        return [opened for opened in self._open.values() if opened.question.run_id == run_id]

    def disconnected(self, connection: UiConnection) -> None:
        for opened in list(self._open.values()):
            opened.disconnected(connection)

    async def ask_run(
        self,
        run: AgentRun,
        method: str,
        params: bytes,
        digest: bytes = b"",
        call: str | None = None,
        stored: StoredQuestion | None = None,
    ) -> UiAnswer | None:
        """Ask the UIs of a run, and return the first answer. None: no UI can be asked. With
        `stored`, the question was asked before a restart, and keeps its id."""
        connected = any(feed.connection.can_be_asked(method) for feed in run.feeds)
        if not connected and not run.departures.can_answer(method):
            return None
        if stored is not None:
            opened = self._reopen(stored)
        else:
            opened = await self.open(run.run_id, method, params, digest, call)
        if not run.question_opened():
            await run_shielded(self.withdraw(opened))
            run.check()
        opened.departed_can_answer = lambda: run.departures.can_answer(method)
        for feed in list(run.feeds):
            self.offer(opened, feed)
        try:
            return await self.wait(opened)
        finally:
            run.question_closed()
            self._offer_next(run)

    async def ask_connection(
        self, connection: UiConnection, method: str, params: bytes, digest: bytes = b""
    ) -> UiAnswer | None:
        """Ask one UI, outside any run. None: it cannot be asked."""
        if not connection.can_be_asked(method):
            return None
        opened = await self.open(None, method, params, digest)
        opened.send_to(connection)
        return await self.wait(opened)

    def offer(self, opened: OpenQuestion, feed: RunFeed) -> None:
        """Send a question to the UI of a feed, after the events that were published before it; to
        a UI that takes one question at a time, also after the earlier questions of the run."""
        connection = feed.connection
        if not connection.can_be_asked(opened.question.method):
            return
        opened.expect(connection)
        others = (other for other in self.of_run(feed.run_id) if other is not opened)
        is_busy = any(connection in other.offered for other in others)
        if not is_busy or connection.capabilities.supports_parallel_questions:
            opened.offered.add(connection)
            feed.add_question(lambda: opened.send_to(connection))

    def _offer_next(self, run: AgentRun) -> None:
        """Offer the questions that waited for one that is closed now."""
        for opened in self.of_run(run.run_id):
            for feed in list(run.feeds):
                if feed.connection not in opened.offered:
                    self.offer(opened, feed)

    async def open(
        self,
        run_id: str | None,
        method: str,
        params: bytes,
        digest: bytes = b"",
        call: str | None = None,
    ) -> OpenQuestion:
        """Store a question, which is then sent (`OpenQuestion.send_to`)."""
        stored = asyncio.ensure_future(self._store.ask(run_id, method, params, digest, call))
        try:
            return self._reopen(await run_shielded(stored))
        except asyncio.CancelledError:
            if not stored.cancelled() and stored.exception() is None:
                await run_shielded(self.withdraw(self._reopen(stored.result())))
            raise

    def _reopen(self, question: StoredQuestion) -> OpenQuestion:
        """Open a question that is stored already."""
        closed: asyncio.Future[ClosedQuestion] = asyncio.get_running_loop().create_future()
        opened = self._open[question.id] = OpenQuestion(question, self._store, closed)
        return opened

    async def withdraw(self, opened: OpenQuestion) -> None:
        """Close a question without an answer, in the store and on the UIs that were asked."""
        await self._finish(opened, "withdrawn")

    async def wait(self, opened: OpenQuestion) -> UiAnswer:
        """Wait for the answer. A cancel withdraws the question, unless the runtime is suspending
        and the question may be answered later."""
        try:
            opened.close_if_unanswerable()
            closed = await opened.closed
        except asyncio.CancelledError:
            keep = self.suspending and opened.can_wait
            await run_shielded(self._finish(opened, None if keep else "withdrawn"))
            raise
        except BaseException:
            await run_shielded(self._finish(opened, "withdrawn"))
            raise
        await run_shielded(self._finish(opened, "answered" if closed.answer else "withdrawn"))
        value = None
        given = closed.answer if opened.secret is None else opened.secret
        if given is not None:
            value = msgspec.json.decode(given, type=_answer_type(opened.question))
        return UiAnswer(value, closed.digest, opened.question.id, closed.by, opened.winner)

    async def _finish(self, opened: OpenQuestion, reason: CloseReason | None) -> None:
        """Stop asking, and notify the UIs that were asked, except the one whose answer won. Without
        a reason the question stays open in the store, and no UI is notified."""
        self._open.pop(opened.question.id, None)
        opened.closed.cancel()
        for task in opened.asked.values():
            task.cancel()
        if opened.asked:
            await asyncio.wait(opened.asked.values())
        if reason is None:
            return
        if reason == "withdrawn":
            await self._withdraw_stored(opened)
        for connection in [asked for asked in opened.asked if asked is not opened.winner]:
            await self._notify_closed(opened, connection, reason)

    async def _withdraw_stored(self, opened: OpenQuestion) -> None:
        try:
            await self._store.withdraw(opened.question.id, "the runtime")
        except StoreError as problem:  # the run's end or the next start closes it
            log.warning("%s stays open: %s", opened.question.id, problem)

    async def _notify_closed(
        self, opened: OpenQuestion, connection: UiConnection, reason: CloseReason
    ) -> None:
        if connection.input_ended or not connection.capabilities.supports_request_cancel:
            return
        run_id = opened.question.run_id
        notice = UiRequestCancel(opened.question.id, reason, run_id)
        feed = connection.feeds.get(run_id) if run_id is not None else None
        if feed is not None:
            feed.add_notice(Notice("ui.request.cancel", notice))
        else:
            await connection.notify("ui.request.cancel", notice)
