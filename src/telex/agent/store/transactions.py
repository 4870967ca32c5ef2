"""Writes to threads, runs, events, questions and decisions, inside a transaction that `writer`
opens and ends.

They are functions of `WriteState`. Each refuses before it writes, so that one caller's mistake
costs the others in the same commit nothing. A run waits for the UI exactly while it has an open
question, and both are written together: so after a crash the two cannot disagree.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from telex.agent.store.errors import (
    IdTaken,
    NotNext,
    RunEnded,
    RunNotOurs,
    ThreadBusy,
    UnknownRequest,
    UnknownRun,
    UnknownThread,
)
from telex.agent.store.stored_records import ClosedQuestion, Status, StoredQuestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.store.owners import StoreOwner


@dataclass(slots=True)
class LogEnd:
    """Of a run's log: the next sequence number, and the hash of all before it."""

    number: int
    thread: int
    seq: int
    chain: bytes


@dataclass(slots=True)
class WriteState:
    """The open database, whose runs are ours, and where the log of each of them ends.

    The writer's thread alone uses it. The ends of our runs are remembered, so that an event costs
    one statement; nobody else may add to them while we live (`owners`), so they cannot be stale.
    After a commit that failed it is made anew.
    """

    database: sqlite3.Connection
    owner: StoreOwner
    clock: Callable[[], int]
    ends: dict[str, LogEnd] = field(default_factory=dict)
    touched: dict[int, int] = field(default_factory=dict)
    """Threads that something was added to in this transaction, and when."""

    def end_of(self, run_id: str) -> LogEnd:
        """Of a run that goes on and is ours."""
        if (end := self.ends.get(run_id)) is None:
            end = self.ends[run_id] = self._find(run_id)
        return end

    def _find(self, run_id: str) -> LogEnd:
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
        return LogEnd(number, thread, *last_link(self.database, number, run_id))

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


RUNTIME_ENDED = "the runtime ended"


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a run starts with. `said` is the text of `input`, as a list or a replay shows it."""

    run_id: str
    session_id: str
    input: bytes
    said: str
    meta: bytes | None = None
    new_thread: bool = False
    """The session is made with it; otherwise it must be there."""
    may_return: bool = True
    """A UI of it may come back to it (`run.attach`): a question of it outlives the runtime."""
    workspace: str | None = None
    """Where it is; the session is listed there from now on."""


def start_run(ledger: WriteState, new: NewRun) -> None:
    now, database = ledger.clock(), ledger.database
    if database.execute("SELECT 1 FROM runs WHERE id = ?", (new.run_id,)).fetchone():
        raise IdTaken(f"there is a run {new.run_id} already")
    thread = _thread_for(ledger, new, now)
    number = database.execute(
        "INSERT INTO runs (id, thread, status, input, said, started_at, owner, meta, may_return)"
        " VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            *(new.run_id, thread, new.input, new.said, now),
            *(ledger.owner.name, new.meta, new.may_return),
        ),
    ).fetchone()[0]
    database.execute(
        "UPDATE threads SET messages = messages + 1, workspace = coalesce(?, workspace)"
        " WHERE number = ?",
        (new.workspace, thread),
    )
    ledger.touched[thread] = now
    ledger.ends[new.run_id] = LogEnd(number, thread, 0, first_link(new.run_id))


def _thread_for(ledger: WriteState, new: NewRun, now: int) -> int:
    number = _thread_number(ledger, new.session_id)
    if new.new_thread:
        if number is not None:
            raise IdTaken(f"there is a session {new.session_id} already")
        return _new_thread(ledger, new.session_id, now)
    if number is None or _importing(ledger, number):
        raise UnknownThread(f"there is no session {new.session_id}")
    if (busy := _active(ledger, number)) is not None:
        end_abandoned_runs(ledger)  # its process may have died since we looked
        if (busy := _active(ledger, number)) is not None:
            raise ThreadBusy(new.session_id, busy)
    return number


def _thread_number(ledger: WriteState, session_id: str) -> int | None:
    found = ledger.database.execute("SELECT number FROM threads WHERE id = ?", (session_id,))
    row = found.fetchone()
    return row[0] if row else None


def _importing(ledger: WriteState, thread: int) -> bool:
    found = ledger.database.execute("SELECT importing FROM threads WHERE number = ?", (thread,))
    return found.fetchone()[0] is not None


def _new_thread(ledger: WriteState, session_id: str, now: int) -> int:
    made = ledger.database.execute(
        "INSERT INTO threads (id, created_at, updated_at) VALUES (?1, ?2, ?2) RETURNING number",
        (session_id, now),
    ).fetchone()
    return int(made[0])


def _active(ledger: WriteState, thread: int) -> str | None:
    found = ledger.database.execute(
        "SELECT id FROM runs WHERE thread = ? AND ended_at IS NULL", (thread,)
    ).fetchone()
    return found[0] if found else None


def set_thread_meta(ledger: WriteState, session_id: str, meta: bytes | None) -> None:
    changed = ledger.database.execute(
        "UPDATE threads SET meta = ? WHERE id = ?", (meta, session_id)
    )
    if not changed.rowcount:
        raise UnknownThread(f"there is no session {session_id}")


def set_run_meta(ledger: WriteState, run_id: str, meta: bytes) -> None:
    number = ledger.end_of(run_id).number
    ledger.database.execute("UPDATE runs SET meta = ? WHERE number = ?", (meta, number))


def append_event(
    ledger: WriteState,
    run_id: str,
    event: bytes,
    meta: bytes | None,
    final: bool,
    expected: int | None,
) -> int:
    end = ledger.end_of(run_id)
    now, seq = ledger.clock(), end.seq
    if expected not in (None, seq):
        raise NotNext(f"event {expected} of run {run_id} is not the next, which is {seq}")
    chain = next_link(end.chain, now, event, meta)
    ledger.database.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (end.number, seq, now, event, meta, chain)
    )
    end.seq, end.chain = seq + 1, chain
    ledger.touched[end.thread] = now
    if final:
        ledger.database.execute(
            "UPDATE threads SET messages = messages + 1 WHERE number = ?", (end.thread,)
        )
    return seq


def end_run(ledger: WriteState, run_id: str, status: Status, message: str | None) -> None:
    """The last thing that happens to a run: its open questions are withdrawn with it."""
    end = ledger.end_of(run_id)
    ledger.touched[end.thread] = ledger.clock()
    _end(ledger, end.number, run_id, status, message)


def _end(ledger: WriteState, number: int, run_id: str, status: Status, message: str | None) -> None:
    now = ledger.clock()
    events, head = last_link(ledger.database, number, run_id)
    ledger.ends.pop(run_id, None)
    ledger.database.execute(
        "UPDATE runs SET status = ?, message = ?, ended_at = ?, events = ?, head = ?"
        " WHERE number = ?",
        (status.value, message, now, events, head, number),
    )
    ledger.database.execute(
        "UPDATE questions SET closed_by = ?, closed_at = ? WHERE run = ? AND closed_at IS NULL",
        (f"the run's end ({status.value})", now, number),
    )


def adopt_run(ledger: WriteState, run_id: str) -> None:
    """Take over a run that waits for an answer and whose runtime has ended."""
    found = ledger.database.execute(
        "SELECT status, ended_at, owner FROM runs WHERE id = ?", (run_id,)
    ).fetchone()
    if found is None:
        raise UnknownRun(f"there is no run {run_id}")
    status, ended_at, owner = found
    if ended_at is not None:
        raise RunEnded(run_id, status)
    if owner != ledger.owner.name and ledger.owner.lives(owner):
        raise RunNotOurs(f"run {run_id} is another runtime's, which still runs")
    if status == Status.RUNNING and owner != ledger.owner.name:
        end_abandoned_runs(ledger)
        raise RunEnded(run_id, Status.ERROR)
    ledger.database.execute("UPDATE runs SET owner = ? WHERE id = ?", (ledger.owner.name, run_id))


def may_return(ledger: WriteState, run_id: str) -> None:
    """From now on a UI hears of the run that may come back to it."""
    ledger.database.execute("UPDATE runs SET may_return = 1 WHERE id = ?", (run_id,))


def end_if_abandoned(ledger: WriteState, run_id: str) -> None:
    """See to a run that nobody here runs: it ends with the runtime that died, and is refused
    where another has it."""
    end_abandoned_runs(ledger)
    owner = ledger.database.execute(
        "SELECT owner FROM runs WHERE id = ? AND ended_at IS NULL", (run_id,)
    ).fetchone()
    if owner is not None and owner[0] != ledger.owner.name and ledger.owner.lives(owner[0]):
        raise RunNotOurs(f"run {run_id} is another runtime's, which still runs; attach to it there")


def end_abandoned_runs(ledger: WriteState) -> None:
    """End what runtimes that died were doing. What waits for a person who may come back goes on
    waiting: nothing of it has happened yet, and it may be answered after the restart."""
    for owner in _dead(ledger):
        left = ledger.database.execute(
            "SELECT number, id FROM runs WHERE owner = ? AND ended_at IS NULL"
            " AND (status = 'running' OR NOT may_return)",
            (owner,),
        ).fetchall()
        for number, run_id in left:
            _end(ledger, number, run_id, Status.ERROR, RUNTIME_ENDED)
        ledger.database.execute(
            "UPDATE questions SET closed_by = ?, closed_at = ?"
            " WHERE owner = ? AND run IS NULL AND closed_at IS NULL",
            (RUNTIME_ENDED, ledger.clock(), owner),
        )


def _dead(ledger: WriteState) -> list[str]:
    named = ledger.database.execute(
        "SELECT owner FROM runs WHERE ended_at IS NULL"
        " UNION SELECT owner FROM questions WHERE closed_at IS NULL"
    ).fetchall()
    return [owner for (owner,) in named if not ledger.owner.lives(owner)]


QUESTION_PREFIX = "ui_"


def ask_question(
    ledger: WriteState, run_id: str | None, method: str, params: bytes, digest: bytes
) -> StoredQuestion:
    now = ledger.clock()
    run = None if run_id is None else ledger.end_of(run_id).number
    number = ledger.database.execute(
        "INSERT INTO questions (run, owner, method, params, digest, asked_at)"
        " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
        (run, ledger.owner.name, method, params, digest, now),
    ).fetchone()[0]
    ledger.database.execute("UPDATE runs SET status = 'awaiting_ui' WHERE number = ?", (run,))
    return StoredQuestion(f"{QUESTION_PREFIX}{number}", run_id, method, params, digest, now)


def close_question(
    ledger: WriteState, request_id: str, answer: bytes | None, by: str
) -> ClosedQuestion:
    """Answer it or, without an answer, withdraw it; unless that has been done before."""
    number = number_of(request_id)
    found = ledger.database.execute(
        "SELECT q.run, coalesce(r.owner, q.owner), q.answer, q.closed_by, q.closed_at, q.digest"
        " FROM questions q LEFT JOIN runs r ON r.number = q.run WHERE q.number = ?",
        (number,),
    ).fetchone()
    if found is None:
        raise UnknownRequest(f"nothing was asked as {request_id}")
    run, owner, earlier, closed_by, closed_at, digest = found
    if closed_at is not None:
        return ClosedQuestion(False, earlier, closed_by, closed_at, digest)
    if owner != ledger.owner.name:
        raise RunNotOurs(f"{request_id} was asked by another runtime; adopt its run first")
    now = ledger.clock()
    ledger.database.execute(
        "UPDATE questions SET answer = ?, closed_by = ?, closed_at = ? WHERE number = ?",
        (answer, by, now, number),
    )
    _go_on(ledger, run)
    return ClosedQuestion(True, answer, by, now, digest)


def _go_on(ledger: WriteState, run: int | None) -> None:
    """A run that nobody is asked for any more runs."""
    ledger.database.execute(
        "UPDATE runs SET status = 'running' WHERE number = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM questions WHERE run = ?1 AND closed_at IS NULL)",
        (run,),
    )


def remember_rule(ledger: WriteState, rule: bytes, by: str, request_id: str | None) -> int:
    question = None if request_id is None else number_of(request_id)
    if question is not None and not _asked(ledger, question):
        raise UnknownRequest(f"nothing was asked as {request_id}")
    made = ledger.database.execute(
        "INSERT INTO decisions (rule, made_by, made_at, question) VALUES (?, ?, ?, ?)"
        " RETURNING number",
        (rule, by, ledger.clock(), question),
    ).fetchone()
    return int(made[0])


def _asked(ledger: WriteState, question: int) -> bool:
    found = ledger.database.execute("SELECT 1 FROM questions WHERE number = ?", (question,))
    return found.fetchone() is not None


def revoke_rule(ledger: WriteState, decision: int, by: str) -> bool:
    """Whether it was there and in force."""
    changed = ledger.database.execute(
        "UPDATE decisions SET revoked_by = ?, revoked_at = ?"
        " WHERE number = ? AND revoked_at IS NULL",
        (by, ledger.clock(), decision),
    )
    return changed.rowcount > 0


def number_of(request_id: str) -> int:
    digits = request_id.removeprefix(QUESTION_PREFIX)
    canonical = digits.isascii() and digits.isdigit() and len(digits) < 19 and digits[0] != "0"
    if not canonical or request_id == digits:
        raise UnknownRequest(f"nothing was asked as {request_id}")
    return int(digits)
