"""Channels on the two kinds of connection: byte streams with a framing, and awaited frames.

`FramedChannel` is for stdio and unix sockets. It is an `asyncio.Protocol`, because a stream reader
adds a task and a wake-up to every read. Of framing it knows a decoder and an encode function from
`wire`; of the stream, the transport that asyncio hands it.

`QueuedChannel` is for WebSocket and HTTP, which must be awaited. One task reads, one writes, and a
queue stands between `send`, which never waits, and a `Pipe`, which may. The transport implements
the pipe; the channel decides when it is used, and ends all of it exactly once, within seconds.
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
from telex.transports import limits
from telex.wire import content_length, ndjson
from telex.wire.events import Frame

if TYPE_CHECKING:
    from telex.rpc.channel import Receiver
    from telex.wire.events import Event


class FrameDecoder(Protocol):
    """What a framing's decoder does; see `telex.wire`."""

    def feed(self, data: bytes) -> list[Event]: ...
    def eof(self) -> list[Event]: ...


@dataclass(frozen=True, slots=True)
class Framing:
    """How frames stand in a byte stream."""

    name: str
    decoder: Callable[[], FrameDecoder]
    encode: Callable[[bytes], bytes]


NDJSON: Final = Framing("ndjson", ndjson.NdjsonDecoder, ndjson.encode)
LSP: Final = Framing("lsp", content_length.ContentLengthDecoder, content_length.encode)
FRAMINGS: Final = {framing.name: framing for framing in (NDJSON, LSP)}


class FramedChannel(asyncio.Protocol):
    """A channel on a byte stream. Made by the transports, opened by a peer."""

    binary = False
    """A line is text, and whoever reads Content-Length expects JSON."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._decoder = framing.decoder()
        self._receiver: Receiver | None = None
        self._reading: asyncio.ReadTransport | None = None
        self._writing: asyncio.WriteTransport | None = None
        self._early: list[Event] = []
        """What came before anybody opened the channel: uvloop begins to read unasked."""
        self._ended_early = False
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
        """Send what is unsent if the other side takes it soon, then close. Idempotent."""
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
                self._writing.abort()  # with nothing left to write, its end is on its way
            await self._lost.wait()

    def attach(self, reading: asyncio.ReadTransport, writing: asyncio.WriteTransport) -> None:
        """The stream is there, paused: nothing is read before somebody opens the channel."""
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
        """They say no more. True keeps our direction open, for the answers they may wait for."""
        self._deliver(self._decoder.eof())
        if self._hung_up():
            return False
        if self._receiver is not None:
            self._receiver.finished()
        self._ended_early = self._receiver is None
        return True

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._why = self._why or (f"the stream broke: {error}" if error else "closed over there")
        self._room.set()
        self._lost.set()
        if self._receiver is not None:
            self._receiver.lost(self._why)

    def _deliver(self, events: list[Event]) -> None:
        if self._receiver is None:
            self._early += events
            self.pause()
        elif events:
            self._receiver.received(events)

    def _hung_up(self) -> bool:
        """At the end of a socket's input: whether they are gone altogether.

        Both look the same to a reader; only poll tells a closed peer (HUP) from one that shut down
        its writing half and still listens.
        """
        stream: object = self._writing
        if self._reading is None or stream is not self._reading:
            return False  # two pipes, of which one may end alone; uvloop calls them sockets
        socket = self._reading.get_extra_info("socket")
        poll = select.poll()
        poll.register(socket.fileno(), 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))


CLOSE_SECONDS: Final = limits.CLOSE_SECONDS
_TOLD: Final = 200
"""Characters of the other side's own words that a sentence of ours quotes."""


class ChannelEnded(Exception):
    """Between a pipe and its channel: it is over; the sentence says why."""


class Pipe(Protocol):
    """Whole frames both ways, awaited. Reading and writing go on at the same time."""

    @property
    def binary(self) -> bool:
        """Whether a frame may be any bytes."""
        ...

    async def read(self) -> bytes | None:
        """The next frame; None, once, when they will say no more. Raises Ended. Cancelled only
        when nobody will read again."""
        ...

    async def write(self, frame: bytes) -> None:
        """Returns when there is room for another one. Raises Ended."""
        ...

    async def end(self) -> None:
        """Say goodbye and let go. Neither read nor write is running or will be."""
        ...

    def abort(self) -> None:
        """Let go at once: `end` took too long and was cancelled."""
        ...


class QueuedChannel:
    """A channel on a pipe. Made by the transports, opened by a peer."""

    def __init__(self, pipe: Pipe) -> None:
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
        """Send what is unsent if the other side takes it soon, then close. Idempotent; cancelling
        it does not stop it."""
        self._begin_to_end("closed here")
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _read(self, receiver: Receiver) -> None:
        while True:
            await self._flowing.wait()
            frame = await self._pipe.read()
            await self._flowing.wait()  # paused meanwhile: this one frame is held
            if self._ending is not None:
                continue  # nobody wants it, but the other side may not read until we do
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
        """A task's end is the channel's, unless the channel's end was the task's."""
        if task.cancelled():
            return
        self._broken = True
        self._taken.set()
        error = task.exception()
        self._begin_to_end(
            str(error) if isinstance(error, ChannelEnded) else "a fault here; see the log"
        )
        if error is not None and not isinstance(error, ChannelEnded):
            raise error  # ours, not the other side's: the event loop's handler tells

    def _begin_to_end(self, why: str) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(why))
            self._flowing.set()

    async def _end(self, why: str) -> None:
        deadline = asyncio.get_running_loop().time() + CLOSE_SECONDS
        with contextlib.suppress(TimeoutError):  # what they do not take by then is lost
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


def printable(words: str) -> str:
    """The other side's words, fit for a log or a terminal."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in words)
    return shown if len(shown) <= _TOLD else f"{shown[:_TOLD]}…"
