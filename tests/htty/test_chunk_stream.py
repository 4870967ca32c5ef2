"""A receiver of chunks, by the rules of the spec: it returns bytes, or the end of the session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.htty.chunk_stream import ChunkReceiver, StreamAborted
from telex.wire import htty_chunk
from telex.wire.demux import Demux
from telex.wire.events import Claimed, Fault, Visible

BROKEN = {
    "another version": b"\x1bPHTTY;2;QQ==\x1b\\",
    "a version with a zero before it": b"\x1bPHTTY;01;QQ==\x1b\\",
    "no payload": b"\x1bPHTTY;1\x1b\\",
    "no base64": b"\x1bPHTTY;1;Q Q=\x1b\\",
    "bits where there are none": b"\x1bPHTTY;1;aGVsbG9=\x1b\\",
    "an ESC inside": b"\x1bPHTTY;1;QQ\x1bX==\x1b\\",
    "CAN inside": b"\x1bPHTTY;1;QQ\x18",
}
HELLO = b"\x1bPHTTY;1;aGVsbG8=\x1b\\"


def taken(
    receiver: ChunkReceiver, *reads: bytes, ended: bool = False
) -> list[bytes | StreamAborted]:
    demux = Demux((htty_chunk.CHUNK,))
    events = [event for data in reads for event in demux.feed(data)]
    events += demux.eof() if ended else []
    found = [receiver.take(event) for event in events if isinstance(event, Claimed | Fault)]
    return [one for one in found if one is not None]


def test_the_chunk_of_the_spec_is_hello() -> None:
    assert taken(ChunkReceiver(), HELLO) == [b"hello"]


def test_an_empty_chunk_begins_a_session_and_carries_nothing() -> None:
    receiver = ChunkReceiver()
    assert taken(receiver, b"\x1bPHTTY;1;\x1b\\") == [b""]
    assert receiver.begun


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_fault_before_any_chunk_is_counted_and_harms_nothing(broken: bytes) -> None:
    receiver = ChunkReceiver()
    assert taken(receiver, broken, HELLO) == [b"hello"]
    assert receiver.ignored == 1
    assert receiver.aborted is None


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_fault_after_a_chunk_ends_the_session_once_and_for_all(broken: bytes) -> None:
    receiver = ChunkReceiver()
    first, end = taken(receiver, HELLO, broken, HELLO, broken)
    assert first == b"hello"
    assert isinstance(end, StreamAborted)
    assert "HTTY;" in end.sentence
    assert receiver.aborted is end


def test_input_that_ends_inside_a_chunk_is_a_fault() -> None:
    _, end = taken(ChunkReceiver(), HELLO, HELLO[:-1], ended=True)
    assert isinstance(end, StreamAborted)
    assert taken(ChunkReceiver(), HELLO[:-1], ended=True) == []


def test_a_version_that_is_not_the_one_of_the_other_direction_ends_the_session() -> None:
    receiver = ChunkReceiver()
    receiver.answering = True
    (end,) = taken(receiver, BROKEN["another version"], HELLO)
    assert isinstance(end, StreamAborted)


def test_another_fault_does_not_end_the_session_while_only_we_have_sent() -> None:
    receiver = ChunkReceiver()
    receiver.answering = True
    assert taken(receiver, BROKEN["no base64"], HELLO) == [b"hello"]


@given(
    st.lists(st.tuples(st.binary(max_size=64), st.text("aé ;~\r\n", max_size=8)), max_size=8),
    st.integers(1, 40),
    st.integers(1, 30),
)
def test_bytes_are_received_unchanged_whatever_is_between_and_however_it_is_cut(
    pieces: list[tuple[bytes, str]], size: int, cut: int
) -> None:
    stream = b"".join(htty_chunk.encode(data, size) + text.encode() for data, text in pieces)
    demux = Demux((htty_chunk.CHUNK,))
    reads = [stream[at : at + cut] for at in range(0, len(stream), cut)]
    events = [event for read in reads for event in demux.feed(read)] + demux.eof()
    receiver = ChunkReceiver()
    found = [receiver.take(event) for event in events if isinstance(event, Claimed | Fault)]
    assert b"".join(one for one in found if isinstance(one, bytes)) == b"".join(
        data for data, _ in pieces
    )
    shown = b"".join(event.data for event in events if isinstance(event, Visible))
    assert shown.decode() == "".join(text for _, text in pieces)
