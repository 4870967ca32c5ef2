"""A byte stream and a framing make a channel. Unix sockets and stdio are two such streams.

An `asyncio.Protocol`, because a stream reader adds a task and a wake-up to every read. What it
knows of framing is a decoder and an encode function out of `wire`; what it knows of the stream is
the transport that asyncio hands it.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from telex.wire import content_length, limits, ndjson

if TYPE_CHECKING:
    from telex.rpc.channel import Receiver
    from telex.wire.events import Event


class Decoder(Protocol):
    """What a framing's decoder does; see `telex.wire`."""

    def feed(self, data: bytes) -> list[Event]: ...
    def eof(self) -> list[Event]: ...


@dataclass(frozen=True, slots=True)
class Framing:
    """How frames stand in a byte stream."""

    name: str
    decoder: Callable[[], Decoder]
    encode: Callable[[bytes], bytes]


NDJSON: Final = Framing("ndjson", ndjson.Decoder, ndjson.encode)
LSP: Final = Framing("lsp", content_length.Decoder, content_length.encode)
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
            if self._writing is not None:
                self._writing.abort()
            await self._lost.wait()

    def attach(self, reading: asyncio.ReadTransport, writing: asyncio.WriteTransport) -> None:
        """The stream is there, paused: nothing is read before somebody opens the channel."""
        self._reading, self._writing = reading, writing
        writing.set_write_buffer_limits(high=limits.OUTBOUND_BYTES, low=limits.OUTBOUND_BYTES // 4)

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
