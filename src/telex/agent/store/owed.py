"""Ends of runs that the disk would not keep: remembered here, and written before anything else is.

A run that was told as over must not come back because the store does not know it. Until its end is
written it counts as ended in this process; what a crash leaves of it nobody can know. Only `Store`
uses it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from telex.agent.store import writing
from telex.agent.store.problems import Refused

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from telex.agent.store.ledger import Ledger
    from telex.agent.store.records import Run, Status

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Owing:
    status: Status
    message: str | None


class Owed:
    def __init__(self) -> None:
        self._ends: dict[str, Owing] = {}

    def __bool__(self) -> bool:
        return bool(self._ends)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._ends

    def __iter__(self) -> Iterator[str]:
        return iter(self._ends)

    def owe(self, run_id: str, status: Status, message: str | None) -> None:
        self._ends.setdefault(run_id, Owing(status, message))

    def seen(self, run: Run) -> Run:
        """As it is, whatever is stored."""
        end = self._ends.get(run.run_id)
        if end is None or run.status.ended:
            return run
        return replace(run, status=end.status, message=end.message)

    def before(self, work: Callable[[Ledger], T]) -> Callable[[Ledger], T]:
        """The same work, in one commit with what is owed now."""
        ends = dict(self._ends)

        def both(ledger: Ledger) -> T:
            for run_id, end in ends.items():
                with contextlib.suppress(Refused):  # it never began, or is stored after all
                    writing.end_run(ledger, run_id, end.status, end.message)
            return work(ledger)

        return both

    def paid(self, ends: list[str], answer: asyncio.Future[T]) -> None:
        """Where the work itself was refused, the commit was made all the same."""
        if not answer.cancelled() and isinstance(answer.exception(), Refused | None):
            for run_id in ends:
                self._ends.pop(run_id, None)
