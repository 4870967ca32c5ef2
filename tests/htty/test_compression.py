"""Header compression with a cache, compared with the library's own."""

from __future__ import annotations

from hpack import Decoder, Encoder, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from telex.htty.h2.header_fields import CachingDecoder, CachingEncoder

NAMES = st.sampled_from([b":status", b"content-type", b"x-one", b"x-two"])
VALUES = st.sampled_from([b"200", b"", b"text/plain", b"x" * 40, b"y" * 300, b"z" * 5000])
FIELDS = st.one_of(
    st.tuples(NAMES, VALUES),
    st.builds(NeverIndexedHeaderTuple, st.just(b"authorization"), VALUES),
)
BLOCKS = st.lists(FIELDS, max_size=4)
STEPS = st.lists(
    st.one_of(
        BLOCKS, st.sampled_from([[(b":status", b"200"), (b"x-one", b"1")]]), st.integers(0, 600)
    ),
    max_size=40,
)


@given(STEPS)
def test_encoding_and_decoding_are_the_same_as_without_a_cache(steps: list[object]) -> None:
    plain, ours = Encoder(), CachingEncoder()
    understood, ours_understood = Decoder(), CachingDecoder()
    for step in steps:
        if isinstance(step, int):
            for encoder in (plain, ours):
                encoder.header_table_size = step
            continue
        assert isinstance(step, list)
        block = plain.encode(step)
        assert ours.encode(step) == block
        assert [*ours_understood.decode(block, raw=True)] == [*understood.decode(block, raw=True)]


def test_the_same_fields_are_encoded_once() -> None:
    encoder, decoder = CachingEncoder(), CachingDecoder()
    fields = [(b":status", b"200"), (b"x-one", b"1")]
    blocks = [encoder.encode(fields) for _ in range(4)]
    assert blocks[2] is blocks[3]
    decoded = [[*decoder.decode(block, raw=True)] for block in blocks]
    assert decoded[2][1] is decoded[3][1]


def test_decoded_fields_may_be_modified_by_the_caller() -> None:
    encoder, decoder = CachingEncoder(), CachingDecoder()
    for _ in range(4):
        decoded = decoder.decode(encoder.encode([(b":status", b"200")]), raw=True)
        assert isinstance(decoded, list)
        assert decoded == [(b":status", b"200")]
        decoded.clear()
