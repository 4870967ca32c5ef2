"""JSON escapes in a session: its screen is the terminal that answers, and its clients may too.

`session.create {escapes: true}` gives a session this. Commands of the catalogue take effect on its
screen and transcript as if the program had printed the ANSI for them. Every packet is told to those
who follow the session (`session.escape`), and what is not in the catalogue any of them may answer
(`session.escape_reply`): the first answer counts, and if none comes in time there is no such
command. Without `escapes`, nothing of this is there.

`terminal` does not know of it: `session_service` adds it.
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
from telex.escapes import reporting
from telex.escapes.foreground import answerable
from telex.escapes.gate import Gate
from telex.escapes.inband import InBand
from telex.escapes.policy import Origin, Policy
from telex.escapes.service import TerminalService
from telex.escapes.session_events import SessionEvents
from telex.escapes.session_service import bytes_of
from telex.escapes.surface import unsupported
from telex.protocols.json_escapes import ATTRIBUTE, Report, Reported
from telex.rpc.dialects import strict_json
from telex.rpc.errors import Condition, RpcError
from telex.rpc.handler_tasks import Call
from telex.rpc.inbox import Inbox
from telex.rpc.messages import Last
from telex.rpc.peer import Peer
from telex.terminal.pty import InputQueueFull
from telex.wire import json_escape
from telex.wire.events import Claimed, Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.automation.notices import Notices
    from telex.automation.server import AutomationService
    from telex.escapes.gate import Decided
    from telex.escapes.surface import Other
    from telex.protocols.json_escapes import QueryMode
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
    others: Final[Mapping[str, Other]] = {}
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

    def report(self, what: str, asked: Report | QueryMode) -> object:
        """Asked of the screen as a program would ask it: on the spot, where the question stood."""
        said = self._session.screen.feed(reporting.question(asked))
        if not said and isinstance(asked, Report) and asked.what == "terminfo":
            return Reported(value=None)  # it has none to tell: programs read terminfo for these
        if (answer := reporting.answer(asked, said)) is None:
            raise unsupported()
        return answer

    def refusal(self, asked: object) -> None:
        """What it lacks is not served at all."""

    def set_modes(self, numbers: frozenset[int]) -> None:
        """`session_events` does this, which knows the program's own modes."""


class Answering:
    """One session's peer, and the answers of clients to what the program on it asks."""

    attributes: Final = (ATTRIBUTE,)
    environment: Final[Mapping[str, str]] = {}

    def __init__(
        self, automation: AutomationService, sessions: dict[str, Answering], *, htty: bool = False
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
        self.channel = InBand(
            self._type,
            lambda: answerable(pty.foreground()),
            echoes=lambda: pty.line_settings().echo,
            unread=lambda: pty.unsent,
            read=pty.drained,
        )
        origin = Origin("local", session.program.argv[0])
        service = TerminalService(
            SessionSurface(session),
            Gate(Policy(), None, _decided),
            origin=lambda call: origin,
            events=SessionEvents(session, self.channel),
            extra=self._ask_clients,
            htty=self._htty,
        )
        self._methods = service.methods
        self.channel.dialect.foreign = service.methods.foreign
        self.channel.dialect.unknown = service.methods.unknown
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
            self.channel.unheard += 1

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
            told = spec.SessionEscape(self._id, self._session.sequence, packet, dropped)
            if notices.add(self._id, "session.escape", told):
                self._missed.discard(notices)
            else:
                self._missed.add(notices)

    async def _ask_clients(self, data: Raw, call: Call) -> AsyncIterator[object]:
        """Wait for what clients answer. The peer stops this when the time is up."""
        if call.id is None or not self._listeners(self._id):
            raise RpcError.carrying(self._methods.unknown(call.method))
        id = str(call.id)
        inbox = self._open[id] = Inbox()
        try:
            async for reply in inbox:
                told = _data(reply)
                yield told if reply.cont else Last(told)
        finally:
            if self._open.get(id) is inbox:
                del self._open[id]


def _decided(decided: Decided) -> None:
    """A server has a log, and no person whose audit this would be."""
    log.info("%s: %s", decided.command, "allowed" if decided.allowed else "denied")


def _data(reply: spec.EscapeReply) -> object:
    """What the program is told: bytes, JSON, or nothing. Raises the error, if it is one."""
    if isinstance(reply.error, str):
        coded = _CODED.fullmatch(reply.error)
        raise RpcError(coded[1], coded[2]) if coded else RpcError("", reply.error)
    data = bytes_of(reply)
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
