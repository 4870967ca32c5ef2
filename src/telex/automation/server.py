"""The handlers of `server.*` and `session.*`.

A handler takes the parameters of its method and the connection of the request. `methods` is the
table for a peer; a caller in this process calls the handlers directly. `maps_errors` converts the
exceptions of a session to errors of the protocol.
"""

from __future__ import annotations

import asyncio
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from telex.automation import protocol as spec
from telex.automation import session_reader
from telex.automation.attach import SessionStreams
from telex.automation.error_map import maps_errors
from telex.automation.leases import AdapterBindings, Leases
from telex.automation.notices import Connection
from telex.automation.protocol import DIALECT
from telex.automation.session_reader import SessionReader
from telex.automation.session_registry import CombinedExtension, SessionRegistry
from telex.redaction import Redactor
from telex.rpc import limits as rpc_limits
from telex.rpc.errors import ENDING, Condition, RpcError
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.terminal import actions, limits
from telex.terminal.cells import Size
from telex.terminal.pty import Program
from telex.terminal.raw_transcript import open_raw
from telex.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from telex.automation.notices import Notices
    from telex.automation.session_registry import ExtensionFactory, Predicates, SessionExtension
    from telex.rpc.channel import Channel
    from telex.rpc.handler_tasks import CallContext
    from telex.terminal.raw_transcript import RawTranscript
    from telex.terminal.session import PtySession


class AutomationService:
    """The handlers of automation and their sessions. One per server, for all connections."""

    def __init__(
        self,
        *,
        redactor: Redactor | None = None,
        framings: tuple[str, ...] = ("ndjson", "lsp"),
        predicates: Predicates | None = None,
        lenient: bool = False,
    ) -> None:
        """`lenient` serves requests with unknown members, and adds `warnings` to their results;
        otherwise they are refused."""
        self.redactor = redactor or Redactor()
        self._framings = framings
        self._lenient = lenient
        self._sessions = SessionRegistry(predicates)
        self.bindings = AdapterBindings()
        """The adapters of each session."""
        self.openers: set[Callable[[str], None]] = set()
        """Callbacks, called with the id of each new session."""
        self.closers: set[Callable[[str], None]] = set()
        """Callbacks, called with the id of each closed session."""
        self.extension_factories: tuple[ExtensionFactory, ...] = ()
        """Factories; each may add an extension to a new session."""
        self.notifications: tuple[str, ...] = spec.NOTIFICATIONS
        """The names of the notifications that connections may get."""
        self._readers: dict[str, SessionReader] = {}
        self._leases = Leases()
        self._streams = SessionStreams(self._sessions, self.redactor)
        self._connections: dict[Peer, Connection] = {}
        self._peers: set[Peer] = set()
        self._leaving = False
        self._waits = NamedWaits()
        self._closing: set[asyncio.Task[None]] = set()
        self.handlers: dict[str, Callable[..., Any]] = {}
        """The handlers by method name, for a caller in this process."""
        self.methods = Methods("warn" if lenient else "refuse")
        """The same handlers, for a peer."""
        self.add_handlers(self._handlers())

    def add_handlers(self, handlers: dict[str, Callable[..., Any]]) -> None:
        """Add methods, for every connection."""
        self.handlers |= handlers
        for name, handler in handlers.items():
            self.methods.add(name, self._served(handler))

    async def converse(self, channel: Channel, *, one_at_a_time: bool = False) -> None:
        """Serve one connection until it ends."""
        at_once = 1 if one_at_a_time else rpc_limits.CALLS_IN_FLIGHT
        peer = Peer(channel, DIALECT, self.methods, redact=self.redactor.redact, at_once=at_once)
        self._peers.add(peer)
        try:
            if self._leaving:  # it connected while the others were notified
                await peer.close(problem=ENDING)
            await peer.closed()
        finally:
            self._peers.discard(peer)
            if (connection := self._connections.pop(peer, None)) is not None:
                self.forget(connection)
            await peer.close()

    async def leave(self) -> None:
        """Answer pending requests with an error that the server ends, within a bounded time."""
        self._leaving = True
        await asyncio.gather(*[peer.close("the server ended", ENDING) for peer in self._peers])

    def forget(self, connection: Connection) -> None:
        """Remove a connection that ended. Its sessions continue."""
        self._leases.drop(connection)
        connection.close()

    async def close(self) -> None:
        """End every program."""
        try:
            await self._sessions.close_all()
        finally:
            self._streams.close()
            if self._closing:
                await asyncio.wait(self._closing)

    # server.*

    def capabilities(self, asked: spec.NoParams, who: Connection) -> spec.Capabilities:
        """Return the methods, notifications and framings of this server."""
        names = tuple(method.name for method in self.methods)
        return spec.Capabilities(
            spec.NAME,
            __version__,
            self._framings,
            names,
            self.notifications,
            strict_params=not self._lenient,
        )

    def set_notifications(
        self, asked: spec.SetNotifications, who: Connection
    ) -> spec.Notifications:
        """Start or stop the notifications of this connection. Returns the filter in force."""
        chosen = spec.Notifications(asked.enabled, asked.adapters, asked.sessions)
        if who.notices is not None:
            ids = self._sessions.ids()
            who.notices.subscribe(chosen, {id: self._sessions.find(id) for id in ids})
        return chosen

    # session.*

    @maps_errors
    def create(self, asked: spec.Create, who: Connection) -> spec.Created:
        """Start a program on a new terminal."""
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
        extensions = tuple(
            [one for factory in self.extension_factories if (one := factory(asked)) is not None]
        )
        extension = CombinedExtension(extensions) if extensions else None
        try:
            id, _ = self.open(program, transcript_chars=chars, raw=raw, extension=extension)
        except BaseException:
            if raw is not None:
                raw.discard()
            raise
        return spec.Created(id)

    def list(self, asked: spec.ListSessions, who: Connection) -> spec.SessionList:
        """List the open sessions in numeric order; sessions of adapters only if asked for."""
        ids = self._sessions.ids()
        if not asked.include_adapters:
            ids = tuple(id for id in ids if not self.bindings.owned(id))
        names = self._sessions.names
        return spec.SessionList(ids, {id: names[id] for id in ids if id in names})

    @maps_errors
    async def input(self, asked: spec.Input, who: Connection) -> spec.Sent:
        """Perform an action on a session, in the order of requests."""
        session = self.writable(asked.session, who, "session.input")
        with who.deferring_notices(asked.session):
            mark = await session.act(asked.action, who.identity, who.check_input)
            return spec.Sent(True, mark, session.sequence)

    @maps_errors
    async def wait(self, asked: spec.Wait, who: Connection) -> spec.Matched:
        """Wait until a matcher matches."""
        session, reader = self.find(asked.session)
        redactor = session_reader.select_redactor(self.redactor, asked.redact, asked.redaction)
        always = session_reader.select_redactor(self.redactor, True, asked.redaction)
        waiting = session.wait(
            asked.matcher,
            asked.timeout_ms / 1000,
            asked.since,
            keep=reader.moment_keeper(redactor),
            keep_failed=reader.moment_keeper(always),  # errors get into logs
        )
        found = await self._waits.run(asked.wait_id, asked.session, waiting)
        moment = found.moment
        return spec.Matched(
            matched=True,
            sequence=moment.sequence,
            elapsed_ms=round(moment.elapsed * 1000),
            snapshot=reader.to_wire(moment.snapshot, asked.cells),
            transcript_tail=moment.transcript.tail,
            evidence=session_reader.evidence_data(found.evidence, moment, redactor),
            wait_id=asked.wait_id if asked.wait_id is not None else UNSET,
        )

    def cancel_wait(self, asked: spec.CancelWait, who: Connection) -> spec.WaitCancellation:
        """Cancel a wait by its id, from any connection. An unknown id is not an error."""
        session = self._waits.cancel(asked.wait_id)
        if session is None:
            return spec.WaitCancellation(False, asked.wait_id)
        return spec.WaitCancellation(True, asked.wait_id, session)

    @maps_errors
    def snapshot(self, asked: spec.ReadScreen, who: Connection) -> spec.ScreenSnapshot:
        """Read the visible screen."""
        _, reader = self.find(asked.session)
        redactor = session_reader.select_redactor(self.redactor, asked.redact, asked.redaction)
        return reader.snapshot(asked.cells, redactor)

    @maps_errors
    def properties(self, asked: spec.ReadProperties, who: Connection) -> spec.Properties:
        """Read title, bells, copied text, links and colours."""
        _, reader = self.find(asked.session)
        redactor = session_reader.select_redactor(self.redactor, asked.redact, asked.redaction)
        return reader.properties(redactor)

    @maps_errors
    def transcript(self, asked: spec.ReadTranscript, who: Connection) -> spec.TranscriptText:
        """Read the printed text, as far back as it is kept."""
        _, reader = self.find(asked.session)
        redactor = session_reader.select_redactor(self.redactor, asked.redact, asked.redaction)
        return reader.transcript(asked, redactor)

    @maps_errors
    def scrollback(self, asked: spec.ReadScrollback, who: Connection) -> spec.Scrollback:
        """Read the rows that scrolled off the screen."""
        _, reader = self.find(asked.session)
        redactor = session_reader.select_redactor(self.redactor, asked.redact, asked.redaction)
        return reader.scrollback(asked, redactor)

    @maps_errors
    def inputs(self, asked: spec.ReadInputs, who: Connection) -> spec.Inputs:
        """Read who typed what, masked: the last inputs, or those after an earlier one."""
        _, reader = self.find(asked.session)
        return reader.inputs(asked)

    @maps_errors
    async def resize(self, asked: spec.ResizeTo, who: Connection) -> spec.Resized:
        """Change the size of the terminal."""
        session = self.writable(asked.session, who, "session.resize")
        size = actions.TerminalSize(asked.rows, asked.cols, asked.pixel_width, asked.pixel_height)
        with who.deferring_notices(asked.session):
            await session.act(actions.Resize(size), who.identity)
            return spec.Resized(True)

    @maps_errors
    async def kill(self, asked: spec.OfSession, who: Connection) -> spec.Killed:
        """Kill the program and everything it started. Its screen can still be read."""
        session = self._sessions.find(asked.session)
        self.bindings.check(asked.session, "session.kill")
        with who.deferring_notices(asked.session):
            await session.kill(who.identity)
            return spec.Killed(True)

    @maps_errors
    async def close_session(self, asked: spec.OfSession, who: Connection) -> spec.Closed:
        """End the program and remove the session."""
        self._sessions.find(asked.session)
        self.bindings.check(asked.session, "session.close")
        with who.deferring_notices(asked.session):
            await self.end_session(asked.session)
            return spec.Closed(True)

    @maps_errors
    def lease(self, asked: spec.Lease, who: Connection) -> spec.Leased:
        """Take the exclusive right to type into a session, or release it."""
        self._sessions.find(asked.session)
        self.bindings.check(asked.session, "session.lease")
        return self._leases.ask(asked, who)

    # For packages that build on sessions, such as adapters.

    def open(
        self,
        program: Program,
        *,
        transcript_chars: int = limits.TRANSCRIPT_CHARS,
        raw: RawTranscript | None = None,
        extension: SessionExtension | None = None,
    ) -> tuple[str, PtySession]:
        """Create a session; ids are shared with `session.create`. Raises what starting raises."""
        if extension is not None:
            program = replace(program, env={**extension.environment, **program.env})
        id, session = self._sessions.create(
            program, transcript_chars=transcript_chars, raw=raw, extension=extension
        )
        self._readers[id] = SessionReader(session, self.redactor)
        if extension is not None:
            extension.opened(id, session)
        self.session_appeared(id)
        for opener in [*self.openers]:
            opener(id)
        return id, session

    def session_appeared(self, id: str) -> None:
        """Start the notifications of a session, for connections that subscribed to it."""
        for connection in self._connections.values():
            if connection.notices is not None:
                connection.notices.session_appeared(id, self._sessions.find(id))

    def release_session(self, id: str, adapter: str) -> None:
        """Unbind an adapter from a session that continues. Connections that followed the session
        because of the adapter stop following it."""
        self.bindings.release(id, adapter)
        for connection in self._connections.values():
            if connection.notices is not None:
                connection.notices.apply_filter()

    def listeners(self, id: str) -> tuple[Notices, ...]:
        """Return the subscriptions that follow this session."""
        notices = (connection.notices for connection in self._connections.values())
        return tuple([one for one in notices if one is not None and one.follows(id)])

    def session_ids(self) -> tuple[str, ...]:
        """Return the ids of all sessions, also those of adapters, in numeric order."""
        return self._sessions.ids()

    def name_session(self, id: str, name: str) -> None:
        """Give a session a name, which `session.list` tells beside its id."""
        self._sessions.names[id] = name

    def find(self, id: str) -> tuple[PtySession, SessionReader]:
        """Return a session and its reader. Raises UnknownSession."""
        return self._sessions.find(id), self._readers[id]

    def writable(self, id: str, who: Connection, method: str) -> PtySession:
        """Return a session that this connection may type into. Raises if it may not."""
        session = self._sessions.find(id)
        self.bindings.check(id, method)
        self._leases.check(id, who, method)
        return session

    def lease_holder(self, id: str) -> str | None:
        """Return who holds the lease of a session, in words; None if nobody does."""
        return self._leases.holder(id)

    async def lease_ended(self, id: str, who: Connection) -> None:
        """Wait until no other connection holds the lease of a session."""
        await self._leases.ended(id, who)

    async def end_session(self, id: str) -> None:
        """End a session's program and remove it, even if the caller is cancelled meanwhile."""
        await asyncio.shield(self._begin_to_close(id))

    # Private.

    def _begin_to_close(self, id: str) -> asyncio.Task[None]:
        """Start closing a session in a task that outlives the request."""
        task = asyncio.create_task(self._close(id))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _close(self, id: str) -> None:
        try:
            await self._sessions.close(id)
        finally:
            self._readers.pop(id, None)
            self._leases.forget(id)
            self.bindings.forget(id)
            self._streams.forget(id)
            for connection in self._connections.values():
                connection.session_closed(id)
            for closer in [*self.closers]:
                closer(id)

    def _connection(self, peer: Peer) -> Connection:
        """Return the state of a connection, made at its first request: a peer may serve a request
        before `converse` has registered it."""
        if (known := self._connections.get(peer)) is None:
            known = self._connections[peer] = Connection(
                peer, self.redactor, self.bindings.adapters, identity=peer.identity
            )
        return known

    def _served(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(handler)
        def served(asked: Any, call: CallContext) -> Any:
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
            "session.inputs": self.inputs,
            "session.properties": self.properties,
            "session.lease": self.lease,
            **self._streams.handlers(),
        }


T = TypeVar("T")


class NamedWaits:
    """The pending waits that have an id, for `session.cancel_wait`.

    The id is registered first, so that a wait can be cancelled while it still queues.
    `session.wait` and `adapter.wait` have separate ids.
    """

    def __init__(self) -> None:
        self._waits: dict[str, tuple[str, asyncio.Task[Any]]] = {}

    async def run(self, id: str | None, owner: str, waiting: Coroutine[Any, Any, T]) -> T:
        """Await a wait; `cancel` can end it by its id. `owner` is the session or adapter."""
        if id is None:
            return await waiting
        if id in self._waits:
            waiting.close()
            raise RpcError(Condition.PARAMS, f"a wait with the id {id!r} is already pending")
        task = asyncio.create_task(waiting)
        self._waits[id] = (owner, task)
        try:
            await asyncio.wait({task})
            if task.cancelled():
                raise RpcError(Condition.CANCELLED, f"the wait {id!r} was cancelled")
            return task.result()
        finally:
            task.cancel()
            del self._waits[id]

    def cancel(self, id: str) -> str | None:
        """Cancel a wait. Returns its owner, or None if no such wait is pending."""
        owner, task = self._waits.get(id, (None, None))
        return owner if task is not None and task.cancel() else None
