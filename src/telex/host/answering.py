"""The terminal's side of JSON escapes under `telex run`: who answers, on the person's terminal.

Everything that is needed once a program says something, and not before: it takes a quarter of a
second to load. `escaping` makes it with the first frame, the first caller at a door, or when the
output is too much to keep for later.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
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
from telex.host.flow import Flow, exists
from telex.host.listeners import MODES, Listeners
from telex.host.person_surface import PersonSurface
from telex.host.question import LastRow
from telex.host.shown import Shown
from telex.processes.group_exit import gone
from telex.protocols.json_escapes import Report, Reported
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.peer import Peer
from telex.terminal.pty import InputQueueFull
from telex.wire import limits
from telex.wire.events import Claimed, Event, Fault, Visible

if TYPE_CHECKING:
    from telex.host.backlog import Backlog
    from telex.host.escaping import Terminals
    from telex.host.whereabouts import Whereabouts
    from telex.rpc.channel import Channel
    from telex.rpc.handler_tasks import Call
    from telex.rpc.messages import Id, Notification
    from telex.terminal.cells import Size

_CURSOR: Final = b"\x1b[6n"
_ALTERNATE: Final = (47, 1047, 1049)
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
        *,
        htty: bool = False,
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
            echoes=lambda: pty.line_settings().echo,
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
        self._flow = Flow(pty)
        self._behind: bytes | None = None
        """What is typed while a key waits."""
        self._clearing: asyncio.Task[None] | None = None
        gate = self.gate = Gate(policy or Policy(), person, _audit)
        ask = self._ask if terminals.person else None
        surface = self._surface = PersonSurface(
            self._apply, lambda: terminals.size, ask, self._files.others
        )
        service = TerminalService(
            surface,
            self._files.guarded(gate),
            origin=self._origin,
            events=self.listeners,
            keyboard=True,
            htty=htty,
        )
        self._methods = service.methods
        self._peer = Peer(
            self._in_band, self._in_band.dialect, service.methods, still=self._is_away
        )

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

    def tell(self, text: str) -> bool:
        """A line of ours, after what the program printed; False where it draws a whole screen."""
        if self.screen.modes(_ALTERNATE):
            return False
        begins = b"\r\n" if self.screen.cursor.col else b""
        self._apply(begins + text.encode() + b"\r\n")
        return True

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
        if not (rest := self._row.typed(data)):
            return
        if self._behind is not None:
            self._behind += rest
        elif self._files.giving and self._flow.ends_with(rest):
            self._behind = rest
            self._clearing = self._loop.create_task(self._clear())
        else:
            self.listeners.typed(rest)

    async def _clear(self) -> None:
        """A key that ends or stops a program that is given a file, and what is typed after it."""
        await self._flow.clear()
        typed, self._behind = self._behind, None
        self.listeners.typed(typed or b"")

    def _type(self, data: bytes) -> None:
        try:
            self._terminals.pty.write(data)
        except InputQueueFull:
            self._in_band.unheard += 1

    def _is_plain(self, data: bytes) -> bool:
        """A program that lets its terminal echo does not listen, and a signal must stay one."""
        now = self._terminals.pty.line_settings()
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
        origin = self._whereabouts.origin(self._terminals.pty, self._loop.time())
        if call.id is None:  # what is told and not asked is told, whoever leaves then
            return origin
        return replace(origin, waiting=self._in_band.dialect.asker(call.id))

    def _is_alive(self, call: Call) -> bool:
        """Whether who asked has not ended, in the foreground or not. Doors tell that themselves."""
        if call.peer is not self._peer:
            return True
        group = self._in_band.dialect.asker(call.id)
        return group is not None and exists(group)

    def _is_away(self, id: Id) -> bool:
        """Whether who asked is stopped, or behind: then its time stands still."""
        group = self._in_band.dialect.asker(id)
        return group is not None and not self._flow.reads(group) and exists(group)

    async def _piece(self, call: Call) -> int | None:
        """How many bytes of a file fit into a part, once whoever asked can read it."""
        if call.peer is not self._peer:
            return _DOOR_PIECE
        asker = self._in_band.dialect.asker(call.id)
        return _PIECE if asker is not None and await self._flow.open(asker) else None

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
        """As the gate's `Person`. When who asked is gone, or all of it, so is the question."""
        ends = [self._loop.create_task(self._all_gone())]
        if (group := question.origin.waiting) is not None:
            ends.append(self._loop.create_task(gone(group)))
        try:
            await self._align()
            if any(end.done() for end in ends):
                return Answer.NOT_NOW
            self._asked = asyncio.ensure_future(self._row.ask(question))
            for end in ends:
                end.add_done_callback(self._left)
            return await self._asked
        finally:
            self._asked = None
            for end in ends:
                end.cancel()

    async def _all_gone(self) -> None:
        await self._terminals.pty.child.wait()

    def _left(self, end: asyncio.Task[None]) -> None:
        if not end.cancelled():
            self._row.withdraw()

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
        # Whoever sends a file while the person is asked for it waits for them, as in band.
        peer = Peer(channel, dialect, self._methods, hold_up=True)

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
            self._row.withdraw()
            await asyncio.wait({self._asked})
        self.listeners.suspend()

    async def close(self) -> None:
        await self._peer.close()
        await self._surface.close()
        if self._clearing is not None:
            self._clearing.cancel()
            await asyncio.wait({self._clearing})
        if self._release is not None:
            self._release.cancel()
        self.listeners.close()
        self.screen.close()


def _audit(decided: Decided) -> None:
    AuditLog(audit_file(places.find()))(decided)
