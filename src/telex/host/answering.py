"""The terminal's side of JSON escapes under `telex run`: who answers, on the person's terminal.

Everything that is needed once a program says something, and not before: it takes a quarter of a
second to load. `escaping` makes it with the first frame, the first caller at a door, or when the
output is too much to keep for later.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Final

from telex.config import places
from telex.escapes import reporting
from telex.escapes.audit import AuditLog, audit_file
from telex.escapes.foreground import answerable
from telex.escapes.gate import Answer, Decided, Gate, Question
from telex.escapes.inband import InBand
from telex.escapes.policy import Origin, Policy
from telex.escapes.service import TerminalService
from telex.host.asking import Asking, patience
from telex.host.boundary import Boundary
from telex.host.files import Files
from telex.host.listeners import MODES, Listeners
from telex.host.person_surface import PersonSurface
from telex.host.question import LastRow
from telex.host.shown import Shown
from telex.protocols.json_escapes import Report, Reported
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.peer import Peer
from telex.terminal.outbox import InputQueueFull
from telex.wire import limits
from telex.wire.events import Claimed, Event, Fault, Visible

if TYPE_CHECKING:
    from telex.host.backlog import Backlog
    from telex.host.escaping import Terminals
    from telex.host.whereabouts import Whereabouts
    from telex.rpc.channel import Channel
    from telex.rpc.messages import Notification
    from telex.rpc.serving import Call
    from telex.terminal.cells import Size

_CURSOR: Final = b"\x1b[6n"
_PIECE: Final = (limits.SENT_CONTROL_STRING_BYTES - 256) // 4 * 3
"""Bytes of a file in one frame that every program takes, in base64 and with all around them."""
_DOOR_PIECE: Final = 48 * 1024
"""The same on a line of a door, where only memory counts."""


class Answering:
    """For one program in one person's terminal."""

    def __init__(
        self,
        terminals: Terminals,
        backlog: Backlog,
        whereabouts: Whereabouts,
        asking: Asking,
        policy: Policy | None,
    ) -> None:
        # Its standard error is the person's screen, on which a program is drawn.
        logging.getLogger("telex").addHandler(logging.NullHandler())
        self._terminals = terminals
        self._loop = asyncio.get_running_loop()
        self._asking = asking
        self._release: asyncio.TimerHandle | None = None
        self.screen = Shown(backlog.began, backlog)
        self._row = LastRow(
            self.screen,
            show=self._show,
            flushed=terminals.flushed,
            pause=lambda: terminals.hold("question"),
            resume=lambda: terminals.go_on("question"),
        )
        self._boundary = Boundary()
        self._late = b""
        """What is to be applied at the next place between two sequences or characters."""
        self._together: list[bytes] | None = None
        """What is shown at the end of this read."""
        self._begin(backlog.boundary.open)
        self._asked: asyncio.Future[Answer] | None = None
        """The question that stands."""
        self._whereabouts = whereabouts
        pty = terminals.pty

        def group() -> int | None:
            return answerable(pty.foreground())

        self._in_band = InBand(
            self._type,
            group,
            echoes=lambda: pty.characters().echo,
            unread=lambda: pty.unsent,
            read=pty.drained,
        )
        self.listeners = Listeners(
            group=group,
            own=lambda: self.screen.modes(MODES),
            switch=self._say,
            plain=self._is_plain,
            enter=terminals.enter,
            tell=self._tell,
            asker=lambda call: self._in_band.dialect.asker(call.id),
        )
        person = self if terminals.person else None
        self._files = Files(self._piece)
        self._turn = asyncio.Lock()
        """One question at a time: there are two gates."""
        gate, keyboard = [Gate(policy or Policy(), person, _audit) for _ in range(2)]
        ask = self._ask if terminals.person else None
        surface = PersonSurface(self._apply, lambda: terminals.size, ask, self._files.others)
        service = TerminalService(
            surface,
            self._files.guarded(gate),
            origin=self._origin,
            events=self.listeners,
            keyboard=keyboard,
        )
        self._methods = service.methods
        self._peer = Peer(self._in_band, self._in_band.dialect, service.methods)

    def _begin(self, within: bytes) -> None:
        """In the middle of what the program prints, or of nothing."""
        self.screen.muted = True
        self._print(within)
        self.screen.muted = False

    def _show(self, data: bytes) -> None:
        if self._together is not None:
            self._together.append(data)
        elif not self.screen.muted:
            self._terminals.show(data)

    def _say(self, data: bytes) -> None:
        self._show_together()
        self._terminals.say(data)

    def _show_together(self) -> None:
        if self._together:
            self._terminals.show(b"".join(self._together))
            self._together.clear()

    # What the program prints.

    def take(self, events: list[Event]) -> None:
        """What one read brought: shown in one write, as many commands as there are in it."""
        self._together = []
        try:
            for event in events:
                match event:
                    case Visible(data):
                        self._output(data)
                    case Claimed():
                        self._in_band.claimed(event)
                    case Fault():
                        self._in_band.fault(event)
            self.listeners.printed()
            self._files.look(self._is_alive)
        finally:
            self._show_together()
            self._together = None

    def _output(self, data: bytes) -> None:
        self._asking.printed(data, self._loop.time())
        if self._late and (end := self._boundary.next(data)) is not None:
            late, self._late = self._late, b""
            self._print(data[:end] + late)
            data = data[end:]
        self._print(data)

    def _apply(self, ansi: bytes) -> None:
        """A command, where it stood: but whatever it stood in the middle of is whole."""
        if not self._boundary.open:
            self._print(ansi)
        elif len(self._late) + len(ansi) <= limits.PERSON_BYTES:
            self._late += ansi

    def _print(self, data: bytes) -> None:
        self._boundary.feed(data)
        self._row.output(data)

    def resized(self, size: Size) -> None:
        self._row.resized(size)
        self.listeners.resized(size)

    # What is typed.

    def heard(self, data: bytes) -> bytes:
        """From the person's terminal: what of it is no answer to us."""
        passed = self._asking.typed(data, self._loop.time())
        if self._release is not None:
            self._release.cancel()
            self._release = None
        if (when := self._asking.held_until) is not None:
            self._release = self._loop.call_at(when, self._released)
        return passed

    def _released(self) -> None:
        self._release = None
        self._terminals.typed_on(self._asking.release())

    def typed(self, data: bytes) -> None:
        """From the person, or an answer to the program: to a question, to listeners, or to it."""
        if rest := self._row.typed(data):
            self.listeners.typed(rest)

    def _type(self, data: bytes) -> None:
        try:
            self._terminals.pty.write(data)
        except InputQueueFull:
            self._in_band.unheard += 1

    def _is_plain(self, data: bytes) -> bool:
        """A program that lets its terminal echo does not listen, and a signal must stay one."""
        now = self._terminals.pty.characters()
        return now.echo or (now.signals and data in (now.interrupt, now.quit, now.suspend))

    def _tell(self, event: Notification) -> bool:
        told = self._in_band.dialect.encode(event)
        self._in_band.send(told)
        return bool(told)

    # Who asks.

    def _origin(self, call: Call) -> Origin:
        """Of who is in the foreground; at a door, of nobody in particular on this machine."""
        if call.peer is not self._peer:
            return Origin("local")
        return self._whereabouts.origin(self._terminals.pty, self._loop.time())

    def _is_alive(self, call: Call) -> bool:
        """Whether who asked has not ended, in the foreground or not. Doors tell that themselves."""
        if call.peer is not self._peer:
            return True
        group = self._in_band.dialect.asker(call.id)
        return group is not None and _exists(group)

    def _piece(self, call: Call) -> int | None:
        """How many bytes of a file fit into a part, for whoever reads it now."""
        if call.peer is not self._peer:
            return _DOOR_PIECE
        asker = self._in_band.dialect.asker(call.id)
        there = asker is not None and asker == answerable(self._terminals.pty.foreground())
        return _PIECE if there else None

    # What the person's terminal and the person are asked.

    def _ask(self, question: bytes) -> asyncio.Future[bytes | None]:
        answer: asyncio.Future[bytes | None] = self._loop.create_future()

        def told(said: bytes | None) -> None:
            if not answer.done():
                answer.set_result(said)

        free = not self._row.standing and not self._boundary.open
        sent = self._asking.ask(question, told, self._loop.time()) if free else None
        if sent is None:
            told(None)
        else:
            self._say(sent)
            timer = self._loop.call_later(patience(question), told, None)
            answer.add_done_callback(lambda _: timer.cancel())
        return answer

    async def ask(self, question: Question) -> Answer:
        """As the gates' `Person`."""
        async with self._turn:
            return await self._ask_person(question)

    async def _ask_person(self, question: Question) -> Answer:
        """A question whose program has ended is taken away."""
        await self._align()
        ended = asyncio.ensure_future(self._terminals.pty.child.wait())
        ended.add_done_callback(lambda _: self._row.resized(self._terminals.size))
        self._asked = asyncio.ensure_future(self._row.ask(question))
        try:
            return await self._asked
        finally:
            ended.cancel()
            self._asked = None

    async def _align(self) -> None:
        """The program began wherever the cursor stood, and the model at its top."""
        row = self.screen.cursor.row + 1
        said = reporting.answer(Report("cursor"), await self._ask(_CURSOR) or b"")
        if isinstance(said, Reported) and isinstance(said.row, int):
            self.screen.lower(said.row - row)

    # Doors.

    async def converse(self, channel: Channel) -> None:
        """With a caller at a door, to its end."""
        dialect = JsonEscapes()
        peer = Peer(channel, dialect, self._methods)

        def tell(event: Notification) -> bool:
            if channel.unsent <= limits.OUTBOUND_BYTES:  # who does not listen misses something
                channel.send(dialect.encode(event))
            return True

        self.listeners.door(peer, tell)
        try:
            await peer.closed()
        finally:
            self.listeners.left(peer)
            await peer.close()

    async def suspend(self) -> None:
        """The terminal is somebody else's for a while: nothing of ours stays on it."""
        if self._asked is not None:
            self._row.resized(self._terminals.size)
            await asyncio.wait({self._asked})
        self.listeners.suspend()

    async def close(self) -> None:
        await self._peer.close()
        if self._release is not None:
            self._release.cancel()
        self.listeners.close()
        self.screen.close()


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is somebody else's, as under sudo
        return True
    return True


def _audit(decided: Decided) -> None:
    AuditLog(audit_file(places.find()))(decided)
