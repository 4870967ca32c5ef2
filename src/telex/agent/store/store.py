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

from telex.agent.limits import STORE_OWED_SECONDS
from telex.agent.store import reader as store_reader
from telex.agent.store import session_export, session_import, stored_records, transactions
from telex.agent.store.errors import EndNotSaved, StoreError, StoreRefused
from telex.agent.store.reader import History, StoreReader, event_pages, play_events
from telex.agent.store.stored_records import Status
from telex.agent.store.unsaved_ends import UnsavedEnds
from telex.agent.store.writer import StoreWriter
from telex.processes.shielded import run_in_thread, run_shielded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from types import TracebackType

    from telex.agent.store.stored_records import (
        ClosedQuestion,
        StoredDecision,
        StoredEvent,
        StoredQuestion,
        StoredRun,
        StoredThread,
    )
    from telex.agent.store.transactions import WriteState

T = TypeVar("T")
P = ParamSpec("P")

log = logging.getLogger("telex.agent")


def _now() -> int:
    return time.time_ns() // 1_000_000


class Store:
    """Open it with `await Store.open(path)`, close it with `close()` or `async with`."""

    def __init__(self, path: Path, writer: StoreWriter, reader: StoreReader) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._unsaved = UnsavedEnds()
        self._flushing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: Path, clock: Callable[[], int] = _now) -> Store:
        """Makes the file where there is none, and ends the runs of runtimes that died."""
        writer = StoreWriter(path, clock)
        try:
            await writer.do(transactions.end_abandoned_runs)
            left = await writer.do(session_import.abandoned_imports)
        except BaseException:
            await writer.close()
            raise
        store = cls(path, writer, StoreReader(path))
        for mark in left:
            await store._taken_away(partial(session_import.undo_import, mark=mark))
        return store

    async def close(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
        for run_id in list(self._unsaved):
            try:
                await self.flush_end(run_id)
            except StoreError as problem:
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

    async def threads(
        self, limit: int | None = 50, workspace: str | None = None
    ) -> list[StoredThread]:
        """The latest first. With None, all, and those of every workspace."""
        return await self._reader.read(store_reader.threads, limit, workspace)

    async def thread(self, session_id: str) -> StoredThread:
        return await self._reader.read(store_reader.thread, session_id)

    async def set_thread_meta(self, session_id: str, meta: bytes | None) -> None:
        """Replaces it."""
        stored_records.check_json(meta, "a session's meta")
        await self._write(transactions.set_thread_meta, session_id, meta)

    async def start_run(self, new: transactions.NewRun) -> None:
        """Refused while the session has another (`ThreadBusy`), in whichever process."""
        stored_records.check_json(new.input, "a run's input")
        stored_records.check_json(new.meta, "a run's meta")
        try:
            await self._write(transactions.start_run, new)
        except StoreRefused:
            raise
        except Exception:  # a commit whose `fsync` failed may be there after all
            self._record_end(new.run_id, Status.ERROR, "it could not be stored")
            raise

    async def set_run_meta(self, run_id: str, meta: bytes) -> None:
        """Replaces it, while the run goes on."""
        stored_records.check_json(meta, "a run's meta")
        await self._write(transactions.set_run_meta, run_id, meta)

    async def end_run(self, run_id: str, status: Status, message: str | None = None) -> None:
        """Once it has returned nothing is added to the run, and no answer to its questions wins.
        An end that cannot be stored is kept, and written before whatever is written next."""
        if not status.ended:
            raise ValueError(f"{status} is not how a run ends")
        try:
            await self._write(transactions.end_run, run_id, status, message)
        except StoreRefused:
            raise
        except Exception:
            self._record_end(run_id, status, message)
            raise

    def _record_end(self, run_id: str, status: Status, message: str | None) -> None:
        self._unsaved.record(run_id, status, message)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        """Others wait for the session: an unsaved end is not left until we happen to write."""
        while self._unsaved:
            await asyncio.sleep(STORE_OWED_SECONDS)
            with contextlib.suppress(StoreError):
                await self._write(lambda ledger: None)

    def has_unsaved_end(self, run_id: str) -> bool:
        """Whether it has ended, and that is not stored yet."""
        return run_id in self._unsaved

    async def flush_end(self, run_id: str) -> None:
        """Store the end of a run, where it is not saved yet. Raises `EndNotSaved`."""
        if run_id in self._unsaved:
            try:
                await self._write(lambda ledger: None)
            except StoreError as problem:
                raise EndNotSaved(run_id, problem) from problem

    async def adopt(self, run_id: str) -> None:
        """Go on with a run that waits for an answer and whose runtime has ended."""
        await self._write(transactions.adopt_run, run_id)

    async def end_if_abandoned(self, run_id: str) -> None:
        """Of a run that nobody here runs: ends it where its runtime died and nothing of it waits.
        Raises `RunNotOurs` where another runtime has it, which lives."""
        await self._write(transactions.end_if_abandoned, run_id)

    async def may_return(self, run_id: str) -> None:
        """A UI of it may come back from now on: so what it is asked outlives this runtime."""
        await self._write(transactions.may_return, run_id)

    async def run(self, run_id: str) -> StoredRun:
        return self._unsaved.apply_to(await self._reader.read(store_reader.run, run_id))

    async def active_runs(self) -> list[StoredRun]:
        """All that have not ended, also those of other runtimes."""
        return await self._reader.read(store_reader.active_runs)

    # Events.

    async def append(self, run_id: str, event: bytes, meta: bytes | None = None) -> int:
        """The event's sequence number, when it is durable: now it may be sent."""
        return await self.appending(run_id, event, meta)

    def appending(
        self, run_id: str, event: bytes, meta: bytes | None = None, seq: int | None = None
    ) -> asyncio.Future[int]:
        """The same for who does not wait for each: asked in order, answered in order. With `seq`,
        refused unless it is the next, as it is not where an earlier one could not be stored."""
        final = stored_records.event_type(event) == "final"
        stored_records.check_json(meta, "an event's meta", beside=len(event))
        return self._do(
            lambda ledger: transactions.append_event(ledger, run_id, event, meta, final, seq)
        )

    async def events(self, run_id: str, after: int = -1) -> AsyncIterator[StoredEvent]:
        """What a run has by now after a sequence number."""
        span = await self._reader.read(store_reader.log, run_id, after)
        async for event in play_events(self._reader, span):
            yield event

    async def last_seq(self, run_id: str) -> int:
        """Of the last event that a run has by now; -1 for none."""
        return (await self._reader.read(store_reader.log, run_id, -1)).end - 1

    async def history(self, session_id: str, max_runs: int = 20, max_events: int = 1500) -> History:
        """The end of a session, to be played again."""
        window = await self._reader.read(store_reader.window, session_id, max_runs, max_events)
        return History(window, self._reader)

    # Questions and decisions.

    async def ask(
        self, run_id: str | None, method: str, params: bytes, digest: bytes = b""
    ) -> StoredQuestion:
        """Keep a question before it is put to a UI; its run is `awaiting_ui` from now on."""
        stored_records.check_json(params, "a question's params")
        return await self._write(transactions.ask_question, run_id, method, params, digest)

    async def answer(self, request_id: str, answer: bytes, by: str) -> ClosedQuestion:
        """The first answer wins. Any other is told who won."""
        stored_records.check_json(answer, "an answer")
        return await self._write(transactions.close_question, request_id, answer, by)

    async def withdraw(self, request_id: str, by: str) -> ClosedQuestion:
        """No answer counts after this, unless one did before."""
        return await self._write(transactions.close_question, request_id, None, by)

    async def pending(self, run_id: str | None = None) -> list[StoredQuestion]:
        """The open questions of one run, or all."""
        return await self._reader.read(store_reader.questions, run_id)

    async def closed(self, run_id: str) -> list[tuple[StoredQuestion, ClosedQuestion]]:
        """What one run asked and how it ended, in order."""
        return await self._reader.read(store_reader.closed_questions, run_id)

    async def remember(self, rule: bytes, by: str, request_id: str | None = None) -> int:
        """Keep a rule that a person decided on, and in answer to which question."""
        stored_records.check_json(rule, "a rule")
        return await self._write(transactions.remember_rule, rule, by, request_id)

    async def revoke(self, decision: int, by: str) -> bool:
        """Whether it was in force until now."""
        return await self._write(transactions.revoke_rule, decision, by)

    async def decisions(self, *, revoked: bool = False) -> list[StoredDecision]:
        return await self._reader.read(store_reader.decisions, revoked)

    # Elsewhere.

    async def export(self, session_id: str | None = None) -> AsyncIterator[bytes]:
        """One session or all, as pieces of NDJSON."""
        read, lines = self._reader.read, session_export.ExportWriter()
        yield lines.head()
        for thread in await read(session_export.threads, session_id):
            yield lines.thread(thread)
            for run_id in await read(session_export.runs, thread.session_id):
                run = await read(session_export.run, run_id)
                yield lines.run(run, await read(session_export.questions, run.span.number))
                async for events in event_pages(self._reader, run.span):
                    yield lines.events(events)
        yield lines.end()

    async def import_(self, path: Path, *, new_ids: bool = False) -> session_import.ImportSummary:
        """All that a file holds, or nothing. Ids that are taken are refused, or made anew."""
        await run_in_thread(lambda _: session_export.check_export(path))
        loading, pieces = (
            session_import.SessionImport(path, new_ids),
            session_export.read_export(path),
        )
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

    async def _taken_away(self, undo: Callable[[WriteState], bool]) -> None:
        """In commits as short as those that made it."""
        try:
            while await self._write(undo):
                pass
        except StoreError as problem:  # nobody sees it; whoever opens the store next tries again
            log.warning("what is left of an import is taken away later: %s", problem)

    async def _write(
        self, work: Callable[Concatenate[WriteState, P], T], *given: P.args, **named: P.kwargs
    ) -> T:
        return await self._do(lambda ledger: work(ledger, *given, **named))

    def _do(self, work: Callable[[WriteState], T]) -> asyncio.Future[T]:
        if not (ends := list(self._unsaved)):
            return self._writer.do(work)
        answer = self._writer.do(self._unsaved.flush_before(work))
        answer.add_done_callback(lambda answer: self._unsaved.flushed(ends, answer))
        return answer
