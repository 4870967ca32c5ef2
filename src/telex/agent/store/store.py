"""The agent's store, as the runtime uses it: asked from one event loop, durable when it answers.

Writes go to one thread (`writer`), reads to another, beside it. Several processes may use one
database at once; each run belongs to the one that started it (`owners`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from telex.agent.store import export_file, exporting, importing, keeping, pending, reading, writing
from telex.agent.store.owed import Owed
from telex.agent.store.problems import EndOwed, Refused, StoreProblem
from telex.agent.store.reader import History, Reader, pages, played
from telex.agent.store.records import Status
from telex.agent.store.writer import Writer
from telex.processes.shielded import run_in_thread, run_shielded
from telex.wire.limits import STORE_OWED_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from types import TracebackType

    from telex.agent.store.ledger import Ledger
    from telex.agent.store.records import Closed, Decision, Event, Question, Run, Thread

T = TypeVar("T")
P = ParamSpec("P")

log = logging.getLogger("telex.agent")


def _now() -> int:
    return time.time_ns() // 1_000_000


class Store:
    """Open it with `await Store.open(path)`, close it with `close()` or `async with`."""

    def __init__(self, path: Path, writer: Writer, reader: Reader) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._owed = Owed()
        self._paying: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: Path, clock: Callable[[], int] = _now) -> Store:
        """Makes the file where there is none, and ends the runs of runtimes that died."""
        writer = Writer(path, clock)
        try:
            await writer.do(writing.recover)
            left = await writer.do(importing.left_behind)
        except BaseException:
            await writer.close()
            raise
        store = cls(path, writer, Reader(path))
        for mark in left:
            await store._taken_away(partial(importing.undo, mark=mark))
        return store

    async def close(self) -> None:
        if self._paying is not None:
            self._paying.cancel()
        for run_id in list(self._owed):
            try:
                await self.settle(run_id)
            except StoreProblem as problem:
                log.error("%s", problem)
        await self._reader.close()
        await self._writer.close()

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Threads and runs.

    async def threads(self, limit: int | None = 50, workspace: str | None = None) -> list[Thread]:
        """The latest first. With None, all, and those of every workspace."""
        return await self._reader.read(reading.threads, limit, workspace)

    async def thread(self, session_id: str) -> Thread:
        return await self._reader.read(reading.thread, session_id)

    async def set_thread_meta(self, session_id: str, meta: bytes | None) -> None:
        """Replaces it."""
        keeping.check(meta, "a session's meta")
        await self._write(writing.set_thread_meta, session_id, meta)

    async def start_run(self, new: writing.NewRun) -> None:
        """Refused while the session has another (`ThreadBusy`), in whichever process."""
        keeping.check(new.input, "a run's input")
        keeping.check(new.meta, "a run's meta")
        try:
            await self._write(writing.start_run, new)
        except Refused:
            raise
        except Exception:  # a commit whose `fsync` failed may be there after all
            self._owe(new.run_id, Status.ERROR, "it could not be stored")
            raise

    async def set_run_meta(self, run_id: str, meta: bytes) -> None:
        """Replaces it, while the run goes on."""
        keeping.check(meta, "a run's meta")
        await self._write(writing.set_run_meta, run_id, meta)

    async def end_run(self, run_id: str, status: Status, message: str | None = None) -> None:
        """Once it has returned nothing is added to the run, and no answer to its questions wins.
        Where it cannot be stored it is owed: written before whatever is written next."""
        if not status.ended:
            raise ValueError(f"{status} is not how a run ends")
        try:
            await self._write(writing.end_run, run_id, status, message)
        except Refused:
            raise
        except Exception:
            self._owe(run_id, status, message)
            raise

    def _owe(self, run_id: str, status: Status, message: str | None) -> None:
        self._owed.owe(run_id, status, message)
        if self._paying is None or self._paying.done():
            self._paying = asyncio.create_task(self._pay())

    async def _pay(self) -> None:
        """Others wait for the session: what is owed is not left until we happen to write."""
        while self._owed:
            await asyncio.sleep(STORE_OWED_SECONDS)
            with contextlib.suppress(StoreProblem):
                await self._write(lambda ledger: None)

    def owes(self, run_id: str) -> bool:
        """Whether it has ended, and that is not stored yet."""
        return run_id in self._owed

    async def settle(self, run_id: str) -> None:
        """Store the end of a run, where it is owed. Raises `EndOwed`."""
        if run_id in self._owed:
            try:
                await self._write(lambda ledger: None)
            except StoreProblem as problem:
                raise EndOwed(run_id, problem) from problem

    async def adopt(self, run_id: str) -> None:
        """Go on with a run that waits for an answer and whose runtime has ended."""
        await self._write(writing.adopt, run_id)

    async def look_after(self, run_id: str) -> None:
        """Of a run that nobody here runs: ends it where its runtime died and nothing of it waits.
        Raises `RunNotOurs` where another runtime has it, which lives."""
        await self._write(writing.look_after, run_id)

    async def may_return(self, run_id: str) -> None:
        """A UI of it may come back from now on: so what it is asked outlives this runtime."""
        await self._write(writing.may_return, run_id)

    async def run(self, run_id: str) -> Run:
        return self._owed.seen(await self._reader.read(reading.run, run_id))

    async def active_runs(self) -> list[Run]:
        """All that have not ended, also those of other runtimes."""
        return await self._reader.read(reading.active_runs)

    # Events.

    async def append(self, run_id: str, event: bytes, meta: bytes | None = None) -> int:
        """The event's sequence number, when it is durable: now it may be sent."""
        return await self.appending(run_id, event, meta)

    def appending(
        self, run_id: str, event: bytes, meta: bytes | None = None, seq: int | None = None
    ) -> asyncio.Future[int]:
        """The same for who does not wait for each: asked in order, answered in order. With `seq`,
        refused unless it is the next, as it is not where an earlier one could not be stored."""
        final = keeping.event_type(event) == "final"
        keeping.check(meta, "an event's meta", beside=len(event))
        return self._do(lambda ledger: writing.append(ledger, run_id, event, meta, final, seq))

    async def events(self, run_id: str, after: int = -1) -> AsyncIterator[Event]:
        """What a run has by now after a sequence number."""
        span = await self._reader.read(reading.log, run_id, after)
        async for event in played(self._reader, span):
            yield event

    async def last_seq(self, run_id: str) -> int:
        """Of the last event that a run has by now; -1 for none."""
        return (await self._reader.read(reading.log, run_id, -1)).end - 1

    async def history(self, session_id: str, max_runs: int = 20, max_events: int = 1500) -> History:
        """The end of a session, to be played again."""
        window = await self._reader.read(reading.window, session_id, max_runs, max_events)
        return History(window, self._reader)

    # Questions and decisions.

    async def ask(
        self, run_id: str | None, method: str, params: bytes, digest: bytes = b""
    ) -> Question:
        """Keep a question before it is put to a UI; its run is `awaiting_ui` from now on."""
        keeping.check(params, "a question's params")
        return await self._write(pending.ask, run_id, method, params, digest)

    async def answer(self, request_id: str, answer: bytes, by: str) -> Closed:
        """The first answer wins. Any other is told who won."""
        keeping.check(answer, "an answer")
        return await self._write(pending.close, request_id, answer, by)

    async def withdraw(self, request_id: str, by: str) -> Closed:
        """No answer counts after this, unless one did before."""
        return await self._write(pending.close, request_id, None, by)

    async def pending(self, run_id: str | None = None) -> list[Question]:
        """The open questions of one run, or all."""
        return await self._reader.read(reading.questions, run_id)

    async def closed(self, run_id: str) -> list[tuple[Question, Closed]]:
        """What one run asked and how it ended, in order."""
        return await self._reader.read(reading.closed_questions, run_id)

    async def remember(self, rule: bytes, by: str, request_id: str | None = None) -> int:
        """Keep a rule that a person decided on, and in answer to which question."""
        keeping.check(rule, "a rule")
        return await self._write(pending.remember, rule, by, request_id)

    async def revoke(self, decision: int, by: str) -> bool:
        """Whether it was in force until now."""
        return await self._write(pending.revoke, decision, by)

    async def decisions(self, *, revoked: bool = False) -> list[Decision]:
        return await self._reader.read(reading.decisions, revoked)

    # Elsewhere.

    async def export(self, session_id: str | None = None) -> AsyncIterator[bytes]:
        """One session or all, as pieces of NDJSON."""
        read, lines = self._reader.read, exporting.Lines()
        yield lines.head()
        for thread in await read(exporting.threads, session_id):
            yield lines.thread(thread)
            for run_id in await read(exporting.runs, thread.session_id):
                run = await read(exporting.run, run_id)
                yield lines.run(run, await read(exporting.questions, run.span.number))
                async for events in pages(self._reader, run.span):
                    yield lines.events(events)
        yield lines.end()

    async def import_(self, path: Path, *, new_ids: bool = False) -> importing.Imported:
        """All that a file holds, or nothing. Ids that are taken are refused, or made anew."""
        await run_in_thread(lambda _: export_file.check(path))
        loading, pieces = importing.Loading(path, new_ids), export_file.pieces(path)
        try:
            while (piece := await run_in_thread(lambda _: next(pieces, None))) is not None:
                begun = time.monotonic()
                await self._write(loading.take, piece)
                # Who waits for SQLite looks only now and then, and would miss a shorter gap.
                await asyncio.sleep(time.monotonic() - begun)
            await self._write(loading.show)
        except BaseException:
            await run_shielded(self._taken_away(loading.undo))
            raise
        finally:
            pieces.close()
        return loading.imported

    async def _taken_away(self, undo: Callable[[Ledger], bool]) -> None:
        """In commits as short as those that made it."""
        try:
            while await self._write(undo):
                pass
        except StoreProblem as problem:  # nobody sees it; whoever opens the store next tries again
            log.warning("what is left of an import is taken away later: %s", problem)

    async def _write(
        self, work: Callable[Concatenate[Ledger, P], T], *given: P.args, **named: P.kwargs
    ) -> T:
        return await self._do(lambda ledger: work(ledger, *given, **named))

    def _do(self, work: Callable[[Ledger], T]) -> asyncio.Future[T]:
        if not (ends := list(self._owed)):
            return self._writer.do(work)
        answer = self._writer.do(self._owed.before(work))
        answer.add_done_callback(lambda answer: self._owed.paid(ends, answer))
        return answer
