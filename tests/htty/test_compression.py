"""Header compression with a memory, against the library's own without one."""

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
def test_what_is_said_and_understood_is_the_same_as_without_a_memory(steps: list[object]) -> None:
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


def test_the_same_fields_are_coded_once() -> None:
    encoder, decoder = CachingEncoder(), CachingDecoder()
    fields = [(b":status", b"200"), (b"x-one", b"1")]
    blocks = [encoder.encode(fields) for _ in range(4)]
    assert blocks[2] is blocks[3]
    heard = [[*decoder.decode(block, raw=True)] for block in blocks]
    assert heard[2][1] is heard[3][1]


def test_what_came_may_be_changed_by_whoever_has_it() -> None:
    encoder, decoder = CachingEncoder(), CachingDecoder()
    for _ in range(4):
        heard = decoder.decode(encoder.encode([(b":status", b"200")]), raw=True)
        assert isinstance(heard, list)
        assert heard == [(b":status", b"200")]
        heard.clear()
