"""HTTY clauses that the tests of the codec do not cover."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.wire.events import Fault, Frame, Visible
from telex.wire.htty_chunk import HttyChunkDecoder, encode

CHUNKS = re.compile(rb"(\x1bPHTTY;1;[A-Za-z0-9+/]*={0,2}\x1b\\)*")
HELLO = b"\x1bPHTTY;1;aGVsbG8=\x1b\\"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00\x1b\\\x07\x18\x90\x9c\xff\x00"


@given(st.binary(max_size=300), st.integers(min_value=1, max_value=100))
def test_a_chunk_contains_only_base64_letters_whatever_it_carries(data: bytes, size: int) -> None:
    assert CHUNKS.fullmatch(encode(data, size))


@pytest.mark.parametrize("size", [1, len(SETTINGS) + 3, len(SETTINGS + PING)])
def test_http2_frames_are_received_alike_whether_they_share_a_chunk_or_span_several(
    size: int,
) -> None:
    frames = HttyChunkDecoder().feed(encode(SETTINGS + PING, size))
    assert b"".join(frame.body for frame in frames if isinstance(frame, Frame)) == SETTINGS + PING
    assert len(frames) == -(-len(SETTINGS + PING) // size)


@pytest.mark.parametrize(
    "bad",
    [
        b"\x1bPHTTY;2;QQ==\x1b\\",
        b"\x1bPHTTY;1\x1b\\",
        b"\x1bPHTTY;;QQ==\x1b\\",
        b"\x1bPHTTY;1;QQ\x1b\\",
        b"\x1bPHTTY;1;Q\x07Q==\x1b\\",
        b"\x1bPHTTY;1;QQ==\x18",
        b"\x1bPHTTY;1;QQ==",
    ],
)
def test_after_a_bad_chunk_text_and_chunks_are_read_and_no_part_of_it_is_shown(bad: bytes) -> None:
    before, fault, *after = HttyChunkDecoder().feed(b"before" + bad + HELLO + b"after")
    assert before == Visible(b"before")
    assert isinstance(fault, Fault)
    assert after == [Frame(b"hello"), Visible(b"after")]
