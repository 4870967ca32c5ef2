"""The agent's store as the runtime uses it: async methods, durable when they return.

All methods are called from one event loop. One thread writes (`writer`), another one reads
(`reader`). Several processes may use one database at once; each run belongs to the process that
started it (`owners`).
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
        StoredMessage,
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
    """The store. Open it with `await Store.open(path)`, or create it and call `prepare` before its
    first use; close it with `close()` or use `async with`."""

    def __init__(self, path: Path, clock: Callable[[], int] = _now) -> None:
        """Create the store without touching the file."""
        self.path = path
        self._writer = StoreWriter(path, clock)
        self._reader = StoreReader(path)
        self._preparing = asyncio.Lock()
        self._prepared = False
        self._unsaved = UnsavedEnds()
        self._flushing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: Path, clock: Callable[[], int] = _now) -> Store:
        store = cls(path, clock)
        try:
            await store.prepare()
        except BaseException:
            await store.close()
            raise
        return store

    async def prepare(self) -> None:
        """Open the file, creating it if it is missing. End the runs of runtimes that died, and
        remove the remains of interrupted imports. Does nothing when called again."""
        async with self._preparing:
            if self._prepared:
                return
            await self._write(transactions.end_abandoned_runs)
            for mark in await self._write(session_import.abandoned_imports):
                await self._undo_import(partial(session_import.undo_import, mark=mark))
            self._prepared = True

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
        """Return threads, the latest first. None for `limit` means no limit; None for `workspace`
        means every workspace."""
        return await self._reader.read(store_reader.threads, limit, workspace)

    async def thread(self, session_id: str) -> StoredThread:
        return await self._reader.read(store_reader.thread, session_id)

    async def set_thread_meta(self, session_id: str, meta: bytes | None) -> None:
        """Replace the meta of a session."""
        stored_records.check_json(meta, "a session's meta")
        await self._write(transactions.set_thread_meta, session_id, meta)

    async def set_thread_member(self, session_id: str, name: str, value: bytes | None) -> None:
        """Replace one member of a session's meta by JSON, and keep the others; None removes it."""
        if value is not None:
            stored_records.check_json(b'{"value":' + value + b"}", "a session's meta")
        await self._write(transactions.set_thread_member, session_id, name, value)

    async def start_run(self, new: transactions.NewRun) -> None:
        """Store a new run. Raise `ThreadBusy` while the session has an active run in any
        process."""
        stored_records.check_json(new.input, "a run's input")
        stored_records.check_json(new.meta, "a run's meta")
        stored_records.check_json(new.message, "a message")
        try:
            await self._write(transactions.start_run, new)
        except StoreRefused:
            raise
        except Exception:  # a commit whose `fsync` failed may be stored nevertheless
            self._record_end(new.run_id, Status.ERROR, "the run could not be stored")
            raise

    async def set_run_meta(self, run_id: str, meta: bytes) -> None:
        """Replace the meta of an active run."""
        stored_records.check_json(meta, "a run's meta")
        await self._write(transactions.set_run_meta, run_id, meta)

    async def end_run(self, run_id: str, status: Status, message: str | None = None) -> None:
        """Store the end of a run. After it has returned, nothing can be added to the run, and no
        answer to its questions counts. An end that cannot be stored is kept in memory, and is
        written with the next write."""
        if not status.ended:
            raise ValueError(f"a run cannot end with the status {status}")
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
            self._flushing = asyncio.create_task(self._flush_until_saved())

    async def _flush_until_saved(self) -> None:
        """Retry until no end is unsaved. Other processes may wait for the session, so the flush
        does not wait for the next write of this one."""
        while self._unsaved:
            await asyncio.sleep(STORE_OWED_SECONDS)
            with contextlib.suppress(StoreError):
                await self._write(_write_nothing)

    def has_unsaved_end(self, run_id: str) -> bool:
        """Return whether the run has ended and its end is not stored yet."""
        return run_id in self._unsaved

    async def flush_end(self, run_id: str) -> None:
        """Store the end of a run if it is unsaved. Raise `EndNotSaved` if that fails."""
        if run_id in self._unsaved:
            try:
                await self._write(_write_nothing)
            except StoreError as problem:
                raise EndNotSaved(run_id, problem) from problem

    async def adopt(self, run_id: str) -> None:
        """Take ownership of a run that waits for an answer and whose runtime has ended."""
        await self._write(transactions.adopt_run, run_id)

    async def end_if_abandoned(self, run_id: str) -> None:
        """End a run that is not active in this runtime, if its own runtime died and it waits for no
        answer. Raise `RunNotOurs` if another live runtime owns it."""
        await self._write(transactions.end_if_abandoned, run_id)

    async def may_return(self, run_id: str) -> None:
        """Record that a UI of the run may reconnect: its questions stay open after this runtime."""
        await self._write(transactions.may_return, run_id)

    async def run(self, run_id: str) -> StoredRun:
        return self._unsaved.apply_to(await self._reader.read(store_reader.run, run_id))

    async def run_ids(self, session_id: str) -> list[str]:
        """Return the ids of a session's runs, the oldest first. Raises `UnknownThread`."""
        await self.thread(session_id)
        return await self._reader.read(session_export.runs, session_id)

    async def active_runs(self) -> list[StoredRun]:
        """Return all runs that have not ended, including those of other runtimes."""
        return await self._reader.read(store_reader.active_runs)

    # Events.

    async def append(self, run_id: str, event: bytes, meta: bytes | None = None) -> int:
        """Store an event and return its sequence number. The event is durable then, and may be
        sent."""
        return await self.appending(run_id, event, meta)

    def appending(
        self,
        run_id: str,
        event: bytes,
        meta: bytes | None = None,
        seq: int | None = None,
        message: bytes | None = None,
    ) -> asyncio.Future[int]:
        """Queue an event and return a future of its sequence number, for callers that do not wait
        for each event. The futures are resolved in the order of the calls. With `seq`, the event is
        refused (`NotNext`) unless it is the next one; it is not if an earlier event could not be
        stored. `message` is what the event shows, as a message of the conversation; both are stored
        in one transaction."""
        final = stored_records.event_type(event) == "final"
        stored_records.check_json(meta, "an event's meta", other_bytes=len(event))
        stored_records.check_json(message, "a message")
        return self._do(
            lambda state: transactions.append_event(state, run_id, event, meta, final, seq, message)
        )

    async def events(self, run_id: str, after: int = -1) -> AsyncIterator[StoredEvent]:
        """Yield the events that a run has now after a sequence number."""
        span = await self._reader.read(store_reader.log, run_id, after)
        async for event in play_events(self._reader, span):
            yield event

    async def last_seq(self, run_id: str) -> int:
        """Return the sequence number of the run's last event; -1 if it has none."""
        return (await self._reader.read(store_reader.log, run_id, -1)).end - 1

    async def history(self, session_id: str, max_runs: int = 20, max_events: int = 1500) -> History:
        """Return the newest events of a session for a replay."""
        window = await self._reader.read(store_reader.window, session_id, max_runs, max_events)
        return History(window, self._reader)

    # Messages.

    async def append_message(
        self, run_id: str, message: bytes, kept_from: int | None = None
    ) -> int:
        """Store the next message of a run's conversation, and return its position. With
        `kept_from` it is a summary, which replaces all messages before that position."""
        stored_records.check_json(message, "a message")
        return await self._write(transactions.append_message, run_id, message, kept_from)

    async def messages(self, session_id: str) -> list[StoredMessage]:
        """Return the conversation of a session, from its last summary on."""
        return await self._reader.read(store_reader.messages, session_id)

    async def run_messages(self, run_id: str) -> list[StoredMessage]:
        """Return the messages of one run, without summaries."""
        return await self._reader.read(store_reader.run_messages, run_id)

    # Questions and decisions.

    async def ask(
        self,
        run_id: str | None,
        method: str,
        params: bytes,
        digest: bytes = b"",
        call: str | None = None,
    ) -> StoredQuestion:
        """Store a question before it is sent to a UI. Its run becomes `awaiting_ui`. `call` is the
        tool call that it is about."""
        stored_records.check_json(params, "a question's params")
        return await self._write(transactions.ask_question, run_id, method, params, digest, call)

    async def answer(self, request_id: str, answer: bytes, by: str) -> ClosedQuestion:
        """Store an answer. The first answer wins; the result of a later one has the winner."""
        stored_records.check_json(answer, "an answer")
        return await self._write(transactions.close_question, request_id, answer, by)

    async def withdraw(self, request_id: str, by: str) -> ClosedQuestion:
        """Close a question without an answer. No later answer counts; an earlier one still does."""
        return await self._write(transactions.close_question, request_id, None, by)

    async def pending(self, run_id: str | None = None) -> list[StoredQuestion]:
        """Return the open questions of one run; with None, of all runs."""
        return await self._reader.read(store_reader.questions, run_id)

    async def closed(self, run_id: str) -> list[tuple[StoredQuestion, ClosedQuestion]]:
        """Return the closed questions of a run in order, each with its outcome."""
        return await self._reader.read(store_reader.closed_questions, run_id)

    async def remember(self, rule: bytes, by: str, request_id: str | None = None) -> int:
        """Store a rule that the user asked to remember, with the question it answered. Return the
        decision's id."""
        stored_records.check_json(rule, "a rule")
        return await self._write(transactions.remember_rule, rule, by, request_id)

    async def revoke(self, decision: int, by: str) -> bool:
        """Revoke a decision. Return whether it was in force until now."""
        return await self._write(transactions.revoke_rule, decision, by)

    async def decisions(self, *, revoked: bool = False) -> list[StoredDecision]:
        return await self._reader.read(store_reader.decisions, revoked)

    # Export and import.

    async def export(self, session_id: str | None = None) -> AsyncIterator[bytes]:
        """Yield one session, or all with None, as chunks of NDJSON."""
        read, lines = self._reader.read, session_export.ExportWriter()
        yield lines.head()
        for thread in await read(session_export.threads, session_id):
            yield lines.thread(thread)
            for run_id in await read(session_export.runs, thread.session_id):
                run = await read(session_export.run, run_id)
                yield lines.run(run, await read(session_export.questions, run.span.number))
                after: int | None = -1
                while after is not None:
                    page, after = await read(session_export.messages, run.span.number, after)
                    yield lines.messages(page)
                async for events in event_pages(self._reader, run.span):
                    yield lines.events(events)
        yield lines.end()

    async def import_(self, path: Path, *, new_ids: bool = False) -> session_import.ImportSummary:
        """Store all sessions of an export file, or nothing. An id that exists already is refused
        (`IdTaken`); with `new_ids` it is replaced by a new one."""
        await run_in_thread(lambda _: session_export.check_export(path))
        importing, batches = (
            session_import.SessionImport(path, new_ids),
            session_export.read_export(path),
        )
        try:
            while (batch := await run_in_thread(lambda _: next(batches, None))) is not None:
                begun = time.monotonic()
                await self._write(importing.add, batch)
                # Leave the database unlocked for as long as the write took: another process polls
                # for SQLite's lock at intervals, and would miss a shorter gap.
                await asyncio.sleep(time.monotonic() - begun)
            await self._write(importing.publish)
        except BaseException:
            await run_shielded(self._undo_import(importing.undo))
            raise
        finally:
            batches.close()
        return importing.imported

    async def _undo_import(self, undo: Callable[[WriteState], bool]) -> None:
        """Remove an import, in commits as short as those of the import."""
        try:
            while await self._write(undo):
                pass
        except StoreError as problem:  # the rest is hidden; the next open of the store retries
            log.warning(
                "the rest of an import is removed when the store is next opened: %s", problem
            )

    async def _write(
        self, work: Callable[Concatenate[WriteState, P], T], *given: P.args, **named: P.kwargs
    ) -> T:
        return await self._do(lambda state: work(state, *given, **named))

    def _do(self, work: Callable[[WriteState], T]) -> asyncio.Future[T]:
        if not (ends := list(self._unsaved)):
            return self._writer.do(work)
        result = self._writer.do(self._unsaved.flush_before(work))
        result.add_done_callback(lambda result: self._unsaved.forget_flushed(ends, result))
        return result


def _write_nothing(state: WriteState) -> None:
    """Let a commit consist of the unsaved ends alone."""
