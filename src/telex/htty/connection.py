"""One HTTP/2 connection as h2 sees it, with the limits and the patience h2 lacks. No I/O.

Frames are given to h2 one by one (`frames`), so that what one of them breaks takes nothing else
with it. Three things are kept from h2: GOAWAY, after which it would neither send nor take anything
although exchanges may end; our limit of streams, past which it would give up the connection instead
of one stream; and frames that nobody knows. And h2 ends the connection for a malformed request,
where RFC 9113 §8.1.1 asks for the end of one stream: `_mend`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from h2.connection import ConnectionState
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    RequestReceived,
    ResponseReceived,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import InvalidBodyLengthError, ProtocolError
from h2.settings import SettingCodes, Settings
from hpack.exceptions import HPACKError
from hyperframe.exceptions import HyperframeError

from telex.htty import fields, frames
from telex.htty.budget import Budget, Kind
from telex.htty.fields import Block
from telex.htty.frames import Frame, Frames, Type, Unreadable
from telex.htty.outgoing import ALL_STREAMS, Outgoing, Side
from telex.wire import limits

_SETTING_BYTES = 6
__all__ = ["ALL_STREAMS", "Broken", "Connection", "Side"]

_COUNTED: dict[int, Kind] = {
    Type.RST_STREAM: Kind.RESET,
    Type.PING: Kind.PING,
    Type.SETTINGS: Kind.SETTINGS,
    Type.PRIORITY: Kind.UNKNOWN,
    Type.WINDOW_UPDATE: Kind.WINDOW,
}
_WITH_FIELDS = (Type.HEADERS, Type.PUSH_PROMISE, Type.CONTINUATION)
_OF_MESSAGE = (Type.HEADERS, Type.CONTINUATION, Type.DATA)
_BLOCKS: dict[type[Event], Block] = {
    RequestReceived: Block.REQUEST,
    ResponseReceived: Block.RESPONSE,
    TrailersReceived: Block.TRAILERS,
}


_OPEN = {Side.CLIENT: ConnectionState.CLIENT_OPEN, Side.SERVER: ConnectionState.SERVER_OPEN}


@dataclass(frozen=True, slots=True)
class Broken:
    """The peer did what ends a connection. A GOAWAY that says so is among what is to be sent."""

    code: int
    sentence: str


class Connection(Outgoing):
    """Bytes in, events out; calls in, bytes out."""

    def __init__(self, side: Side) -> None:
        super().__init__(side)
        self._frames = Frames(preface=side is Side.SERVER)
        self._budget = Budget()
        self._block_bytes = 0
        self._greeted = False

    def begin(self) -> None:
        """SETTINGS, at once: from a server they are what announces a page."""
        h2, client = self._h2, self.side is Side.CLIENT
        announced = {
            SettingCodes.INITIAL_WINDOW_SIZE: limits.HTTY_STREAM_WINDOW,
            SettingCodes.MAX_FRAME_SIZE: limits.HTTY_FRAME_BYTES,
            SettingCodes.MAX_HEADER_LIST_SIZE: limits.HTTY_HEADER_BYTES,
            SettingCodes.ENABLE_PUSH: 0,
            SettingCodes.ENABLE_CONNECT_PROTOCOL: int(not client),
        }
        streams = {SettingCodes.MAX_CONCURRENT_STREAMS: limits.HTTY_STREAMS}
        h2.local_settings = Settings(client=client, initial_values=announced | streams)
        h2.initiate_connection()
        # What h2 itself holds the peer to. Of streams it must not know: see `_admitted`.
        h2.local_settings = Settings(client=client, initial_values=announced)
        h2.max_inbound_frame_size = limits.HTTY_FRAME_BYTES
        h2.decoder.max_header_list_size = limits.HTTY_HEADER_BYTES
        h2.increment_flow_control_window(
            limits.HTTY_CONNECTION_WINDOW - h2.inbound_flow_control_window
        )
        if not client:
            h2.receive_data(frames.PREFACE)  # `Frames` has seen it when the first frame comes
        self._collect()

    # What comes

    def receive(self, data: bytes, now: float) -> list[Event | Broken]:
        """What the peer's bytes mean. After `Broken` nothing follows."""
        events: list[Event | Broken] = []
        for frame in self._frames.take(data):
            if self.broken:
                break
            match frame:
                case Unreadable():
                    events.append(self._unreadable(frame))
                case Frame():
                    fault = frames.padding_fault(frame)
                    events += [self._unreadable(fault)] if fault else self._frame(frame, now)
        return events

    def _frame(self, frame: Frame, now: float) -> list[Event | Broken]:
        if not self._greeted:
            if frame.type != Type.SETTINGS or frame.flags & frames.ACK:
                return [self.give_up(ErrorCodes.PROTOCOL_ERROR, "its first frame was not SETTINGS")]
            self._greeted = True
        kind = self._kind(frame)
        if kind and not self._budget.spend(kind, now):
            return [self._flooded(kind)]
        if (
            frame.type == Type.SETTINGS
            and frame.size > limits.HTTY_SETTINGS_ENTRIES * _SETTING_BYTES
        ):
            return [self._flooded(Kind.SETTINGS)]
        if frame.type in _WITH_FIELDS and (broken := self._block(frame)):
            return [broken]
        if not self._block_bytes:
            if frame.type > Type.CONTINUATION:
                return []
            if frame.type == Type.GOAWAY and not frame.stream and frame.size >= 8:
                return [_gone_away(frame)]
        return self._given(frame, now)

    def _kind(self, frame: Frame) -> Kind | None:
        """Which budget it is for, if it moves nothing."""
        match frame.type:
            case Type.DATA:
                return self._kind_of_data(frame)
            case Type.HEADERS if frame.stream in self._reset:
                return Kind.RESET
            case known if known <= Type.CONTINUATION:
                return _COUNTED.get(known)
        return Kind.UNKNOWN

    def _kind_of_data(self, frame: Frame) -> Kind | None:
        known = self._h2.streams.get(frame.stream)
        if known is not None and not known.closed:
            moves = frame.size > 0 or frame.flags & frames.END_STREAM
        else:  # after our reset, data may still be under way
            moves = frame.size > 0 and frame.stream in self._reset
        return None if moves else Kind.EMPTY

    def _block(self, frame: Frame) -> Broken | None:
        """Header fields in several frames: h2 would take four megabytes of them."""
        if frame.type == Type.CONTINUATION and not self._block_bytes:
            return self.give_up(ErrorCodes.PROTOCOL_ERROR, "a CONTINUATION continues nothing")
        self._block_bytes += frame.size + 1  # an empty frame opens a block, too
        if self._block_bytes > limits.HTTY_HEADER_BYTES:
            return self.give_up(ErrorCodes.ENHANCE_YOUR_CALM, "its header fields are too long")
        if frame.flags & frames.END_HEADERS:
            self._block_bytes = 0
        return None

    @property
    def amid_headers(self) -> bool:
        """Header fields have begun and not ended. Nothing else can come meanwhile."""
        return self._block_bytes > 0

    def _given(self, frame: Frame, now: float) -> list[Event | Broken]:
        h2 = self._h2
        try:
            events = h2.receive_data(frame.data)
        except ProtocolError as refusal:
            mended = self._mend(frame, refusal)
            if mended is None:
                return [self.give_up(refusal.error_code, str(refusal))]
            events = [mended]
        self._collect(answering=frame)
        if frame.type == Type.SETTINGS and len(h2.remote_settings) > limits.HTTY_SETTINGS_ENTRIES:
            return [self._flooded(Kind.SETTINGS)]
        return self._sifted(events, now)

    def _mend(self, frame: Frame, refusal: ProtocolError) -> Event | None:
        """A malformed message ends its stream, not the connection, if h2 can go on without it."""
        stream, h2 = frame.stream, self._h2
        on_stream = frame.type in _OF_MESSAGE and stream in h2.streams
        malformed = type(refusal) in (ProtocolError, InvalidBodyLengthError)
        unreadable = isinstance(refusal.__cause__, HPACKError | HyperframeError)
        if not (on_stream and malformed) or unreadable:
            return None
        h2.clear_outbound_data_buffer()  # the GOAWAY, and nothing else: see `_collect`
        h2.state_machine.state = _OPEN[self.side]
        event = self._malformed(stream)
        if frame.type == Type.DATA:
            h2.acknowledge_received_data(frame.size, stream)
        return event

    def _malformed(self, stream: int) -> Event:
        self.reset(stream, ErrorCodes.PROTOCOL_ERROR)
        return StreamReset(
            stream_id=stream, error_code=ErrorCodes.PROTOCOL_ERROR, remote_reset=False
        )

    def _sifted(self, events: list[Event], now: float) -> list[Event | Broken]:
        """Without what is malformed or has no room, and with an eye on what h2 lets through."""
        passed: list[Event | Broken] = []
        for event in events:
            match event:
                case DataReceived():  # all of it padding? Without, `_kind` saw it.
                    idle = not event.data and not event.stream_ended
                    kind = Kind.EMPTY if idle and event.flow_controlled_length else None
                case RequestReceived() | ResponseReceived() | TrailersReceived():
                    if refusal := self._refused(event):
                        return self._sifted([refusal], now)
                    kind = None
                case InformationalResponseReceived():
                    kind = Kind.EMPTY
                case StreamReset(remote_reset=False):
                    kind = Kind.RESET  # provoked
                case _:
                    kind = None
            if kind and not self._budget.spend(kind, now):
                return [self._flooded(kind)]
            passed.append(event)
        return passed

    def _refused(
        self, event: RequestReceived | ResponseReceived | TrailersReceived
    ) -> Event | None:
        """Why a message is not to be: the end of its stream, then, and of nothing else."""
        if fields.fault(event.headers, _BLOCKS[type(event)]):
            return self._malformed(event.stream_id)
        if isinstance(event, RequestReceived) and (self._leaving or self._full()):
            self.reset(event.stream_id, ErrorCodes.REFUSED_STREAM)
            return StreamReset(
                stream_id=event.stream_id,
                error_code=ErrorCodes.REFUSED_STREAM,
                remote_reset=False,
            )
        return None

    def _full(self) -> bool:
        streams = limits.HTTY_STREAMS
        return len(self._h2.streams) > streams and self._h2.open_inbound_streams > streams

    # What ends it

    def give_up(self, code: ErrorCodes, sentence: str) -> Broken:
        """End the connection at once, and say why to whoever reads it."""
        self._h2.clear_outbound_data_buffer()
        self.go_away(code, sentence)
        self.broken = True
        return Broken(code, sentence)

    def _unreadable(self, fault: Unreadable) -> Broken:
        code = ErrorCodes.FRAME_SIZE_ERROR if fault.too_long else ErrorCodes.PROTOCOL_ERROR
        return self.give_up(code, fault.sentence)

    def _flooded(self, kind: Kind) -> Broken:
        return self.give_up(ErrorCodes.ENHANCE_YOUR_CALM, f"it sent too many {kind.value}")


def _gone_away(frame: Frame) -> ConnectionTerminated:
    event = ConnectionTerminated()
    last, event.error_code = struct.unpack_from(">LL", frame.data, frames.HEADER_BYTES)
    event.last_stream_id = last & ALL_STREAMS
    event.additional_data = bytes(frame.data[frames.HEADER_BYTES + 8 :])
    return event
