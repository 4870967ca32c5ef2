"""Questions put to a UI, answered once; and the rules that people asked to be remembered.

Inside the writer's transactions, like `writing`. A run waits for the UI exactly while it has an
open question, and both are written together: so after a crash the two cannot disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.agent.store.problems import RunNotOurs, UnknownRequest
from telex.agent.store.records import Closed, Question

if TYPE_CHECKING:
    from telex.agent.store.ledger import Ledger

PREFIX = "ui_"


def ask(ledger: Ledger, run_id: str | None, method: str, params: bytes, digest: bytes) -> Question:
    now = ledger.clock()
    run = None if run_id is None else ledger.end_of(run_id).number
    number = ledger.database.execute(
        "INSERT INTO questions (run, owner, method, params, digest, asked_at)"
        " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
        (run, ledger.owner.name, method, params, digest, now),
    ).fetchone()[0]
    ledger.database.execute("UPDATE runs SET status = 'awaiting_ui' WHERE number = ?", (run,))
    return Question(f"{PREFIX}{number}", run_id, method, params, digest, now)


def close(ledger: Ledger, request_id: str, answer: bytes | None, by: str) -> Closed:
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
        return Closed(False, earlier, closed_by, closed_at, digest)
    if owner != ledger.owner.name:
        raise RunNotOurs(f"{request_id} was asked by another runtime; adopt its run first")
    now = ledger.clock()
    ledger.database.execute(
        "UPDATE questions SET answer = ?, closed_by = ?, closed_at = ? WHERE number = ?",
        (answer, by, now, number),
    )
    _go_on(ledger, run)
    return Closed(True, answer, by, now, digest)


def _go_on(ledger: Ledger, run: int | None) -> None:
    """A run that nobody is asked for any more runs."""
    ledger.database.execute(
        "UPDATE runs SET status = 'running' WHERE number = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM questions WHERE run = ?1 AND closed_at IS NULL)",
        (run,),
    )


def remember(ledger: Ledger, rule: bytes, by: str, request_id: str | None) -> int:
    question = None if request_id is None else number_of(request_id)
    if question is not None and not _asked(ledger, question):
        raise UnknownRequest(f"nothing was asked as {request_id}")
    made = ledger.database.execute(
        "INSERT INTO decisions (rule, made_by, made_at, question) VALUES (?, ?, ?, ?)"
        " RETURNING number",
        (rule, by, ledger.clock(), question),
    ).fetchone()
    return int(made[0])


def _asked(ledger: Ledger, question: int) -> bool:
    found = ledger.database.execute("SELECT 1 FROM questions WHERE number = ?", (question,))
    return found.fetchone() is not None


def revoke(ledger: Ledger, decision: int, by: str) -> bool:
    """Whether it was there and in force."""
    changed = ledger.database.execute(
        "UPDATE decisions SET revoked_by = ?, revoked_at = ?"
        " WHERE number = ? AND revoked_at IS NULL",
        (by, ledger.clock(), decision),
    )
    return changed.rowcount > 0


def number_of(request_id: str) -> int:
    digits = request_id.removeprefix(PREFIX)
    canonical = digits.isascii() and digits.isdigit() and len(digits) < 19 and digits[0] != "0"
    if not canonical or request_id == digits:
        raise UnknownRequest(f"nothing was asked as {request_id}")
    return int(digits)
