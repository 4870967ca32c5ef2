"""One thread that writes, and commits for all who wait: group commit.

Whoever asks while a commit is at the disk is in the next one, so the cost of one `fsync` is shared
by all of them, and an answer still means "durable". Everything is done in the order it was asked.
A refusal is its asker's own. A failing disk fails the whole commit: nothing of it is stored, all
are told, and the thread goes on with a new connection. (Of a commit whose `fsync` failed nobody can
know: it may be there after a crash. The sequence has no gap either way.)
"""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from telex.agent.limits import STORE_COMMIT_WRITES
from telex.agent.store.database_file import maps_sqlite_errors, open_database
from telex.agent.store.errors import StoreClosed, StoreRefused
from telex.agent.store.owners import StoreOwner
from telex.agent.store.transactions import WriteState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

T = TypeVar("T")


@dataclass(slots=True)
class _Write(Generic[T]):
    """Something to do in a transaction, and who waits for it."""

    work: Callable[[WriteState], T]
    answer: asyncio.Future[T]
    result: T | None = None
    problem: Exception | None = None


class StoreWriter:
    def __init__(self, path: Path, clock: Callable[[], int]) -> None:
        self._path = path
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[_Write[Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._owner: StoreOwner | None = None
        self._ledger: WriteState | None = None
        self._thread = threading.Thread(target=self._main, name="telex-store", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[WriteState], T]) -> asyncio.Future[T]:
        """Its result, once it is durable. Cancelled meanwhile, it may be stored or not."""
        if self._closed:
            raise StoreClosed(f"{self._path} was closed")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting.put(_Write(work, answer))
        return answer

    async def close(self) -> None:
        """What was asked before is done first."""
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
        await asyncio.shield(self._loop.run_in_executor(None, self._thread.join))

    # From here on in the thread.

    def _main(self) -> None:
        try:
            while writes := self._next():
                self._commit(writes)
                self._loop.call_soon_threadsafe(_deliver, writes)
        finally:
            self._disconnect()
            if self._owner is not None:
                self._owner.close()

    def _next(self) -> list[_Write[Any]]:
        """All that wait, up to a bound; empty at the end."""
        if (first := self._waiting.get()) is None:
            return []
        writes = [first]
        while len(writes) < STORE_COMMIT_WRITES and not self._waiting.empty():
            if (another := self._waiting.get()) is None:
                self._waiting.put(None)  # the end, for the next time: nothing comes after it
                break
            writes.append(another)
        return writes

    def _commit(self, writes: Sequence[_Write[Any]]) -> None:
        try:
            with maps_sqlite_errors(self._path):
                self._transact(writes)
        except Exception as problem:  # noqa: BLE001  whatever it is, those who wait are told
            self._disconnect()
            for write in writes:
                write.problem = problem

    def _transact(self, writes: Sequence[_Write[Any]]) -> None:
        ledger = self._connected()
        ledger.database.execute("BEGIN IMMEDIATE")
        for write in writes:
            try:
                write.result = write.work(ledger)
            except StoreRefused as refusal:
                write.problem = refusal
        ledger.touch()
        ledger.database.execute("COMMIT")

    def _connected(self) -> WriteState:
        if self._ledger is None:
            database = open_database(self._path)
            try:
                self._owner = self._owner or StoreOwner(self._path)
            except BaseException:
                database.close()
                raise
            self._ledger = WriteState(database, self._owner, self._clock)
        return self._ledger

    def _disconnect(self) -> None:
        """Also rolls back. After a failure of the disk nothing remembered is believed: neither our
        ends of runs nor SQLite's pages."""
        if self._ledger is not None:
            self._ledger.database.close()
            self._ledger = None


def _deliver(writes: Sequence[_Write[Any]]) -> None:
    for write in writes:
        if write.answer.done():
            continue  # cancelled meanwhile
        if write.problem is not None:
            write.answer.set_exception(write.problem)
        else:
            write.answer.set_result(write.result)
