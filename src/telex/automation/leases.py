"""Exclusive input: leases of connections, and sessions that belong to an adapter.

A lease lets one connection alone type into a session: a person takes over, or a program excludes
others. A session that an adapter started belongs to the adapter, and no client may type into it. A
session that an adapter was attached to stays open to all clients.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import to_builtins

from telex.automation import protocol as spec
from telex.automation.error_map import SessionOwned
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from telex.automation.notices import Connection


@dataclass(frozen=True, slots=True)
class _Lease:
    holder: str
    owner: Connection


class Leases:
    """The leases of one server, at most one for each session. They end with their connection."""

    def __init__(self) -> None:
        self._leases: dict[str, _Lease] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        """Those who wait for the end of a lease."""

    def ask(self, asked: spec.Lease, who: Connection) -> spec.Leased:
        """Take or release a lease. Return the holder after that."""
        held = self._leases.get(asked.session)
        if held is not None and held.owner is not who and not asked.take_over:
            raise _refusal(asked.session, held, "session.lease")
        if asked.release:
            self.forget(asked.session)
            return spec.Leased(None)
        self._leases[asked.session] = _Lease(asked.holder, who)
        self._wake()
        return spec.Leased(asked.holder, who.identity)

    def check(self, session: str, who: Connection, method: str) -> None:
        """Raise if another connection holds the lease."""
        held = self._leases.get(session)
        if held is not None and held.owner is not who:
            raise _refusal(session, held, method)

    def holder(self, session: str) -> str | None:
        """Return who holds the lease, in words; None if nobody does."""
        held = self._leases.get(session)
        return None if held is None else f"{held.holder} ({held.owner.identity})"

    async def ended(self, session: str, who: Connection) -> None:
        """Wait until no other connection holds the lease."""
        while (held := self._leases.get(session)) is not None and held.owner is not who:
            change = asyncio.get_running_loop().create_future()
            self._waiting.add(change)
            try:
                await change
            finally:
                self._waiting.discard(change)

    def _wake(self) -> None:
        for change in self._waiting:
            if not change.done():
                change.set_result(None)

    def forget(self, session: str) -> None:
        if self._leases.pop(session, None) is not None:
            self._wake()

    def drop(self, who: Connection) -> None:
        """Release the leases of a connection that ended."""
        self._leases = {id: lease for id, lease in self._leases.items() if lease.owner is not who}
        self._wake()


def _refusal(session: str, held: _Lease, method: str) -> RpcError:
    holder, who = held.holder, held.owner.identity
    sentence = (
        f"{holder} holds the lease of {session} ({who}); call session.lease with take_over, or wait"
    )
    data = {"method": method, "session": session, "holder": holder, "who": to_builtins(who)}
    return RpcError(spec.PERMISSION_DENIED, sentence, data)


class AdapterBindings:
    """The adapters that are bound to each session of a server, and those that own theirs."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._bound: dict[str, set[str]] = {}

    def bind(self, session: str, adapter: str, *, own: bool) -> None:
        self._bound.setdefault(session, set()).add(adapter)
        if own:
            self._owners[session] = adapter

    def release(self, session: str, adapter: str) -> None:
        """Unbind an adapter from a session that continues."""
        self._bound.get(session, set()).discard(adapter)

    def forget(self, session: str) -> None:
        """Remove a session that was closed."""
        self._owners.pop(session, None)
        self._bound.pop(session, None)

    def adapters(self, session: str) -> frozenset[str]:
        return frozenset(self._bound.get(session, ()))

    def owned(self, session: str) -> bool:
        return session in self._owners

    def check(self, session: str, method: str) -> None:
        """Raise SessionOwned if the session belongs to an adapter."""
        if (adapter := self._owners.get(session)) is not None:
            raise SessionOwned(session, adapter, method)
