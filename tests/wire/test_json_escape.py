"""JSON escapes as frames: the spec's form, Wave's dialect, and the length that must fit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import cuts, faults, run, split, streams_of, visible
from telex.wire import json_escape
from telex.wire.events import Event, Frame, Reason
from telex.wire.json_escape import TO_PROGRAM, JsonEscapeDecoder, encode

CURSORMOVE = b'{"command": "term:cursormove", "data": {"y": -2}}'
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda value: (
        st.lists(value, max_size=3) | st.dictionaries(st.text(max_size=4), value, max_size=3)
    ),
    max_leaves=5,
)
thick_streams = streams_of(
    b"\x1b]23198;0;{}\x07",
    b"\x1b]23198;",
    b"2;",
    b"3;",
    b"{}",
    b"\x07",
    b"\x1b\\",
    b"\x1b",
    b"text",
)


def frames(events: list[Event]) -> list[bytes]:
    return [event.body for event in events if isinstance(event, Frame)]


@given(thick_streams, cuts)
def test_where_the_reads_fall_never_matters(stream: bytes, where: list[int]) -> None:
    assert run(JsonEscapeDecoder(), split(stream, where)) == run(JsonEscapeDecoder(), [stream])


@given(st.dictionaries(st.text(), json_values))
def test_encoded_packets_decode_to_the_same_value(packet: dict[str, object]) -> None:
    body = json.dumps(packet, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
    if b"\xed" in body:  # a lone surrogate, perhaps: not UTF-8, so not JSON
        body = json.dumps(packet, separators=(",", ":")).encode()
    (frame,) = frames(JsonEscapeDecoder().feed(encode(body)))
    assert json.loads(frame) == packet


@given(st.text())
def test_an_encoded_frame_is_printable_ascii_between_introducer_and_bel(text: str) -> None:
    body = json.dumps({"text": text}).encode()
    wire = encode(body)
    assert wire.startswith(b"\x1b]23198;")
    assert wire.endswith(b"\x07")
    assert all(0x20 <= byte <= 0x7E for byte in wire[2:-1])


def test_characters_outside_ascii_are_written_as_json_escapes() -> None:
    wire = encode('{"x":"Ü🙂\x7f"}'.encode())
    assert wire == b'\x1b]23198;32;{"x":"\\u00dc\\ud83d\\ude42\\u007f"}\x07'
    assert json.loads(frames(JsonEscapeDecoder().feed(wire))[0]) == {"x": "Ü🙂\x7f"}


@given(st.binary(max_size=200), cuts)
def test_no_bytes_make_it_raise(stream: bytes, where: list[int]) -> None:
    run(JsonEscapeDecoder(), split(b"\x1b]23198;" + stream + b"\x07", where))


def test_the_specs_cursormove_frame_of_49_bytes_byte_for_byte() -> None:
    wire = b"\x1b]23198;49;" + CURSORMOVE + b"\x07"
    assert JsonEscapeDecoder().feed(wire) == [Frame(CURSORMOVE)]
    assert encode(CURSORMOVE) == wire


@pytest.mark.parametrize(
    ("claim", "wire"),
    [
        (
            json_escape.TO_TERMINAL,
            (
                b'\x1b]23198;0;{"command": "term:setstyle", "data": '
                b'{"color": 31, "bgcolor": "#aaaaaa", "bold": true}}\x07'
            ),
        ),
        (json_escape.TO_TERMINAL, b'\x1b]23198;0;{"command": "term:resetstyle"}\x07'),
        (
            TO_PROGRAM,
            b'\x1b]23199;0;{"command": "event:mouseclick", "data": {"row": 10, "col": 20}}\x07',
        ),
    ],
)
def test_the_specs_dynamic_length_examples_byte_for_byte(
    claim: json_escape.Claim, wire: bytes
) -> None:
    assert JsonEscapeDecoder(claim).feed(wire) == [Frame(wire[wire.index(b"{") : -1])]


def test_waves_dialect_without_a_length_is_read_too() -> None:
    assert frames(JsonEscapeDecoder().feed(b'\x1b]23198;{"command":"x"}\x07')) == [
        b'{"command":"x"}'
    ]


@pytest.mark.parametrize("declared", [b"1", b"3", b"9999999999"])
def test_a_length_that_does_not_fit_drops_the_frame_and_never_resyncs_inside(
    declared: bytes,
) -> None:
    events = JsonEscapeDecoder().feed(b"\x1b]23198;" + declared + b";{}\x07after")
    assert [fault.reason for fault in faults(events)] == [Reason.LENGTH]
    assert visible(events) == b"after"


@pytest.mark.parametrize(
    "body", [b"", b"0", b"0;", b"x;{}", b"-2;{}", b"+2;{}", b" 2;{}", b";{}", b"[]"]
)
def test_anything_else_is_malformed(body: bytes) -> None:
    events = JsonEscapeDecoder().feed(b"\x1b]23198;" + body + b"\x07")
    assert [fault.reason for fault in faults(events)] == [Reason.MALFORMED]


def test_a_fault_never_quotes_data_of_the_peer() -> None:
    (fault,) = faults(JsonEscapeDecoder().feed(b"\x1b]23198;hunter2\x07"))
    assert "hunter2" not in fault.detail
