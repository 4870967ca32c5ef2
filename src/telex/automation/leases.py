"""Who may type into a session: the holder of its lease, or the adapter that it belongs to.

A lease is taken by a person who takes over, or by a program that wants no other. A session that an
adapter started is the adapter's own, and nobody types past it; one that an adapter was attached to
stays everybody's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.automation import protocol as spec
from telex.automation.errors import SessionOwned
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from telex.automation.notices import Connection


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


class AdapterBindings:
    """Which adapters of one server are bound to which session, and which own theirs."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._bound: dict[str, set[str]] = {}

    def bind(self, session: str, adapter: str, *, own: bool) -> None:
        self._bound.setdefault(session, set()).add(adapter)
        if own:
            self._owners[session] = adapter

    def release(self, session: str, adapter: str) -> None:
        """The adapter lets go of a session that goes on."""
        self._bound.get(session, set()).discard(adapter)

    def forget(self, session: str) -> None:
        """The session is over."""
        self._owners.pop(session, None)
        self._bound.pop(session, None)

    def adapters(self, session: str) -> frozenset[str]:
        return frozenset(self._bound.get(session, ()))

    def owned(self, session: str) -> bool:
        return session in self._owners

    def check(self, session: str, method: str) -> None:
        """Raise SessionOwned if only an adapter may do that."""
        if (adapter := self._owners.get(session)) is not None:
            raise SessionOwned(session, adapter, method)
