"""Answers JSON escapes in a session, by its screen, or by its clients for unknown commands.

`session.create {escapes: true}` adds this to a session. Known commands take effect on its screen
and transcript as if the program had printed the ANSI for them. Every packet is sent to the clients
that follow the session (`session.escape`), and each of them may reply to a command that is not
known here (`session.escape_reply`): the first reply counts, and if none comes in time the command
is unknown. Without `escapes`, a session handles no escapes.

The package `terminal` does not know this module: `escape_sessions` adds it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import msgspec
from msgspec import Raw

from telex.automation import protocol as spec
from telex.escapes.commands import core
from telex.escapes.commands.core import TerminalResizeEvent, TermReport, TermReported
from telex.escapes.escape_sessions import reply_bytes
from telex.escapes.gate import Gate
from telex.escapes.inband import InBandChannel
from telex.escapes.input_events import InputParser, to_notifications
from telex.escapes.policy import Policy, RequestOrigin
from telex.escapes.protocol import ATTRIBUTE
from telex.escapes.server import TerminalService, unsupported
from telex.escapes.subscriptions import Subscriptions, mode_switches
from telex.processes.proc import answerable_group
from telex.rpc.dialects import strict_json
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.errors import Condition, RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.messages import Last, Notification
from telex.rpc.outgoing_calls import Inbox
from telex.rpc.peer import Peer
from telex.wire import json_escape
from telex.wire.events import Claimed, Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.automation.notices import Notices
    from telex.automation.server import AutomationService
    from telex.escapes.commands.dec_modes import QueryMode
    from telex.escapes.gate import GateDecision
    from telex.escapes.server import SurfaceHandler
    from telex.rpc.channel import Channel
    from telex.terminal.cells import Size
    from telex.terminal.session import PtySession
    from telex.wire.escape import Claim
    from telex.wire.events import Fault


log = logging.getLogger("telex.escapes")

_PACKET: Final = msgspec.json.Decoder(dict[str, Raw])
_CODED: Final = re.compile(r"(EC[A-Z0-9]+):\s*(.*)", re.DOTALL)


class SessionSurface:
    """The screen of a session, as the `Surface` of a `TerminalService`."""

    lacks: Final = frozenset(
        {"term:resize", "term:window", "image:show", "image:delete", "notify:close"}
    )
    handlers: Final[Mapping[str, SurfaceHandler]] = {}
    unverified: Final[tuple[str, ...]] = ()
    probe: Final = None

    def __init__(self, session: PtySession) -> None:
        self._session = session

    def apply(self, ansi: bytes) -> None:
        self._session.inject_output(ansi)

    @property
    def size(self) -> Size:
        return self._session.size

    @property
    def title(self) -> str | None:
        return self._session.screen.title

    def report(self, what: str, asked: TermReport | QueryMode) -> object:
        """Query the screen as a program would, at the place of the command in the output."""
        reply = self._session.screen.feed(core.report_question(asked))
        if not reply and isinstance(asked, TermReport) and asked.what == "terminfo":
            return TermReported(value=None)  # the screen has none; programs read terminfo instead
        if (answer := core.report_answer(asked, reply)) is None:
            raise unsupported()
        return answer

    def refusal(self, asked: object) -> None:
        """Return None: commands in `lacks` have no handler here."""

    def set_modes(self, numbers: frozenset[int]) -> None:
        """Do nothing: `SessionEvents` sets modes, because it knows the program's own modes."""


class SessionResponder:
    """Serves the program of one session, and passes its clients' replies to unknown commands. A
    `SessionExtension`: `opened` starts it.
    """

    attributes: Final = (ATTRIBUTE,)
    environment: Final[Mapping[str, str]] = {}

    def __init__(
        self,
        automation: AutomationService,
        sessions: dict[str, SessionResponder],
        *,
        htty: bool = False,
    ) -> None:
        self._htty = htty
        self._redact = automation.redactor.redact
        self._listeners = automation.listeners
        self._sessions = sessions
        self._open: dict[str, Inbox[spec.EscapeReply]] = {}
        """The commands that wait for a client's reply, by id."""
        self._elsewhere: set[Peer] = set()
        """The peers of programs that are connected otherwise than through the terminal."""
        self._missed: WeakSet[Notices] = WeakSet()
        """The clients that missed a notification."""
        self.claimants: Mapping[Claim, Callable[[Claimed], None]] = {
            json_escape.TO_TERMINAL: self._claimed,
            json_escape.TO_PROGRAM: self._claimed,
        }

    def opened(self, id: str, session: PtySession) -> None:
        self._id, self._session = id, session
        self._sessions[id] = self
        pty = session.pty
        self.channel = InBandChannel(
            pty.write,
            lambda: answerable_group(pty.foreground()),
            echoes=lambda: pty.line_settings().echo,
            unread=lambda: pty.unsent,
            read=pty.drained,
        )
        origin = RequestOrigin("local", session.program.argv[0])
        service = TerminalService(
            SessionSurface(session),
            Gate(Policy(), None, _decided),
            origin=lambda call: origin,
            events=SessionEvents(session, self.channel, lambda call: call.peer is self.peer),
            extra=self._ask_clients,
            htty=self._htty,
        )
        self._methods = service.methods
        self.channel.dialect.is_foreign = service.methods.foreign
        self.channel.dialect.unknown_problem = service.methods.unknown
        self.peer = Peer(self.channel, self.channel.dialect, service.methods, redact=self._redact)

    def fault(self, fault: Fault) -> None:
        self.channel.fault(fault)

    def reply(self, asked: spec.EscapeReply) -> bool:
        """Pass a client's reply on. Return whether it is the first, which counts."""
        inbox = self._open.get(asked.resid)
        if inbox is None:
            return False
        if not inbox.put(asked):
            raise RpcError(Condition.INTERNAL, "the program has not read the parts before this one")
        if not asked.cont:
            del self._open[asked.resid]
            inbox.end()
        return True

    async def serve(self, channel: Channel) -> None:
        """Serve a program that is connected otherwise than through the terminal. It can send every
        command that this service knows; events are sent to the program in the terminal only."""
        peer = Peer(channel, JsonEscapes(), self._methods, redact=self._redact, pause_reading=True)
        self._elsewhere.add(peer)
        try:
            await peer.closed()
        finally:
            self._elsewhere.discard(peer)
            await peer.close()

    async def close(self) -> None:
        await asyncio.gather(*[peer.close() for peer in (self.peer, *self._elsewhere)])

    def _claimed(self, string: Claimed) -> None:
        if string.claim == json_escape.TO_TERMINAL and (listeners := self._listeners(self._id)):
            self._notify(string, listeners)
        self.channel.claimed(string)

    def _notify(self, string: Claimed, listeners: tuple[Notices, ...]) -> None:
        frame = json_escape.parse(string)
        if not isinstance(frame, Frame) or (packet := _redacted(frame.body, self._redact)) is None:
            return
        for notices in listeners:
            dropped = notices in self._missed
            notice = spec.SessionEscape(self._id, self._session.sequence, packet, dropped)
            if notices.add(self._id, "session.escape", notice):
                self._missed.discard(notices)
            else:
                self._missed.add(notices)

    async def _ask_clients(self, data: Raw, call: CallContext) -> AsyncIterator[object]:
        """Yield the replies of a client. The peer cancels this at the deadline."""
        if call.peer is not self.peer or call.id is None or not self._listeners(self._id):
            raise RpcError.carrying(self._methods.unknown(call.method))
        id = str(call.id)
        inbox = self._open[id] = Inbox()
        try:
            async for reply in inbox:
                part = _reply_data(reply)
                yield part if reply.cont else Last(part)
        finally:
            if self._open.get(id) is inbox:
                del self._open[id]


def _decided(decided: GateDecision) -> None:
    """Log a decision: a server has no person with an audit file."""
    log.info("%s: %s", decided.command, "allowed" if decided.allowed else "denied")


def _reply_data(reply: spec.EscapeReply) -> object:
    """Return a reply's data for the program: bytes, JSON, or nothing. Raise an error reply."""
    if isinstance(reply.error, str):
        coded = _CODED.fullmatch(reply.error)
        raise RpcError(coded[1], coded[2]) if coded else RpcError("", reply.error)
    data = reply_bytes(reply)
    return reply.data if data is None else data


def _redacted(body: bytes, redact: Callable[[str], str]) -> Raw | None:
    """Return a packet without secrets; None if it is not a packet. Its ids stay, for replies."""
    try:
        packet = strict_json.decode(body, _PACKET)
    except (strict_json.NotStrictJson, msgspec.ValidationError):
        return None
    text = body.decode()
    if (masked := redact(text)) == text:
        return Raw(body)
    ids = {name: packet[name] for name in ("rpcid", "reqid", "resid") if name in packet}
    try:
        return Raw(msgspec.json.encode({**_PACKET.decode(masked), **ids}))
    except msgspec.DecodeError:  # the mask broke the JSON: redact each string by itself
        whole = _each_text(msgspec.json.decode(body), redact)
        return Raw(msgspec.json.encode({**whole, **ids}))


def _each_text(value: Any, redact: Callable[[str], str]) -> Any:
    match value:
        case str():
            return redact(value)
        case list():
            return [_each_text(one, redact) for one in value]
        case dict():
            return {redact(key): _each_text(one, redact) for key, one in value.items()}
        case _:
            return value


RESIZE: Final = "event:resize"
_AFTER: Final = 60.0
"""Seconds after which the parser holds nothing back: clients send input whole."""
_MODES: Final = (9, 1000, 1002, 1003, 1005, 1006, 1015, 1016, 2004)
"""Modes that events need, or that exclude one of these."""


class SessionEvents:
    """Sends input from clients, and the size of a session, as events to the subscribed program.

    A subscribed event replaces its bytes. A subscription ends with `term:unsubscribe`, with the
    exit of the process that subscribed, and when another process group is in the foreground. The
    screen modes that the events need are switched with it.
    """

    known: Final = frozenset(
        {"event:key", "event:mouse", "event:mouseclick", "event:paste", RESIZE}
    )

    def __init__(
        self, session: PtySession, channel: InBandChannel, in_band: Callable[[CallContext], bool]
    ) -> None:
        """`in_band` returns whether a request came through the terminal."""
        self._session = session
        self._channel = channel
        self._in_band = in_band
        self._subscriptions = Subscriptions()
        self._parser = InputParser()
        self._size = session.size
        self._own: frozenset[int] = frozenset()
        """The modes that the program had set itself when it first subscribed."""
        self._needed: frozenset[int] = frozenset()

    def subscribe(self, events: tuple[str, ...], call: CallContext) -> frozenset[str]:
        asker = self._asker(call)
        group = self._session.pty.foreground()
        if call.id is None or asker is None or asker != group:  # it would not receive events
            return frozenset()
        self._subscriptions.set_foreground(group)
        if not self._subscriptions.names:
            self._begin()
        found = self._subscriptions.subscribe(asker, self.known.intersection(events))
        self._switch()
        return found

    def unsubscribe(self, events: tuple[str, ...], call: CallContext) -> frozenset[str]:
        left = self._subscriptions.unsubscribe(self._asker(call), events)
        self._switch()
        return left

    def _asker(self, call: CallContext) -> int | None:
        """Return the process group that sent a request in band; None for any other request."""
        return self._channel.dialect.asker(call.id) if self._in_band(call) else None

    def _begin(self) -> None:
        session = self._session
        asked = b"".join([b"\x1b[?%d$p" % mode for mode in _MODES])
        set_modes = re.findall(rb"\x1b\[\?(\d+);1\$y", session.screen.feed(asked))
        self._own = frozenset(map(int, set_modes))
        self._size = session.size
        session.input_filter = self._filter_input
        session.watchers.add(self._check)

    def _switch(self) -> None:
        """Switch the screen to the modes that the subscriptions need."""
        needed = self._subscriptions.needed_modes()
        switch, self._needed = mode_switches(self._needed, needed, self._own), needed
        if not self._subscriptions.names:
            self._session.input_filter = None
            self._session.watchers.discard(self._check)
        if switch:
            self._session.inject_output(switch)

    def _wanted(self) -> frozenset[str]:
        """Return the subscriptions of the program in the foreground."""
        group = self._session.pty.foreground()
        self._subscriptions.set_foreground(group)
        if self._subscriptions.needed_modes() != self._needed or not self._subscriptions.names:
            self._switch()
        return self._subscriptions.names_of(group)

    def _check(self) -> None:
        """Handle a change of the session: send a new size, and update the subscriptions."""
        wanted, size = self._wanted(), self._session.size
        if size != self._size:
            self._size = size
            if RESIZE in wanted:
                resized = TerminalResizeEvent(
                    size.rows, size.cols, size.pixel_width, size.pixel_height
                )
                self._send(Notification(RESIZE, resized))

    def _filter_input(self, data: bytes) -> bytes:
        """Send subscribed events, with the bytes before them. Return the bytes after them."""
        if not (wanted := self._wanted()):
            return data
        parsed = self._parser.feed(data, 0.0) + self._parser.feed(b"", _AFTER)
        left = b""
        for item in to_notifications(parsed, wanted, self._own):
            if isinstance(item, bytes):
                left += item
                continue
            if left:
                self._session.pty.write(left)
                left = b""
            self._send(item)
        return left

    def _send(self, event: Notification) -> None:
        self._channel.send(self._channel.dialect.encode(event))
