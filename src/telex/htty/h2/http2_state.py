"""One HTTP/2 connection as `h2` sees it, with the limits that `h2` lacks. No I/O.

`Http2State` is the class to use; its base `Http2Output` is the sending half.

Frames are given to `h2` one by one (`http2_frames`), so that a bad frame affects nothing else.
Three things are kept from `h2`: GOAWAY, after which it would neither send nor receive although
streams may still complete; our limit of streams, beyond which it would end the connection instead
of one stream; and frames of unknown types. `h2` also ends the connection for a malformed request,
where RFC 9113 §8.1.1 requires only the end of one stream: `_recover` undoes that.

Theory. `h2` holds the state of each stream (RFC 9113 §5.1). This module adds the states of the
connection:

- Before SETTINGS (`_greeted` unset). The first frame of the peer must be SETTINGS; any other frame
  ends the connection.
- Open. Frames move streams. A frame that moves nothing (a ping, an empty DATA frame, a reset) costs
  a token of its `FloodBudget`, because HTTP/2 itself sets no limit for it.
- In a header block (`in_header_block`): HEADERS without END_HEADERS was received. Only CONTINUATION
  may follow, and the sum of the block is bounded. All other streams of the peer are blocked
  meanwhile, so `StallWatch` also bounds the time.
- Leaving (`_leaving`): we sent GOAWAY. Open streams continue, new requests are refused with
  REFUSED_STREAM, which tells the client that they can be retried elsewhere. An announcing GOAWAY
  (last stream 2^31-1) is followed by the final one (`_gone_away`), which is sent once.
- Broken (`broken`): the peer violated the protocol, or the connection has ended. Received frames
  are ignored, and only the bytes that are already queued are sent.

Leaving and broken are never left again. A stream error (a malformed message, a refused stream)
resets the stream and leaves the connection open; a connection error (bad framing, HPACK, a flood)
sends GOAWAY with its code and sets `broken`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from h2.config import H2Configuration
from h2.connection import ConnectionInputs, ConnectionState, H2Connection
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
from h2.stream import StreamInputs
from hpack.exceptions import HPACKError
from hpack.struct import NeverIndexedHeaderTuple
from hyperframe.exceptions import HyperframeError

from telex.htty import limits
from telex.htty.errors import BadHeaders
from telex.htty.h2 import header_fields, http2_frames
from telex.htty.h2.header_fields import CachingDecoder, CachingEncoder, HeaderBlock, Headers
from telex.htty.h2.http2_frames import (
    ALL_STREAMS,
    BadFraming,
    FloodBudget,
    FloodKind,
    FrameSplitter,
    FrameType,
    Http2Frame,
)

_RESETS_REMEMBERED = 1024
_SECRET = frozenset((b"authorization", b"proxy-authorization"))


class Http2Side(Enum):
    """The two sides: the terminal is the client, the program is the server."""

    CLIENT = "client"
    SERVER = "server"


class _H2Connection(H2Connection):
    # h2 remembers how 65,536 streams were closed: 10 MB, only for frames still under way then.
    MAX_CLOSED_STREAMS = 4096


class Http2Output:
    """The sending half: checks what may be sent, and collects the bytes to write."""

    def __init__(self, side: Http2Side) -> None:
        self.side = side
        self.unsent = 0
        """How many bytes wait for `to_send`."""
        self.broken = False
        """Whether received frames are ignored, and only bytes that already wait are sent."""
        self._h2 = _H2Connection(
            H2Configuration(
                client_side=side is Http2Side.CLIENT,
                header_encoding=None,
                # `header_fields` checks both directions, by the same rules and faster.
                validate_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._h2.encoder = CachingEncoder()
        self._h2.decoder = CachingDecoder()
        self._leaving = False
        self._gone_away = False
        """Whether the final GOAWAY was sent."""
        self._out: list[bytes | memoryview] = []
        self._reset: dict[int, None] = {}

    def to_send(self) -> bytes:
        """Return all bytes that wait to be written, and forget them."""
        out, self._out, self.unsent = self._out, [], 0
        return b"".join(out)

    def _send(self, data: bytes | memoryview) -> None:
        self._out.append(data)
        self.unsent += len(data)

    def _collect(self, *, answering: Http2Frame | None = None) -> None:
        data = self._h2.data_to_send()
        if answering and answering.stream in self._reset:
            # We reset this stream. h2 resets it again for every frame that was under way, which is
            # unnecessary (RFC 9113 §5.1: they are ignored), and a peer with a budget counts them.
            again = http2_frames.reset_frame(answering.stream, ErrorCodes.STREAM_CLOSED)
            data = data.removesuffix(again)
        if data:
            self._send(data)

    @property
    def streams_allowed(self) -> int:
        """How many streams the peer allows us to have open at a time."""
        return min(self._h2.remote_settings.max_concurrent_streams, limits.HTTY_STREAMS)

    @property
    def extended_connect(self) -> bool:
        return bool(self._h2.remote_settings.enable_connect_protocol)

    def request(self, headers: Headers, *, end: bool) -> int:
        """Open a stream with a request, and return its id."""
        self._check(headers, HeaderBlock.REQUEST)
        stream = self._h2.get_next_available_stream_id()
        self._h2.send_headers(stream, _never_indexed(headers), end_stream=end)
        self._collect()
        return stream

    def headers(self, stream: int, headers: Headers, block: HeaderBlock, *, end: bool) -> None:
        """Send a response, or the trailers of either side."""
        self._check(headers, block)
        self._h2.send_headers(stream, _never_indexed(headers), end_stream=end)
        self._collect()

    def _check(self, headers: Headers, block: HeaderBlock) -> None:
        most = self._h2.remote_settings.max_header_list_size
        if fault := header_fields.headers_fault(headers, block):
            raise BadHeaders(fault)
        if most is not None and header_fields.headers_size(headers) > most:
            raise BadHeaders(f"the header fields are longer than the peer's limit of {most} bytes")

    @property
    def frame_bytes(self) -> int:
        """How many bytes of a body fit into one frame."""
        return min(self._h2.max_outbound_frame_size, limits.HTTY_FRAME_BYTES)

    def window(self, stream: int) -> int:
        """Return how many bytes of a body may be sent now."""
        return self._h2.local_flow_control_window(stream)

    def data(self, stream: int, data: memoryview, *, end: bool) -> int:
        """Send one frame of a body, as long as possible, and return how many bytes it carries.

        Nothing is sent while the window is closed, except the empty frame that ends a body. The
        state of h2 is updated but the frame is made here, because h2 would copy each byte five
        times.
        """
        h2, size = self._h2, min(len(data), self.frame_bytes, max(self.window(stream), 0))
        if data and not size:
            return 0
        h2.state_machine.process_input(ConnectionInputs.SEND_DATA)
        known = h2.streams[stream]
        known.state_machine.process_input(StreamInputs.SEND_DATA)
        ends = end and size == len(data)
        if ends:
            known.state_machine.process_input(StreamInputs.SEND_END_STREAM)
        known.outbound_flow_control_window -= size
        h2.outbound_flow_control_window -= size
        self._send(
            http2_frames.frame_header(
                FrameType.DATA, size, stream, http2_frames.END_STREAM if ends else 0
            )
        )
        self._send(data[:size])
        return size

    def reset(self, stream: int, code: ErrorCodes) -> None:
        """Reset a stream, open or not."""
        known = self._h2.streams.get(stream)
        if known is None or known.closed:
            self._send(http2_frames.reset_frame(stream, code))
            return
        self._h2.reset_stream(stream, code)
        self._collect()
        self._reset[stream] = None
        if len(self._reset) > _RESETS_REMEMBERED:
            del self._reset[next(iter(self._reset))]

    def acknowledge(self, stream: int, size: int) -> None:
        """Confirm that so much of a body was read or dropped: the peer may send as much more."""
        if size and not self.broken:
            self._h2.acknowledge_received_data(size, stream)
            self._collect()

    def ping(self, opaque: bytes) -> None:
        self._h2.ping(opaque)
        self._collect()

    def go_away(
        self, code: ErrorCodes = ErrorCodes.NO_ERROR, text: str = "", *, announced: bool = False
    ) -> None:
        """Send GOAWAY. `announced` means that the final one will follow later."""
        if not announced and code == ErrorCodes.NO_ERROR and self._gone_away:
            return  # sent only once
        self._leaving, self._gone_away = True, not announced
        last = ALL_STREAMS if announced else self._h2.highest_inbound_stream_id
        self._send(http2_frames.goaway_frame(last, code, text))


def _never_indexed(headers: Headers) -> Headers:
    """Mark credentials to be kept out of the compression tables, where they could be guessed."""
    return [
        NeverIndexedHeaderTuple(name, value) if name in _SECRET else (name, value)
        for name, value in headers
    ]


_SETTING_BYTES = 6

_COUNTED: dict[int, FloodKind] = {
    FrameType.RST_STREAM: FloodKind.RESET,
    FrameType.PING: FloodKind.PING,
    FrameType.SETTINGS: FloodKind.SETTINGS,
    FrameType.PRIORITY: FloodKind.UNKNOWN,
    FrameType.WINDOW_UPDATE: FloodKind.WINDOW,
}
_WITH_FIELDS = (FrameType.HEADERS, FrameType.PUSH_PROMISE, FrameType.CONTINUATION)
_OF_MESSAGE = (FrameType.HEADERS, FrameType.CONTINUATION, FrameType.DATA)
_BLOCKS: dict[type[Event], HeaderBlock] = {
    RequestReceived: HeaderBlock.REQUEST,
    ResponseReceived: HeaderBlock.RESPONSE,
    TrailersReceived: HeaderBlock.TRAILERS,
}


_OPEN = {
    Http2Side.CLIENT: ConnectionState.CLIENT_OPEN,
    Http2Side.SERVER: ConnectionState.SERVER_OPEN,
}


@dataclass(frozen=True, slots=True)
class ProtocolViolation:
    """A mistake of the peer that ends the connection. A GOAWAY for it is queued."""

    code: int
    sentence: str


class Http2State(Http2Output):
    """The whole connection: bytes in, events out; calls in, bytes out."""

    def __init__(self, side: Http2Side) -> None:
        super().__init__(side)
        self._frames = FrameSplitter(preface=side is Http2Side.SERVER)
        self._budget = FloodBudget()
        self._block_bytes = 0
        self._greeted = False

    def begin(self) -> None:
        """Send SETTINGS at once: from a server, they announce a page."""
        h2, client = self._h2, self.side is Http2Side.CLIENT
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
        # The settings that h2 itself enforces. The limit of streams is not among them: `_refused`.
        h2.local_settings = Settings(client=client, initial_values=announced)
        h2.max_inbound_frame_size = limits.HTTY_FRAME_BYTES
        h2.decoder.max_header_list_size = limits.HTTY_HEADER_BYTES
        h2.increment_flow_control_window(
            limits.HTTY_CONNECTION_WINDOW - h2.inbound_flow_control_window
        )
        if not client:
            h2.receive_data(
                http2_frames.PREFACE
            )  # `FrameSplitter` has checked it when the first frame arrives
        self._collect()

    # Receiving

    def receive(self, data: bytes, now: float) -> list[Event | ProtocolViolation]:
        """Return the events in the peer's bytes. A `ProtocolViolation` is always the last."""
        events: list[Event | ProtocolViolation] = []
        for frame in self._frames.take(data):
            if self.broken:
                break
            match frame:
                case BadFraming():
                    events.append(self._unreadable(frame))
                case Http2Frame():
                    fault = http2_frames.padding_fault(frame)
                    events += [self._unreadable(fault)] if fault else self._frame(frame, now)
        return events

    def _frame(self, frame: Http2Frame, now: float) -> list[Event | ProtocolViolation]:
        if not self._greeted:
            if frame.type != FrameType.SETTINGS or frame.flags & http2_frames.ACK:
                return [self.give_up(ErrorCodes.PROTOCOL_ERROR, "its first frame was not SETTINGS")]
            self._greeted = True
        kind = self._kind(frame)
        if kind and not self._budget.spend(kind, now):
            return [self._flooded(kind)]
        if (
            frame.type == FrameType.SETTINGS
            and frame.size > limits.HTTY_SETTINGS_ENTRIES * _SETTING_BYTES
        ):
            return [self._flooded(FloodKind.SETTINGS)]
        if frame.type in _WITH_FIELDS and (broken := self._block(frame)):
            return [broken]
        if not self._block_bytes:
            if frame.type > FrameType.CONTINUATION:
                return []
            if frame.type == FrameType.GOAWAY and not frame.stream and frame.size >= 8:
                return [_gone_away(frame)]
        return self._pass_to_h2(frame, now)

    def _kind(self, frame: Http2Frame) -> FloodKind | None:
        """Return the budget that the frame is counted in, if it moves no stream."""
        match frame.type:
            case FrameType.DATA:
                return self._kind_of_data(frame)
            case FrameType.HEADERS if frame.stream in self._reset:
                return FloodKind.RESET
            case known if known <= FrameType.CONTINUATION:
                return _COUNTED.get(known)
        return FloodKind.UNKNOWN

    def _kind_of_data(self, frame: Http2Frame) -> FloodKind | None:
        known = self._h2.streams.get(frame.stream)
        if known is not None and not known.closed:
            moves = frame.size > 0 or frame.flags & http2_frames.END_STREAM
        else:  # data may still be under way after our reset
            moves = frame.size > 0 and frame.stream in self._reset
        return None if moves else FloodKind.EMPTY

    def _block(self, frame: Http2Frame) -> ProtocolViolation | None:
        """Bound a header block of several frames: h2 would accept four megabytes."""
        if frame.type == FrameType.CONTINUATION and not self._block_bytes:
            return self.give_up(ErrorCodes.PROTOCOL_ERROR, "a CONTINUATION without HEADERS")
        self._block_bytes += frame.size + 1  # an empty frame opens a block too
        if self._block_bytes > limits.HTTY_HEADER_BYTES:
            return self.give_up(ErrorCodes.ENHANCE_YOUR_CALM, "its header fields are too long")
        if frame.flags & http2_frames.END_HEADERS:
            self._block_bytes = 0
        return None

    @property
    def in_header_block(self) -> bool:
        """Whether a header block has begun and not ended. No other frame may arrive meanwhile."""
        return self._block_bytes > 0

    def _pass_to_h2(self, frame: Http2Frame, now: float) -> list[Event | ProtocolViolation]:
        h2 = self._h2
        try:
            events = h2.receive_data(frame.data)
        except ProtocolError as refusal:
            recovered = self._recover(frame, refusal)
            if recovered is None:
                return [self.give_up(refusal.error_code, str(refusal))]
            events = [recovered]
        self._collect(answering=frame)
        if (
            frame.type == FrameType.SETTINGS
            and len(h2.remote_settings) > limits.HTTY_SETTINGS_ENTRIES
        ):
            return [self._flooded(FloodKind.SETTINGS)]
        return self._filtered(events, now)

    def _recover(self, frame: Http2Frame, refusal: ProtocolError) -> Event | None:
        """End only the stream of a malformed message, if h2 can continue without it."""
        stream, h2 = frame.stream, self._h2
        on_stream = frame.type in _OF_MESSAGE and stream in h2.streams
        malformed = type(refusal) in (ProtocolError, InvalidBodyLengthError)
        unreadable = isinstance(refusal.__cause__, HPACKError | HyperframeError)
        if not (on_stream and malformed) or unreadable:
            return None
        h2.clear_outbound_data_buffer()  # it holds only the GOAWAY: see `_collect`
        h2.state_machine.state = _OPEN[self.side]
        event = self._malformed(stream)
        if frame.type == FrameType.DATA:
            h2.acknowledge_received_data(frame.size, stream)
        return event

    def _malformed(self, stream: int) -> Event:
        self.reset(stream, ErrorCodes.PROTOCOL_ERROR)
        return StreamReset(
            stream_id=stream, error_code=ErrorCodes.PROTOCOL_ERROR, remote_reset=False
        )

    def _filtered(self, events: list[Event], now: float) -> list[Event | ProtocolViolation]:
        """Drop malformed and refused messages, and count the useless events that h2 accepts."""
        passed: list[Event | ProtocolViolation] = []
        for event in events:
            match event:
                case DataReceived():  # only padding? Without padding, `_kind` has counted it.
                    idle = not event.data and not event.stream_ended
                    kind = FloodKind.EMPTY if idle and event.flow_controlled_length else None
                case RequestReceived() | ResponseReceived() | TrailersReceived():
                    if refusal := self._refused(event):
                        return self._filtered([refusal], now)
                    kind = None
                case InformationalResponseReceived():
                    kind = FloodKind.EMPTY
                case StreamReset(remote_reset=False):
                    kind = FloodKind.RESET  # our reset, provoked by the peer
                case _:
                    kind = None
            if kind and not self._budget.spend(kind, now):
                return [self._flooded(kind)]
            passed.append(event)
        return passed

    def _refused(
        self, event: RequestReceived | ResponseReceived | TrailersReceived
    ) -> Event | None:
        """Refuse a malformed message or a request beyond the limit: return the stream's reset."""
        if header_fields.headers_fault(event.headers, _BLOCKS[type(event)]):
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

    # Ending

    def give_up(self, code: ErrorCodes, sentence: str) -> ProtocolViolation:
        """End the connection at once, with a GOAWAY that gives the reason."""
        self._h2.clear_outbound_data_buffer()
        self.go_away(code, sentence)
        self.broken = True
        return ProtocolViolation(code, sentence)

    def _unreadable(self, fault: BadFraming) -> ProtocolViolation:
        code = ErrorCodes.FRAME_SIZE_ERROR if fault.too_long else ErrorCodes.PROTOCOL_ERROR
        return self.give_up(code, fault.sentence)

    def _flooded(self, kind: FloodKind) -> ProtocolViolation:
        return self.give_up(ErrorCodes.ENHANCE_YOUR_CALM, f"it sent too many {kind.value}")


def _gone_away(frame: Http2Frame) -> ConnectionTerminated:
    event = ConnectionTerminated()
    last, event.error_code = struct.unpack_from(">LL", frame.data, http2_frames.HEADER_BYTES)
    event.last_stream_id = last & ALL_STREAMS
    event.additional_data = bytes(frame.data[http2_frames.HEADER_BYTES + 8 :])
    return event
