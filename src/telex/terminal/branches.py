"""Matchers of matchers: any of them, all of them, not this one. Made by `matchers.compile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.terminal.awaited import Awaited
from telex.terminal.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.terminal.awaited import Explanation
    from telex.terminal.evidence import Moment
    from telex.terminal.nearest import Search


class AnyBranch(Awaited):
    """One of these. The first that is true is the evidence."""

    def __init__(self, branches: tuple[Awaited, ...]) -> None:
        self._branches = branches
        self.allows_exit = any(branch.allows_exit for branch in branches)

    def look(self, moment: Moment) -> Evidence | None:
        for branch in self._branches:
            if evidence := branch.look(moment):
                return Evidence("any", matched=evidence)
        return None

    def decided(self, moment: Moment) -> bool:
        return all(branch.decided(moment) for branch in self._branches)

    def may_come(self, moment: Moment) -> bool:
        return any(branch.may_come(moment) for branch in self._branches)

    def wake_at(self, moment: Moment) -> float | None:
        return _earliest(self._branches, moment)

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        return _explain_branches("any", self._branches, moment, misses, any)


class AllBranches(Awaited):
    """All of these at once."""

    def __init__(self, branches: tuple[Awaited, ...]) -> None:
        self._branches = branches
        self.allows_exit = any(branch.allows_exit for branch in branches)

    def look(self, moment: Moment) -> Evidence | None:
        matched = []
        for branch in self._branches:
            if (evidence := branch.look(moment)) is None:
                return None
            matched.append(evidence)
        return Evidence("all", matched=tuple(matched))

    def decided(self, moment: Moment) -> bool:
        for branch in self._branches:  # those after the first that is not true were not asked
            if branch.look(moment) is None:
                return branch.decided(moment)
        return True

    def may_come(self, moment: Moment) -> bool:
        return all(one.look(moment) or one.may_come(moment) for one in self._branches)

    def wake_at(self, moment: Moment) -> float | None:
        # The earliest, though all must be true: a branch that still waits for its time may be an
        # `any` that is true already, so the latest could be too late.
        return _earliest(self._branches, moment)

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        return _explain_branches("all", self._branches, moment, misses, all)


class NotThis(Awaited):
    """Not this."""

    _EVIDENCE: Final = Evidence("not")

    def __init__(self, branch: Awaited) -> None:
        self._branch = branch
        self.allows_exit = branch.allows_exit

    def look(self, moment: Moment) -> Evidence | None:
        if self._branch.look(moment) or not self._branch.decided(moment):
            return None
        return self._EVIDENCE

    def decided(self, moment: Moment) -> bool:
        return self._branch.decided(moment)

    def wake_at(self, moment: Moment) -> float | None:
        return self._branch.wake_at(moment)

    def tell(self, moment: Moment, misses: Search) -> Explanation:
        inner = self._branch.tell(moment, misses)
        no = not inner["matched"]
        why = f"what must not be true is {'not' if no else 'true'}"
        return {"kind": "not", "matched": no, "why": why, "branches": [inner]}


def _earliest(branches: tuple[Awaited, ...], moment: Moment) -> float | None:
    times = [branch.wake_at(moment) for branch in branches]
    return min((time for time in times if time is not None), default=None)


def _explain_branches(
    kind: str,
    branches: tuple[Awaited, ...],
    moment: Moment,
    misses: Search,
    joined: Callable[[Iterable[object]], bool],
) -> Explanation:
    told = [branch.tell(moment, misses) for branch in branches]
    yes = [branch["matched"] for branch in told]
    why = f"{sum(map(bool, yes))} of {len(yes)} are true"
    return {"kind": kind, "matched": joined(yes), "why": why, "branches": told}
