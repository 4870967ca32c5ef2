"""An HTTP/2 connection over any `ByteStream`: it reads, writes, and passes events to their streams.

The asynchronous part around `Http2State`, for the terminal (client) and the program (server).

How it ends: the server has the last word. It announces GOAWAY, lets streams end, sends a PING whose
answer shows that nothing of the client's is under way, and then sends the final GOAWAY. A client
that received that writes nothing more, so a shell that takes over the terminal finds nothing typed.
A GOAWAY with an error, and the end of the byte stream, end the connection at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    RemoteSettingsChanged,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)
from h2.exceptions import NoAvailableStreamIDError

from telex.htty import limits
from telex.htty.byte_stream import ByteStream
from telex.htty.errors import BadHeaders, ConnectionOver
from telex.htty.h2.header_fields import Headers
from telex.htty.h2.http2_flow import Http2Writer, StallWatch, StreamSlots
from telex.htty.h2.http2_frames import ALL_STREAMS
from telex.htty.h2.http2_state import Http2Side, Http2State, ProtocolViolation
from telex.htty.h2.http_stream import HttpStream
from telex.transports.channels import printable

_FAREWELL = b"farewell"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a connection ended."""

    graceful: bool
    sentence: str
    code: int | None = None
    """HTTP/2's, if one side said one."""


class Http2Connection:
    """One connection. `run` it; the rest works while that runs."""

    def __init__(
        self,
        byte_stream: ByteStream,
        side: Http2Side,
        *,
        opened: Callable[[HttpStream], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.over: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._byte_stream = byte_stream
        self._connection = Http2State(side)
        self._connection.begin()
        self._writer = Http2Writer(byte_stream, self._connection)
        self._opened = opened
        self._clock = clock
        self._streams: dict[int, HttpStream] = {}
        self._slots = StreamSlots(self._free)
        self._pings: dict[bytes, asyncio.Future[None]] = {}
        self._pinged = 0
        self._ready = asyncio.Event()
        self._ending: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._leaving: str | None = None
        self._dismissed = False
        self._farewell = False
        self._close_timer: asyncio.TimerHandle | None = None
        self._watch = StallWatch(self._connection, self._streams, self._on)

    @property
    def extended_connect(self) -> bool:
        """The peer takes WebSockets (RFC 8441)."""
        return self._connection.extended_connect

    @property
    def leaving(self) -> bool:
        """Nothing new can be asked."""
        return self._leaving is not None

    async def ready(self) -> None:
        """Until the peer has said what it allows."""
        await self._ready.wait()
        if self.over.done():
            raise ConnectionOver(self.over.result().sentence)

    async def request(self, headers: Headers, *, end: bool = False) -> HttpStream:
        """Open a stream, when the peer has room for another. A client's."""
        if self._leaving is None:
            await self._slots.acquire()
        if self._leaving is not None:
            raise ConnectionOver(self._leaving)
        try:
            stream = self._connection.request(headers, end=end)
        except NoAvailableStreamIDError:
            self.close("all its streams are used up")
            raise ConnectionOver("all its streams are used up") from None
        except BadHeaders:
            self._slots.grant()  # this one's place
            raise
        self._writer.wake()
        http_stream = self._open(stream, headers)
        if end:
            http_stream.on_end_sent()
        return http_stream

    async def ping(self) -> float:
        """How many seconds there and back take."""
        await self.ready()
        self._pinged += 1
        opaque, since = self._pinged.to_bytes(8, "big"), self._clock()
        self._pings[opaque] = asyncio.get_running_loop().create_future()
        self._connection.ping(opaque)
        self._writer.wake()
        try:
            await self._pings[opaque]
        finally:
            del self._pings[opaque]
        return self._clock() - since

    def _free(self) -> int:
        allowed = self._connection.streams_allowed if self._ready.is_set() else 0
        return allowed - len(self._streams)

    # From beginning to end

    async def run(self) -> Ended:
        """Until it is over. Cancelling it ends it, with a GOAWAY if one still fits."""
        self._writer.wake()
        writer = asyncio.create_task(self._writer.run())
        reader = asyncio.create_task(self._read())
        try:
            parts: list[asyncio.Future[Ended] | asyncio.Future[None]] = [
                self._ending,
                reader,
                writer,
            ]
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in (reader, writer):
                if part.done():
                    part.result()  # nothing, or a fault of ours
        except asyncio.CancelledError:
            self._send_goaway()
            raise
        finally:
            self._end(Ended(False, "this side gave it up"))
            self._finish()
            for part in (reader, writer):
                part.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
        return self._ending.result()

    async def _read(self) -> None:
        while data := await self._byte_stream.read():
            for event in self._connection.receive(data, self._clock()):
                self._on(event)
            self._writer.wake()
            self._watch.on_received()
            await self._writer.wait_for_room()
        if self._leaving is not None and not self._streams:
            self._end(Ended(True, self._leaving, 0))
        self._end(Ended(False, "the connection broke off without a GOAWAY"))

    def _end(self, ended: Ended, *, silently: bool = False) -> None:
        """It is over; `run` will see to it. What is said first, holds."""
        if not self._ending.done():
            self._ending.set_result(ended)
            if silently:
                self._connection.to_send()

    def _finish(self) -> None:
        ended = self._ending.result()
        self._byte_stream.write(self._connection.to_send())
        self._byte_stream.close()
        self._connection.broken = True
        self.over.set_result(ended)
        self._watch.end()
        if self._close_timer is not None:
            self._close_timer.cancel()
        self._refuse_new(ended.sentence)
        for http_stream in list(self._streams.values()):
            http_stream.on_connection_over(ended.sentence)
        for waiting in self._pings.values():
            if not waiting.done():
                waiting.set_exception(ConnectionOver(ended.sentence))
        self._ready.set()

    def close(self, sentence: str = "") -> None:
        """Open nothing new, let streams end within `HTTY_CLOSE_SECONDS`, and say GOAWAY."""
        if self._close_timer is not None or self.over.done():
            return
        self._refuse_new(sentence or "it was closed on this side")
        announced = self._connection.side is Http2Side.SERVER and self._ready.is_set()
        self._connection.go_away(text=sentence, announced=announced)
        self._writer.wake()
        loop = asyncio.get_running_loop()
        self._close_timer = loop.call_later(limits.HTTY_CLOSE_SECONDS, self._close_now)
        self._end_if_idle()

    def _refuse_new(self, sentence: str) -> None:
        self._leaving = self._leaving or sentence
        self._slots.fail_waiting(sentence)

    def _end_if_idle(self) -> None:
        """The last stream has ended, and somebody is leaving."""
        if self._leaving is None or self._streams or self._ending.done():
            return
        if self._connection.side is Http2Side.CLIENT:
            if self._dismissed:
                self._end(Ended(True, self._leaving, 0), silently=True)
        elif not self._ready.is_set():
            self._close_now()
        elif not self._farewell:
            self._farewell = True
            self._connection.ping(_FAREWELL)
            self._writer.wake()

    def _close_now(self) -> None:
        if not self._ending.done():
            self._send_goaway()
            self._end(Ended(not self._streams, self._leaving or "", 0))

    def _send_goaway(self) -> None:
        """The last that is said. To a peer whose streams were left open, the end of the wire
        after it would look like one that nobody meant."""
        if not self._connection.broken:
            for stream in self._streams:
                self._connection.reset(stream, ErrorCodes.CANCEL)
            self._connection.go_away(text=self._leaving or "")

    # What the peer says

    def _on(self, event: Event | ProtocolViolation) -> None:
        match event:
            case DataReceived():
                if http_stream := self._streams.get(event.stream_id):
                    http_stream.on_data(event.data, event.flow_controlled_length)
                else:
                    self._connection.acknowledge(event.stream_id, event.flow_controlled_length)
            case StreamEnded():
                if http_stream := self._streams.get(event.stream_id):
                    http_stream.on_end()
            case RequestReceived():
                self._open(event.stream_id, event.headers)
            case ResponseReceived():
                if http_stream := self._streams.get(event.stream_id):
                    http_stream.on_response(event.headers)
            case WindowUpdated(stream_id=0):
                self._on_room()
            case WindowUpdated():
                if http_stream := self._streams.get(event.stream_id):
                    http_stream.on_window()
            case StreamReset():
                if http_stream := self._streams.get(event.stream_id):
                    http_stream.on_reset(event.error_code, ours=not event.remote_reset)
            case TrailersReceived():
                if http_stream := self._streams.get(event.stream_id):
                    http_stream.on_trailers(event.headers)
            case RemoteSettingsChanged():
                self._ready.set()
                self._on_room()
                self._slots.grant()
            case PingAckReceived():
                self._on_pong(event.ping_data)
            case ConnectionTerminated():
                self._on_go_away(event)
            case ProtocolViolation(code, sentence):
                self._end(
                    Ended(False, f"the other side broke the rules of HTTP/2: {sentence}", code)
                )

    def _open(self, stream: int, headers: Headers) -> HttpStream:
        http_stream = HttpStream(stream, headers, self._connection, self._writer, self._on_done)
        self._streams[stream] = http_stream
        if self._opened is not None and self._connection.side is Http2Side.SERVER:
            self._opened(http_stream)
        return http_stream

    def _on_done(self, http_stream: HttpStream) -> None:
        del self._streams[http_stream.id]
        self._slots.grant()
        self._end_if_idle()

    def _on_room(self) -> None:
        for http_stream in self._streams.values():
            http_stream.on_window()

    def _on_pong(self, opaque: bytes) -> None:
        if self._farewell and opaque == _FAREWELL:
            self._close_now()
        elif (waiting := self._pings.get(opaque)) and not waiting.done():
            waiting.set_result(None)

    def _on_go_away(self, event: ConnectionTerminated) -> None:
        said = printable((event.additional_data or b"").decode(errors="replace"))
        if event.error_code:
            sentence = f"the other side gave up: {said or 'it does not say why'}"
            self._end(Ended(False, sentence, event.error_code), silently=True)
            return
        self._refuse_new(said or "the other side closed it")
        if self._connection.side is Http2Side.SERVER:
            self.close(said)
        elif (last := event.last_stream_id or 0) != ALL_STREAMS:
            self._dismissed = True
            for http_stream in [it for it in self._streams.values() if it.id > last]:
                http_stream.on_reset(ErrorCodes.REFUSED_STREAM, ours=False)
        self._end_if_idle()
