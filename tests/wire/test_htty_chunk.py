"""HTTY chunks: the exact envelope, canonical base64, and distinct faults."""

from __future__ import annotations

import base64
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import cuts, faults, run, split, streams_of, visible
from telex.wire import limits
from telex.wire.events import Event, Frame, Reason
from telex.wire.htty_chunk import HttyChunkDecoder, encode

HELLO = b"\x1bPHTTY;1;aGVsbG8=\x1b\\"
thick_streams = streams_of(
    HELLO, b"\x1bPHTTY;1;", b"\x1bPHTTY;", b"QQ==", b"\x1b\\", b"\x1b", b"text"
)


def carried(events: list[Event]) -> bytes:
    return b"".join(event.body for event in events if isinstance(event, Frame))


def reasons(events: list[Event]) -> list[Reason]:
    return [fault.reason for fault in faults(events)]


@given(thick_streams, cuts)
def test_where_the_reads_fall_never_matters(stream: bytes, where: list[int]) -> None:
    assert run(HttyChunkDecoder(), split(stream, where)) == run(HttyChunkDecoder(), [stream])


@given(st.binary(max_size=300), st.integers(min_value=1, max_value=100), cuts)
def test_encoded_data_decodes_to_itself_in_any_chunk_size(
    data: bytes, size: int, where: list[int]
) -> None:
    assert carried(run(HttyChunkDecoder(), split(encode(data, size), where))) == data


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(payload: bytes) -> None:
    run(HttyChunkDecoder(), [b"\x1bPHTTY;" + payload + b"\x1b\\"])


@given(st.binary(max_size=12).map(base64.b64encode) | st.text("AQgw=", max_size=9).map(str.encode))
def test_only_the_canonical_spelling_of_a_payload_is_accepted(payload: bytes) -> None:
    events = run(HttyChunkDecoder(), [b"\x1bPHTTY;1;" + payload + b"\x1b\\"])
    if frames := [event.body for event in events if isinstance(event, Frame)]:
        assert base64.b64encode(frames[0]) == payload


def test_the_specs_hello_byte_for_byte() -> None:
    assert encode(b"hello") == HELLO
    assert HttyChunkDecoder().feed(HELLO) == [Frame(b"hello")]


def test_the_http2_preface_encodes_as_the_original_does() -> None:
    assert b";UFJJICogSFRUUC8yLjANCg0KU00NCg0K\x1b" in encode(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")


def test_text_between_chunks_stays_visible_and_in_order() -> None:
    events = HttyChunkDecoder().feed(b"a" + HELLO + b"b" + HELLO + b"c")
    assert visible(events) == b"abc"
    assert carried(events) == b"hellohello"


def test_an_empty_chunk_is_legal_and_carries_nothing() -> None:
    assert HttyChunkDecoder().feed(b"\x1bPHTTY;1;\x1b\\") == [Frame(b"")]
    assert encode(b"") == b""


@pytest.mark.parametrize("body", [b"2;QQ==", b"10;QQ=="])
def test_another_version_is_refused_as_such(body: bytes) -> None:
    assert reasons(HttyChunkDecoder().feed(b"\x1bPHTTY;" + body + b"\x1b\\")) == [Reason.VERSION]


@pytest.mark.parametrize(
    "body", [b"1", b"", b"01;QQ==", b"x;QQ==", b";QQ==", b"-1;QQ==", b"0;QQ=="]
)
def test_another_envelope_is_malformed(body: bytes) -> None:
    assert reasons(HttyChunkDecoder().feed(b"\x1bPHTTY;" + body + b"\x1b\\")) == [Reason.MALFORMED]


@pytest.mark.parametrize(
    "payload",
    [
        b"aGVsbG9=",
        b"QUJ=",
        b"QQ",
        b"QQ=",
        b"QQ===",
        b"Q Q=",
        b"QQ==\n",
        b"-_-_",
        b"QQ==QQ==",
        b"\x07",
        b";",
        b"=",
        b"QQ=Q",
    ],
)
def test_base64_that_is_not_canonical_is_refused(payload: bytes) -> None:
    assert reasons(HttyChunkDecoder().feed(b"\x1bPHTTY;1;" + payload + b"\x1b\\")) == [
        Reason.ENCODING
    ]


@pytest.mark.parametrize("tail", [b"\x1bX", b"\x1b\x1b\\", b"\x18"])
def test_a_control_inside_a_chunk_is_a_fault_at_once(tail: bytes) -> None:
    assert reasons(HttyChunkDecoder().feed(b"\x1bPHTTY;1;QQ==" + tail)) == [Reason.ABORTED]


def test_the_end_of_input_before_st_is_truncation() -> None:
    decoder = HttyChunkDecoder()
    decoder.feed(HELLO[:-1])
    assert reasons(decoder.eof()) == [Reason.TRUNCATED]


def test_foreign_dcs_is_left_to_the_terminal() -> None:
    stream = b"\x1bPHTTY\x1b\\\x1bPhtty;1;QQ==\x1b\\\x1bP+q\x1b\\"
    assert visible(run(HttyChunkDecoder(), [stream])) == stream


def test_a_chunk_over_its_limit_is_refused_without_being_kept() -> None:
    decoder = HttyChunkDecoder()
    tracemalloc.start()
    events = decoder.feed(b"\x1bPHTTY;1;")
    for _ in range(1024):
        events += decoder.feed(b"A" * 4096)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reasons(events) == [Reason.TOO_LONG]
    assert peak < 3 * limits.CONTROL_STRING_BYTES
    assert decoder.feed(b"\x1b\\" + HELLO) == [Frame(b"hello")]


def test_a_written_chunk_is_about_one_pty_read() -> None:
    (first, *_) = encode(bytes(10_000)).split(b"\x1b\\")
    assert len(first) == len(b"\x1bPHTTY;1;") + 4096
