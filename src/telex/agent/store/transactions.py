"""Writes of the store, from threads to decisions, inside a transaction of `writer`.

Each is a function of `WriteState`. Each checks its request before it writes, so that the error of
one caller does not affect the other writes in the same commit. A run has the status `awaiting_ui`
exactly while it has an open question. Both are written in one transaction, so that they cannot
disagree after a crash.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

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
    """The end of a run's log: the next sequence number, and the hash of all events before it."""

    number: int
    thread: int
    seq: int
    chain: bytes


@dataclass(slots=True)
class WriteState:
    """The open database, the owner of its runs here, and the cached ends of their logs.

    Only the writer's thread uses it. The log ends are cached, so that appending an event needs one
    statement. The cache cannot become stale, because no other process may add to the runs of a live
    owner (`owners`). After a failed commit a new `WriteState` is created.
    """

    database: sqlite3.Connection
    owner: StoreOwner
    clock: Callable[[], int]
    ends: dict[str, LogEnd] = field(default_factory=dict)
    touched: dict[int, int] = field(default_factory=dict)
    """Threads that were written to in this transaction, and when."""

    def end_of(self, run_id: str) -> LogEnd:
        """Return the log end of an active run that belongs to this owner."""
        if (end := self.ends.get(run_id)) is None:
            end = self.ends[run_id] = self._load_end(run_id)
        return end

    def _load_end(self, run_id: str) -> LogEnd:
        found = self.database.execute(
            "SELECT number, thread, status, ended_at, owner FROM runs WHERE id = ?", (run_id,)
        ).fetchone()
        if found is None:
            raise UnknownRun(f"run {run_id} does not exist")
        number, thread, status, ended_at, owner = found
        if ended_at is not None:
            raise RunEnded(run_id, status)
        if owner != self.owner.name:
            raise RunNotOurs(
                f"run {run_id} belongs to another runtime; adopt it after that runtime has ended"
            )
        return LogEnd(number, thread, *last_link(self.database, number, run_id))

    def write_touched(self) -> None:
        """Update the times of the touched threads: once for each commit, not for each event."""
        self.database.executemany(
            "UPDATE threads SET updated_at = max(updated_at, ?2) WHERE number = ?1",
            self.touched.items(),
        )
        self.touched.clear()


def last_link(database: sqlite3.Connection, number: int, run_id: str) -> tuple[int, bytes]:
    """Return the next sequence number of a run, and the hash of its last event."""
    last = database.execute(
        "SELECT seq, chain FROM events WHERE run = ? ORDER BY seq DESC LIMIT 1", (number,)
    ).fetchone()
    return (last[0] + 1, last[1]) if last else (0, first_link(run_id))


def first_link(run_id: str) -> bytes:
    """Return the hash that precedes the first event of a run."""
    return hashlib.sha256(run_id.encode()).digest()


def next_link(chain: bytes, at: int, event: bytes, meta: bytes | None) -> bytes:
    """Return the hash of an event, which includes the hash of the event before it. SQLite does not
    notice a flipped bit inside a value; this chain does, and costs 1 µs for each event. It is no
    protection against an attacker who can write the file."""
    link = hashlib.sha256(chain)
    link.update(b"%d %d %d " % (at, -1 if meta is None else len(meta), len(event)))
    link.update(meta or b"")
    link.update(event)
    return link.digest()


RUNTIME_ENDED = "the runtime ended"


@dataclass(frozen=True, slots=True)
class NewRun:
    """The values of a new run. `said` is the text of `input` as lists and replays show it."""

    run_id: str
    session_id: str
    input: bytes
    said: str
    meta: bytes | None = None
    new_thread: bool = False
    """Whether the session is created with the run; otherwise it must exist."""
    may_return: bool = True
    """Whether a UI of the run may reconnect to it (`run.attach`). If so, the run's questions stay
    open after the runtime has ended."""
    workspace: str | None = None
    """The workspace of the run; the session is listed there from now on."""
    message: bytes | None = None
    """The input as a message of the conversation."""


def start_run(state: WriteState, new: NewRun) -> None:
    now, database = state.clock(), state.database
    if database.execute("SELECT 1 FROM runs WHERE id = ?", (new.run_id,)).fetchone():
        raise IdTaken(f"run {new.run_id} exists already")
    thread = _thread_for(state, new, now)
    number = database.execute(
        "INSERT INTO runs (id, thread, status, input, said, started_at, owner, meta, may_return)"
        " VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            *(new.run_id, thread, new.input, new.said, now),
            *(state.owner.name, new.meta, new.may_return),
        ),
    ).fetchone()[0]
    database.execute(
        "UPDATE threads SET messages = messages + 1, workspace = coalesce(?, workspace)"
        " WHERE number = ?",
        (new.workspace, thread),
    )
    state.touched[thread] = now
    state.ends[new.run_id] = LogEnd(number, thread, 0, first_link(new.run_id))
    if new.message is not None:
        append_message(state, new.run_id, new.message)


def _thread_for(state: WriteState, new: NewRun, now: int) -> int:
    number = _thread_number(state, new.session_id)
    if new.new_thread:
        if number is not None:
            raise IdTaken(f"session {new.session_id} exists already")
        return _new_thread(state, new.session_id, now)
    if number is None or _is_importing(state, number):
        raise UnknownThread(f"session {new.session_id} does not exist")
    if (busy := _active_run(state, number)) is not None:
        end_abandoned_runs(state)  # its process may have died since the last check
        if (busy := _active_run(state, number)) is not None:
            raise ThreadBusy(new.session_id, busy)
    return number


def _thread_number(state: WriteState, session_id: str) -> int | None:
    found = state.database.execute("SELECT number FROM threads WHERE id = ?", (session_id,))
    row = found.fetchone()
    return row[0] if row else None


def _is_importing(state: WriteState, thread: int) -> bool:
    found = state.database.execute("SELECT importing FROM threads WHERE number = ?", (thread,))
    return found.fetchone()[0] is not None


def _new_thread(state: WriteState, session_id: str, now: int) -> int:
    made = state.database.execute(
        "INSERT INTO threads (id, created_at, updated_at) VALUES (?1, ?2, ?2) RETURNING number",
        (session_id, now),
    ).fetchone()
    return int(made[0])


def _active_run(state: WriteState, thread: int) -> str | None:
    found = state.database.execute(
        "SELECT id FROM runs WHERE thread = ? AND ended_at IS NULL", (thread,)
    ).fetchone()
    return found[0] if found else None


def set_thread_meta(state: WriteState, session_id: str, meta: bytes | None) -> None:
    changed = state.database.execute("UPDATE threads SET meta = ? WHERE id = ?", (meta, session_id))
    if not changed.rowcount:
        raise UnknownThread(f"session {session_id} does not exist")


def set_thread_member(state: WriteState, session_id: str, name: str, value: bytes | None) -> None:
    """Replace one member of a thread's meta; None removes it."""
    found = state.database.execute("SELECT meta FROM threads WHERE id = ?", (session_id,))
    if (row := found.fetchone()) is None:
        raise UnknownThread(f"session {session_id} does not exist")
    members = msgspec.json.decode(row[0] or b"{}", type=dict[str, msgspec.Raw])
    members.pop(name, None)
    if value is not None:
        members[name] = msgspec.Raw(value)
    set_thread_meta(state, session_id, msgspec.json.encode(members))


def set_run_meta(state: WriteState, run_id: str, meta: bytes) -> None:
    number = state.end_of(run_id).number
    state.database.execute("UPDATE runs SET meta = ? WHERE number = ?", (meta, number))


def append_event(
    state: WriteState,
    run_id: str,
    event: bytes,
    meta: bytes | None,
    final: bool,
    expected: int | None,
    message: bytes | None = None,
) -> int:
    """Store an event, and the message that it shows."""
    end = state.end_of(run_id)
    now, seq = state.clock(), end.seq
    if expected not in (None, seq):
        raise NotNext(f"event {expected} of run {run_id} is not the next event, {seq}")
    chain = next_link(end.chain, now, event, meta)
    state.database.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (end.number, seq, now, event, meta, chain)
    )
    end.seq, end.chain = seq + 1, chain
    state.touched[end.thread] = now
    if final:
        state.database.execute(
            "UPDATE threads SET messages = messages + 1 WHERE number = ?", (end.thread,)
        )
    if message is not None:
        append_message(state, run_id, message)
    return seq


def append_message(
    state: WriteState, run_id: str, message: bytes, kept_from: int | None = None
) -> int:
    """Store the next message of the run's thread, and return its position."""
    end = state.end_of(run_id)
    return insert_message(state.database, end.thread, end.number, message, kept_from)


def insert_message(
    database: sqlite3.Connection, thread: int, run: int, message: bytes, kept_from: int | None
) -> int:
    inserted = database.execute(
        "INSERT INTO messages (thread, position, run, message, kept_from)"
        " SELECT ?1, coalesce(max(position), -1) + 1, ?2, ?3, ?4 FROM messages WHERE thread = ?1"
        " RETURNING position",
        (thread, run, message, kept_from),
    ).fetchone()
    return int(inserted[0])


def end_run(state: WriteState, run_id: str, status: Status, message: str | None) -> None:
    """Store the end of a run and withdraw its open questions. Nothing can be added afterwards."""
    end = state.end_of(run_id)
    state.touched[end.thread] = state.clock()
    _end(state, end.number, run_id, status, message)


def _end(state: WriteState, number: int, run_id: str, status: Status, message: str | None) -> None:
    now = state.clock()
    events, head = last_link(state.database, number, run_id)
    state.ends.pop(run_id, None)
    state.database.execute(
        "UPDATE runs SET status = ?, message = ?, ended_at = ?, events = ?, head = ?"
        " WHERE number = ?",
        (status.value, message, now, events, head, number),
    )
    state.database.execute(
        "UPDATE questions SET closed_by = ?, closed_at = ? WHERE run = ? AND closed_at IS NULL",
        (f"the run's end ({status.value})", now, number),
    )


def adopt_run(state: WriteState, run_id: str) -> None:
    """Take ownership of a run that waits for an answer and whose runtime has ended."""
    found = state.database.execute(
        "SELECT status, ended_at, owner FROM runs WHERE id = ?", (run_id,)
    ).fetchone()
    if found is None:
        raise UnknownRun(f"run {run_id} does not exist")
    status, ended_at, owner = found
    if ended_at is not None:
        raise RunEnded(run_id, status)
    if owner != state.owner.name and state.owner.lives(owner):
        raise RunNotOurs(f"run {run_id} belongs to another runtime, which is still running")
    if status == Status.RUNNING and owner != state.owner.name:
        end_abandoned_runs(state)
        raise RunEnded(run_id, Status.ERROR)
    state.database.execute("UPDATE runs SET owner = ? WHERE id = ?", (state.owner.name, run_id))


def may_return(state: WriteState, run_id: str) -> None:
    """Record that a UI that receives the run's events may reconnect to it."""
    state.database.execute("UPDATE runs SET may_return = 1 WHERE id = ?", (run_id,))


def end_if_abandoned(state: WriteState, run_id: str) -> None:
    """End a run whose runtime died. Raise `RunNotOurs` where another live runtime owns it."""
    end_abandoned_runs(state)
    owner = state.database.execute(
        "SELECT owner FROM runs WHERE id = ? AND ended_at IS NULL", (run_id,)
    ).fetchone()
    if owner is not None and owner[0] != state.owner.name and state.owner.lives(owner[0]):
        raise RunNotOurs(
            f"run {run_id} belongs to another runtime, which is still running; attach to it there"
        )


def end_abandoned_runs(state: WriteState) -> None:
    """End the runs of runtimes that died. A run that waits for the answer of a UI that may return
    stays open: nothing of the requested action has happened, and the question can be answered after
    the restart."""
    for owner in _dead_owners(state):
        left = state.database.execute(
            "SELECT number, id FROM runs WHERE owner = ? AND ended_at IS NULL"
            " AND (status = 'running' OR NOT may_return)",
            (owner,),
        ).fetchall()
        for number, run_id in left:
            _end(state, number, run_id, Status.ERROR, RUNTIME_ENDED)
        state.database.execute(
            "UPDATE questions SET closed_by = ?, closed_at = ?"
            " WHERE owner = ? AND run IS NULL AND closed_at IS NULL",
            (RUNTIME_ENDED, state.clock(), owner),
        )


def _dead_owners(state: WriteState) -> list[str]:
    named = state.database.execute(
        "SELECT owner FROM runs WHERE ended_at IS NULL"
        " UNION SELECT owner FROM questions WHERE closed_at IS NULL"
    ).fetchall()
    return [owner for (owner,) in named if not state.owner.lives(owner)]


QUESTION_PREFIX = "ui_"


def ask_question(
    state: WriteState,
    run_id: str | None,
    method: str,
    params: bytes,
    digest: bytes,
    call: str | None,
) -> StoredQuestion:
    now = state.clock()
    run = None if run_id is None else state.end_of(run_id).number
    number = state.database.execute(
        "INSERT INTO questions (run, owner, method, params, digest, asked_at, call)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (run, state.owner.name, method, params, digest, now, call),
    ).fetchone()[0]
    state.database.execute("UPDATE runs SET status = 'awaiting_ui' WHERE number = ?", (run,))
    return StoredQuestion(f"{QUESTION_PREFIX}{number}", run_id, method, params, digest, now, call)


def close_question(
    state: WriteState, request_id: str, answer: bytes | None, by: str
) -> ClosedQuestion:
    """Close a question with an answer, or withdraw it if `answer` is None. A question that is
    closed already stays as it is, and the result has the earlier answer."""
    number = number_of(request_id)
    found = state.database.execute(
        "SELECT q.run, coalesce(r.owner, q.owner), q.answer, q.closed_by, q.closed_at, q.digest"
        " FROM questions q LEFT JOIN runs r ON r.number = q.run WHERE q.number = ?",
        (number,),
    ).fetchone()
    if found is None:
        raise UnknownRequest(f"request {request_id} does not exist")
    run, owner, earlier, closed_by, closed_at, digest = found
    if closed_at is not None:
        return ClosedQuestion(False, earlier, closed_by, closed_at, digest)
    if owner != state.owner.name:
        raise RunNotOurs(f"request {request_id} belongs to another runtime; adopt its run first")
    now = state.clock()
    state.database.execute(
        "UPDATE questions SET answer = ?, closed_by = ?, closed_at = ? WHERE number = ?",
        (answer, by, now, number),
    )
    _resume_without_questions(state, run)
    return ClosedQuestion(True, answer, by, now, digest)


def _resume_without_questions(state: WriteState, run: int | None) -> None:
    """Set the run to `running` if it has no open question left."""
    state.database.execute(
        "UPDATE runs SET status = 'running' WHERE number = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM questions WHERE run = ?1 AND closed_at IS NULL)",
        (run,),
    )


def remember_rule(state: WriteState, rule: bytes, by: str, request_id: str | None) -> int:
    question = None if request_id is None else number_of(request_id)
    if question is not None and not _question_exists(state, question):
        raise UnknownRequest(f"request {request_id} does not exist")
    made = state.database.execute(
        "INSERT INTO decisions (rule, made_by, made_at, question) VALUES (?, ?, ?, ?)"
        " RETURNING number",
        (rule, by, state.clock(), question),
    ).fetchone()
    return int(made[0])


def _question_exists(state: WriteState, question: int) -> bool:
    found = state.database.execute("SELECT 1 FROM questions WHERE number = ?", (question,))
    return found.fetchone() is not None


def revoke_rule(state: WriteState, decision: int, by: str) -> bool:
    """Revoke a remembered rule. Return whether it existed and was in force."""
    changed = state.database.execute(
        "UPDATE decisions SET revoked_by = ?, revoked_at = ?"
        " WHERE number = ? AND revoked_at IS NULL",
        (by, state.clock(), decision),
    )
    return changed.rowcount > 0


def number_of(request_id: str) -> int:
    """Return the number in `ui_<number>`. Raise `UnknownRequest` for any other spelling."""
    digits = request_id.removeprefix(QUESTION_PREFIX)
    canonical = digits.isascii() and digits.isdigit() and len(digits) < 19 and digits[0] != "0"
    if not canonical or request_id == digits:
        raise UnknownRequest(f"request {request_id} does not exist")
    return int(digits)
