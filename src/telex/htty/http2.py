"""An HTTP/2 connection over any `Beneath`: reads, writes, and hands events to their exchanges.

The thin, asynchronous side of `connection`; both the terminal (client) and the program (server).

How it ends. The server has the last word: it announces GOAWAY, lets exchanges end, asks once more
with a PING whose answer shows that nothing of the client's is under way, and then says GOAWAY for
good. So a client that has heard it writes nothing, and a shell that takes over the terminal finds
nothing typed. A GOAWAY with an error, and the end of the wire, end it at once.
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

from telex.htty.beneath import Beneath
from telex.htty.connection import ALL_STREAMS, Broken, Connection, Side
from telex.htty.errors import BadHeaders, ConnectionOver
from telex.htty.exchange import Exchange
from telex.htty.fields import Headers
from telex.htty.places import Places
from telex.htty.sending import Sending
from telex.htty.watching import Watch
from telex.transports.queued import printable
from telex.wire import limits

_FAREWELL = b"farewell"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a connection ended."""

    graceful: bool
    sentence: str
    code: int | None = None
    """HTTP/2's, if one side said one."""


class Http2:
    """One connection. `run` it; the rest works while that runs."""

    def __init__(
        self,
        beneath: Beneath,
        side: Side,
        *,
        opened: Callable[[Exchange], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.over: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._beneath = beneath
        self._connection = Connection(side)
        self._connection.begin()
        self._sending = Sending(beneath, self._connection)
        self._opened = opened
        self._clock = clock
        self._exchanges: dict[int, Exchange] = {}
        self._places = Places(self._free)
        self._pings: dict[bytes, asyncio.Future[None]] = {}
        self._pinged = 0
        self._ready = asyncio.Event()
        self._ending: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._leaving: str | None = None
        self._dismissed = False
        self._farewell = False
        self._close_timer: asyncio.TimerHandle | None = None
        self._watch = Watch(self._connection, self._exchanges, self._on)

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

    async def request(self, headers: Headers, *, end: bool = False) -> Exchange:
        """Open an exchange, when the peer has room for another. A client's."""
        if self._leaving is None:
            await self._places.take()
        if self._leaving is not None:
            raise ConnectionOver(self._leaving)
        try:
            stream = self._connection.request(headers, end=end)
        except NoAvailableStreamIDError:
            self.close("all its streams are used up")
            raise ConnectionOver("all its streams are used up") from None
        except BadHeaders:
            self._places.admit()  # this one's place
            raise
        self._sending.stir()
        exchange = self._open(stream, headers)
        if end:
            exchange.ended_here()
        return exchange

    async def ping(self) -> float:
        """How many seconds there and back take."""
        await self.ready()
        self._pinged += 1
        opaque, since = self._pinged.to_bytes(8, "big"), self._clock()
        self._pings[opaque] = asyncio.get_running_loop().create_future()
        self._connection.ping(opaque)
        self._sending.stir()
        try:
            await self._pings[opaque]
        finally:
            del self._pings[opaque]
        return self._clock() - since

    def _free(self) -> int:
        allowed = self._connection.streams_allowed if self._ready.is_set() else 0
        return allowed - len(self._exchanges)

    # From beginning to end

    async def run(self) -> Ended:
        """Until it is over. Cancelling it ends it, with a GOAWAY if one still fits."""
        self._sending.stir()
        writer = asyncio.create_task(self._sending.run())
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
            self._take_leave()
            raise
        finally:
            self._end(Ended(False, "this side gave it up"))
            self._bury()
            for part in (reader, writer):
                part.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
        return self._ending.result()

    async def _read(self) -> None:
        while data := await self._beneath.read():
            for event in self._connection.receive(data, self._clock()):
                self._on(event)
            self._sending.stir()
            self._watch.came()
            await self._sending.room()
        if self._leaving is not None and not self._exchanges:
            self._end(Ended(True, self._leaving, 0))
        self._end(Ended(False, "the connection broke off without a GOAWAY"))

    def _end(self, ended: Ended, *, silently: bool = False) -> None:
        """It is over; `run` will see to it. What is said first, holds."""
        if not self._ending.done():
            self._ending.set_result(ended)
            if silently:
                self._connection.to_send()

    def _bury(self) -> None:
        ended = self._ending.result()
        self._beneath.write(self._connection.to_send())
        self._beneath.close()
        self._connection.broken = True
        self.over.set_result(ended)
        self._watch.end()
        if self._close_timer is not None:
            self._close_timer.cancel()
        self._leave(ended.sentence)
        for exchange in list(self._exchanges.values()):
            exchange.came_over(ended.sentence)
        for waiting in self._pings.values():
            if not waiting.done():
                waiting.set_exception(ConnectionOver(ended.sentence))
        self._ready.set()

    def close(self, sentence: str = "") -> None:
        """Open nothing new, let exchanges end within `HTTY_CLOSE_SECONDS`, and say GOAWAY."""
        if self._close_timer is not None or self.over.done():
            return
        self._leave(sentence or "it was closed on this side")
        announced = self._connection.side is Side.SERVER and self._ready.is_set()
        self._connection.go_away(text=sentence, announced=announced)
        self._sending.stir()
        loop = asyncio.get_running_loop()
        self._close_timer = loop.call_later(limits.HTTY_CLOSE_SECONDS, self._close_now)
        self._end_if_idle()

    def _leave(self, sentence: str) -> None:
        self._leaving = self._leaving or sentence
        self._places.refuse(sentence)

    def _end_if_idle(self) -> None:
        """The last exchange has ended, and somebody is leaving."""
        if self._leaving is None or self._exchanges or self._ending.done():
            return
        if self._connection.side is Side.CLIENT:
            if self._dismissed:
                self._end(Ended(True, self._leaving, 0), silently=True)
        elif not self._ready.is_set():
            self._close_now()
        elif not self._farewell:
            self._farewell = True
            self._connection.ping(_FAREWELL)
            self._sending.stir()

    def _close_now(self) -> None:
        if not self._ending.done():
            self._take_leave()
            self._end(Ended(not self._exchanges, self._leaving or "", 0))

    def _take_leave(self) -> None:
        """The last that is said. To a peer whose exchanges were left open, the end of the wire
        after it would look like one that nobody meant."""
        if not self._connection.broken:
            for stream in self._exchanges:
                self._connection.reset(stream, ErrorCodes.CANCEL)
            self._connection.go_away(text=self._leaving or "")

    # What the peer says

    def _on(self, event: Event | Broken) -> None:
        match event:
            case DataReceived():
                if exchange := self._exchanges.get(event.stream_id):
                    exchange.came_data(event.data, event.flow_controlled_length)
                else:
                    self._connection.taken(event.stream_id, event.flow_controlled_length)
            case StreamEnded():
                if exchange := self._exchanges.get(event.stream_id):
                    exchange.came_end()
            case RequestReceived():
                self._open(event.stream_id, event.headers)
            case ResponseReceived():
                if exchange := self._exchanges.get(event.stream_id):
                    exchange.came_answer(event.headers)
            case WindowUpdated(stream_id=0):
                self._on_room()
            case WindowUpdated():
                if exchange := self._exchanges.get(event.stream_id):
                    exchange.came_room()
            case StreamReset():
                if exchange := self._exchanges.get(event.stream_id):
                    exchange.came_reset(event.error_code, ours=not event.remote_reset)
            case TrailersReceived():
                if exchange := self._exchanges.get(event.stream_id):
                    exchange.came_trailers(event.headers)
            case RemoteSettingsChanged():
                self._ready.set()
                self._on_room()
                self._places.admit()
            case PingAckReceived():
                self._on_pong(event.ping_data)
            case ConnectionTerminated():
                self._on_go_away(event)
            case Broken(code, sentence):
                self._end(
                    Ended(False, f"the other side broke the rules of HTTP/2: {sentence}", code)
                )

    def _open(self, stream: int, headers: Headers) -> Exchange:
        exchange = Exchange(stream, headers, self._connection, self._sending, self._on_done)
        self._exchanges[stream] = exchange
        if self._opened is not None and self._connection.side is Side.SERVER:
            self._opened(exchange)
        return exchange

    def _on_done(self, exchange: Exchange) -> None:
        del self._exchanges[exchange.id]
        self._places.admit()
        self._end_if_idle()

    def _on_room(self) -> None:
        for exchange in self._exchanges.values():
            exchange.came_room()

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
        self._leave(said or "the other side closed it")
        if self._connection.side is Side.SERVER:
            self.close(said)
        elif (last := event.last_stream_id or 0) != ALL_STREAMS:
            self._dismissed = True
            for exchange in [it for it in self._exchanges.values() if it.id > last]:
                exchange.came_reset(ErrorCodes.REFUSED_STREAM, ours=False)
        self._end_if_idle()
