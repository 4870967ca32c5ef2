"""A command on a terminal of its own, as the byte stream of a connection: the terminal's side.

For tools that test programs: `tcp_bridge` and `connection_check`. A person's terminal uses `client`
instead, because it has a screen to preserve and a person to ask. The command gets the environment
of a telex terminal: `HTTY=1`, and responses to the queries that identify one behind ssh, where no
variable is passed.

Nothing is typed before a valid chunk was received: a program that has not sent one has not made its
terminal raw, and our bytes would be echoed or cut. And nothing is typed after the program has sent
GOAWAY, or when another process group has the terminal: bytes for a program must not reach the shell
behind it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

from telex.escapes import capabilities
from telex.escapes.commands import COMMANDS
from telex.escapes.inband import InBandChannel
from telex.escapes.protocol import ATTRIBUTE
from telex.htty import limits
from telex.htty.chunk_stream import ChunkReceiver, GoAwayWatch, StreamAborted
from telex.processes.proc import answerable_group
from telex.rpc.methods import Methods
from telex.rpc.peer import Peer
from telex.terminal.cells import Size
from telex.terminal.pty import InputQueueFull, open_pty
from telex.terminal.screen import Screen
from telex.wire import htty_chunk, json_escape
from telex.wire import limits as wire_limits
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault, Visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from telex.wire.events import Event

SIZE: Final = Size(24, 80)
ENVIRONMENT: Final[Mapping[str, str | None]] = {"HTTY": "1", "TMUX": None, "STY": None}
"""A multiplexer that this process runs in is not between the command and us."""


class CommandStream:
    """A `ByteStream` to a command. Leaving `async with` ends the command with its whole tree."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        text: Callable[[bytes], None],
        eager: bool = False,
    ) -> None:
        """Start the command. Raises `StartFailed`.

        Args:
            text: Called with the output of the command outside of chunks.
            eager: Type before the command has sent a chunk, for servers that wait for the preface.
        """
        self._text = text
        self._eager = eager
        self.why = ""
        """Why it ended, as a sentence; empty while it is open."""
        self.faults: list[Fault] = []
        """The first few faulty chunks."""
        self.asked = False
        """Whether the command sent queries in band, as it does if no variable was passed on."""
        self._demux = Demux(
            {htty_chunk.CHUNK, htty_chunk.RAW, json_escape.TO_TERMINAL, json_escape.TO_PROGRAM}
        )
        self._receiver = ChunkReceiver()
        self._leaving = GoAwayWatch()
        self._received: list[bytes] = []
        self._size = 0
        self._more = asyncio.Event()
        self._begun = asyncio.Event()
        self._group: int | None = None
        self.screen = Screen(SIZE, scrollback=0, attributes=(ATTRIBUTE,))
        self.pty = open_pty(
            argv, size=SIZE, output=self._output, ended=self._command_ended, env=ENVIRONMENT
        )
        self._peer = self._open_peer()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        try:
            await self._peer.close()
            await self.pty.end()
        finally:
            self.pty.close()
            self.screen.close()

    @property
    def over(self) -> bool:
        return bool(self.why)

    async def announced(self) -> bool:
        """Wait for the first valid chunk. Returns False if the command ended before it."""
        await self._begun.wait()
        return not self.over

    # The `ByteStream`

    async def read(self) -> bytes:
        while not self._received and not self.over:
            self._more.clear()
            await self._more.wait()
        data = b"".join(self._received)
        self._received.clear()
        if len(data) > limits.HTTY_READ_BYTES:
            self._received.append(data[limits.HTTY_READ_BYTES :])
            data = data[: limits.HTTY_READ_BYTES]
        self._size -= len(data)
        if self._size < limits.HTTY_READ_BYTES:
            self.pty.resume()
        return data

    def write(self, data: bytes) -> None:
        if self.over or self._leaving.seen or not data or not self._may_type():
            return
        self._receiver.answering = True
        try:
            self.pty.write(htty_chunk.encode(data))
        except InputQueueFull as full:
            self._end(f"the command does not read: {full}")

    async def drained(self) -> None:
        if self.pty.unsent >= limits.HTTY_UNSENT_BYTES:
            await self.pty.drained()

    def close(self) -> None:
        self._end("closed here")

    # From the command

    def _output(self, data: bytes) -> None:
        for event in self._demux.feed(data):
            self._handle(event)
        if self._size >= limits.HTTY_READ_BYTES:
            self.pty.pause()

    def _handle(self, event: Event) -> None:
        match event:
            case Claimed(claim=htty_chunk.CHUNK) | Fault(claim=htty_chunk.CHUNK):
                self._receive_chunk(event)
            case Claimed(claim=htty_chunk.RAW):
                self._refuse_raw(htty_chunk.parse_raw(event))
            case Fault(claim=htty_chunk.RAW):
                pass  # cut short, or endless: not an announcement
            case Claimed():
                self.asked = True
                self._channel.claimed(event)
            case Fault():
                self._channel.fault(event)
            case Visible(data):
                if answers := self.screen.feed(data):
                    self._type(answers)
                self._text(data)

    def _receive_chunk(self, event: Claimed | Fault) -> None:
        match self._receiver.take(event):
            case bytes(data):
                if not self._begun.is_set():
                    self._group = self._group or self.pty.foreground()
                    self._begun.set()
                self._leaving.feed(data)
                if not self.over:
                    self._received.append(data)
                    self._size += len(data)
                    self._more.set()
            case StreamAborted(sentence):
                self._note(event)
                self._end(sentence)
            case None:
                self._note(event)

    def _refuse_raw(self, raw: Fault) -> None:
        """End at once, because no chunk will follow the raw form."""
        if not self._begun.is_set():
            self.faults.append(raw)
            self._end(f"the program speaks {htty_chunk.RAW_FORM}")

    def _note(self, event: Claimed | Fault) -> None:
        fault = htty_chunk.parse(event) if isinstance(event, Claimed) else event
        if isinstance(fault, Fault) and len(self.faults) < 16:
            self.faults.append(fault)

    def _command_ended(self) -> None:
        for event in self._demux.eof():
            self._handle(event)
        self._end(f"the command {self.pty.child.exit}")

    def _end(self, why: str) -> None:
        self.why = self.why or why
        self._begun.set()
        self._more.set()
        self.pty.resume()  # let it write its remaining output, which is no longer read here

    # To the command, besides chunks

    def _may_type(self) -> bool:
        group = self.pty.foreground()
        if self._group is None:
            if not self._eager:
                raise RuntimeError("nothing is typed before the first chunk; await `announced()`")
            self._group = group
        if group is not None and group != self._group:
            self._end("another program has the terminal now, so no more requests are sent")
        return group == self._group

    def _type(self, data: bytes) -> None:
        if answerable_group(self.pty.foreground()) is not None:
            self.pty.write(data)

    def _open_peer(self) -> Peer:
        pty = self.pty
        self._channel = InBandChannel(
            self._type,
            lambda: answerable_group(pty.foreground()),
            echoes=lambda: pty.line_settings().echo,
            unread=lambda: pty.unsent,
            read=pty.drained,
        )
        methods = Methods()
        methods.add("detect", _detect)
        return Peer(self._channel, self._channel.dialect, methods)


def _detect() -> dict[str, object]:
    """Answer as a terminal that shows pages and supports little else."""
    known = [COMMANDS["detect"]]
    return capabilities.detect_answer(
        known, maxframe=wire_limits.CONTROL_STRING_BYTES, htty=True, events=()
    )
