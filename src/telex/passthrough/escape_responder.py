"""Answers a program's JSON escapes on the person's terminal, under `telex run`.

Importing this takes a quarter of a second, so `escape_filter` does it with the first frame, the
first caller on a socket, or when the output is too much to keep for later.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from telex.config import places
from telex.escapes import limits as escapes_limits
from telex.escapes.audit import AuditLog, audit_file
from telex.escapes.commands import core
from telex.escapes.commands.core import TermReport, TermReported
from telex.escapes.gate import Gate, GateDecision, GateQuestion, PersonAnswer
from telex.escapes.inband import InBandChannel
from telex.escapes.policy import Policy, RequestOrigin
from telex.escapes.server import TerminalService
from telex.passthrough import limits
from telex.passthrough.event_delivery import MODES, EventDelivery
from telex.passthrough.file_transfer import FileTransfers, InputFlow, group_exists
from telex.passthrough.output_backlog import SequenceBoundary
from telex.passthrough.person_surface import PersonSurface
from telex.passthrough.query_replies import TerminalQueries, reply_seconds
from telex.passthrough.question_row import QuestionRow, ScreenModel
from telex.processes.group_exit import gone
from telex.processes.proc import answerable_group
from telex.rpc import limits as rpc_limits
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.peer import Peer
from telex.terminal.pty import InputQueueFull
from telex.wire.events import Claimed, Event, Fault, Visible

if TYPE_CHECKING:
    from telex.passthrough.escape_filter import JoinedTerminals
    from telex.passthrough.foreground_history import ForegroundHistory
    from telex.passthrough.output_backlog import OutputBacklog
    from telex.rpc.channel import Channel
    from telex.rpc.handler_tasks import CallContext
    from telex.rpc.messages import Id, Notification
    from telex.terminal.cells import Size

_CURSOR: Final = b"\x1b[6n"
_ALTERNATE: Final = (47, 1047, 1049)
_PIECE: Final = (escapes_limits.SENT_CONTROL_STRING_BYTES - 256) // 4 * 3
"""Bytes of a file in one frame that every program takes, in base64 and with all around them."""
_SOCKET_PIECE: Final = 48 * 1024
"""The same on a socket, where only memory counts."""


class EscapeResponder:
    """The terminal's side of JSON escapes, for one program in one person's terminal."""

    def __init__(
        self,
        terminals: JoinedTerminals,
        backlog: OutputBacklog,
        foreground: ForegroundHistory,
        queries: TerminalQueries,
        policy: Policy | None,
        *,
        htty: bool = False,
    ) -> None:
        # Its standard error is the person's screen, on which a program is drawn.
        logging.getLogger("telex").addHandler(logging.NullHandler())
        self._terminals = terminals
        self._loop = asyncio.get_running_loop()
        self._queries = queries
        self.screen = ScreenModel(backlog.began, backlog)
        self._row = QuestionRow(
            self.screen,
            show=self._write,
            flushed=terminals.flushed,
            pause=lambda: terminals.pause_output("question"),
            resume=lambda: terminals.resume_output("question"),
        )
        self._boundary = SequenceBoundary()
        self._pending_ansi = b""
        """What is to be applied at the next place between two sequences or characters."""
        self._written: list[bytes] | None = None
        """What is shown at the end of this read."""
        self._begin(backlog.boundary.open)
        self._asked: asyncio.Future[PersonAnswer] | None = None
        """The question that stands."""
        self._foreground = foreground
        pty = terminals.pty

        def group() -> int | None:
            return answerable_group(pty.foreground())

        self._in_band = InBandChannel(
            self._type,
            group,
            echoes=lambda: pty.line_settings().echo,
            unread=lambda: pty.unsent,
            read=pty.drained,
        )
        self.events = EventDelivery(
            foreground=group,
            own_modes=lambda: self.screen.modes(MODES),
            write_control=self._write_control,
            is_plain=self._is_plain,
            write_to_program=terminals.write_to_program,
            send=self._send_event,
            asker=lambda call: self._in_band.dialect.asker(call.id),
        )
        person = self if terminals.person else None
        self._files = FileTransfers(self._piece)
        self._flow = InputFlow(pty)
        self._behind: bytes | None = None
        """What is typed while a key waits."""
        self._clear_task: asyncio.Task[None] | None = None
        gate = self.gate = Gate(policy or Policy(), person, _audit)
        ask = self._ask if terminals.person else None
        surface = self._surface = PersonSurface(
            self._apply, lambda: terminals.size, ask, self._files.handlers
        )
        service = TerminalService(
            surface,
            self._files.guarded(gate),
            origin=self._origin,
            events=self.events,
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

    def _write(self, data: bytes) -> None:
        if self._written is not None:
            self._written.append(data)
        elif not self.screen.muted:
            self._terminals.write_to_terminal(data)

    def _write_control(self, data: bytes) -> None:
        self._flush_written()
        self._terminals.write_control(data)

    def _flush_written(self) -> None:
        if self._written:
            self._terminals.write_to_terminal(b"".join(self._written))
            self._written.clear()

    # The program's output.

    def program_output(self, events: list[Event]) -> None:
        """What one read brought: shown in one write, as many commands as there are in it."""
        self._written = []
        try:
            for event in events:
                match event:
                    case Visible(data):
                        self._output(data)
                    case Claimed():
                        self._in_band.claimed(event)
                    case Fault():
                        self._in_band.fault(event)
            self.events.check_foreground()
            self._files.look(self._is_alive)
        finally:
            self._flush_written()
            self._written = None

    def _output(self, data: bytes) -> None:
        self._queries.program_output(data, self._loop.time())
        if self._pending_ansi and (end := self._boundary.next(data)) is not None:
            late, self._pending_ansi = self._pending_ansi, b""
            self._print(data[:end] + late)
            data = data[end:]
        self._print(data)

    def _apply(self, ansi: bytes) -> None:
        """A command, where it stood: but whatever it stood in the middle of is whole."""
        if not self._boundary.open:
            self._print(ansi)
        elif len(self._pending_ansi) + len(ansi) <= limits.PERSON_BYTES:
            self._pending_ansi += ansi

    def print_notice(self, text: str) -> bool:
        """A line of ours, after what the program printed; False where it draws a whole screen."""
        if self.screen.modes(_ALTERNATE):
            return False
        begins = b"\r\n" if self.screen.cursor.col else b""
        self._apply(begins + text.encode() + b"\r\n")
        return True

    def _print(self, data: bytes) -> None:
        self._boundary.feed(data)
        self._row.program_output(data)

    def resized(self, size: Size) -> None:
        self._row.resized(size)
        self.events.resized(size)

    # The person's input.

    def person_input(self, data: bytes) -> None:
        """Keys, and replies to the program: for a question, for subscribers, or for the program."""
        if not (rest := self._row.person_input(data)):
            return
        if self._behind is not None:
            self._behind += rest
        elif self._files.giving and self._flow.ends_with(rest):
            self._behind = rest
            self._clear_task = self._loop.create_task(self._clear())
        else:
            self.events.person_input(rest)

    async def _clear(self) -> None:
        """A key that ends or stops a program that is given a file, and what is typed after it."""
        await self._flow.clear()
        typed, self._behind = self._behind, None
        self.events.person_input(typed or b"")

    def _type(self, data: bytes) -> None:
        try:
            self._terminals.pty.write(data)
        except InputQueueFull:
            self._in_band.undelivered += 1

    def _is_plain(self, data: bytes) -> bool:
        """A program that lets its terminal echo does not listen, and a signal must stay one."""
        now = self._terminals.pty.line_settings()
        return now.echo or (now.signals and data in (now.interrupt, now.quit, now.suspend))

    def _send_event(self, event: Notification) -> bool:
        packet = self._in_band.dialect.encode(event)
        self._in_band.send(packet)
        return bool(packet)

    # Who asks.

    def _origin(self, call: CallContext) -> RequestOrigin:
        """Of who is in the foreground; on a socket, of nobody in particular on this machine."""
        if call.peer is not self._peer:
            return RequestOrigin("local")
        origin = self._foreground.origin(self._terminals.pty, self._loop.time())
        if call.id is None:  # what is told and not asked is told, whoever leaves then
            return origin
        return replace(origin, waiting=self._in_band.dialect.asker(call.id))

    def _is_alive(self, call: CallContext) -> bool:
        """Whether who asked has not ended, in the foreground or not. Doors tell that themselves."""
        if call.peer is not self._peer:
            return True
        group = self._in_band.dialect.asker(call.id)
        return group is not None and group_exists(group)

    def _is_away(self, id: Id) -> bool:
        """Whether who asked is stopped, or behind: then its time stands still."""
        group = self._in_band.dialect.asker(id)
        return group is not None and not self._flow.reads(group) and group_exists(group)

    async def _piece(self, call: CallContext) -> int | None:
        """How many bytes of a file fit into a part, once whoever asked can read it."""
        if call.peer is not self._peer:
            return _SOCKET_PIECE
        asker = self._in_band.dialect.asker(call.id)
        return _PIECE if asker is not None and await self._flow.open(asker) else None

    # What the person's terminal and the person are asked.

    def _ask(self, question: bytes) -> asyncio.Future[bytes | None]:
        answer: asyncio.Future[bytes | None] = self._loop.create_future()

        def answered(said: bytes | None) -> None:
            if not answer.done():
                answer.set_result(said)

        free = not self._row.standing and not self._boundary.open
        sent = self._queries.ask(question, answered, self._loop.time()) if free else None
        if sent is None:
            answered(None)
        else:
            self._write_control(sent)
            timer = self._loop.call_later(reply_seconds(question), answered, None)
            answer.add_done_callback(lambda _: timer.cancel())
        return answer

    async def ask(self, question: GateQuestion) -> PersonAnswer:
        """As the gate's `Person`. When who asked is gone, or all of it, so is the question."""
        ends = [self._loop.create_task(self._all_gone())]
        if (group := question.origin.waiting) is not None:
            ends.append(self._loop.create_task(gone(group)))
        try:
            await self._align()
            if any(end.done() for end in ends):
                return PersonAnswer.NOT_NOW
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
        said = core.report_answer(TermReport("cursor"), await self._ask(_CURSOR) or b"")
        if isinstance(said, TermReported) and isinstance(said.row, int):
            self.screen.lower(said.row - row)

    # Callers on a socket.

    async def serve(self, channel: Channel) -> None:
        """Serves a caller on a socket, to its end."""
        dialect = JsonEscapes()
        # Whoever sends a file while the person is asked for it waits for them, as in band.
        peer = Peer(channel, dialect, self._methods, hold_up=True)

        def send(event: Notification) -> bool:
            if channel.unsent <= rpc_limits.OUTBOUND_BYTES:  # who does not listen misses something
                channel.send(dialect.encode(event))
            return True

        self.events.add_caller(peer, send)
        try:
            await peer.closed()
        finally:
            self.events.remove_caller(peer)
            await peer.close()

    async def suspend(self) -> None:
        """The terminal is somebody else's for a while: nothing of ours stays on it."""
        if self._asked is not None:
            self._row.withdraw()
            await asyncio.wait({self._asked})
        self.events.suspend()

    async def close(self) -> None:
        await self._peer.close()
        await self._surface.close()
        if self._clear_task is not None:
            self._clear_task.cancel()
            await asyncio.wait({self._clear_task})
        self.events.close()
        self.screen.close()


def _audit(decided: GateDecision) -> None:
    AuditLog(audit_file(places.find()))(decided)
