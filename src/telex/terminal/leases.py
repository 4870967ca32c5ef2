"""Who alone may type into a session: a person who takes over, or a program that wants no other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.protocols import pty_automation as spec
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from telex.terminal.connection import Connection


@dataclass(frozen=True, slots=True)
class _Lease:
    holder: str
    owner: Connection


class Leases:
    """At most one for each session. A connection's leases end with it."""

    def __init__(self) -> None:
        self._leases: dict[str, _Lease] = {}

    def ask(self, asked: spec.Lease, who: Connection) -> str | None:
        """Take a lease, or give it back. Answers who has it now."""
        held = self._leases.get(asked.session)
        if held is not None and held.owner is not who and not asked.take_over:
            raise _refusal(asked.session, held.holder, "session.lease")
        if asked.release:
            self._leases.pop(asked.session, None)
            return None
        self._leases[asked.session] = _Lease(asked.holder, who)
        return asked.holder

    def check(self, session: str, who: Connection, method: str) -> None:
        """Raise if somebody else has the lease."""
        held = self._leases.get(session)
        if held is not None and held.owner is not who:
            raise _refusal(session, held.holder, method)

    def forget(self, session: str) -> None:
        self._leases.pop(session, None)

    def drop(self, who: Connection) -> None:
        """A connection is over, and its leases with it."""
        self._leases = {id: lease for id, lease in self._leases.items() if lease.owner is not who}


def _refusal(session: str, holder: str, method: str) -> RpcError:
    sentence = f"{holder} has the lease of {session}; ask for it with take_over, or wait"
    data = {"method": method, "session": session, "holder": holder}
    return RpcError(spec.PERMISSION_DENIED, sentence, data)
