"""What somebody else adds to a session: control strings of their own, and what comes with them.

A service is given those who may add something (`Automation.openers`). Each looks at what was asked
for and, if it is meant, makes an addition for that one session. What it does is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.protocols.pty_automation import Create
    from telex.terminal.session import PtySession
    from telex.wire.escape import Claim
    from telex.wire.events import Claimed, Fault

    Opener = Callable[[Create], "Addition | None"]


class Addition(Protocol):
    """For one session that is about to be."""

    @property
    def claimants(self) -> Mapping[Claim, Callable[[Claimed], None]]:
        """Who gets which control strings."""
        ...

    @property
    def attributes(self) -> tuple[int, ...]:
        """What the terminal says of itself beyond the usual (DA1)."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """What the program is told of it, unless who creates the session says otherwise."""
        ...

    def fault(self, fault: Fault) -> None:
        """One of those strings was too long, or cut short."""
        ...

    def opened(self, id: str, session: PtySession) -> None:
        """Here it is. Nothing of its output was read before."""
        ...


@dataclass(frozen=True, slots=True)
class Together:
    """Several additions to one session, none of which knows of the others."""

    additions: tuple[Addition, ...]

    @property
    def claimants(self) -> Mapping[Claim, Callable[[Claimed], None]]:
        return {claim: who for one in self.additions for claim, who in one.claimants.items()}

    @property
    def attributes(self) -> tuple[int, ...]:
        return tuple([number for one in self.additions for number in one.attributes])

    @property
    def environment(self) -> Mapping[str, str]:
        return {name: value for one in self.additions for name, value in one.environment.items()}

    def fault(self, fault: Fault) -> None:
        for one in self.additions:
            if fault.claim in one.claimants:
                one.fault(fault)

    def opened(self, id: str, session: PtySession) -> None:
        for one in self.additions:
            one.opened(id, session)
