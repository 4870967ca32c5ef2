"""The half of an HTTP/2 connection that sends: calls in, bytes out. No I/O.

The other half is `connection`, which is what everybody uses; they share one h2.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from h2.config import H2Configuration
from h2.connection import ConnectionInputs, H2Connection
from h2.errors import ErrorCodes
from h2.stream import StreamInputs
from hpack.struct import NeverIndexedHeaderTuple

from telex.htty import fields, frames
from telex.htty.compression import RememberingDecoder, RememberingEncoder
from telex.htty.errors import BadHeaders
from telex.htty.fields import Block, Headers
from telex.htty.frames import Frame, Type
from telex.wire import limits

ALL_STREAMS: Final = 2**31 - 1
"""As the last stream of a GOAWAY: it is only announced, and a second one will say which was."""

_RESETS_REMEMBERED = 1024
_SECRET = frozenset((b"authorization", b"proxy-authorization"))


class Side(Enum):
    """The terminal is the client, the program the server."""

    CLIENT = "client"
    SERVER = "server"


class _Http2(H2Connection):
    # h2 remembers how 65,536 streams were closed: 10 MB, for frames that were then under way.
    MAX_CLOSED_STREAMS = 4096


class Outgoing:
    """What may be said, and what waits to be written of it."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.unsent = 0
        """Bytes that wait for `to_send`."""
        self.broken = False
        """Nothing that comes is looked at, and nothing but what waits is sent."""
        self._h2 = _Http2(
            H2Configuration(
                client_side=side is Side.CLIENT,
                header_encoding=None,
                # `fields` checks both directions: the same rules, and sooner done.
                validate_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._h2.encoder = RememberingEncoder()
        self._h2.decoder = RememberingDecoder()
        self._leaving = False
        self._gone_away = False
        """Whether the last GOAWAY was said."""
        self._out: list[bytes | memoryview] = []
        self._reset: dict[int, None] = {}

    def to_send(self) -> bytes:
        """All that waits to be written, once."""
        out, self._out, self.unsent = self._out, [], 0
        return b"".join(out)

    def _send(self, data: bytes | memoryview) -> None:
        self._out.append(data)
        self.unsent += len(data)

    def _collect(self, *, answering: Frame | None = None) -> None:
        data = self._h2.data_to_send()
        if answering and answering.stream in self._reset:
            # We gave this stream up. h2 says so again for every frame that was under way, which
            # nobody needs (RFC 9113 §5.1: they are ignored), and which a peer with a budget counts.
            again = frames.reset(answering.stream, ErrorCodes.STREAM_CLOSED)
            data = data.removesuffix(again)
        if data:
            self._send(data)

    @property
    def streams_allowed(self) -> int:
        """How many the peer lets us open at a time."""
        return min(self._h2.remote_settings.max_concurrent_streams, limits.HTTY_STREAMS)

    @property
    def extended_connect(self) -> bool:
        return bool(self._h2.remote_settings.enable_connect_protocol)

    def request(self, headers: Headers, *, end: bool) -> int:
        """Open a stream."""
        self._check(headers, Block.REQUEST)
        stream = self._h2.get_next_available_stream_id()
        self._h2.send_headers(stream, _guarded(headers), end_stream=end)
        self._collect()
        return stream

    def headers(self, stream: int, headers: Headers, block: Block, *, end: bool) -> None:
        """A response, or trailers of either side."""
        self._check(headers, block)
        self._h2.send_headers(stream, _guarded(headers), end_stream=end)
        self._collect()

    def _check(self, headers: Headers, block: Block) -> None:
        most = self._h2.remote_settings.max_header_list_size
        if fault := fields.fault(headers, block):
            raise BadHeaders(fault)
        if most is not None and fields.size(headers) > most:
            raise BadHeaders(f"the header fields are longer than the {most} bytes the peer takes")

    @property
    def frame_bytes(self) -> int:
        """How much of a body one frame takes."""
        return min(self._h2.max_outbound_frame_size, limits.HTTY_FRAME_BYTES)

    def window(self, stream: int) -> int:
        """How much of a body may be sent."""
        return self._h2.local_flow_control_window(stream)

    def data(self, stream: int, data: memoryview, *, end: bool) -> int:
        """One frame of a body, as long as it may be. How much of it that was; nothing is sent while
        the window is closed, unless it is the end of a body and nothing more.

        h2 is told of it and does not make it: it would copy each byte five times.
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
        self._send(frames.head(Type.DATA, size, stream, frames.END_STREAM if ends else 0))
        self._send(data[:size])
        return size

    def reset(self, stream: int, code: ErrorCodes) -> None:
        """Give up a stream, open or not."""
        known = self._h2.streams.get(stream)
        if known is None or known.closed:
            self._send(frames.reset(stream, code))
            return
        self._h2.reset_stream(stream, code)
        self._collect()
        self._reset[stream] = None
        if len(self._reset) > _RESETS_REMEMBERED:
            del self._reset[next(iter(self._reset))]

    def taken(self, stream: int, size: int) -> None:
        """That much of a body has been read, or is not wanted: the peer may send as much more."""
        if size and not self.broken:
            self._h2.acknowledge_received_data(size, stream)
            self._collect()

    def ping(self, opaque: bytes) -> None:
        self._h2.ping(opaque)
        self._collect()

    def go_away(
        self, code: ErrorCodes = ErrorCodes.NO_ERROR, text: str = "", *, announced: bool = False
    ) -> None:
        """GOAWAY. `announced`: another will follow, and until then nothing is decided."""
        if not announced and code == ErrorCodes.NO_ERROR and self._gone_away:
            return  # it is said once
        self._leaving, self._gone_away = True, not announced
        last = ALL_STREAMS if announced else self._h2.highest_inbound_stream_id
        self._send(frames.go_away(last, code, text))


def _guarded(headers: Headers) -> Headers:
    """Credentials in no table of the compression, where guesses at them could be weighed."""
    return [
        NeverIndexedHeaderTuple(name, value) if name in _SECRET else (name, value)
        for name, value in headers
    ]
