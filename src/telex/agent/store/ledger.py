"""What a write works on: the open database, whose runs are ours, and where each of them stands.

The writer's thread alone uses it. The ends of our runs are remembered, so that an event costs one
statement; nobody else may add to them while we live (`owners`), so they cannot be stale. After a
commit that failed the ledger is made anew.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from telex.agent.store.problems import RunEnded, RunNotOurs, UnknownRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.store.owners import Owner


@dataclass(slots=True)
class End:
    """Of a run's log: the next sequence number, and the hash of all before it."""

    number: int
    thread: int
    seq: int
    chain: bytes


@dataclass(slots=True)
class Ledger:
    database: sqlite3.Connection
    owner: Owner
    clock: Callable[[], int]
    ends: dict[str, End] = field(default_factory=dict)
    touched: dict[int, int] = field(default_factory=dict)
    """Threads that something was added to in this transaction, and when."""

    def end_of(self, run_id: str) -> End:
        """Of a run that goes on and is ours."""
        if (end := self.ends.get(run_id)) is None:
            end = self.ends[run_id] = self._find(run_id)
        return end

    def _find(self, run_id: str) -> End:
        found = self.database.execute(
            "SELECT number, thread, status, ended_at, owner FROM runs WHERE id = ?", (run_id,)
        ).fetchone()
        if found is None:
            raise UnknownRun(f"there is no run {run_id}")
        number, thread, status, ended_at, owner = found
        if ended_at is not None:
            raise RunEnded(run_id, status)
        if owner != self.owner.name:
            raise RunNotOurs(f"run {run_id} is another runtime's; adopt it when that one has ended")
        return End(number, thread, *last_link(self.database, number, run_id))

    def touch(self) -> None:
        """Once a commit and thread, not once an event."""
        self.database.executemany(
            "UPDATE threads SET updated_at = max(updated_at, ?2) WHERE number = ?1",
            self.touched.items(),
        )
        self.touched.clear()


def last_link(database: sqlite3.Connection, number: int, run_id: str) -> tuple[int, bytes]:
    """The next sequence number of a run, and the hash so far."""
    last = database.execute(
        "SELECT seq, chain FROM events WHERE run = ? ORDER BY seq DESC LIMIT 1", (number,)
    ).fetchone()
    return (last[0] + 1, last[1]) if last else (0, first_link(run_id))


def first_link(run_id: str) -> bytes:
    return hashlib.sha256(run_id.encode()).digest()


def next_link(chain: bytes, at: int, event: bytes, meta: bytes | None) -> bytes:
    """Each event's hash holds the one before: SQLite does not notice a flipped bit inside a value,
    this does, and costs 1 µs. It proves nothing against somebody who can write the file."""
    link = hashlib.sha256(chain)
    link.update(b"%d %d %d " % (at, -1 if meta is None else len(meta), len(event)))
    link.update(meta or b"")
    link.update(event)
    return link.digest()
