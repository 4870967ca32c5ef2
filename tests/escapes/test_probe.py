"""The pure parts of the probe: a reply among keystrokes, patience, and wrapping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.escapes.probe import (
    FIRST_SECONDS,
    LEAST_SECONDS,
    SCREEN,
    TMUX,
    DA1Answers,
    DeviceAttributes,
    RoundTrip,
    multiplexer,
)

ANSWER = b"\x1b[?62;22;23198c"
FOUND = DeviceAttributes(frozenset({62, 22, 23198}))


def sorted_out(answers: DA1Answers, *pieces: bytes) -> tuple[list[DeviceAttributes], bytes]:
    found = [one for piece in pieces for one in answers.feed(piece)]
    typed = b"".join(one for one in found if isinstance(one, bytes))
    return [one for one in found if isinstance(one, DeviceAttributes)], typed


def asked(times: int = 1) -> DA1Answers:
    answers = DA1Answers()
    answers.due = times
    return answers


def test_a_reply_is_removed_and_keys_around_it_are_kept() -> None:
    assert sorted_out(asked(), b"a" + ANSWER + b"b\x1b[A") == ([FOUND], b"ab\x1b[A")


@pytest.mark.parametrize("at", range(1, len(ANSWER)))
def test_a_reply_split_anywhere_is_one_reply(at: int) -> None:
    assert sorted_out(asked(), b"x" + ANSWER[:at], ANSWER[at:] + b"y") == ([FOUND], b"xy")


def test_without_a_query_input_is_not_searched() -> None:
    assert sorted_out(asked(0), ANSWER) == ([], ANSWER)


def test_one_query_takes_one_reply() -> None:
    assert sorted_out(asked(), ANSWER + ANSWER) == ([FOUND], ANSWER)
    assert sorted_out(asked(2), ANSWER + ANSWER) == ([FOUND, FOUND], b"")


def test_an_escape_key_is_held_only_until_it_is_released() -> None:
    answers = asked()
    assert sorted_out(answers, b"\x1b") == ([], b"")
    assert answers.release() == b"\x1b"
    assert sorted_out(answers, ANSWER) == ([FOUND], b"")


@given(
    st.lists(st.sampled_from([b"a", b"\x1b", b"[", b"?", b"1;2", b"c", b"\x1b[A", b"\xc3\xa9"])),
    st.integers(0, 40),
)
def test_no_keystroke_is_lost_or_reordered(keys: list[bytes], where: int) -> None:
    """Keys around the reply are kept, unless they look like a reply themselves."""
    before, after = b"".join(keys[:where]), b"".join(keys[where:])
    answers = asked()
    found, typed = sorted_out(answers, *(bytes([one]) for one in before + ANSWER + after))
    if found == [FOUND]:
        assert typed + answers.release() == before + after


def test_patience_is_the_initial_value_and_then_twice_the_slowest() -> None:
    trip = RoundTrip()
    assert trip.patience == FIRST_SECONDS
    trip.took(0.001)
    assert trip.patience == LEAST_SECONDS
    trip.took(0.4)
    trip.took(0.01)
    assert trip.patience == pytest.approx(0.8)


def test_a_frame_is_wrapped_in_the_form_of_its_multiplexer() -> None:
    frame = b"\x1b]23198;2;{}\x07"
    assert TMUX.around(frame) == b"\x1bPtmux;\x1b\x1b]23198;2;{}\x07\x1b\\"
    assert SCREEN.around(frame) == b"\x1bP\x1b]23198;2;{}\x07\x1b\\"


def test_the_environment_names_the_multiplexer() -> None:
    assert multiplexer({"TMUX": "/tmp/tmux-0/default,1,0"}) is TMUX
    assert multiplexer({"STY": "1.pts"}) is SCREEN
    assert multiplexer({"TMUX": ""}) is None
