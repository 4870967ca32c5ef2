"""The agent's SQLite store: threads, runs, events, messages, questions and decisions.

An event is committed before it is sent to a client. A write that was acknowledged survives a crash
of the process and a power failure. The runtime uses the store, and so do the commands
`telex agent export|import|verify`. The store knows nothing of the wire protocol except its ids.
"""

from __future__ import annotations

from telex.agent.store.errors import (
    BadExport,
    DiskFailed,
    DiskFull,
    EndNotSaved,
    IdTaken,
    NotAStore,
    NotStorable,
    RunEnded,
    RunNotOurs,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreRefused,
    StoreTooNew,
    StoreUnavailable,
    StoreUnusable,
    ThreadBusy,
    UnknownRequest,
    UnknownRun,
    UnknownThread,
)
from telex.agent.store.integrity import IntegrityReport, verify
from telex.agent.store.reader import History
from telex.agent.store.session_import import ImportSummary
from telex.agent.store.store import Store
from telex.agent.store.stored_records import (
    ClosedQuestion,
    Status,
    StoredDecision,
    StoredEvent,
    StoredMessage,
    StoredQuestion,
    StoredRun,
    StoredThread,
    new_run_id,
    new_session_id,
)
from telex.agent.store.transactions import NewRun

__all__ = [
    "BadExport",
    "ClosedQuestion",
    "DiskFailed",
    "DiskFull",
    "EndNotSaved",
    "History",
    "IdTaken",
    "ImportSummary",
    "IntegrityReport",
    "NewRun",
    "NotAStore",
    "NotStorable",
    "RunEnded",
    "RunNotOurs",
    "Status",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreRefused",
    "StoreTooNew",
    "StoreUnavailable",
    "StoreUnusable",
    "StoredDecision",
    "StoredEvent",
    "StoredMessage",
    "StoredQuestion",
    "StoredRun",
    "StoredThread",
    "ThreadBusy",
    "UnknownRequest",
    "UnknownRun",
    "UnknownThread",
    "new_run_id",
    "new_session_id",
    "verify",
]
