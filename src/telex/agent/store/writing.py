"""What is done to threads, runs and events, inside a transaction that `writer` opens and ends.

Functions of the ledger. Each refuses before it writes, so that one caller's mistake costs the
others in the same commit nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.agent.store.ledger import End, first_link, last_link, next_link
from telex.agent.store.problems import (
    AlreadyThere,
    NotNext,
    RunEnded,
    RunNotOurs,
    ThreadBusy,
    UnknownRun,
    UnknownThread,
)
from telex.agent.store.records import Status

if TYPE_CHECKING:
    from telex.agent.store.ledger import Ledger

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


def start_run(ledger: Ledger, new: NewRun) -> None:
    now, database = ledger.clock(), ledger.database
    if database.execute("SELECT 1 FROM runs WHERE id = ?", (new.run_id,)).fetchone():
        raise AlreadyThere(f"there is a run {new.run_id} already")
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
    ledger.ends[new.run_id] = End(number, thread, 0, first_link(new.run_id))


def _thread_for(ledger: Ledger, new: NewRun, now: int) -> int:
    number = _thread_number(ledger, new.session_id)
    if new.new_thread:
        if number is not None:
            raise AlreadyThere(f"there is a session {new.session_id} already")
        return _new_thread(ledger, new.session_id, now)
    if number is None or _importing(ledger, number):
        raise UnknownThread(f"there is no session {new.session_id}")
    if (busy := _active(ledger, number)) is not None:
        recover(ledger)  # its process may have died since we looked
        if (busy := _active(ledger, number)) is not None:
            raise ThreadBusy(new.session_id, busy)
    return number


def _thread_number(ledger: Ledger, session_id: str) -> int | None:
    found = ledger.database.execute("SELECT number FROM threads WHERE id = ?", (session_id,))
    row = found.fetchone()
    return row[0] if row else None


def _importing(ledger: Ledger, thread: int) -> bool:
    found = ledger.database.execute("SELECT importing FROM threads WHERE number = ?", (thread,))
    return found.fetchone()[0] is not None


def _new_thread(ledger: Ledger, session_id: str, now: int) -> int:
    made = ledger.database.execute(
        "INSERT INTO threads (id, created_at, updated_at) VALUES (?1, ?2, ?2) RETURNING number",
        (session_id, now),
    ).fetchone()
    return int(made[0])


def _active(ledger: Ledger, thread: int) -> str | None:
    found = ledger.database.execute(
        "SELECT id FROM runs WHERE thread = ? AND ended_at IS NULL", (thread,)
    ).fetchone()
    return found[0] if found else None


def set_thread_meta(ledger: Ledger, session_id: str, meta: bytes | None) -> None:
    changed = ledger.database.execute(
        "UPDATE threads SET meta = ? WHERE id = ?", (meta, session_id)
    )
    if not changed.rowcount:
        raise UnknownThread(f"there is no session {session_id}")


def set_run_meta(ledger: Ledger, run_id: str, meta: bytes) -> None:
    number = ledger.end_of(run_id).number
    ledger.database.execute("UPDATE runs SET meta = ? WHERE number = ?", (meta, number))


def append(
    ledger: Ledger,
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


def end_run(ledger: Ledger, run_id: str, status: Status, message: str | None) -> None:
    """The last thing that happens to a run: its open questions are withdrawn with it."""
    end = ledger.end_of(run_id)
    ledger.touched[end.thread] = ledger.clock()
    _end(ledger, end.number, run_id, status, message)


def _end(ledger: Ledger, number: int, run_id: str, status: Status, message: str | None) -> None:
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


def adopt(ledger: Ledger, run_id: str) -> None:
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
        recover(ledger)
        raise RunEnded(run_id, Status.ERROR)
    ledger.database.execute("UPDATE runs SET owner = ? WHERE id = ?", (ledger.owner.name, run_id))


def may_return(ledger: Ledger, run_id: str) -> None:
    """From now on a UI hears of the run that may come back to it."""
    ledger.database.execute("UPDATE runs SET may_return = 1 WHERE id = ?", (run_id,))


def look_after(ledger: Ledger, run_id: str) -> None:
    """See to a run that nobody here runs: it ends with the runtime that died, and is refused
    where another has it."""
    recover(ledger)
    owner = ledger.database.execute(
        "SELECT owner FROM runs WHERE id = ? AND ended_at IS NULL", (run_id,)
    ).fetchone()
    if owner is not None and owner[0] != ledger.owner.name and ledger.owner.lives(owner[0]):
        raise RunNotOurs(f"run {run_id} is another runtime's, which still runs; attach to it there")


def recover(ledger: Ledger) -> None:
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


def _dead(ledger: Ledger) -> list[str]:
    named = ledger.database.execute(
        "SELECT owner FROM runs WHERE ended_at IS NULL"
        " UNION SELECT owner FROM questions WHERE closed_at IS NULL"
    ).fetchall()
    return [owner for (owner,) in named if not ledger.owner.lives(owner)]
