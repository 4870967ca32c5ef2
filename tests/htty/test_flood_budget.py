from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.htty import limits
from telex.htty.h2.http2_frames import (
    FLOOD_BUDGETS,
    PREFACE,
    BadFraming,
    FloodBudget,
    FloodKind,
    FrameSplitter,
    Http2Frame,
)


@pytest.mark.parametrize("kind", FloodKind)
def test_a_budget_can_be_spent_at_once_and_refills_with_time(kind: FloodKind) -> None:
    budget = FloodBudget()
    assert all(budget.spend(kind, 5.0) for _ in range(FLOOD_BUDGETS[kind]))
    assert not budget.spend(kind, 5.0)
    half = 5.0 + limits.HTTY_BUDGET_SECONDS / 2
    assert budget.left(kind, half) == pytest.approx(FLOOD_BUDGETS[kind] / 2)
    assert budget.spend(kind, half)
    assert budget.left(kind, half + 1e6) == FLOOD_BUDGETS[kind]


def test_budgets_are_independent() -> None:
    budget = FloodBudget()
    while budget.spend(FloodKind.PING, 0.0):
        pass
    assert budget.spend(FloodKind.RESET, 0.0)


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


FRAMES = st.tuples(
    st.integers(0, 255), st.integers(0, 255), st.integers(0, 2**31 - 1), st.binary(max_size=99)
)


@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(1, 40), min_size=1), st.booleans())
def test_frames_are_the_same_however_their_bytes_are_split(
    sent: list[tuple[int, int, int, bytes]], sizes: list[int], preface: bool
) -> None:
    raw = (PREFACE if preface else b"") + b"".join(_frame(*parts) for parts in sent)
    frames, came, turn = FrameSplitter(preface=preface), [], 0
    while raw:
        size = sizes[turn % len(sizes)]
        came += list(frames.take(raw[:size]))
        raw, turn = raw[size:], turn + 1
    whole = [frame for frame in came if isinstance(frame, Http2Frame)]
    assert len(whole) == len(came)
    assert [(f.type, f.flags, f.stream, bytes(f.data[9:])) for f in whole] == sent


def test_a_frame_that_is_too_long_is_refused_by_its_header() -> None:
    header = _frame(0, 0, 1, bytes(limits.HTTY_FRAME_BYTES + 1))[:9]
    assert [type(found) for found in FrameSplitter(preface=False).take(header)] == [BadFraming]


def test_the_longest_allowed_frame_is_accepted() -> None:
    raw = _frame(0, 0, 1, bytes(limits.HTTY_FRAME_BYTES))
    assert [type(found) for found in FrameSplitter(preface=False).take(raw)] == [Http2Frame]


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSX", b"\x00"])
def test_input_that_does_not_begin_as_http2_is_refused_at_its_first_wrong_byte(sent: bytes) -> None:
    assert [type(found) for found in FrameSplitter(preface=True).take(sent)] == [BadFraming]
