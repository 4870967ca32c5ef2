"""The sessions of one server by id, and the extensions of a session.

All connections share the sessions, and a session outlives the connection that created it. Escapes
and pages extend a session without the registry knowing them: the service gets factories. A factory
reads the parameters of `session.create` and, if they ask for it, makes a `SessionExtension`, which
claims control strings of that session and adds variables and terminal attributes.
"""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from telex.automation import limits
from telex.automation.error_map import TooManySessions, UnknownSession
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
    """Load the modules of the first session in a thread.

    Loading takes a quarter of a second, which the first request should not wait for. A server that
    ends sooner does not wait for the thread.
    """
    threading.Thread(target=load_module, args=("telex.terminal.session",), daemon=True).start()


def _check_descriptors() -> None:
    """Raise TooManySessions if this process has almost as many files open as the system allows."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed != resource.RLIM_INFINITY and _lowest_free() + limits.DESCRIPTORS_KEPT > allowed:
        raise TooManySessions(
            f"this process has almost all of its {allowed} files open, which is what the system "
            "allows it; close sessions, or start it with a higher limit (ulimit -n)"
        )


def _lowest_free() -> int:
    """Return the lowest number that no open file has: about as many are open."""
    fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(fd)
    return fd


class SessionExtension(Protocol):
    """An extension of one new session: claimed control strings, variables, terminal attributes."""

    @property
    def claimants(self) -> Mapping[Claim, Callable[[Claimed], None]]:
        """Return the handler of each claimed control string."""
        ...

    @property
    def attributes(self) -> tuple[int, ...]:
        """Return additional attributes for the terminal's DA1 reply."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """Return variables for the program; those of `session.create` override them."""
        ...

    def fault(self, fault: Fault) -> None:
        """Handle a claimed string that was too long or cut short."""
        ...

    def opened(self, id: str, session: PtySession) -> None:
        """Handle the creation of the session, before any output is read."""
        ...


@dataclass(frozen=True, slots=True)
class CombinedExtension:
    """Several extensions of one session as one; they do not know each other."""

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
    """The sessions of one server. Ids are numbered in order of creation: s1, s2, …"""

    def __init__(self, predicates: Predicates | None = None) -> None:
        self._predicates = predicates
        self._sessions: dict[str, PtySession] = {}
        self._closing: set[PtySession] = set()
        self._count = 0
        self.names: dict[str, str] = {}
        """The names of sessions by id, for people; requests have the id."""

    def create(
        self,
        program: Program,
        *,
        transcript_chars: int,
        raw: RawTranscript | None,
        extension: SessionExtension | None = None,
    ) -> tuple[str, PtySession]:
        if len(self._sessions) >= limits.SESSIONS:
            raise TooManySessions(
                f"the server has its maximum of {limits.SESSIONS} sessions; close some"
            )
        _check_descriptors()
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
            named = [f"{id!r} is the name of {one}" for one in known if self.names.get(one) == id]
            raise UnknownSession(f"unknown session: {id}; {(named or [listed])[0]}") from None

    def ids(self) -> tuple[str, ...]:
        return tuple(self._sessions)  # insertion order is the order of the numbers

    async def close(self, id: str) -> None:
        session = self.find(id)
        del self._sessions[id]
        self.names.pop(id, None)
        self._closing.add(session)
        await session.close()
        self._closing.discard(session)

    async def close_all(self) -> None:
        """End every program, all at the same time, including sessions that are already closing.

        A program that cannot be ended does not block the others; its error is raised afterwards.
        """
        closing = [self.close(id) for id in self.ids()]
        closing += [session.close() for session in self._closing]
        for outcome in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
