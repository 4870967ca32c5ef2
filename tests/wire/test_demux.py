"""The demux: claimed bytes are never visible, and no visible byte is lost."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given

from streams import cuts, faults, joined, run, split, streams_of, visible
from telex.wire import htty_chunk, json_escape
from telex.wire.demux import Demux
from telex.wire.escape import Claim, Kind, Unencodable, encode
from telex.wire.events import Claimed, Event, Fault, Reason, Visible

COMMAND, REPLY, CHUNK = json_escape.TO_TERMINAL, json_escape.TO_PROGRAM, htty_chunk.CHUNK
CLAIMS = [COMMAND, REPLY, CHUNK]

thick_streams = streams_of(
    b"\x1b]23198;",
    b"\x1b]23199;",
    b"\x1bPHTTY;",
    b"\x1b]2319",
    b"\x1b",
    b"\x1b\\",
    b"\x07",
    b"\x18",
    b"\x1a",
    b"\x1b[31m",
    b"\x1b]0;title\x07",
    b"198;",
    b"\x9c",
    "Ü本".encode(),
    b"text",
)


def bodies(events: list[Event]) -> list[bytes]:
    return [event.body for event in events if isinstance(event, Claimed)]


def by_hand(stream: bytes) -> list[tuple[str, bytes]]:
    """Split a stream with a second, slow demux: one byte at a time, straight from the grammar."""
    out: list[tuple[str, bytes]] = []
    shown = b""
    at = 0
    while at < len(stream):
        claim = next((c for c in CLAIMS if stream.startswith(c.introducer, at)), None)
        if claim is None:
            shown += stream[at : at + 1]
            at += 1
            continue
        if any(
            shown.endswith(c.introducer[:n]) for c in CLAIMS for n in range(1, len(c.introducer))
        ):
            shown += b"\x18"
        if shown:
            out.append(("visible", shown))
            shown = b""
        start = at = at + len(claim.introducer)
        while True:
            if at == len(stream) or stream[at:] == b"\x1b":
                return [*out, ("truncated", b"")]
            if stream[at : at + 1] == b"\x07" and claim.kind is Kind.OSC:
                out.append(("claimed", stream[start:at]))
                at += 1
                break
            if stream[at : at + 2] == b"\x1b\\":
                out.append(("claimed", stream[start:at]))
                at += 2
                break
            if stream[at] in b"\x18\x1a\x1b":
                out.append(("aborted", b""))
                at += stream[at] != 0x1B
                break
            at += 1
    if shown:
        out.append(("visible", shown))
    return out


def summary(events: list[Event]) -> list[tuple[str, bytes]]:
    out: list[tuple[str, bytes]] = []
    for event in joined(events):
        match event:
            case Visible(data):
                out.append(("visible", data))
            case Claimed(_, body, _):
                out.append(("claimed", body))
            case Fault(reason):
                out.append((reason.value, b""))
    return out


@given(thick_streams, cuts)
def test_where_the_reads_fall_never_matters(stream: bytes, where: list[int]) -> None:
    assert run(Demux(CLAIMS), split(stream, where)) == run(Demux(CLAIMS), [stream])


@given(thick_streams)
def test_it_agrees_with_a_demux_written_one_byte_at_a_time(stream: bytes) -> None:
    events = run(Demux(CLAIMS), [stream])
    expected = by_hand(stream)
    merged: list[tuple[str, bytes]] = []
    for kind, data in expected:
        if kind == "visible" and merged and merged[-1][0] == "visible":
            merged[-1] = (kind, merged[-1][1] + data)
        else:
            merged.append((kind, data))
    assert summary(events) == merged


@given(thick_streams, cuts)
def test_visible_bytes_never_contain_a_claimed_introducer(stream: bytes, where: list[int]) -> None:
    shown = visible(run(Demux(CLAIMS), split(stream, where)))
    assert not any(claim.introducer in shown for claim in CLAIMS)


@given(thick_streams.filter(lambda s: not any(c.introducer in s for c in CLAIMS)), cuts)
def test_a_stream_without_claims_passes_byte_for_byte(stream: bytes, where: list[int]) -> None:
    events = run(Demux(CLAIMS), split(stream, where))
    assert visible(events) == stream
    assert len(events) <= 1


def test_a_claimed_string_is_cut_out_and_its_body_returned() -> None:
    events = Demux(CLAIMS).feed(b"ab\x1bPHTTY;1;aGVsbG8=\x1b\\cd")
    assert events == [Visible(b"ab"), Claimed(CHUNK, b"1;aGVsbG8=", 2), Visible(b"cd")]


@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\"])
def test_bel_and_st_both_end_an_osc(end: bytes) -> None:
    assert bodies(Demux(CLAIMS).feed(b"\x1b]23198;0;{}" + end)) == [b"0;{}"]


def test_bel_does_not_end_a_dcs() -> None:
    assert bodies(Demux(CLAIMS).feed(b"\x1bPHTTY;1;\x07QQ==\x1b\\")) == [b"1;\x07QQ=="]


def test_the_byte_9c_is_data_because_utf8_letters_hold_it() -> None:
    body = '0;{"x":"Ü✓本"}'.encode()
    assert b"\x9c" in body
    assert bodies(Demux(CLAIMS).feed(b"\x1b]23198;" + body + b"\x07")) == [body]


def test_eight_bit_introducers_are_not_recognised() -> None:
    stream = b"\x90HTTY;1;QQ==\x9c\x9d23198;0;{}\x9c"
    assert visible(Demux(CLAIMS).feed(stream)) == stream


@pytest.mark.parametrize("cut", [b"\x18", b"\x1a"])
def test_can_and_sub_abort_a_claimed_string_and_are_removed_with_it(cut: bytes) -> None:
    events = Demux(CLAIMS).feed(b"a\x1b]23198;0;{" + cut + b"b")
    assert visible(events) == b"ab"
    assert [fault.reason for fault in faults(events)] == [Reason.ABORTED]


def test_an_esc_aborts_a_claimed_string_and_begins_the_next_sequence() -> None:
    events = Demux(CLAIMS).feed(b"\x1b]23198;0;{\x1b[31mred")
    assert [fault.reason for fault in faults(events)] == [Reason.ABORTED]
    assert visible(events) == b"\x1b[31mred"


def test_a_claimed_string_is_found_right_behind_a_lone_esc() -> None:
    assert bodies(Demux(CLAIMS).feed(b"\x1b\x1bPHTTY;1;QQ==\x1b\\")) == [b"1;QQ=="]


def test_a_new_dcs_inside_a_dcs_begins_anew() -> None:
    assert bodies(Demux(CLAIMS).feed(b"\x1bP\x1bPHTTY;1;QQ==\x1b\\")) == [b"1;QQ=="]


def test_other_dcs_and_other_osc_stay_visible() -> None:
    stream = b"\x1bPhtty;1;QQ==\x1b\\\x1bPHTTY\x1b\\\x1b]2319;x\x07\x1b]231980;x\x07\x1b]52;c;\x07"
    assert visible(run(Demux(CLAIMS), [stream])) == stream


def test_cutting_a_string_out_cannot_join_two_halves_into_a_new_claim() -> None:
    events = Demux(CLAIMS).feed(b"\x1b]231\x1b]23198;0;{}\x0798;0;{}\x07")
    assert bodies(events) == [b"0;{}"]
    assert visible(events) == b"\x1b]231\x1898;0;{}\x07"


def test_text_around_a_cut_joins_up_as_if_nothing_had_been_sent() -> None:
    events = Demux(CLAIMS).feed("─".encode()[:2] + b"\x1b]23198;0;{}\x07" + "─".encode()[2:])
    assert visible(events).decode() == "─"


def test_an_esc_as_the_last_byte_of_a_read_is_held_until_the_next_byte_decides() -> None:
    demux = Demux(CLAIMS)
    assert demux.feed(b"text\x1b") == [Visible(b"text")]
    assert demux.feed(b"[31m") == [Visible(b"\x1b[31m")]


def test_a_held_beginning_is_released_by_flush_and_by_eof() -> None:
    demux = Demux(CLAIMS)
    assert demux.feed(b"\x1b]2319") == []
    assert demux.flush() == [Visible(b"\x1b]2319")]
    assert demux.flush() == []
    assert demux.feed(b"\x1bPHTT") == []
    assert demux.eof() == [Visible(b"\x1bPHTT")]


def test_flush_never_releases_a_claimed_string_in_the_middle() -> None:
    demux = Demux(CLAIMS)
    demux.feed(b"\x1b]23198;0;{}\x1b")
    assert demux.flush() == []
    assert bodies(demux.feed(b"\\")) == [b"0;{}"]


def test_the_end_of_input_inside_a_string_is_truncation() -> None:
    demux = Demux(CLAIMS)
    demux.feed(b"text\x1bPHTTY;1;QQ")
    assert demux.eof() == [
        Fault(Reason.TRUNCATED, 4, "DCS HTTY;: the stream ended inside the control string", CHUNK)
    ]


def test_a_string_over_its_limit_is_one_fault_and_the_next_string_is_whole() -> None:
    claim = Claim(Kind.OSC, b"9;", max_body=8)
    events = Demux([claim]).feed(b"\x1b]9;123456789\x07ok\x1b]9;12345678\x07")
    assert [type(event) for event in events] == [Fault, Visible, Claimed]
    assert faults(events)[0].reason is Reason.TOO_LONG


@pytest.mark.parametrize("introducer", [b"\x1b]23198;", b"\x1bPHTTY;"])
def test_an_endless_string_takes_no_more_memory_than_its_limit(introducer: bytes) -> None:
    demux = Demux(CLAIMS)
    demux.feed(introducer)
    tracemalloc.start()
    for _ in range(4096):
        demux.feed(b"x" * 4096)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * COMMAND.max_body


def test_the_offset_of_a_fault_is_where_its_string_began() -> None:
    demux = Demux(CLAIMS)
    demux.feed(b"12345\x1b]231")
    (fault,) = faults(demux.feed(b"98;\x18"))
    assert fault.offset == 5


def test_without_claims_everything_is_visible_at_once() -> None:
    assert Demux([]).feed(b"\x1b") == [Visible(b"\x1b")]


def test_a_body_that_would_end_its_own_string_cannot_be_encoded() -> None:
    for body in (b"a\x07", b"a\x1b\\", b"a\x18", b"\x1b"):
        with pytest.raises(Unencodable):
            encode(COMMAND, body)
