"""NDJSON: one line is one frame, at any length up to the limit."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import cuts, faults, run, split, streams_of
from telex.wire import limits, ndjson
from telex.wire.events import Fault, Frame, Reason

thick_streams = streams_of(b"\n", b"\r\n", b"\r", b"{}", b" ", b"0123456789", "Ü".encode())


@given(thick_streams, cuts)
def test_where_the_reads_fall_never_matters(stream: bytes, where: list[int]) -> None:
    whole = run(ndjson.NdjsonDecoder(max_line=8), [stream])
    assert run(ndjson.NdjsonDecoder(max_line=8), split(stream, where)) == whole


@given(st.lists(st.binary(min_size=1).filter(lambda b: b"\n" not in b and b.strip() == b)))
def test_encoded_bodies_decode_to_themselves(bodies: list[bytes]) -> None:
    stream = b"".join(map(ndjson.encode, bodies))
    assert ndjson.NdjsonDecoder().feed(stream) == [Frame(body) for body in bodies]


@given(st.binary(max_size=200), cuts)
def test_no_bytes_make_it_raise(stream: bytes, where: list[int]) -> None:
    run(ndjson.NdjsonDecoder(max_line=20), split(stream, where))


def test_crlf_ends_a_line_as_lf_does_and_blank_lines_are_skipped() -> None:
    assert ndjson.NdjsonDecoder().feed(b"{}\r\n\r\n  \n\n[]\n") == [Frame(b"{}"), Frame(b"[]")]


@pytest.mark.parametrize("size", [65535, 65536, 65537, 1 << 20, limits.LINE_BYTES])
def test_lines_of_every_length_up_to_the_limit_are_read(size: int) -> None:
    decoder = ndjson.NdjsonDecoder()
    line = b"x" * size
    assert decoder.feed(line + b"\r") == []
    assert decoder.feed(b"\n") == [Frame(line)]


def test_a_line_over_the_limit_is_one_fault_and_the_next_line_is_whole() -> None:
    decoder = ndjson.NdjsonDecoder(max_line=4)
    events = (
        decoder.feed(b"1234\n12345\n\n1234\r\n")
        + decoder.feed(b"123456")
        + decoder.feed(b"7\nok\n")
    )
    assert events == [
        Frame(b"1234"),
        Fault(Reason.TOO_LONG, 5, "a line of more than 4 bytes"),
        Frame(b"1234"),
        Fault(Reason.TOO_LONG, 18, "a line of more than 4 bytes"),
        Frame(b"ok"),
    ]


def test_an_endless_line_takes_no_more_memory_than_its_limit() -> None:
    decoder = ndjson.NdjsonDecoder(max_line=1 << 20)
    tracemalloc.start()
    events = [event for _ in range(4096) for event in decoder.feed(b"x" * 4096)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [fault.reason for fault in faults(events)] == [Reason.TOO_LONG]
    assert peak < 3 << 20


def test_a_last_line_needs_no_newline() -> None:
    for end in (b"{", b"{}", b"{}\r", b"{} "):
        decoder = ndjson.NdjsonDecoder()
        decoder.feed(b"{}\n" + end)
        assert decoder.eof() == [Frame(end.removesuffix(b"\r"))]
        assert decoder.eof() == []
    for blank in (b"", b"{}\n", b"{}\n \r", b"\n\n"):
        decoder = ndjson.NdjsonDecoder()
        decoder.feed(blank)
        assert decoder.eof() == []


def test_a_last_line_over_the_limit_is_one_fault() -> None:
    for size in (11, 12, 30):
        decoder = ndjson.NdjsonDecoder(max_line=10)
        events = [*decoder.feed(b"x" * size), *decoder.eof()]
        assert events == [Fault(Reason.TOO_LONG, 0, "a line of more than 10 bytes")]


def test_a_body_with_a_newline_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="newline"):
        ndjson.encode(b"{\n}")


def test_flush_releases_nothing_because_half_a_line_is_not_a_frame() -> None:
    decoder = ndjson.NdjsonDecoder()
    decoder.feed(b"{")
    assert decoder.flush() == []
    assert decoder.feed(b"}\n") == [Frame(b"{}")]
