"""How much a screen is given at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from telex.terminal import limits
from telex.terminal.scheduler import SLOW_SECONDS, Pace

RESETS = b"\x1bc" * 2048
COLOURED = b"\x1b[31mword\x1b[0m " * 10


def test_a_read_without_escapes_goes_in_whole() -> None:
    assert Pace().stride(b"x" * 16384) == 16384


def test_a_read_with_some_escapes_goes_in_whole() -> None:
    assert Pace().stride(COLOURED) == len(COLOURED)


def test_a_read_of_nothing_but_escapes_goes_in_pieces() -> None:
    assert Pace().stride(RESETS) == 2 * limits.SCREEN_ESCAPES


def test_after_a_slow_piece_the_next_is_shorter_in_proportion() -> None:
    pace = Pace()
    assert pace.took(4 * SLOW_SECONDS)
    assert pace.stride(RESETS) == 2 * limits.SCREEN_ESCAPES // 4


def test_the_slowest_escapes_are_fed_one_at_a_time() -> None:
    pace = Pace()
    pace.took(1e6)
    assert pace.stride(RESETS) == 2


def test_the_pace_recovers_when_later_output_is_cheap() -> None:
    pace = Pace()
    pace.took(1e6)
    while pace.stride(RESETS) < Pace().stride(RESETS):
        before = pace.stride(RESETS)
        assert not pace.took(0.0)
        assert pace.stride(RESETS) > before


def test_output_without_escapes_is_never_cut_however_slow() -> None:
    pace = Pace()
    pace.took(1e6)
    assert pace.stride(b"x" * 16384) == 16384


@given(st.binary(min_size=1), st.lists(st.floats(0, 10)))
def test_a_stride_is_never_zero(data: bytes, spent: list[float]) -> None:
    pace = Pace()
    for seconds in spent:
        pace.took(seconds)
    assert 1 <= pace.stride(data) <= len(data)
