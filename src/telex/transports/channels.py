"""Channels on the two kinds of connection: byte streams with a framing, and awaited frames.

`FramedChannel` is for stdio and unix sockets. It is an `asyncio.Protocol`, because a stream reader
adds a task and a wake-up to every read. Its framing is a decoder and an encode function from
`wire`; its stream is the transport that asyncio provides.

`QueuedChannel` is for WebSocket and HTTP, which must be awaited. One task reads, one writes, and a
queue stands between `send`, which never waits, and a `Pipe`, which may. The transport implements
the pipe; the channel decides when it is used, and ends it exactly once, within a bounded time.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from telex.rpc import limits as rpc_limits
from telex.rpc.identity import UNKNOWN
from telex.transports import limits
from telex.wire import content_length, ndjson
from telex.wire.events import Frame

if TYPE_CHECKING:
    from telex.rpc.channel import Receiver
    from telex.rpc.identity import Identity
    from telex.wire.events import Event


class FrameDecoder(Protocol):
    """The interface of a framing's decoder; see `telex.wire`."""

    def feed(self, data: bytes) -> list[Event]: ...
    def eof(self) -> list[Event]: ...


@dataclass(frozen=True, slots=True)
class Framing:
    """How frames are delimited in a byte stream."""

    name: str
    decoder: Callable[[], FrameDecoder]
    encode: Callable[[bytes], bytes]


NDJSON: Final = Framing("ndjson", ndjson.NdjsonDecoder, ndjson.encode)
LSP: Final = Framing("lsp", content_length.ContentLengthDecoder, content_length.encode)
FRAMINGS: Final = {framing.name: framing for framing in (NDJSON, LSP)}


class FramedChannel(asyncio.Protocol):
    """A channel on a byte stream. Created by a transport, opened by a peer."""

    binary = False
    """A line is text, and readers of Content-Length expect JSON."""

    def __init__(self, framing: Framing, identity: Identity = UNKNOWN) -> None:
        self.identity = identity
        self._framing = framing
        self._decoder = framing.decoder()
        self._receiver: Receiver | None = None
        self._reading: asyncio.ReadTransport | None = None
        self._writing: asyncio.WriteTransport | None = None
        self._early: list[Event] = []
        """Events received before the channel was opened: uvloop begins to read on its own."""
        self._ended_early = False
        self._first: asyncio.Event | None = None
        """Set when something is received, while `first_event` waits."""
        self._room = asyncio.Event()
        self._room.set()
        self._lost = asyncio.Event()
        self._why: str | None = None

    @property
    def unsent(self) -> int:
        return self._writing.get_write_buffer_size() if self._writing else 0

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._deliver(self._early)
        self._early = []
        if self._why is not None:
            receiver.lost(self._why)
        elif self._ended_early:
            receiver.finished()
        else:
            self.resume()

    async def first_event(self) -> Event | None:
        """Wait for the first event, before the channel is opened. Returns None if it ends first.

        The event is not taken: whoever opens the channel receives it.
        """
        if not (self._early or self._ended_early or self._why):
            self._first = asyncio.Event()
            self.resume()
            await self._first.wait()
        return self._early[0] if self._early else None

    def send(self, frame: bytes) -> None:
        if self._writing is not None and not self._writing.is_closing():
            self._writing.write(self._framing.encode(frame))

    async def drained(self) -> None:
        await self._room.wait()

    def pause(self) -> None:
        if self._reading is not None and not self._reading.is_closing():
            self._reading.pause_reading()

    def resume(self) -> None:
        if self._reading is not None and not self._reading.is_closing():
            self._reading.resume_reading()

    async def close(self) -> None:
        """Send the unsent bytes if the other side reads them soon, then close. Idempotent."""
        self._why = self._why or "closed here"
        if self._writing is not None:
            self._writing.close()
        if self._reading is not None:
            self._reading.close()
        try:
            async with asyncio.timeout(limits.CLOSE_SECONDS):
                await self._lost.wait()
        except TimeoutError:
            if self._writing is not None and self._writing.get_write_buffer_size():
                self._writing.abort()  # with an empty buffer, the close is already in progress
            await self._lost.wait()

    def attach(self, reading: asyncio.ReadTransport, writing: asyncio.WriteTransport) -> None:
        """Use this stream, which is paused: nothing is read before the channel is opened."""
        self._reading, self._writing = reading, writing
        writing.set_write_buffer_limits(
            high=rpc_limits.OUTBOUND_BYTES, low=rpc_limits.OUTBOUND_BYTES // 4
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)
        stream.pause_reading()
        self.attach(stream, stream)

    def data_received(self, data: bytes) -> None:
        self._deliver(self._decoder.feed(data))

    def eof_received(self) -> bool:
        """Handle EOF. Returns True to keep our direction open for the pending responses."""
        self._deliver(self._decoder.eof())
        if self._hung_up():
            return False
        if self._receiver is not None:
            self._receiver.finished()
        self._ended_early = self._receiver is None
        self._show_first()
        return True

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._why = self._why or (f"the stream broke: {error}" if error else "closed by the peer")
        self._room.set()
        self._lost.set()
        if self._receiver is not None:
            self._receiver.lost(self._why)
        self._show_first()

    def _show_first(self) -> None:
        if self._first is not None:
            self._first.set()

    def _deliver(self, events: list[Event]) -> None:
        if self._receiver is None:
            self._early += events
            if events:
                self.pause()
                self._show_first()
        elif events:
            self._receiver.received(events)

    def _hung_up(self) -> bool:
        """Whether a socket that reached EOF is closed in both directions.

        Both cases look the same to a reader; only poll distinguishes a closed peer (HUP) from one
        that shut down its writing half and still reads.
        """
        stream: object = self._writing
        if self._reading is None or stream is not self._reading:
            return False  # two pipes, of which one may close alone; uvloop calls them sockets
        socket = self._reading.get_extra_info("socket")
        poll = select.poll()
        poll.register(socket.fileno(), 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))


CLOSE_SECONDS: Final = limits.CLOSE_SECONDS
_QUOTED: Final = 200
"""How many characters of the other side's text an error message quotes."""


class ChannelEnded(Exception):
    """Raised by a pipe to its channel: the connection has ended; the message says why."""


class Pipe(Protocol):
    """Awaited transfer of whole frames in both directions, which may run concurrently."""

    @property
    def binary(self) -> bool:
        """Whether a frame may be arbitrary bytes."""
        ...

    async def read(self) -> bytes | None:
        """Return the next frame; None, once, at EOF. Raises ChannelEnded.

        It is cancelled only when it will not be called again.
        """
        ...

    async def write(self, frame: bytes) -> None:
        """Send a frame; return when there is room for another one. Raises ChannelEnded."""
        ...

    async def end(self) -> None:
        """Close in an orderly way. Neither `read` nor `write` runs then or afterwards."""
        ...

    def abort(self) -> None:
        """Close at once, because `end` took too long and was cancelled."""
        ...


class QueuedChannel:
    """A channel on a pipe. Created by a transport, opened by a peer."""

    def __init__(self, pipe: Pipe, identity: Identity = UNKNOWN) -> None:
        self.identity = identity
        self._pipe = pipe
        self._receiver: Receiver | None = None
        self._queue: deque[bytes] = deque()
        self._unsent = 0
        self._queued = asyncio.Event()
        self._taken = asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def unsent(self) -> int:
        return self._unsent

    @property
    def binary(self) -> bool:
        return self._pipe.binary

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._tasks = {
            asyncio.create_task(self._read(receiver)),
            asyncio.create_task(self._write()),
        }
        for task in self._tasks:
            task.add_done_callback(self._stopped)

    def send(self, frame: bytes) -> None:
        if self._ending is None:
            self._queue.append(frame)
            self._unsent += len(frame)
            self._queued.set()

    async def drained(self) -> None:
        while self._unsent > rpc_limits.OUTBOUND_BYTES and not self._broken:
            self._taken.clear()
            await self._taken.wait()

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    async def close(self) -> None:
        """Send the unsent frames if the other side reads them soon, then close.

        Idempotent; cancelling the call does not stop the close.
        """
        self._begin_to_end("closed here")
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _read(self, receiver: Receiver) -> None:
        while True:
            await self._flowing.wait()
            frame = await self._pipe.read()
            await self._flowing.wait()  # paused meanwhile: this one frame is kept
            if self._ending is not None:
                continue  # dropped, but the other side may not read until we do
            if frame is None:
                receiver.finished()
            else:
                receiver.received([Frame(frame)])

    async def _write(self) -> None:
        while True:
            while self._queue:
                await self._pipe.write(self._queue[0])
                self._unsent -= len(self._queue.popleft())
                self._taken.set()
            self._queued.clear()
            await self._queued.wait()

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """End the channel when one of its tasks ends, unless the channel cancelled the task."""
        if task.cancelled():
            return
        self._broken = True
        self._taken.set()
        error = task.exception()
        self._begin_to_end(
            str(error) if isinstance(error, ChannelEnded) else "an internal error; see the log"
        )
        if error is not None and not isinstance(error, ChannelEnded):
            raise error  # our own mistake: the event loop's handler reports it

    def _begin_to_end(self, why: str) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(why))
            self._flowing.set()

    async def _end(self, why: str) -> None:
        deadline = asyncio.get_running_loop().time() + CLOSE_SECONDS
        with contextlib.suppress(TimeoutError):  # frames that are not read by then are lost
            async with asyncio.timeout_at(deadline):
                await self._flushed()
        self._broken = True
        self._taken.set()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._receiver is not None:
            self._receiver.lost(why)
        try:
            async with asyncio.timeout_at(deadline):
                await self._pipe.end()
        except TimeoutError:
            self._pipe.abort()

    async def _flushed(self) -> None:
        while self._queue and self._tasks and not self._broken:
            self._taken.clear()
            await self._taken.wait()


def printable(text: str) -> str:
    """Return the other side's text, made safe for a log or a terminal."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}…"
