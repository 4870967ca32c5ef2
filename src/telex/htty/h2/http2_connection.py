"""An HTTP/2 connection over any `ByteStream`: it reads, writes, and passes events to their streams.

This is the asynchronous part around `Http2State`, for the terminal (client) and the program
(server).

Theory of the end. After a program has ended, a shell takes over the terminal, and bytes that the
client wrote too late would be typed into its command line. So the server must know that nothing of
the client is under way before it stops reading. It closes in these steps:

1. Announce (`close`): GOAWAY with the highest stream id. Both sides open no new streams
   (`_leaving`), and open streams have `HTTY_CLOSE_SECONDS` to complete.
2. Drain: when the last stream has ended, the server sends a PING (`_draining`). Frames arrive in
   order, so when the answer arrives, nothing that the client sent before is under way.
3. Final GOAWAY (`_close_now`), and then the byte stream is closed.

A client that received the final GOAWAY (`_dismissed`) and has no open stream writes nothing more,
not even a GOAWAY of its own. A client that wants to close sends GOAWAY; the server then begins with
step 1. If the peer has not sent SETTINGS yet, the server skips the drain, because no stream can be
open.

Three things end the connection at once (`_end`; the first reason is kept): a GOAWAY with an error
code, a protocol violation, and the end of the byte stream. The last one is graceful only if the
connection was already closing and no stream was open. `run` then fails all streams, pings and
waiting requests with the reason (`_finish`).
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
from telex.htty.errors import BadHeaders, ConnectionOver
from telex.htty.h2.header_fields import Headers
from telex.htty.h2.http2_frames import ALL_STREAMS
from telex.htty.h2.http2_state import Http2Side, Http2State, ProtocolViolation
from telex.htty.h2.http_stream import ByteStream, Http2Writer, HttpStream, StallWatch, StreamSlots
from telex.transports.channels import printable

_DRAIN = b"farewell"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a connection ended: gracefully or not, and why."""

    __module__ = "telex.htty"

    graceful: bool
    sentence: str
    code: int | None = None
    """The HTTP/2 error code, if a side sent one."""


class Http2Connection:
    """One connection. It works while `run` is running."""

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
        self._draining = False
        self._close_timer: asyncio.TimerHandle | None = None
        self._watch = StallWatch(self._connection, self._streams, self._on)

    @property
    def extended_connect(self) -> bool:
        """Whether the peer supports WebSockets (RFC 8441)."""
        return self._connection.extended_connect

    @property
    def leaving(self) -> bool:
        """Whether no new request can be sent."""
        return self._leaving is not None

    async def ready(self) -> None:
        """Wait for the peer's SETTINGS. Raises ConnectionOver."""
        await self._ready.wait()
        if self.over.done():
            raise ConnectionOver(self.over.result().sentence)

    async def request(self, headers: Headers, *, end: bool = False) -> HttpStream:
        """Open a stream, after waiting until the peer allows another. For a client."""
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
            self._slots.grant()  # gives the slot of this request to the next
            raise
        self._writer.wake()
        http_stream = self._open(stream, headers)
        if end:
            http_stream.on_end_sent()
        return http_stream

    async def ping(self) -> float:
        """Return the round-trip time in seconds."""
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

    # Running and closing

    async def run(self) -> Ended:
        """Run until the connection has ended. Cancelling ends it, with a GOAWAY if possible."""
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
                    part.result()  # None, or raises our own mistake
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
        self._end(Ended(False, "the connection was lost without a GOAWAY"))

    def _end(self, ended: Ended, *, silently: bool = False) -> None:
        """End the connection with this reason, unless it has one; `run` does the rest."""
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
        """Open no new streams, let the others end within `HTTY_CLOSE_SECONDS`, and send GOAWAY."""
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
        """Continue the close, if a side is leaving and the last stream has ended."""
        if self._leaving is None or self._streams or self._ending.done():
            return
        if self._connection.side is Http2Side.CLIENT:
            if self._dismissed:
                self._end(Ended(True, self._leaving, 0), silently=True)
        elif not self._ready.is_set():
            self._close_now()
        elif not self._draining:
            self._draining = True
            self._connection.ping(_DRAIN)
            self._writer.wake()

    def _close_now(self) -> None:
        if not self._ending.done():
            self._send_goaway()
            self._end(Ended(not self._streams, self._leaving or "", 0))

    def _send_goaway(self) -> None:
        """Send the final GOAWAY, after resetting the open streams.

        If streams were left open, the end of the byte stream would look like an accident.
        """
        if not self._connection.broken:
            for stream in self._streams:
                self._connection.reset(stream, ErrorCodes.CANCEL)
            self._connection.go_away(text=self._leaving or "")

    # Events from the peer

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
                self._end(Ended(False, f"the other side violated HTTP/2: {sentence}", code))

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
        if self._draining and opaque == _DRAIN:
            self._close_now()
        elif (waiting := self._pings.get(opaque)) and not waiting.done():
            waiting.set_result(None)

    def _on_go_away(self, event: ConnectionTerminated) -> None:
        reason = printable((event.additional_data or b"").decode(errors="replace"))
        if event.error_code:
            sentence = f"the other side gave up: {reason or 'it gave no reason'}"
            self._end(Ended(False, sentence, event.error_code), silently=True)
            return
        self._refuse_new(reason or "the other side closed it")
        if self._connection.side is Http2Side.SERVER:
            self.close(reason)
        elif (last := event.last_stream_id or 0) != ALL_STREAMS:
            self._dismissed = True
            for http_stream in [it for it in self._streams.values() if it.id > last]:
                http_stream.on_reset(ErrorCodes.REFUSED_STREAM, ours=False)
        self._end_if_idle()
