"""Content-Length framing: the plugin spec's grammar and LSP's, against hostile headers."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import cuts, faults, run, split, streams_of
from telex.wire import content_length, limits
from telex.wire.content_length import ContentLengthDecoder, encode
from telex.wire.events import Event, Fault, Frame, Reason

GOOD = encode(b'{"good":1}')
SPEC_EXAMPLE = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'

thick_streams = streams_of(
    GOOD,
    b"Content-Length: 3\r\n\r\n",
    b"content-length:5\n\n",
    b"Content-Length: 99\r\n",
    b"Content-Type: x\r\n",
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"log line\n",
    b"{}",
)


def frames(events: list[Event]) -> list[bytes]:
    return [event.body for event in events if isinstance(event, Frame)]


@given(thick_streams, cuts)
def test_where_the_reads_fall_never_matters(stream: bytes, where: list[int]) -> None:
    assert run(ContentLengthDecoder(max_content=40), split(stream, where)) == run(
        ContentLengthDecoder(max_content=40), [stream]
    )


@given(st.lists(st.binary()))
def test_encoded_bodies_decode_to_themselves(bodies: list[bytes]) -> None:
    assert ContentLengthDecoder().feed(b"".join(map(encode, bodies))) == [
        Frame(body) for body in bodies
    ]


@given(st.binary(max_size=300), cuts)
def test_no_bytes_make_it_raise(stream: bytes, where: list[int]) -> None:
    run(ContentLengthDecoder(), split(stream, where))


def test_the_specs_own_example_of_48_bytes_byte_for_byte() -> None:
    stream = b"Content-Length: 48\r\n\r\n" + SPEC_EXAMPLE
    assert ContentLengthDecoder().feed(stream) == [Frame(SPEC_EXAMPLE)]
    assert encode(SPEC_EXAMPLE) == stream


def test_the_length_counts_bytes_and_not_characters() -> None:
    body = '{"x":"Ü✓"}'.encode()
    assert encode(body).startswith(b"Content-Length: %d\r\n" % len(body))
    assert frames(ContentLengthDecoder().feed(encode(body) + GOOD)) == [body, b'{"good":1}']


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH:2\r\n\r\n",
        b"Content-Length:   2  \r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nX-Other: anything at all\r\n\r\n",
        b"Content-Length: 0002\r\n\r\n",
        b"\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_a_lenient_header_is_read(header: bytes) -> None:
    assert run(ContentLengthDecoder(), [header + b"{}", GOOD]) == [
        Frame(b"{}"),
        Frame(b'{"good":1}'),
    ]


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: -2\r\n\r\n",
        b"Content-Length: +2\r\n\r\n",
        b"Content-Length: 0x2\r\n\r\n",
        b"Content-Length: 2.0\r\n\r\n",
        b"Content-Length: \r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\ncontent-length: 3\r\n\r\n",
        b"Content-Type: x\r\n\r\n",
        b"Content-Length: 2\r\n" + b"X-A: b\r\n" * limits.HEADER_FIELDS + b"\r\n",
        b"X-A: " + b"b" * limits.HEADER_BYTES + b"\r\n\r\n",
        b"Debugger listening\r\n",
        b"Debugger listening: \xff\r\n\r\n",
    ],
)
def test_a_bad_header_is_one_fault_and_the_frames_around_it_survive(header: bytes) -> None:
    events = run(ContentLengthDecoder(), [GOOD + header + b"{}" + GOOD + GOOD])
    assert frames(events) == [b'{"good":1}'] * 3
    assert [fault.reason for fault in faults(events)] == [Reason.HEADER]
    assert faults(events)[0].offset == len(GOOD)


def test_content_over_the_limit_is_skipped_exactly_and_the_next_frame_is_whole() -> None:
    events = run(
        ContentLengthDecoder(max_content=10), [encode(b"Content-Length: 1\r\n\r\nx"), GOOD]
    )
    assert frames(events) == [b'{"good":1}']
    assert [fault.reason for fault in faults(events)] == [Reason.TOO_LONG]


@pytest.mark.parametrize("digits", [11, 20, 5000])
def test_a_length_that_no_peer_can_send_is_over_the_limit_and_the_next_frame_is_whole(
    digits: int,
) -> None:
    header = b"Content-Length: %b\r\n\r\n" % (b"9" * digits)
    events = run(ContentLengthDecoder(), [GOOD + header + b"{}" + GOOD])
    assert frames(events) == [b'{"good":1}'] * 2
    assert [fault.reason for fault in faults(events)] == [Reason.TOO_LONG]
    zeros = b"Content-Length: %b2\r\n\r\n{}" % (b"0" * digits)
    assert frames(run(ContentLengthDecoder(), [zeros])) == [b"{}"]


@pytest.mark.parametrize("stray", [b"warning: x\nmore\n", b"Loading... ", b"a: b", b"50 %\rdone"])
def test_stray_output_before_and_between_frames_costs_a_fault_and_not_a_frame(stray: bytes) -> None:
    events = run(ContentLengthDecoder(), [b"Starting up...\n", GOOD, stray, GOOD])
    assert frames(events) == [b'{"good":1}'] * 2
    assert len(faults(events)) == 2


def test_an_empty_content_is_an_empty_frame() -> None:
    assert ContentLengthDecoder().feed(encode(b"") + GOOD) == [Frame(b""), Frame(b'{"good":1}')]


@pytest.mark.parametrize("cut", [1, 10, len(GOOD) - 5])
def test_the_end_of_input_inside_a_frame_is_truncation(cut: int) -> None:
    decoder = ContentLengthDecoder()
    decoder.feed(GOOD + GOOD[:cut])
    assert decoder.eof() == [Fault(Reason.TRUNCATED, len(GOOD), "the input ended inside a frame")]
    assert decoder.eof() == []


@pytest.mark.parametrize(
    "flood", [b"X-Header: yes\r\n" * 256, b"x" * 4096, b"Content-Length: 7\r\n" * 256]
)
def test_an_endless_header_takes_no_more_memory_than_its_limit(flood: bytes) -> None:
    decoder = ContentLengthDecoder()
    tracemalloc.start()
    count = sum(len(decoder.feed(flood)) for _ in range(2000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 1 <= count <= 2000
    assert peak < 64 * limits.KIB


def test_a_declared_length_is_never_an_allocation() -> None:
    decoder = ContentLengthDecoder()
    tracemalloc.start()
    decoder.feed(b"Content-Length: %d\r\n\r\n" % limits.CONTENT_BYTES)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * limits.KIB


def test_a_header_that_dribbles_in_byte_by_byte_is_read() -> None:
    decoder = ContentLengthDecoder()
    events = [event for byte in GOOD for event in decoder.feed(bytes([byte]))]
    assert frames(events) == [b'{"good":1}']


def test_flush_releases_nothing() -> None:
    decoder = content_length.ContentLengthDecoder()
    decoder.feed(GOOD[:4])
    assert decoder.flush() == []
    assert frames(decoder.feed(GOOD[4:])) == [b'{"good":1}']
