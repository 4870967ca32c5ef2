"""Questions put to UIs: each kept before it is asked, answered once, and bound to what it is about.

The first answer wins, and the store says which was first. An answer counts only from a connection
that was asked, while the question is open. A UI that errs, answers nonsense or goes away has said
nothing; when nobody is left who could answer, that is a no. One that announced
`supports_run_attach` may come back, so its question stays open until it does, also over a restart.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from telex.agent.feeds import Notice
from telex.agent.store import Closed, StoreProblem
from telex.agent.uninterrupted import to_the_end
from telex.protocols.agent_ui import REQUESTS
from telex.protocols.agent_ui.extensions import UiRequestCancel
from telex.rpc.errors import CallError, PeerGone

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.connection import Connection
    from telex.agent.store import Question, Store

log = logging.getLogger("telex.agent")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said to a question that had this digest. `value` None: nobody said anything."""

    value: Any
    digest: bytes
    request_id: str
    by: str


def answer_of(question: Question, closed: Closed) -> Answer:
    """As it was stored."""
    raw = closed.answer
    value = None if raw is None else msgspec.json.decode(raw, type=_kind(question))
    return Answer(value, closed.digest, question.id, closed.by)


def _kind(question: Question) -> Any:
    return REQUESTS[question.method][1]


def _nobody() -> bool:
    return False


@dataclass(slots=True, eq=False)
class Open:
    """One question that has no answer yet."""

    question: Question
    store: Store
    closed: asyncio.Future[Closed]
    asked: dict[Connection, asyncio.Task[None]] = field(default_factory=dict)
    expected: set[Connection] = field(default_factory=set)
    """Connections that will be asked when they have heard what came before."""
    answered: set[Connection] = field(default_factory=set)
    may_return: Callable[[], bool] = _nobody
    """Whether one is away who could answer and may come back."""
    winner: Connection | None = None
    """Whose answer it was."""

    @property
    def can_wait(self) -> bool:
        """Whether somebody who was asked may come back to it."""
        known = (*self.asked, *self.expected)
        here = self.question.run_id is not None and any(
            one.can.supports_run_attach for one in known
        )
        return self.may_return() or here

    def expect(self, connection: Connection) -> None:
        self.expected.add(connection)

    def put(self, connection: Connection) -> None:
        """Ask this one too. One that has been asked is asked again, as it attached anew."""
        self.expected.discard(connection)
        if self.closed.done() or connection.gone or connection in self.answered:
            return
        if (task := self.asked.get(connection)) is not None and not task.done():
            connection.ask_again(self.question)  # its answer may be on its way already
        else:
            self.asked[connection] = asyncio.create_task(self._ask(connection))

    def left(self, connection: Connection) -> None:
        """A connection answers no more. Whether it may come back, `may_return` knows by now."""
        self.expected.discard(connection)
        if connection in self.answered:
            return
        if (task := self.asked.get(connection)) is not None:
            task.cancel()
        self._nobody_left(but=connection)

    async def _ask(self, connection: Connection) -> None:
        try:
            raw = await connection.ask(self.question)
            msgspec.json.decode(raw, type=_kind(self.question))
        except PeerGone:
            await asyncio.Event().wait()  # `left` ends this, when it is known if it may come back
            return
        except (CallError, msgspec.DecodeError) as problem:
            log.info("%s: no answer from %s: %s", self.question.id, connection.name, problem)
            self._nobody_left(but=connection)
            return
        self.answered.add(connection)
        await self._close(raw, connection)

    async def _close(self, raw: bytes, connection: Connection) -> None:
        try:
            closed = await self.store.answer(self.question.id, raw, connection.name)
        except StoreProblem as problem:
            if not self.closed.done():
                self.closed.set_exception(problem)
            return
        if closed.won:
            self.winner = connection
        if not self.closed.done():
            self.closed.set_result(closed)

    def _nobody_left(self, but: Connection | None = None) -> None:
        waiting = {c for c, task in self.asked.items() if not task.done()} - {but}
        if waiting or self.expected or self.may_return() or self.closed.done():
            return
        self.closed.set_result(Closed(True, None, "nobody could answer", 0, self.question.digest))


class Questions:
    """All that are open in this runtime."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[str, Open] = {}
        self.suspending = False
        """The runtime ends: what may be answered later stays open."""

    def of_run(self, run_id: str) -> list[Open]:
        return [one for one in self._open.values() if one.question.run_id == run_id]

    def left(self, connection: Connection) -> None:
        for one in list(self._open.values()):
            one.left(connection)

    async def begin(
        self, run_id: str | None, method: str, params: bytes, digest: bytes = b""
    ) -> Open:
        """Keep it. The caller says whom to ask, and waits with `wait`."""
        kept = asyncio.ensure_future(self._store.ask(run_id, method, params, digest))
        try:
            return self.adopt(await to_the_end(kept))
        except asyncio.CancelledError:
            if not kept.cancelled() and kept.exception() is None:
                await to_the_end(self.drop(self.adopt(kept.result())))
            raise

    def adopt(self, question: Question) -> Open:
        """One that was kept before."""
        closed: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()
        one = self._open[question.id] = Open(question, self._store, closed)
        return one

    async def drop(self, one: Open) -> None:
        """Withdraw it."""
        await self._settle(one, "withdrawn")

    async def wait(self, one: Open) -> Answer:
        """The answer. Cancelled, it withdraws the question from everybody who was asked."""
        try:
            one._nobody_left()
            closed = await one.closed
        except asyncio.CancelledError:
            keep = self.suspending and one.can_wait
            await to_the_end(self._settle(one, None if keep else "withdrawn"))
            raise
        except BaseException:
            await to_the_end(self._settle(one, "withdrawn"))
            raise
        await to_the_end(self._settle(one, "answered" if closed.answer else "withdrawn"))
        return answer_of(one.question, closed)

    async def _settle(self, one: Open, how: str | None) -> None:
        """Nobody is asked any more; those who were are told, also who answered too late."""
        self._open.pop(one.question.id, None)
        one.closed.cancel()
        for task in one.asked.values():
            task.cancel()
        if one.asked:
            await asyncio.wait(one.asked.values())
        if how is None:
            return
        if how == "withdrawn":
            await self._forget(one)
        for connection in [asked for asked in one.asked if asked is not one.winner]:
            await self._tell(one, connection, how)

    async def _forget(self, one: Open) -> None:
        try:
            await self._store.withdraw(one.question.id, "the runtime")
        except StoreProblem as problem:  # then the run's end closes it, or the next start
            log.warning("%s stays open: %s", one.question.id, problem)

    async def _tell(self, one: Open, connection: Connection, how: str) -> None:
        if connection.gone or not connection.can.supports_request_cancel:
            return
        run_id = one.question.run_id
        told = UiRequestCancel(
            one.question.id, "answered" if how == "answered" else "withdrawn", run_id
        )
        feed = connection.feeds.get(run_id) if run_id is not None else None
        if feed is not None:
            feed.notice(Notice("ui.request.cancel", told))
        else:
            await connection.tell("ui.request.cancel", told)
