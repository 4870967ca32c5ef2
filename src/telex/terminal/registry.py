"""The sessions of one server, by id. All connections share them, and they outlive each.

`SessionHost` is all that a service needs of it: create, find, list, close. Sessions on another
machine would be another host.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Protocol

from telex.terminal.loading import load
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.protocols.pty_automation import Predicate
    from telex.terminal.additions import Addition
    from telex.terminal.matchers import PredicateRunner
    from telex.terminal.program import Program
    from telex.terminal.raw_transcript import RawTranscript
    from telex.terminal.session import PtySession

    Predicates = Callable[[PtySession, Predicate], PredicateRunner]


def warm_up() -> None:
    """Load what the first session needs, beside whatever else there is to do.

    It takes a quarter of a second, which a server should not need to answer its first request. The
    thread ends with that; a server that ends sooner does not wait for it.
    """
    threading.Thread(target=load, args=("telex.terminal.session",), daemon=True).start()


class UnknownSession(Exception):
    """There is no session of that id, or no longer."""


class TooManySessions(Exception):
    """The server holds as many as it may."""


class SessionHost(Protocol):
    """Who holds sessions."""

    def create(
        self,
        program: Program,
        *,
        transcript_chars: int,
        raw: RawTranscript | None,
        addition: Addition | None = None,
    ) -> tuple[str, PtySession]:
        """Start a program. Raises what starting it raises."""
        ...

    def find(self, id: str) -> PtySession:
        """Raises UnknownSession."""
        ...

    def ids(self) -> tuple[str, ...]:
        """In numeric order, those whose program ended included."""
        ...

    async def close(self, id: str) -> None: ...


class Sessions:
    """The host in this process."""

    def __init__(self, predicates: Predicates | None = None) -> None:
        self._predicates = predicates
        self._sessions: dict[str, PtySession] = {}
        self._closing: set[PtySession] = set()
        self._count = 0

    def create(
        self,
        program: Program,
        *,
        transcript_chars: int,
        raw: RawTranscript | None,
        addition: Addition | None = None,
    ) -> tuple[str, PtySession]:
        if len(self._sessions) >= limits.SESSIONS:
            raise TooManySessions(f"there are {limits.SESSIONS} sessions already; close some")
        from telex.terminal.session import PtySession  # loads the emulator; see `warm_up`

        session = PtySession(
            program,
            transcript_chars=transcript_chars,
            raw=raw,
            predicates=self._predicates,
            claimants=addition.claimants if addition else None,
            faults=addition.fault if addition else None,
            attributes=addition.attributes if addition else (),
        )
        self._count += 1
        id = f"s{self._count}"
        self._sessions[id] = session
        return id, session

    def find(self, id: str) -> PtySession:
        try:
            return self._sessions[id]
        except KeyError:
            known = self.ids()
            listed = f"there are {', '.join(known[:8])}" if known else "there are none"
            raise UnknownSession(f"unknown session: {id}; {listed}") from None

    def ids(self) -> tuple[str, ...]:
        return tuple(self._sessions)  # they are numbered as they come, so this is their order

    async def close(self, id: str) -> None:
        session = self.find(id)
        del self._sessions[id]
        self._closing.add(session)
        await session.close()
        self._closing.discard(session)

    async def close_all(self) -> None:
        """End every program, at the same time, those whose closing nobody awaits any more too.

        One that cannot be ended does not keep the others; it is told when they are gone.
        """
        closing = [self.close(id) for id in self.ids()]
        closing += [session.close() for session in self._closing]
        for outcome in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
