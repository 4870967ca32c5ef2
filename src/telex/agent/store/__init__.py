"""Where the agent keeps what happened: threads, runs, events, questions and decisions, in SQLite.

An event is stored before it is sent; what was answered survives the process and the power. Used by
the runtime and by `telex agent export|import|verify`; knows nothing of the wire beyond its ids.
"""

from __future__ import annotations

from telex.agent.store.ids import new_run_id, new_session_id
from telex.agent.store.importing import Imported
from telex.agent.store.problems import (
    AlreadyThere,
    BadExport,
    Damaged,
    DiskFailed,
    DiskFull,
    EndOwed,
    NotAStore,
    NotKept,
    Refused,
    RunEnded,
    RunNotOurs,
    StoreBusy,
    StoreClosed,
    StoreProblem,
    ThreadBusy,
    TooNew,
    Unavailable,
    UnknownRequest,
    UnknownRun,
    UnknownThread,
    Unusable,
)
from telex.agent.store.reader import History
from telex.agent.store.records import Closed, Decision, Event, Question, Run, Status, Thread
from telex.agent.store.store import Store
from telex.agent.store.verifying import Verified, verify
from telex.agent.store.writing import NewRun

__all__ = [
    "AlreadyThere",
    "BadExport",
    "Closed",
    "Damaged",
    "Decision",
    "DiskFailed",
    "DiskFull",
    "EndOwed",
    "Event",
    "History",
    "Imported",
    "NewRun",
    "NotAStore",
    "NotKept",
    "Question",
    "Refused",
    "Run",
    "RunEnded",
    "RunNotOurs",
    "Status",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreProblem",
    "Thread",
    "ThreadBusy",
    "TooNew",
    "Unavailable",
    "UnknownRequest",
    "UnknownRun",
    "UnknownThread",
    "Unusable",
    "Verified",
    "new_run_id",
    "new_session_id",
    "verify",
]
