"""Ends of runs that the disk would not keep: remembered here, and written before anything else is.

A run that was told as over must not come back because the store does not know it. Until its end is
written it counts as ended in this process; what a crash leaves of it nobody can know. Only `Store`
uses it.
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
    status: Status
    message: str | None


class UnsavedEnds:
    """By run id."""

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
        """As it is, whatever is stored."""
        end = self._ends.get(run.run_id)
        if end is None or run.status.ended:
            return run
        return replace(run, status=end.status, message=end.message)

    def flush_before(self, work: Callable[[WriteState], T]) -> Callable[[WriteState], T]:
        """The same work, in one commit with the ends that are not saved now."""
        ends = dict(self._ends)

        def both(ledger: WriteState) -> T:
            for run_id, end in ends.items():
                with contextlib.suppress(StoreRefused):  # it never began, or is stored after all
                    transactions.end_run(ledger, run_id, end.status, end.message)
            return work(ledger)

        return both

    def flushed(self, ends: list[str], answer: asyncio.Future[T]) -> None:
        """Where the work itself was refused, the commit was made all the same."""
        if not answer.cancelled() and isinstance(answer.exception(), StoreRefused | None):
            for run_id in ends:
                self._ends.pop(run_id, None)
