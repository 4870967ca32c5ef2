"""What is waited for: a pure function of a moment.

Each kind of matcher is one of these: `texts`, `states` and `branches` have them. Nothing of it
reads a clock, waits, or keeps anything between looks. Made by `matchers.compile` only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from telex.terminal.nearest import Search

if TYPE_CHECKING:
    from telex.terminal.evidence import Evidence, Moment
    from telex.terminal.nearest import Miss

Explanation = dict[str, object]
"""Plain data: `kind`, `matched`, `why` as a sentence, what was asked for, and `nearest` or
`branches`."""


class Awaited(ABC):
    """What is waited for. Each kind of matcher is one of these."""

    allows_exit: bool = False
    """Whether it may still become true when the program is gone, its output is here, and a look at
    that moment said no. Nothing visible, printed or titled changes after that, so texts, patterns,
    the cursor, the title and their absence are decided; so are `process_exited` and `exit_code`,
    for that look saw the exit; so is `not` of those. Left are `screen_stable`, which time alone
    makes true, and `lua`, which may ask for anything. Even then `wake_at` tells more: without
    predicates, and with no time to wake at, nothing will change."""

    @abstractmethod
    def look(self, moment: Moment) -> Evidence | None:
        """Whether it is true at this moment, and by what."""

    def decided(self, moment: Moment) -> bool:
        """Whether `look` knows: what has to be asked elsewhere may not be known yet, and `not`
        must not take that for a no."""
        return True

    def may_come(self, moment: Moment) -> bool:
        """Whether what is not true at this moment may still become so without the program."""
        return self.allows_exit

    def wake_at(self, moment: Moment) -> float | None:
        """When time alone could next change the answer; always after `moment.now`."""
        return None

    def explain(self, moment: Moment) -> Explanation:
        """For a person whose wait timed out: what each branch says, and what came nearest."""
        return self.tell(moment, Search(moment))

    @abstractmethod
    def tell(self, moment: Moment, misses: Search) -> Explanation:
        """As `explain`, with one search for near misses shared by all branches."""


def verdict(asked_for: Evidence, matched: bool, why: str, miss: Miss | None = None) -> Explanation:
    """What a matcher says of a moment to a person who waited in vain."""
    told: Explanation = {**asked_for.render(), "matched": matched, "why": why}
    if miss is not None:
        told["nearest"] = miss.render()
    return told
