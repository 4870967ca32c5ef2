"""Keys among terminal responses and pastes, however the reads are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.htty.key_filter import SEQUENCE_SECONDS, STRING_SECONDS, KeyFilter

NOT_TYPED = [
    b"\x1bP1$r2 q\x1b\\",  # DECRQSS, of the cursor's style
    b"\x1bP>|quick 1.0\x1b\\",  # XTVERSION
    b"\x1bPq\x1b\\",
    b"\x1b]52;c;cXVpdA==q\x07",
    b"\x1b]52;c;q\x1b\\",
    b"\x1b]11;rgb:q\x1b\\",
    b"\x1b_Gi=1;q\x1b\\",
    b"\x1b^q\x1b\\",
    b"\x1bXq\x07q\x1b\\",  # BEL ends only an OSC
    b"\x1b[1 q",
    b"\x1b[>0q",
    b"\x1b[?62;q",
    b"\x1bOq",
    b"\x1bq",  # held with alt
    b"\x1b[Mqqq",  # an old mouse report
    b"\x1b[200~quit\nq\x1b[20q\x1bq\x1bPq\x1b[201~",
    b"\x1b[113u",
    b"\x1b\x1b[q",
    b"\x1b[1;2\x1bP1$rq\x1b\\",  # a sequence that aborts another
    b"\x1b]0;q\x1b[q",
]


def keys(*reads: bytes) -> bytes:
    plain = KeyFilter()
    return b"".join(plain.feed(read, 0.0) for read in reads)


@pytest.mark.parametrize("typed", NOT_TYPED)
def test_terminal_responses_and_pastes_contain_no_keys_and_the_next_key_is_found(
    typed: bytes,
) -> None:
    assert keys(b"a", typed, b"b") == b"ab"
    assert keys(*[bytes([byte]) for byte in b"a" + typed + b"b"]) == b"ab"


@given(st.lists(st.sampled_from([*NOT_TYPED, b"q", b"xyz", "ü漢".encode()])), st.data())
def test_where_the_reads_fall_never_matters(typed: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(typed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    reads = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert keys(*reads) == keys(stream) == b"".join(one for one in typed if one not in NOT_TYPED)


def test_can_and_sub_abort_a_sequence() -> None:
    assert keys(b"\x1bPabc\x18q") == b"q"
    assert keys(b"\x1b[1;\x1aq") == b"q"


def test_a_lone_escape_was_a_key_and_so_was_alt_p() -> None:
    plain = KeyFilter()
    assert plain.feed(b"\x1b", 0.0) == b""
    assert plain.feed(b"q", SEQUENCE_SECONDS + 0.01) == b"q"
    assert plain.feed(b"\x1bP", 1.0) == b""
    assert plain.feed(b"q", 1.0 + STRING_SECONDS) == b"", "it may be a slow answer"
    assert plain.feed(b"q", 1.1 + 2 * STRING_SECONDS) == b"q"
