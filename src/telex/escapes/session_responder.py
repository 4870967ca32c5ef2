"""JSON escapes in a session: its screen is the terminal that answers, and so may its clients.

`session.create {escapes: true}` gives a session this. Known commands take effect on its screen and
transcript as if the program had printed the ANSI for them. Every packet is sent to the clients that
follow the session (`session.escape`), and any of them may answer a command that is not known here
(`session.escape_reply`): the first answer counts, and if none comes in time there is no such
command. Without `escapes`, nothing of this is there.

`terminal` does not know of it: `escape_sessions` adds it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import msgspec
from msgspec import Raw

from telex.automation import protocol as spec
from telex.escapes.commands import core
from telex.escapes.commands.core import TermReport, TermReported
from telex.escapes.commands.event_types import TerminalResizeEvent
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
from telex.rpc.errors import Condition, RpcError
from telex.rpc.handler_tasks import CallContext
from telex.rpc.inbox import Inbox
from telex.rpc.messages import Last, Notification
from telex.rpc.peer import Peer
from telex.terminal.pty import InputQueueFull
from telex.wire import json_escape
from telex.wire.events import Claimed, Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.automation.notices import Notices
    from telex.automation.server import AutomationService
    from telex.escapes.commands.dec_modes import QueryMode
    from telex.escapes.gate import GateDecision
    from telex.escapes.server import SurfaceHandler
    from telex.terminal.cells import Size
    from telex.terminal.session import PtySession
    from telex.wire.escape import Claim
    from telex.wire.events import Fault


log = logging.getLogger("telex.escapes")

_PACKET: Final = msgspec.json.Decoder(dict[str, Raw])
_CODED: Final = re.compile(r"(EC[A-Z0-9]+):\s*(.*)", re.DOTALL)


class SessionSurface:
    """A session's screen."""

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
        """Asked of the screen as a program would ask it: on the spot, where the question stood."""
        said = self._session.screen.feed(core.report_question(asked))
        if not said and isinstance(asked, TermReport) and asked.what == "terminfo":
            return TermReported(value=None)  # it has none to tell: programs read terminfo for these
        if (answer := core.report_answer(asked, said)) is None:
            raise unsupported()
        return answer

    def refusal(self, asked: object) -> None:
        """What it lacks is not served at all."""

    def set_modes(self, numbers: frozenset[int]) -> None:
        """`escape_sessions` does this, which knows the program's own modes."""


class SessionResponder:
    """The peer of one session's program, and its clients' answers to unknown commands."""

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
        """The commands that wait for a client's answer, by their id."""
        self._missed: WeakSet[Notices] = WeakSet()
        """Who was not told all."""
        self.claimants: Mapping[Claim, Callable[[Claimed], None]] = {
            json_escape.TO_TERMINAL: self._claimed,
            json_escape.TO_PROGRAM: self._claimed,
        }

    def opened(self, id: str, session: PtySession) -> None:
        self._id, self._session = id, session
        self._sessions[id] = self
        pty = session.pty
        self.channel = InBandChannel(
            self._type,
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
            events=SessionEvents(session, self.channel),
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
        """A client's answer. Whether it is the one that counts."""
        inbox = self._open.get(asked.resid)
        if inbox is None:
            return False
        if not inbox.put(asked):
            raise RpcError(Condition.INTERNAL, "the program has not read the parts before this one")
        if not asked.cont:
            del self._open[asked.resid]
            inbox.end()
        return True

    async def close(self) -> None:
        await self.peer.close()

    def _type(self, data: bytes) -> None:
        try:
            self._session.pty.write(data)
        except InputQueueFull:
            self.channel.undelivered += 1

    def _claimed(self, string: Claimed) -> None:
        if string.claim == json_escape.TO_TERMINAL and (listeners := self._listeners(self._id)):
            self._tell(string, listeners)
        self.channel.claimed(string)

    def _tell(self, string: Claimed, listeners: tuple[Notices, ...]) -> None:
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
        """Wait for what clients answer. The peer stops this when the time is up."""
        if call.id is None or not self._listeners(self._id):
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
    """A server has a log, and no person whose audit this would be."""
    log.info("%s: %s", decided.command, "allowed" if decided.allowed else "denied")


def _reply_data(reply: spec.EscapeReply) -> object:
    """What the program is told: bytes, JSON, or nothing. Raises the error, if it is one."""
    if isinstance(reply.error, str):
        coded = _CODED.fullmatch(reply.error)
        raise RpcError(coded[1], coded[2]) if coded else RpcError("", reply.error)
    data = reply_bytes(reply)
    return reply.data if data is None else data


def _redacted(body: bytes, redact: Callable[[str], str]) -> Raw | None:
    """A packet without secrets; None for what is no packet. Its ids stay, to be answered by."""
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
    except msgspec.DecodeError:  # what was masked was part of the JSON: then each text by itself
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
"""Seconds after which nothing typed is unfinished: what a caller types, it types whole."""
_MODES: Final = (9, 1000, 1002, 1003, 1005, 1006, 1015, 1016, 2004)
"""That events may need, or that keep one of these from being what the program set."""


class SessionEvents:
    """The events of one session: input from clients, and its size, for the program that subscribed.

    A subscribed event replaces its bytes. A subscription ends with `term:unsubscribe`, with the
    process that asked, and when another process group is in the foreground; the screen modes that
    it needed are switched with it.
    """

    known: Final = frozenset(
        {"event:key", "event:mouse", "event:mouseclick", "event:paste", RESIZE}
    )

    def __init__(self, session: PtySession, channel: InBandChannel) -> None:
        self._session = session
        self._channel = channel
        self._subscriptions = Subscriptions()
        self._typed = InputParser()
        self._size = session.size
        self._own: frozenset[int] = frozenset()
        """The modes that the program had set itself, when it subscribed first."""
        self._needed: frozenset[int] = frozenset()

    def subscribe(self, events: tuple[str, ...], call: CallContext) -> frozenset[str]:
        asker = self._channel.dialect.asker(call.id)
        group = self._session.pty.foreground()
        if call.id is None or asker is None or asker != group:  # it would not hear them
            return frozenset()
        self._subscriptions.set_foreground(group)
        if not self._subscriptions.names:
            self._begin()
        found = self._subscriptions.subscribe(asker, self.known.intersection(events))
        self._switch()
        return found

    def unsubscribe(self, events: tuple[str, ...], call: CallContext) -> frozenset[str]:
        asker = self._channel.dialect.asker(call.id)
        left = self._subscriptions.unsubscribe(asker, events)
        self._switch()
        return left

    def _begin(self) -> None:
        session = self._session
        asked = b"".join([b"\x1b[?%d$p" % mode for mode in _MODES])
        said = re.findall(rb"\x1b\[\?(\d+);1\$y", session.screen.feed(asked))
        self._own = frozenset(map(int, said))
        self._size = session.size
        session.input_filter = self._pass
        session.watchers.add(self._look)

    def _switch(self) -> None:
        """Have the screen tell what is needed, and no more."""
        needed = self._subscriptions.needed_modes()
        switch, self._needed = mode_switches(self._needed, needed, self._own), needed
        if not self._subscriptions.names:
            self._session.input_filter = None
            self._session.watchers.discard(self._look)
        if switch:
            self._session.inject_output(switch)

    def _wanted(self) -> frozenset[str]:
        """What the program in the foreground is subscribed to."""
        group = self._session.pty.foreground()
        self._subscriptions.set_foreground(group)
        if self._subscriptions.needed_modes() != self._needed or not self._subscriptions.names:
            self._switch()
        return self._subscriptions.names_of(group)

    def _look(self) -> None:
        """Something changed: the size, or who is there."""
        wanted, size = self._wanted(), self._session.size
        if size != self._size:
            self._size = size
            if RESIZE in wanted:
                resized = TerminalResizeEvent(
                    size.rows, size.cols, size.pixel_width, size.pixel_height
                )
                self._tell(Notification(RESIZE, resized))

    def _pass(self, data: bytes) -> bytes:
        """What is left for the program to read as bytes, after what it was told came before it."""
        if not (wanted := self._wanted()):
            return data
        happened = self._typed.feed(data, 0.0) + self._typed.feed(b"", _AFTER)
        left = b""
        for item in to_notifications(happened, wanted, self._own):
            if isinstance(item, bytes):
                left += item
                continue
            if left:
                self._session.pty.write(left)
                left = b""
            self._tell(item)
        return left

    def _tell(self, event: Notification) -> None:
        self._channel.send(self._channel.dialect.encode(event))
