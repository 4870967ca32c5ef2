"""What somebody else adds to a session: control strings of their own, and what comes with them.

A service is given those who may add something (`Automation.opener`). Each looks at what was asked
for and, if it is meant, makes an addition for that one session. What it does is not known here.
"""

from __future__ import annotations

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

    def fault(self, fault: Fault) -> None:
        """One of those strings was too long, or cut short."""
        ...

    def opened(self, id: str, session: PtySession) -> None:
        """Here it is. Nothing of its output was read before."""
        ...
