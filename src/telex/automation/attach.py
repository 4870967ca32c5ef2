"""`session.attach` and `session.record`: a session's bytes, over a connection or into a file.

An attachment sends the current screen first, then the output as it is printed, while it has
credit. Output that arrives without credit is kept up to a limit. Beyond the limit the backlog is
dropped, and when credit is granted again the whole screen is sent anew (`reset`). A slow reader so
sees the newest screen, and slows down nobody else.

A binary frame is, after its first byte (`peer.BINARY`): the attachment's number in four bytes, most
significant first, a byte of flags (1: reset, 2: more follows at once), and the data.
"""

from __future__ import annotations

import asyncio
import base64
from codecs import getincrementaldecoder
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from telex.automation import limits, session_reader
from telex.automation import protocol as spec
from telex.automation.error_map import maps_errors
from telex.automation.notices import Connection
from telex.rpc.errors import Condition, RpcError
from telex.rpc.identity import IN_PROCESS, Identity
from telex.terminal.recording import SessionRecorder
from telex.terminal.redact import draw_screen
from telex.terminal.scheduler import output_scheduler
from telex.wire import limits as wire_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    from telex.automation.notices import DeliverBytes
    from telex.automation.session_registry import SessionRegistry
    from telex.redaction import Redactor
    from telex.rpc.peer import Peer
    from telex.terminal.session import PtySession
    from telex.terminal.transcript import Transcript


class SessionAttachment:
    """One reader of one session: sends the screen and then the output, as credit allows."""

    def __init__(
        self,
        number: int,
        session: PtySession,
        asked: spec.Attach,
        redactor: Redactor | None,
        others: Sized = (),
        who: Identity = IN_PROCESS,
    ) -> None:
        """`others` are all attachments of the connection; they share one limit for backlogs."""
        self.id = f"a{number}"
        self.session_id = asked.session
        self.who = who
        self.number = number
        self.is_open = True
        self._session = session
        self._redactor = redactor
        self._others = others
        self._credit = asked.credit
        self._backlog = bytearray()
        self._reset = True
        """Whether the whole screen must be sent before anything else."""
        self._awake = asyncio.Event()
        self._clean: Callable[[bytes], bytes] = _raw
        self._sending: asyncio.Task[None] | None = None
        self._following = ExitStack()

    def begin(self, deliver: DeliverBytes) -> None:
        """Send the screen, then the output."""
        self._following.enter_context(self._session.followed())
        self._session.output_taps.add(self._tap)
        self._session.watchers.add(self._look)
        self._awake.set()
        self._sending = asyncio.create_task(self._send(deliver))

    def grant(self, credit: int) -> int:
        """Add credit. Return the credit there is now."""
        self._credit = min(self._credit + credit, wire_limits.LINE_BYTES)
        self._awake.set()
        return self._credit

    def end(self) -> None:
        self._following.close()
        self.is_open = False
        self._session.output_taps.discard(self._tap)
        self._session.watchers.discard(self._look)
        if self._sending is not None:
            self._sending.cancel()

    def _look(self) -> None:
        """Wake the sender. When the program has ended, release what the redactor held back."""
        if self._session.exit is not None and isinstance(self._clean, _ByteRedactor):
            self._backlog += self._clean.finish()
            self._clean = _raw
        self._awake.set()

    def _tap(self, data: bytes) -> None:
        if self._reset:
            return  # the screen that will be sent includes it
        self._backlog += self._clean(data)
        if len(self._backlog) > limits.ATTACHED_BYTES // max(1, len(self._others)):
            self._backlog = bytearray()  # and its memory, which `clear` would keep
            self._reset = True

    async def _send(self, deliver: DeliverBytes) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            while self._credit > 0 and (
                self._backlog or (self._reset and not self._session.closed)
            ):
                reset = self._reset
                if reset:
                    await self._draw_in_turn()
                piece = self._next()
                self._credit -= len(piece)
                more = self._reset or bool(self._backlog)
                await deliver(self.id, piece, reset, more)

    async def _draw_in_turn(self) -> None:
        """Draw in the output scheduler's turn: a thousand new attachments would block the loop."""
        done = asyncio.get_running_loop().create_future()

        def draw() -> None:
            if not self._session.closed:
                self._draw()
            if not done.done():
                done.set_result(None)

        line = output_scheduler()
        line.queue(draw)
        try:
            await done
        finally:
            line.withdraw(draw)

    def _draw(self) -> None:
        """Replace the backlog by the current screen."""
        self._reset = False
        self._backlog[:] = draw_screen(self._session, self._redactor)
        transcript = self._session.transcript
        if self._redactor is not None:
            self._clean = _ByteRedactor(self._redactor, transcript)
        self._backlog += self._clean(transcript.unfinished[1])

    def _next(self) -> bytes:
        """Take the next piece off the backlog."""
        size = min(self._credit, limits.ATTACHED_PIECE_BYTES)
        piece = bytes(self._backlog[:size])
        del self._backlog[:size]
        return piece


def _send_binary(peer: Peer) -> DeliverBytes:
    """Deliver as binary frames."""

    async def deliver(attachment: str, piece: bytes, reset: bool, more: bool) -> None:
        head = int(attachment[1:]).to_bytes(4, "big") + bytes([reset | more << 1])
        await peer.send_binary(head + piece)

    return deliver


def _send_json(peer: Peer, session: PtySession) -> DeliverBytes:
    """Deliver as notifications, the bytes in base64."""

    async def deliver(attachment: str, piece: bytes, reset: bool, more: bool) -> None:
        text = base64.b64encode(piece).decode()
        params = spec.SessionBytes(attachment, session.sequence, text, reset, more)
        await peer.notify("session.bytes", params)

    return deliver


def _raw(data: bytes) -> bytes:
    return data


class _ByteRedactor:
    """Removes secrets from a byte stream, also those that began before it or are cut by a read."""

    def __init__(self, redactor: Redactor, transcript: Transcript) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._stream = redactor.stream()
        self._stream.follow(transcript.before(transcript.cursor))

    def finish(self) -> bytes:
        return self._stream.finish().encode()

    def __call__(self, data: bytes) -> bytes:
        return self._stream.feed(self._decoder.decode(data)).encode()


class SessionStreams:
    """The handlers of recordings and attachments, part of the server. A recording continues until
    the session is closed, whichever connection began it; an attachment ends with its connection."""

    def __init__(self, sessions: SessionRegistry, redactor: Redactor) -> None:
        self.redactor = redactor
        self._sessions = sessions
        self._recorders: dict[str, SessionRecorder] = {}
        self._attachments = 0
        self._open: WeakSet[SessionAttachment] = WeakSet()

    def forget(self, session: str) -> None:
        """Stop the recording of a session that was closed."""
        if (recorder := self._recorders.pop(session, None)) is not None:
            recorder.stop()

    def close(self) -> None:
        """Stop every recording."""
        for recorder in self._recorders.values():
            recorder.stop()

    @maps_errors
    def record(self, asked: spec.Record, who: Connection) -> spec.Recorded:
        """Record the session from now on; without a path, stop."""
        session = self._sessions.find(asked.session)
        new = None
        if asked.path is not None:  # may raise; the old recording then continues
            redactor = self.redactor if asked.redact else None
            new = SessionRecorder(
                session, asked.path, redactor, version=asked.format, typed=asked.input
            )
        if (before := self._recorders.pop(asked.session, None)) is not None:
            before.stop()
        if new is None:
            if before is not None and before.failure is not None:
                raise before.failure  # it is stopped, but the file is not whole
            return spec.Recorded(False, before.path if before else None)
        self._recorders[asked.session] = new
        return spec.Recorded(True, new.path)

    @maps_errors
    def attach(self, asked: spec.Attach, who: Connection) -> spec.Attached:
        """Send a session's screen, then its output."""
        session = self._sessions.find(asked.session)
        self._attachments += 1
        redactor = self.redactor if asked.redact else None
        attachment = SessionAttachment(
            self._attachments, session, asked, redactor, who.attachments, who.identity
        )
        who.attachments[attachment.id] = attachment
        self._open.add(attachment)
        binary = False
        if who.peer is None:
            deliver = who.deliver
        elif binary := asked.binary and who.peer.carries_binary:
            deliver = _send_binary(who.peer)
        else:
            deliver = _send_json(who.peer, session)
        attachment.begin(deliver)
        size = session_reader.terminal_size(session.size)
        return spec.Attached(attachment.id, size, session.sequence, binary)

    @maps_errors
    def attachments(self, asked: spec.OfSession, who: Connection) -> spec.Attachments:
        """List who reads a session's output by `session.attach`."""
        self._sessions.find(asked.session)
        found = [one for one in self._open if one.session_id == asked.session and one.is_open]
        found.sort(key=lambda one: one.number)
        return spec.Attachments(tuple([spec.SessionAttached(one.id, one.who) for one in found]))

    @maps_errors
    def credit(self, asked: spec.Credit, who: Connection) -> spec.Granted:
        """Grant an attachment more bytes."""
        return spec.Granted(_attachment(who, asked.attachment).grant(asked.bytes))

    @maps_errors
    def detach(self, asked: spec.Detach, who: Connection) -> spec.Detached:
        """End an attachment."""
        _attachment(who, asked.attachment).end()
        del who.attachments[asked.attachment]
        return spec.Detached(True)

    def handlers(self) -> dict[str, Callable[..., Any]]:
        """Return the handlers by method name."""
        return {
            "session.record": self.record,
            "session.attach": self.attach,
            "session.attachments": self.attachments,
            "session.credit": self.credit,
            "session.detach": self.detach,
        }


def _attachment(who: Connection, id: str) -> SessionAttachment:
    if (attachment := who.attachments.get(id)) is None:
        raise RpcError(Condition.PARAMS, f"unknown attachment: {id}; session.attach answers one")
    return attachment
