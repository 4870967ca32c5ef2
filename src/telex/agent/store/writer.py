"""The writer thread, which commits many writes at once (group commit).

Writes that are requested while a commit waits for the disk are put into the next commit. They share
the cost of one `fsync`, and a result still means "durable". Writes are done in the order in which
they were requested. A `StoreRefused` fails only the write that raised it. A disk error fails the
whole commit: nothing of it is stored, every write of it gets the error, and the thread continues
with a new connection. (A commit whose `fsync` failed may or may not be there after a crash. The
sequence numbers have no gap in either case.)
"""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from telex.agent.limits import STORE_COMMIT_WRITES
from telex.agent.store.database_file import begin_write, maps_sqlite_errors, open_database
from telex.agent.store.errors import StoreClosed, StoreRefused
from telex.agent.store.owners import StoreOwner
from telex.agent.store.transactions import WriteState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

T = TypeVar("T")


@dataclass(slots=True)
class _Write(Generic[T]):
    """A function to run in a transaction, and the future that gets its result."""

    work: Callable[[WriteState], T]
    future: asyncio.Future[T]
    result: T | None = None
    problem: Exception | None = None


class StoreWriter:
    """Queues writes and runs them in one thread; create it in the event loop that uses it."""

    def __init__(self, path: Path, clock: Callable[[], int]) -> None:
        self._path = path
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[_Write[Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._owner: StoreOwner | None = None
        self._state: WriteState | None = None
        self._thread = threading.Thread(target=self._main, name="telex-store", daemon=True)

    def do(self, work: Callable[[WriteState], T]) -> asyncio.Future[T]:
        """Queue the work and return a future, which is resolved when the work is durable. A write
        whose future is cancelled may be stored or not."""
        if self._closed:
            raise StoreClosed(f"{self._path} was closed")
        if self._thread.ident is None:
            self._thread.start()
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.put(_Write(work, future))
        return future

    async def close(self) -> None:
        """Finish the queued writes, then close the connection and end the thread."""
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
        if self._thread.ident is not None:
            await asyncio.shield(self._loop.run_in_executor(None, self._thread.join))

    # The methods below run in the writer's thread.

    def _main(self) -> None:
        try:
            while writes := self._next_batch():
                self._commit(writes)
                self._loop.call_soon_threadsafe(_deliver, writes)
        finally:
            self._disconnect()
            if self._owner is not None:
                self._owner.close()

    def _next_batch(self) -> list[_Write[Any]]:
        """Wait for a write, then return all queued writes up to a limit; empty after `close`."""
        if (first := self._waiting.get()) is None:
            return []
        writes = [first]
        while len(writes) < STORE_COMMIT_WRITES and not self._waiting.empty():
            if (another := self._waiting.get()) is None:
                self._waiting.put(None)  # keep the end mark for the next call; it is the last item
                break
            writes.append(another)
        return writes

    def _commit(self, writes: Sequence[_Write[Any]]) -> None:
        try:
            with maps_sqlite_errors(self._path):
                self._transact(writes)
        except Exception as problem:  # noqa: BLE001  every waiting caller gets the error
            self._disconnect()
            for write in writes:
                write.problem = problem

    def _transact(self, writes: Sequence[_Write[Any]]) -> None:
        state = self._connect()
        begin_write(state.database)
        for write in writes:
            try:
                write.result = write.work(state)
            except StoreRefused as refusal:
                write.problem = refusal
        state.write_touched()
        state.database.execute("COMMIT")

    def _connect(self) -> WriteState:
        if self._state is None:
            database = open_database(self._path)
            try:
                self._owner = self._owner or StoreOwner(self._path)
            except BaseException:
                database.close()
                raise
            self._state = WriteState(database, self._owner, self._clock)
        return self._state

    def _disconnect(self) -> None:
        """Close the connection, which also rolls back. After a disk error all cached data is
        dropped: the log ends in `WriteState` and SQLite's page cache."""
        if self._state is not None:
            self._state.database.close()
            self._state = None


def _deliver(writes: Sequence[_Write[Any]]) -> None:
    for write in writes:
        if write.future.done():
            continue  # cancelled meanwhile
        if write.problem is not None:
            write.future.set_exception(write.problem)
        else:
            write.future.set_result(write.result)
