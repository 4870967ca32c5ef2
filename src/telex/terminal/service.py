"""`server.*` and `session.*` of terminal automation: what a caller may ask of sessions.

Each handler takes the parameters of its method and the connection they came by. `methods` is the
table a peer serves from; a caller in this process uses the handlers as they are. What a session
raises becomes, here and nowhere else, the error the protocol has for it.
"""

from __future__ import annotations

import asyncio
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from telex.protocols import pty_automation as spec
from telex.redaction import Redactor
from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.errors import ENDING, Condition, RpcError
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.terminal import telling
from telex.terminal.additions import Together
from telex.terminal.bindings import Bindings
from telex.terminal.cells import Size
from telex.terminal.connection import Connection
from telex.terminal.following import Following
from telex.terminal.leases import Leases
from telex.terminal.named_waits import NamedWaits
from telex.terminal.problems import answered
from telex.terminal.program import Program
from telex.terminal.raw_transcript import open_raw
from telex.terminal.registry import Sessions
from telex.terminal.telling import Teller
from telex.version import __version__
from telex.wire import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.rpc.channel import Channel
    from telex.rpc.handler_tasks import Call
    from telex.terminal.additions import Addition, Opener
    from telex.terminal.notices import Notices
    from telex.terminal.raw_transcript import RawTranscript
    from telex.terminal.registry import Predicates
    from telex.terminal.session import PtySession

DIALECT: Final = JsonRpc(codes=spec.CODES, batches=True, cancel_method="$/cancelRequest")


class Automation:
    """The service: one per server, shared by its connections."""

    def __init__(
        self,
        *,
        redactor: Redactor | None = None,
        framings: tuple[str, ...] = ("ndjson", "lsp"),
        predicates: Predicates | None = None,
    ) -> None:
        self.redactor = redactor or Redactor()
        self._framings = framings
        self._sessions = Sessions(predicates)
        self.bindings = Bindings()
        """Which adapters are bound to which session."""
        self.closers: set[Callable[[str], None]] = set()
        """Called with the id of each session that was closed."""
        self.openers: tuple[Opener, ...] = ()
        """Those who may add something to a session that is created."""
        self.notifications: tuple[str, ...] = spec.NOTIFICATIONS
        """What connections may be told."""
        self._tellers: dict[str, Teller] = {}
        self._leases = Leases()
        self._following = Following(self._sessions, self.redactor)
        self._connections: dict[Peer, Connection] = {}
        self._peers: set[Peer] = set()
        self._leaving = False
        self._waits = NamedWaits()
        self._closing: set[asyncio.Task[None]] = set()
        self.handlers: dict[str, Callable[..., Any]] = {}
        """By method name, for a caller in this process."""
        self.methods = Methods()
        """The same, for a peer."""
        self.offer(self._handlers())

    def offer(self, handlers: dict[str, Callable[..., Any]]) -> None:
        """Serve these methods too, to every connection."""
        self.handlers |= handlers
        for name, handler in handlers.items():
            self.methods.add(name, self._served(handler))

    async def converse(self, channel: Channel, *, one_at_a_time: bool = False) -> None:
        """Serve one connection until it is over."""
        at_once = 1 if one_at_a_time else limits.CALLS_IN_FLIGHT
        peer = Peer(channel, DIALECT, self.methods, redact=self.redactor.redact, at_once=at_once)
        self._peers.add(peer)
        try:
            if self._leaving:  # it came while the others were told
                await peer.close(tell=ENDING)
            await peer.closed()
        finally:
            self._peers.discard(peer)
            if (connection := self._connections.pop(peer, None)) is not None:
                self.forget(connection)
            await peer.close()

    async def leave(self) -> None:
        """The server ends: whoever waits for an answer is told so, as long as they take it soon."""
        self._leaving = True
        await asyncio.gather(*[peer.close("the server ended", ENDING) for peer in self._peers])

    def forget(self, connection: Connection) -> None:
        """A connection is over. Its sessions are not."""
        self._leases.drop(connection)
        connection.close()

    async def close(self) -> None:
        """End every program."""
        try:
            await self._sessions.close_all()
        finally:
            self._following.close()
            if self._closing:
                await asyncio.wait(self._closing)

    # server.*

    def capabilities(self, asked: spec.Nothing, who: Connection) -> spec.Capabilities:
        """What this server is: its methods, notifications and framings."""
        names = tuple(method.name for method in self.methods)
        return spec.Capabilities(spec.NAME, __version__, self._framings, names, self.notifications)

    def set_notifications(
        self, asked: spec.SetNotifications, who: Connection
    ) -> spec.Notifications:
        """Tell this connection what happens, or stop. Answers the filter as it is now."""
        chosen = spec.Notifications(asked.enabled, asked.adapters, asked.sessions)
        if who.notices is not None:
            ids = self._sessions.ids()
            who.notices.choose(chosen, {id: self._sessions.find(id) for id in ids})
        return chosen

    # session.*

    @answered
    def create(self, asked: spec.Create, who: Connection) -> spec.Created:
        """Start a program on a terminal of its own."""
        if asked.raw_transcript_append and asked.raw_transcript_path is None:
            raise RpcError(
                Condition.PARAMS, "raw_transcript_append needs a raw_transcript_path to append to"
            )
        size = Size(asked.rows, asked.cols, asked.pixel_width, asked.pixel_height)
        program = Program((asked.program, *asked.args), asked.cwd, asked.env, size)
        raw = None
        if asked.raw_transcript_path is not None:
            raw = open_raw(asked.raw_transcript_path, append=asked.raw_transcript_append)
        chars = asked.transcript_max_chars or limits.TRANSCRIPT_CHARS
        additions = tuple([one for opener in self.openers if (one := opener(asked)) is not None])
        addition = Together(additions) if additions else None
        try:
            id, _ = self.open(program, transcript_chars=chars, raw=raw, addition=addition)
        except BaseException:
            if raw is not None:
                raw.discard()
            raise
        return spec.Created(id)

    def list(self, asked: spec.ListSessions, who: Connection) -> spec.SessionList:
        """Every session that was not closed, in numeric order; adapters' own only if asked for."""
        ids = self._sessions.ids()
        if not asked.include_adapters:
            ids = tuple(id for id in ids if not self.bindings.owned(id))
        return spec.SessionList(ids)

    @answered
    async def input(self, asked: spec.Input, who: Connection) -> spec.Sent:
        """Perform an action on a session, after those before it."""
        session = self.writable(asked.session, who, "session.input")
        with who.acting(asked.session):
            mark = await session.act(asked.action)
            return spec.Sent(True, mark, session.sequence)

    @answered
    async def wait(self, asked: spec.Wait, who: Connection) -> spec.Matched:
        """Wait until a matcher finds what it looks for."""
        session, teller = self.told(asked.session)
        redactor = telling.rules(self.redactor, asked.redact, asked.redaction)
        waiting = session.wait(
            asked.matcher, asked.timeout_ms / 1000, asked.since, teller.keeping(redactor)
        )
        found = await self._waits.run(asked.wait_id, asked.session, waiting)
        moment = found.moment
        return spec.Matched(
            matched=True,
            sequence=moment.sequence,
            elapsed_ms=round(moment.elapsed * 1000),
            snapshot=teller.shaped(moment.snapshot, asked.cells),
            transcript_tail=moment.transcript.tail,
            evidence=telling.evidence(found.evidence, moment, redactor),
            wait_id=asked.wait_id if asked.wait_id is not None else UNSET,
        )

    def cancel_wait(self, asked: spec.CancelWait, who: Connection) -> spec.WaitCancelled:
        """End a wait by its id, from any connection. An unknown id is not an error."""
        session = self._waits.cancel(asked.wait_id)
        if session is None:
            return spec.WaitCancelled(False, asked.wait_id)
        return spec.WaitCancelled(True, asked.wait_id, session)

    @answered
    def snapshot(self, asked: spec.Read, who: Connection) -> spec.ScreenSnapshot:
        """The visible screen."""
        _, teller = self.told(asked.session)
        redactor = telling.rules(self.redactor, asked.redact, asked.redaction)
        return teller.snapshot(asked.cells, redactor)

    @answered
    def transcript(self, asked: spec.ReadTranscript, who: Connection) -> spec.TranscriptText:
        """What was printed, as far back as it is kept."""
        _, teller = self.told(asked.session)
        redactor = telling.rules(self.redactor, asked.redact, asked.redaction)
        return teller.transcript(asked, redactor)

    @answered
    def scrollback(self, asked: spec.ReadScrollback, who: Connection) -> spec.Scrollback:
        """Rows that scrolled off the screen."""
        _, teller = self.told(asked.session)
        redactor = telling.rules(self.redactor, asked.redact, asked.redaction)
        return teller.scrollback(asked, redactor)

    @answered
    async def resize(self, asked: spec.ResizeTo, who: Connection) -> spec.Resized:
        """Give the terminal another size."""
        session = self.writable(asked.session, who, "session.resize")
        size = spec.TerminalSize(asked.rows, asked.cols, asked.pixel_width, asked.pixel_height)
        with who.acting(asked.session):
            await session.act(spec.Resize(size))
            return spec.Resized(True)

    @answered
    async def kill(self, asked: spec.OfSession, who: Connection) -> spec.Killed:
        """End the program and all it started. Its screen can still be read."""
        session = self._sessions.find(asked.session)
        self.bindings.check(asked.session, "session.kill")
        with who.acting(asked.session):
            await session.kill()
            return spec.Killed(True)

    @answered
    async def close_session(self, asked: spec.OfSession, who: Connection) -> spec.Closed:
        """End the program and forget the session."""
        self._sessions.find(asked.session)
        self.bindings.check(asked.session, "session.close")
        with who.acting(asked.session):
            await self.shut(asked.session)
            return spec.Closed(True)

    @answered
    def lease(self, asked: spec.Lease, who: Connection) -> spec.Leased:
        """Say who alone may type into a session, or give that back."""
        self._sessions.find(asked.session)
        self.bindings.check(asked.session, "session.lease")
        return spec.Leased(self._leases.ask(asked, who))

    # For those who build on sessions, such as adapters.

    def open(
        self,
        program: Program,
        *,
        transcript_chars: int = limits.TRANSCRIPT_CHARS,
        raw: RawTranscript | None = None,
        addition: Addition | None = None,
    ) -> tuple[str, PtySession]:
        """A new session, in the same count as everybody's. Raises what starting it raises."""
        if addition is not None:
            program = replace(program, env={**addition.environment, **program.env})
        id, session = self._sessions.create(
            program, transcript_chars=transcript_chars, raw=raw, addition=addition
        )
        self._tellers[id] = Teller(session, self.redactor)
        if addition is not None:
            addition.opened(id, session)
        self.appeared(id)
        return id, session

    def appeared(self, id: str) -> None:
        """Whoever subscribed to such a session is told of it from now on."""
        for connection in self._connections.values():
            if connection.notices is not None:
                connection.notices.appeared(id, self._sessions.find(id))

    def released(self, id: str, adapter: str) -> None:
        """An adapter let go of a session that goes on: whoever followed it for that does not."""
        self.bindings.release(id, adapter)
        for connection in self._connections.values():
            if connection.notices is not None:
                connection.notices.reconsider()

    def listeners(self, id: str) -> tuple[Notices, ...]:
        """Who is told of this session."""
        notices = (connection.notices for connection in self._connections.values())
        return tuple([one for one in notices if one is not None and one.follows(id)])

    def told(self, id: str) -> tuple[PtySession, Teller]:
        """A session, and who tells of it. Raises UnknownSession."""
        return self._sessions.find(id), self._tellers[id]

    def writable(self, id: str, who: Connection, method: str) -> PtySession:
        """A session that this connection may type into. Raises what forbids it."""
        session = self._sessions.find(id)
        self.bindings.check(id, method)
        self._leases.check(id, who, method)
        return session

    async def shut(self, id: str) -> None:
        """End a session's program and forget it. Goes on to its end whoever leaves meanwhile."""
        await asyncio.shield(self._begin_to_close(id))

    # Behind them.

    def _begin_to_close(self, id: str) -> asyncio.Task[None]:
        """It goes on to its end, whether or not the one who asked for it stays."""
        task = asyncio.create_task(self._close(id))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _close(self, id: str) -> None:
        try:
            await self._sessions.close(id)
        finally:
            self._tellers.pop(id, None)
            self._leases.forget(id)
            self.bindings.forget(id)
            self._following.forget(id)
            for connection in self._connections.values():
                connection.session_gone(id)
            for closer in [*self.closers]:
                closer(id)

    def _connection(self, peer: Peer) -> Connection:
        """Its state, from its first request on: a peer may serve before `converse` knows it."""
        if (known := self._connections.get(peer)) is None:
            known = self._connections[peer] = Connection(
                peer, self.redactor, self.bindings.adapters
            )
        return known

    def _served(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(handler)
        def served(asked: Any, call: Call) -> Any:
            return handler(asked, self._connection(call.peer))

        return served

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        return {
            "server.capabilities": self.capabilities,
            "server.set_notifications": self.set_notifications,
            "session.create": self.create,
            "session.list": self.list,
            "session.close": self.close_session,
            "session.kill": self.kill,
            "session.resize": self.resize,
            "session.input": self.input,
            "session.snapshot": self.snapshot,
            "session.transcript": self.transcript,
            "session.wait": self.wait,
            "session.cancel_wait": self.cancel_wait,
            "session.scrollback": self.scrollback,
            "session.lease": self.lease,
            **self._following.handlers(),
        }
