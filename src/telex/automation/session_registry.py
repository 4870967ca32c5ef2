"""The sessions of one server, by id, and what others add to them.

All connections share the sessions, and sessions outlive each connection. Escapes and pages extend a
session without the registry knowing of either: the service is given factories, each of which looks
at the parameters of `session.create` and, if they ask for it, makes a `SessionExtension` for that
one session: control strings of its own, and what comes with them.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from telex.automation import limits
from telex.automation.errors import TooManySessions, UnknownSession
from telex.terminal.background_import import load_module

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.automation.protocol import Create
    from telex.terminal.pty import Program
    from telex.terminal.raw_transcript import RawTranscript
    from telex.terminal.session import PtySession
    from telex.terminal.waits.compiler import PredicateRunner
    from telex.terminal.waits.matchers import Predicate
    from telex.wire.escape import Claim
    from telex.wire.events import Claimed, Fault

    Predicates = Callable[[PtySession, Predicate], PredicateRunner]
    ExtensionFactory = Callable[[Create], "SessionExtension | None"]


def warm_up() -> None:
    """Load what the first session needs, beside whatever else there is to do.

    It takes a quarter of a second, which a server should not need to answer its first request. The
    thread ends with that; a server that ends sooner does not wait for it.
    """
    threading.Thread(target=load_module, args=("telex.terminal.session",), daemon=True).start()


class SessionExtension(Protocol):
    """What is added to one session that is about to be created."""

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
class CombinedExtension:
    """Several extensions of one session, none of which knows of the others."""

    extensions: tuple[SessionExtension, ...]

    @property
    def claimants(self) -> Mapping[Claim, Callable[[Claimed], None]]:
        return {claim: who for one in self.extensions for claim, who in one.claimants.items()}

    @property
    def attributes(self) -> tuple[int, ...]:
        return tuple([number for one in self.extensions for number in one.attributes])

    @property
    def environment(self) -> Mapping[str, str]:
        return {name: value for one in self.extensions for name, value in one.environment.items()}

    def fault(self, fault: Fault) -> None:
        for one in self.extensions:
            if fault.claim in one.claimants:
                one.fault(fault)

    def opened(self, id: str, session: PtySession) -> None:
        for one in self.extensions:
            one.opened(id, session)


class SessionRegistry:
    """The sessions of one server. Ids are numbered as sessions come: s1, s2, …"""

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
        extension: SessionExtension | None = None,
    ) -> tuple[str, PtySession]:
        if len(self._sessions) >= limits.SESSIONS:
            raise TooManySessions(f"there are {limits.SESSIONS} sessions already; close some")
        from telex.terminal.session import PtySession  # loads the emulator; see `warm_up`

        session = PtySession(
            program,
            transcript_chars=transcript_chars,
            raw=raw,
            predicates=self._predicates,
            claimants=extension.claimants if extension else None,
            faults=extension.fault if extension else None,
            attributes=extension.attributes if extension else (),
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
