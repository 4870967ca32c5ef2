"""Which adapters are bound to which session, and which session is an adapter's own.

`terminal` knows of adapters only this: that somebody else has a hand on a session. A session that
an adapter started is its own: nobody types past it. One it was attached to stays everybody's.
"""

from __future__ import annotations


class SessionOwned(Exception):
    """A call that writes to a session which an adapter has for its own."""

    def __init__(self, session: str, adapter: str, method: str) -> None:
        super().__init__(
            f"{session} is the session of the adapter {adapter}, so {method} is refused; use "
            "adapter.send, adapter.turn or adapter.close"
        )
        self.session, self.adapter = session, adapter


class Bindings:
    """All of one server."""

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
