"""Answers a program's JSON escapes on the person's terminal, under `telex run`.

Importing this module takes a quarter of a second. So `escape_filter` imports it when it is needed:
with the first frame, with the first client on a socket, or when the backlog of output is too large.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from telex.config import places
from telex.escapes import limits as escapes_limits
from telex.escapes.commands import core
from telex.escapes.commands.core import TermReport, TermReported
from telex.escapes.gate import AuditLog, Gate, GateDecision, GateQuestion, PersonAnswer, audit_file
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
from telex.processes.child import group_gone
from telex.processes.proc import answerable_group
from telex.rpc import limits as rpc_limits
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.peer import Peer
from telex.wire.events import Claimed, Event, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.passthrough.foreground_history import ForegroundHistory
    from telex.passthrough.joined_terminals import JoinedTerminals
    from telex.passthrough.output_backlog import OutputBacklog
    from telex.rpc.channel import Channel
    from telex.rpc.handler_tasks import CallContext
    from telex.rpc.messages import Id, Notification
    from telex.terminal.cells import Size

_CURSOR: Final = b"\x1b[6n"
_ALTERNATE: Final = (47, 1047, 1049)
_PIECE: Final = (escapes_limits.SENT_CONTROL_STRING_BYTES - 256) // 4 * 3
"""Bytes of a file that fit, in base64 and with the rest of the packet, into a frame that every
program accepts."""
_SOCKET_PIECE: Final = 48 * 1024
"""The same on a socket, where only memory limits it."""


class OutputMerger:
    """Merges the ANSI of commands into the program's output, between two escape sequences.

    Args:
        forward: Receives the merged output.
        unfinished: The beginning of a sequence that the program has already printed.
    """

    def __init__(self, forward: Callable[[bytes], None], unfinished: bytes) -> None:
        self._forward = forward
        self._boundary = SequenceBoundary(unfinished)
        self._pending_ansi = b""
        """Inserted at the next boundary."""

    @property
    def at_boundary(self) -> bool:
        return not self._boundary.open

    def program_output(self, data: bytes) -> None:
        if self._pending_ansi and (end := self._boundary.next(data)) is not None:
            ansi, self._pending_ansi = self._pending_ansi, b""
            self._write(data[:end] + ansi)
            data = data[end:]
        self._write(data)

    def insert(self, ansi: bytes) -> None:
        """Insert the ANSI of a command here; within a sequence or character, right after it."""
        if self.at_boundary:
            self._write(ansi)
        elif len(self._pending_ansi) + len(ansi) <= limits.PERSON_BYTES:
            self._pending_ansi += ansi

    def _write(self, data: bytes) -> None:
        self._boundary.feed(data)
        self._forward(data)


class EscapeResponder:
    """Serves the JSON escapes of one program on the person's terminal, and of socket clients.

    Args:
        terminals: The two terminals.
        backlog: The output so far, for the model of the screen.
        foreground: The history of foreground process groups, for the origin of a request.
        queries: Queries to the person's terminal; `EscapeFilter` passes the input through it.
        policy: The person's rules; None stands for the defaults.
        htty: Whether `detect` reports that pages are shown.
    """

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
        # Standard error is the person's screen, on which the program draws.
        logging.getLogger("telex").addHandler(logging.NullHandler())
        self._terminals = terminals
        self._loop = asyncio.get_running_loop()
        self._queries = queries
        self.screen = ScreenModel(backlog.began, backlog)
        self._row = QuestionRow(
            self.screen,
            write=terminals.write_to_terminal,
            flushed=terminals.flushed,
            pause=lambda: terminals.pause_output("question"),
            resume=lambda: terminals.resume_output("question"),
            unfinished=backlog.boundary.open,
        )
        self._output = OutputMerger(self._row.program_output, backlog.boundary.open)
        self._asked: asyncio.Future[PersonAnswer] | None = None
        """The question that is on the last row now."""
        self._foreground = foreground
        pty = terminals.pty

        def group() -> int | None:
            return answerable_group(pty.foreground())

        self._in_band = InBandChannel(
            pty.write,
            group,
            echoes=lambda: pty.line_settings().echo,
            unread=lambda: pty.unsent,
            read=pty.drained,
        )
        self.events = EventDelivery(
            foreground=group,
            own_modes=lambda: self.screen.modes(MODES),
            write_control=terminals.write_control,
            is_plain=self._is_plain,
            write_to_program=terminals.write_to_program,
            send=self._send_event,
            asker=lambda call: self._in_band.dialect.asker(call.id),
        )
        person = self if terminals.person else None
        self._files = FileTransfers(self._piece)
        self._flow = InputFlow(pty)
        self._behind: bytes | None = None
        """A key that waits until a file has been read, and the input after that key."""
        self._clear_task: asyncio.Task[None] | None = None
        gate = self.gate = Gate(policy or Policy(), person, _audit)
        query = self._query if terminals.person else None
        surface = self._surface = PersonSurface(
            self._output.insert, lambda: terminals.size, query, self._files.handlers
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
            self._in_band, self._in_band.dialect, service.methods, deadline_paused=self._is_away
        )

    # The program's output.

    def program_output(self, events: list[Event]) -> None:
        """Handle the events of one read, and write their output at once, however many commands are
        among them.
        """
        with self._terminals.batched_output():
            for event in events:
                match event:
                    case Visible(data):
                        self._queries.program_output(data, self._loop.time())
                        self._output.program_output(data)
                    case Claimed():
                        self._in_band.claimed(event)
                    case Fault():
                        self._in_band.fault(event)
            self.events.check_foreground()
            self._files.abandon_dead(self._is_alive)

    def print_notice(self, text: str) -> bool:
        """Print a line of ours after the program's output. False, and nothing is printed, if the
        program draws the whole screen.
        """
        if self.screen.modes(_ALTERNATE):
            return False
        begins = b"\r\n" if self.screen.cursor.col else b""
        self._output.insert(begins + text.encode() + b"\r\n")
        return True

    def resized(self, size: Size) -> None:
        self._row.resized(size)
        self.events.resized(size)

    # The person's input.

    def person_input(self, data: bytes) -> None:
        """Give keys to the question, if there is one; deliver the rest as events or as bytes."""
        if not (rest := self._row.person_input(data)):
            return
        if self._behind is not None:
            self._behind += rest
        elif self._files.sending and self._flow.ends_with(rest):
            self._behind = rest
            self._clear_task = self._loop.create_task(self._deliver_behind())
        else:
            self.events.person_input(rest)

    async def _deliver_behind(self) -> None:
        """Deliver a key that ends or stops a program, and the input after it, once the program has
        read the parts of a file that were sent to it.
        """
        await self._flow.clear()
        behind, self._behind = self._behind, None
        self.events.person_input(behind or b"")

    def _is_plain(self, data: bytes) -> bool:
        """Whether this input must stay bytes: the terminal echoes, so the program does not read
        events; or it is a key that the line discipline turns into a signal.
        """
        now = self._terminals.pty.line_settings()
        return now.echo or (now.signals and data in (now.interrupt, now.quit, now.suspend))

    def _send_event(self, event: Notification) -> bool:
        packet = self._in_band.dialect.encode(event)
        self._in_band.send(packet)
        return bool(packet)

    # The origin of a request.

    def _origin(self, call: CallContext) -> RequestOrigin:
        """Return the program in the foreground; for a client on a socket, only "local"."""
        if call.peer is not self._peer:
            return RequestOrigin("local")
        origin = self._foreground.origin(self._terminals.pty, self._loop.time())
        if call.id is None:  # a notification stays valid when its sender has exited
            return origin
        return replace(origin, waiting=self._in_band.dialect.asker(call.id))

    def _is_alive(self, call: CallContext) -> bool:
        """Whether the program that sent a request still runs, in the foreground or not. A client
        on a socket counts as alive: its disconnect is reported by the channel.
        """
        if call.peer is not self._peer:
            return True
        group = self._in_band.dialect.asker(call.id)
        return group is not None and group_exists(group)

    def _is_away(self, id: Id) -> bool:
        """Whether the program that sent a request is stopped or in the background, where it cannot
        read a response: then the deadline is paused.
        """
        group = self._in_band.dialect.asker(id)
        return group is not None and not self._flow.reads(group) and group_exists(group)

    async def _piece(self, call: CallContext) -> int | None:
        """Wait until the requester can read a part of a file; return the bytes that fit into it."""
        if call.peer is not self._peer:
            return _SOCKET_PIECE
        asker = self._in_band.dialect.asker(call.id)
        return _PIECE if asker is not None and await self._flow.open(asker) else None

    # Queries to the person's terminal, and questions to the person.

    def _query(self, query: bytes) -> asyncio.Future[bytes | None]:
        """Send a query to the person's terminal; the result is its reply, None if none came."""
        reply: asyncio.Future[bytes | None] = self._loop.create_future()

        def received(data: bytes | None) -> None:
            if not reply.done():
                reply.set_result(data)

        free = not self._row.standing and self._output.at_boundary
        sent = self._queries.ask(query, received, self._loop.time()) if free else None
        if sent is None:
            received(None)
        else:
            self._terminals.write_control(sent)
            timer = self._loop.call_later(reply_seconds(query), received, None)
            reply.add_done_callback(lambda _: timer.cancel())
        return reply

    async def ask(self, question: GateQuestion) -> PersonAnswer:
        """Ask the person, as the gate's `Person`. The question is withdrawn when the process group
        that asked exits, or the whole program.
        """
        exits = [self._loop.create_task(self._program_exit())]
        if (group := question.origin.waiting) is not None:
            exits.append(self._loop.create_task(group_gone(group)))
        try:
            await self._align()
            if any(one.done() for one in exits):
                return PersonAnswer.NOT_NOW
            self._asked = asyncio.ensure_future(self._row.ask(question))
            for one in exits:
                one.add_done_callback(self._withdraw)
            return await self._asked
        finally:
            self._asked = None
            for one in exits:
                one.cancel()

    async def _program_exit(self) -> None:
        await self._terminals.pty.child.wait()

    def _withdraw(self, exited: asyncio.Task[None]) -> None:
        if not exited.cancelled():
            self._row.withdraw()

    async def _align(self) -> None:
        """Move the screen model down to the real cursor: the program began at the row where the
        cursor stood, and the model at the top.
        """
        row = self.screen.cursor.row + 1
        report = core.report_answer(TermReport("cursor"), await self._query(_CURSOR) or b"")
        if isinstance(report, TermReported) and isinstance(report.row, int):
            self.screen.lower(report.row - row)

    # Clients on a socket.

    async def serve(self, channel: Channel) -> None:
        """Serve a client on a socket until it disconnects."""
        dialect = JsonEscapes()
        # A client that sends a file while the person is asked waits for the answer, as in band.
        peer = Peer(channel, dialect, self._methods, pause_reading=True)

        def send(event: Notification) -> bool:
            if channel.unsent <= rpc_limits.OUTBOUND_BYTES:  # a client that does not read loses it
                channel.send(dialect.encode(event))
            return True

        self.events.add_client(peer, send)
        try:
            await peer.closed()
        finally:
            self.events.remove_client(peer)
            await peer.close()

    async def suspend(self) -> None:
        """Withdraw the question and switch our modes off: the shell gets the terminal."""
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
