from __future__ import annotations

import struct

import pytest
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.settings import SettingCodes
from hpack import Encoder
from hyperframe.frame import (
    GoAwayFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from htty.frames_by_hand import (
    GET,
    HELLO,
    OK,
    POST,
    continuation,
    data,
    headers,
    headers_begun,
    only,
    parsed,
)
from telex.htty import limits
from telex.htty.errors import BadHeaders
from telex.htty.h2.header_fields import HeaderBlock, Headers
from telex.htty.h2.http2_frames import ALL_STREAMS
from telex.htty.h2.http2_state import Http2Side, Http2State, ProtocolViolation


def server() -> Http2State:
    """Return a server whose client's preface and SETTINGS were sent by hand."""
    connection = Http2State(Http2Side.SERVER)
    connection.begin()
    connection.receive(HELLO, 0.0)
    connection.to_send()
    return connection


def joined() -> tuple[Http2State, Http2State]:
    client, server = Http2State(Http2Side.CLIENT), Http2State(Http2Side.SERVER)
    client.begin()
    server.begin()
    settle(client, server)
    return client, server


def settle(one: Http2State, two: Http2State) -> list[Event | ProtocolViolation]:
    """Exchange bytes until there are none; return the events."""
    events: list[Event | ProtocolViolation] = []
    while one.unsent or two.unsent:
        events += two.receive(one.to_send(), 0.0)
        events += one.receive(two.to_send(), 0.0)
    return events


def of(kind: type[Event], events: list[Event | ProtocolViolation]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def broken(events: list[Event | ProtocolViolation]) -> int | None:
    return next((event.code for event in events if isinstance(event, ProtocolViolation)), None)


def test_a_server_announces_itself_with_settings_at_once() -> None:
    connection = Http2State(Http2Side.SERVER)
    connection.begin()
    first = parsed(connection.to_send())[0]
    assert isinstance(first, SettingsFrame)
    assert first.settings[SettingCodes.ENABLE_CONNECT_PROTOCOL] == 1
    assert first.settings[SettingCodes.ENABLE_PUSH] == 0
    assert first.settings[SettingCodes.MAX_CONCURRENT_STREAMS] == limits.HTTY_STREAMS
    assert first.settings[SettingCodes.INITIAL_WINDOW_SIZE] == limits.HTTY_STREAM_WINDOW
    assert first.settings[SettingCodes.MAX_HEADER_LIST_SIZE] == limits.HTTY_HEADER_BYTES


def test_a_request_and_its_response_cross_with_their_bodies() -> None:
    client, server = joined()
    stream = client.request(POST, end=False)
    client.data(stream, memoryview(b"question"), end=True)
    events = settle(client, server)
    [request] = of(RequestReceived, events)
    assert isinstance(request, RequestReceived)
    assert request.headers == POST
    server.headers(stream, OK, HeaderBlock.RESPONSE, end=False)
    server.data(stream, memoryview(b"answer"), end=True)
    events = settle(client, server)
    assert [type(event) for event in events] == [ResponseReceived, DataReceived, StreamEnded]


def test_a_websocket_is_asked_for_with_extended_connect() -> None:
    client, server = joined()
    assert client.extended_connect
    asked: Headers = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:]]
    client.request(asked, end=False)
    [request] = of(RequestReceived, settle(client, server))
    assert isinstance(request, RequestReceived)
    assert request.headers == asked


@pytest.mark.parametrize(
    "bad",
    [
        headers(1, [*GET, (b"X-Upper", b"1")], "END_STREAM"),
        headers(1, [*GET, (b"x", b"a\r\nb")], "END_STREAM"),
        headers(1, [*GET, (b"connection", b"close")], "END_STREAM"),
        headers(1, GET[:3], "END_STREAM"),
        headers(1, [*POST, (b"content-length", b"x")]),
        headers(1, [*POST, (b"content-length", b"1"), (b"content-length", b"2")]),
        headers(1, [*POST, (b"content-length", b"4")]) + data(1, b"12", "END_STREAM"),
        headers(1, [*POST, (b"content-length", b"4")]) + data(1, b"12345"),
        headers(1, POST) + headers(1, [(b"x", b"not an end")]),
        headers(1, POST, "END_STREAM") + data(1, b"late"),
        headers_begun(1, [*GET, (b"x y", b"")], "END_STREAM") + continuation(1, b"", "END_HEADERS"),
    ],
)
def test_a_malformed_request_ends_its_stream_and_not_the_connection(bad: bytes) -> None:
    connection = server()
    events = connection.receive(bad + headers(3, GET, "END_STREAM"), 0.0)
    assert broken(events) is None
    last = of(RequestReceived, events)[-1]
    assert isinstance(last, RequestReceived)
    assert last.stream_id == 3
    sent = parsed(connection.to_send())
    assert [frame.stream_id for frame in only(RstStreamFrame, sent)] == [1]
    assert not only(GoAwayFrame, sent)


def test_the_window_of_a_malformed_body_is_restored() -> None:
    connection = server()
    half = limits.HTTY_CONNECTION_WINDOW // 2
    for stream in range(1, 2 * half // limits.HTTY_FRAME_BYTES + 2, 2):
        bad = headers(stream, [*POST, (b"content-length", b"4")])
        connection.receive(bad + data(stream, bytes(limits.HTTY_FRAME_BYTES)), float(stream))
    updates = only(WindowUpdateFrame, parsed(connection.to_send()))
    assert sum(update.window_increment for update in updates if not update.stream_id) >= half


def test_only_the_request_over_the_limit_is_refused() -> None:
    connection = server()
    last = 2 * limits.HTTY_STREAMS + 1
    for stream in range(1, last + 1, 2):
        events = connection.receive(headers(stream, GET, "END_STREAM"), 0.0)
    [refused] = of(StreamReset, events)
    assert isinstance(refused, StreamReset)
    assert refused.error_code == ErrorCodes.REFUSED_STREAM
    assert [frame.stream_id for frame in only(RstStreamFrame, parsed(connection.to_send()))] == [
        last
    ]
    connection.headers(1, OK, HeaderBlock.RESPONSE, end=True)
    assert of(RequestReceived, connection.receive(headers(last + 2, GET, "END_STREAM"), 0.0))


def test_frames_under_way_on_a_reset_stream_are_credited_and_not_answered() -> None:
    connection = server()
    connection.receive(headers(1, POST), 0.0)
    connection.reset(1, ErrorCodes.CANCEL)
    connection.to_send()
    frame, half = data(1, bytes(limits.HTTY_FRAME_BYTES)), limits.HTTY_CONNECTION_WINDOW // 2
    for _ in range(half // limits.HTTY_FRAME_BYTES):
        assert broken(connection.receive(frame, 0.0)) is None
    sent = parsed(connection.to_send())
    assert not only(RstStreamFrame, sent)
    assert [
        (update.stream_id, update.window_increment) for update in only(WindowUpdateFrame, sent)
    ] == [(0, half)]


def test_open_streams_continue_after_a_goaway_of_either_side() -> None:
    client, server = joined()
    stream = client.request(GET, end=True)
    settle(client, server)
    server.go_away(announced=True)
    client.go_away()
    terminated = of(ConnectionTerminated, settle(client, server))
    assert {
        event.last_stream_id for event in terminated if isinstance(event, ConnectionTerminated)
    } == {
        0,
        ALL_STREAMS,
    }
    server.headers(stream, OK, HeaderBlock.RESPONSE, end=True)
    assert of(StreamEnded, settle(client, server))


def test_a_request_after_our_goaway_is_refused() -> None:
    connection = server()
    connection.go_away(announced=True)
    events = connection.receive(headers(1, GET, "END_STREAM"), 0.0)
    assert [type(event) for event in events] == [StreamReset]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\xff\xff\xff\x00\x00\x00\x00\x00\x01", ErrorCodes.FRAME_SIZE_ERROR),
        (continuation(1, b"", "END_HEADERS"), ErrorCodes.PROTOCOL_ERROR),
        (headers_begun(1, GET) + data(1, b"x"), ErrorCodes.PROTOCOL_ERROR),
        (headers_begun(1, GET) + GoAwayFrame(0).serialize(), ErrorCodes.PROTOCOL_ERROR),
        (headers_begun(1, GET) + b"\0\0\0\xfe\0\0\0\0\0", ErrorCodes.PROTOCOL_ERROR),
        (headers(2, GET), ErrorCodes.PROTOCOL_ERROR),
        (headers(1, [(b"x", bytes(limits.HTTY_HEADER_BYTES))]), ErrorCodes.ENHANCE_YOUR_CALM),
        (b"\0\0\1\1\5\0\0\0\1\xff", ErrorCodes.PROTOCOL_ERROR),
    ],
    ids=[
        "too long",
        "naked",
        "data amid",
        "goaway amid",
        "unknown amid",
        "even",
        "fields",
        "hpack",
    ],
)
def test_a_connection_error_ends_it_with_a_goaway_and_its_reason(
    sent: bytes, code: ErrorCodes
) -> None:
    connection = server()
    events = connection.receive(sent, 0.0)
    assert broken(events) == code
    goaway = parsed(connection.to_send())[-1]
    assert isinstance(goaway, GoAwayFrame)
    assert goaway.error_code == code
    assert goaway.additional_data
    assert connection.receive(headers(1, GET), 0.0) == []


def padded(kind: int, flags: int, payload: bytes, stream: int = 1) -> bytes:
    """Return a frame made by hand, because hyperframe makes no invalid ones."""
    return struct.pack(">BHBBL", 0, len(payload), kind, flags | 0x8, stream) + payload


FIELDS = Encoder().encode(GET, huffman=False)
PRIORITY = b"\0\0\0\0\x10"


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (padded(0, 0, b"\x05abcd"), ErrorCodes.PROTOCOL_ERROR),
        (padded(0, 1, b"\x06abcd"), ErrorCodes.PROTOCOL_ERROR),
        (padded(0, 0, b"\xff"), ErrorCodes.PROTOCOL_ERROR),
        (padded(0, 0, b"\x01"), ErrorCodes.PROTOCOL_ERROR),
        (padded(0, 0, b""), ErrorCodes.FRAME_SIZE_ERROR),
        (padded(0, 0, b"\x05abcd", stream=7), ErrorCodes.PROTOCOL_ERROR),
        (padded(1, 4, bytes([len(FIELDS) + 1]) + FIELDS, stream=3), ErrorCodes.PROTOCOL_ERROR),
        (padded(1, 4 | 0x20, b"\x04" + PRIORITY + b"abc", stream=3), ErrorCodes.PROTOCOL_ERROR),
        (padded(1, 4 | 0x20, b"\0\0\0", stream=3), ErrorCodes.FRAME_SIZE_ERROR),
    ],
)
def test_padding_as_long_as_its_frame_ends_the_connection(sent: bytes, code: ErrorCodes) -> None:
    connection = server()
    connection.receive(headers(1, POST), 0.0)
    assert broken(connection.receive(sent, 0.0)) == code
    sent = parsed(connection.to_send())
    assert [frame.error_code for frame in only(GoAwayFrame, sent)] == [code]
    assert not only(RstStreamFrame, sent)


def test_padding_up_to_the_end_of_its_frame_is_not_part_of_the_body() -> None:
    connection = server()
    fields = padded(1, 4, bytes([3]) + FIELDS.replace(b"GET", b"POS") + b"\0\0\0")
    assert broken(connection.receive(fields, 0.0)) is None
    events = connection.receive(padded(0, 0, b"\x04\0\0\0\0") + padded(0, 0, b"\x02ab\0\0"), 0.0)
    assert broken(events) is None
    received = [event.data for event in events if isinstance(event, DataReceived)]
    assert received == [b"", b"ab"]


def test_nothing_is_sent_of_a_body_while_its_window_is_closed() -> None:
    client, _ = joined()
    stream = client.request(POST, end=False)
    window = client.window(stream)
    for _ in range(0, window, client.frame_bytes):
        client.data(stream, memoryview(bytes(client.frame_bytes)), end=False)
    assert client.window(stream) == 0
    client.to_send()
    assert client.data(stream, memoryview(b"more"), end=True) == 0
    assert client.to_send() == b""
    assert client.data(stream, memoryview(b""), end=True) == 0  # the end needs no window
    assert [frame.flags for frame in parsed(client.to_send())] == [{"END_STREAM"}]


def test_goaway_is_sent_once_and_again_only_for_an_error() -> None:
    _, server = joined()
    server.go_away(announced=True)
    server.go_away()
    server.go_away()
    sent = only(GoAwayFrame, parsed(server.to_send()))
    assert [frame.last_stream_id for frame in sent] == [ALL_STREAMS, 0]
    server.go_away(ErrorCodes.PROTOCOL_ERROR, "no")
    assert len(only(GoAwayFrame, parsed(server.to_send()))) == 1


def test_a_first_frame_other_than_settings_is_refused() -> None:
    connection = Http2State(Http2Side.CLIENT)
    connection.begin()
    assert broken(connection.receive(data(1, b"x"), 0.0)) == ErrorCodes.PROTOCOL_ERROR


def test_a_server_must_not_push() -> None:
    client = Http2State(Http2Side.CLIENT)
    client.begin()
    client.receive(SettingsFrame(0).serialize(), 0.0)
    client.request(GET, end=True)
    push = PushPromiseFrame(1, 2, Encoder().encode(GET))
    push.flags.add("END_HEADERS")
    assert broken(client.receive(push.serialize(), 0.0)) == ErrorCodes.PROTOCOL_ERROR


def test_frames_of_unknown_types_are_ignored() -> None:
    connection = server()
    assert connection.receive(b"\0\0\2\xfe\0\0\0\0\0ab" + headers(1, GET), 0.0)


def test_header_fields_over_the_peers_limit_are_not_sent() -> None:
    client, server = joined()
    with pytest.raises(BadHeaders, match="longer"):
        client.request([*GET, (b"cookie", bytes(b"x" * limits.HTTY_HEADER_BYTES))], end=True)
    with pytest.raises(BadHeaders, match="character"):
        client.request([*GET, (b"x", b"a\nb")], end=True)
    assert not client.unsent
    stream = client.request(GET, end=True)
    assert of(RequestReceived, settle(client, server))
    with pytest.raises(BadHeaders):
        server.headers(
            stream, [(b":status", b"200"), (b"Bad", b"1")], HeaderBlock.RESPONSE, end=True
        )


def test_credentials_stay_out_of_the_compression_table() -> None:
    client, _ = joined()
    for _ in range(2):
        client.request([*GET, (b"authorization", b"Bearer secret")], end=True)
    table = client._h2.encoder.header_table.dynamic_entries
    assert not [entry for entry in table if b"secret" in entry[1]]
    assert [entry for entry in table if entry[1] == b"page.localhost"]


def test_header_fields_in_many_frames_are_not_collected_past_the_limit() -> None:
    connection = server()
    sent = headers_begun(1, GET) + continuation(1, bytes(1_000)) * 40
    assert broken(connection.receive(sent, 0.0)) == ErrorCodes.ENHANCE_YOUR_CALM


def test_the_number_of_different_settings_is_bounded() -> None:
    connection = server()
    kinds = [
        b"".join((n).to_bytes(2, "big") + bytes(4) for n in range(at, at + 20))
        for at in (100, 200, 300)
    ]
    sent = b"".join(len(body).to_bytes(3, "big") + b"\4\0\0\0\0\0" + body for body in kinds)
    assert broken(connection.receive(sent, 0.0)) == ErrorCodes.ENHANCE_YOUR_CALM
