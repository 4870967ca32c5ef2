"""Questions to UIs: each stored before it is asked, answered once, and bound to what it is about.

The first answer wins, and the store says which was first. An answer counts only from a connection
that was asked, while the question is open. A UI that errs, answers nonsense or disconnects has
answered nothing; when no UI is left that could answer, the answer is no. One that announced
`supports_run_attach` may come back, so its question stays open until it does, also over a restart.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.feeds import Notice
from telex.agent.protocol import REQUESTS
from telex.agent.protocol.extensions import UiRequestCancel
from telex.agent.store import ClosedQuestion, StoreError
from telex.processes.shielded import run_shielded
from telex.rpc.errors import CallError, PeerGone

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.store import Store, StoredQuestion
    from telex.agent.ui_connection import UiConnection

log = logging.getLogger("telex.agent")


@dataclass(frozen=True, slots=True)
class UiAnswer:
    """What a person said to a question that had this digest. `value` None: nobody said anything."""

    value: Any
    digest: bytes
    request_id: str
    by: str


def stored_answer(question: StoredQuestion, closed: ClosedQuestion) -> UiAnswer:
    """As it was stored."""
    raw = closed.answer
    value = None if raw is None else msgspec.json.decode(raw, type=_answer_type(question))
    return UiAnswer(value, closed.digest, question.id, closed.by)


def _answer_type(question: StoredQuestion) -> Any:
    return REQUESTS[question.method][1]


def _no_departures() -> bool:
    return False


@dataclass(slots=True, eq=False)
class OpenQuestion:
    """One question that has no answer yet."""

    question: StoredQuestion
    store: Store
    closed: asyncio.Future[ClosedQuestion]
    asked: dict[UiConnection, asyncio.Task[None]] = field(default_factory=dict)
    expected: set[UiConnection] = field(default_factory=set)
    """Connections that will be asked when they were sent what came before."""
    answered: set[UiConnection] = field(default_factory=set)
    departed_can_answer: Callable[[], bool] = _no_departures
    """Whether a UI left that could answer and may come back."""
    winner: UiConnection | None = None
    """Whose answer it was."""

    @property
    def can_wait(self) -> bool:
        """Whether somebody who was asked may come back to it."""
        known = (*self.asked, *self.expected)
        here = self.question.run_id is not None and any(
            one.capabilities.supports_run_attach for one in known
        )
        return self.departed_can_answer() or here

    def expect(self, connection: UiConnection) -> None:
        self.expected.add(connection)

    def send_to(self, connection: UiConnection) -> None:
        """Ask this UI too. One that has been asked is asked again, as it attached anew."""
        self.expected.discard(connection)
        if self.closed.done() or connection.gone or connection in self.answered:
            return
        if (task := self.asked.get(connection)) is not None and not task.done():
            connection.ask_again(self.question)  # its answer may be on its way already
        else:
            self.asked[connection] = asyncio.create_task(self._ask(connection))

    def disconnected(self, connection: UiConnection) -> None:
        """A connection answers no more; `departed_can_answer` knows by now if it may come back."""
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
            await asyncio.Event().wait()  # `disconnected` ends this: it knows if it may come back
            return
        except (CallError, msgspec.DecodeError) as problem:
            log.info("%s: no answer from %s: %s", self.question.id, connection.name, problem)
            self.close_if_unanswerable(but=connection)
            return
        self.answered.add(connection)
        await self._store_answer(raw, connection)

    async def _store_answer(self, raw: bytes, connection: UiConnection) -> None:
        try:
            closed = await self.store.answer(self.question.id, raw, connection.name)
        except StoreError as problem:
            if not self.closed.done():
                self.closed.set_exception(problem)
            return
        if closed.won:
            self.winner = connection
        if not self.closed.done():
            self.closed.set_result(closed)

    def close_if_unanswerable(self, but: UiConnection | None = None) -> None:
        waiting = {c for c, task in self.asked.items() if not task.done()} - {but}
        if waiting or self.expected or self.departed_can_answer() or self.closed.done():
            return
        self.closed.set_result(
            ClosedQuestion(True, None, "nobody could answer", 0, self.question.digest)
        )


class Questions:
    """All that are open in this runtime."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[str, OpenQuestion] = {}
        self.suspending = False
        """The runtime ends: what may be answered later stays open."""

    def of_run(self, run_id: str) -> list[OpenQuestion]:
        return [one for one in self._open.values() if one.question.run_id == run_id]

    def disconnected(self, connection: UiConnection) -> None:
        for one in list(self._open.values()):
            one.disconnected(connection)

    async def open(
        self, run_id: str | None, method: str, params: bytes, digest: bytes = b""
    ) -> OpenQuestion:
        """Store a question. The caller says whom to ask, and awaits `wait`."""
        stored = asyncio.ensure_future(self._store.ask(run_id, method, params, digest))
        try:
            return self.reopen(await run_shielded(stored))
        except asyncio.CancelledError:
            if not stored.cancelled() and stored.exception() is None:
                await run_shielded(self.withdraw(self.reopen(stored.result())))
            raise

    def reopen(self, question: StoredQuestion) -> OpenQuestion:
        """A question that is stored already."""
        closed: asyncio.Future[ClosedQuestion] = asyncio.get_running_loop().create_future()
        one = self._open[question.id] = OpenQuestion(question, self._store, closed)
        return one

    async def withdraw(self, one: OpenQuestion) -> None:
        """Nobody needs its answer any more."""
        await self._finish(one, "withdrawn")

    async def wait(self, one: OpenQuestion) -> UiAnswer:
        """The answer. Cancelled, it withdraws the question from everybody who was asked."""
        try:
            one.close_if_unanswerable()
            closed = await one.closed
        except asyncio.CancelledError:
            keep = self.suspending and one.can_wait
            await run_shielded(self._finish(one, None if keep else "withdrawn"))
            raise
        except BaseException:
            await run_shielded(self._finish(one, "withdrawn"))
            raise
        await run_shielded(self._finish(one, "answered" if closed.answer else "withdrawn"))
        return stored_answer(one.question, closed)

    async def _finish(self, one: OpenQuestion, how: str | None) -> None:
        """Stop asking; the UIs that were asked are notified, also one that answered too late."""
        self._open.pop(one.question.id, None)
        one.closed.cancel()
        for task in one.asked.values():
            task.cancel()
        if one.asked:
            await asyncio.wait(one.asked.values())
        if how is None:
            return
        if how == "withdrawn":
            await self._withdraw_stored(one)
        for connection in [asked for asked in one.asked if asked is not one.winner]:
            await self._notify_closed(one, connection, how)

    async def _withdraw_stored(self, one: OpenQuestion) -> None:
        try:
            await self._store.withdraw(one.question.id, "the runtime")
        except StoreError as problem:  # then the run's end closes it, or the next start
            log.warning("%s stays open: %s", one.question.id, problem)

    async def _notify_closed(self, one: OpenQuestion, connection: UiConnection, how: str) -> None:
        if connection.gone or not connection.capabilities.supports_request_cancel:
            return
        run_id = one.question.run_id
        notice = UiRequestCancel(
            one.question.id, "answered" if how == "answered" else "withdrawn", run_id
        )
        feed = connection.feeds.get(run_id) if run_id is not None else None
        if feed is not None:
            feed.add_notice(Notice("ui.request.cancel", notice))
        else:
            await connection.notify("ui.request.cancel", notice)
