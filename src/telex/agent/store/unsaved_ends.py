"""Ends of runs that could not be stored: kept in memory, and written with the next write.

A run that was reported as ended must not resume because the store still has it as running. Until
its end is written, the run counts as ended in this process. A crash before that loses the end.
Used by `Store` only.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from telex.agent.store import transactions
from telex.agent.store.errors import StoreRefused

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from telex.agent.store.stored_records import Status, StoredRun
    from telex.agent.store.transactions import WriteState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class UnsavedEnd:
    """How a run ended: the two values that `end_run` will write."""

    status: Status
    message: str | None


class UnsavedEnds:
    """The ends that are not stored yet, by run id."""

    def __init__(self) -> None:
        self._ends: dict[str, UnsavedEnd] = {}

    def __bool__(self) -> bool:
        return bool(self._ends)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._ends

    def __iter__(self) -> Iterator[str]:
        return iter(self._ends)

    def record(self, run_id: str, status: Status, message: str | None) -> None:
        self._ends.setdefault(run_id, UnsavedEnd(status, message))

    def apply_to(self, run: StoredRun) -> StoredRun:
        """Return the run with its unsaved end in place of the stored status."""
        end = self._ends.get(run.run_id)
        if end is None or run.status.ended:
            return run
        return replace(run, status=end.status, message=end.message)

    def flush_before(self, work: Callable[[WriteState], T]) -> Callable[[WriteState], T]:
        """Wrap `work` so that the ends that are unsaved now are written first, in the same
        commit."""
        ends = dict(self._ends)

        def ends_then_work(state: WriteState) -> T:
            for run_id, end in ends.items():
                with contextlib.suppress(StoreRefused):  # never stored, or its end is stored
                    transactions.end_run(state, run_id, end.status, end.message)
            return work(state)

        return ends_then_work

    def forget_flushed(self, ends: list[str], result: asyncio.Future[T]) -> None:
        """Drop the ends that a commit has stored. A `StoreRefused` of the work itself does not
        undo the commit, so the ends are stored in that case too."""
        if not result.cancelled() and isinstance(result.exception(), StoreRefused | None):
            for run_id in ends:
                self._ends.pop(run_id, None)
