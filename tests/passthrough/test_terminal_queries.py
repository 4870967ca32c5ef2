"""Replies to our queries are ours, however they are cut, and all other input is the program's."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from telex.passthrough import limits
from telex.passthrough.query_replies import QUERY_MARK, TerminalQueries, reply_seconds

ANSWERS = [
    b"\x1b[12;3R",
    b"\x1b[?62;22c",
    b"\x1b[?2004;1$y",
    b"\x1b]11;rgb:00/00/00\x1b\\",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1bP1$r0m\x1b\\",
]
KEYS = [
    b"a",
    b"\x1b[A",
    b"\x1bOP",
    b"\x1b[1;5C",
    b"\xc3\xbc",
    b"\x1b[200~text\x1b[201~",
    b"\x1bx",
    b"\r",
]
THERE = b"\x1b[0n"


@given(
    st.lists(st.sampled_from(KEYS), max_size=4),
    st.lists(st.sampled_from([*ANSWERS, *KEYS]), max_size=6),
    st.lists(st.sampled_from([*ANSWERS, *KEYS]), max_size=4),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_only_replies_between_the_marks_are_ours(
    before: list[bytes], inside: list[bytes], after: list[bytes], cuts: list[int]
) -> None:
    asking = TerminalQueries()
    said: list[bytes] = []
    assert asking.ask(b"?", said.append, 0.0) == QUERY_MARK + b"?" + QUERY_MARK
    stream = b"".join([*before, THERE, *inside, THERE, *after])
    at = sorted({0, *[cut for cut in cuts if cut < len(stream)], len(stream)})
    passed = b"".join([asking.person_input(stream[a:b], 0.0) for a, b in itertools.pairwise(at)])
    passed += asking.release()
    assert said == [b"".join([one for one in inside if one in ANSWERS])]
    assert passed == b"".join([*before, *[one for one in inside if one in KEYS], *after])


def test_without_a_question_nothing_is_looked_at() -> None:
    asking = TerminalQueries()
    assert asking.person_input(b"\x1b", 0.0) == b"\x1b"
    assert asking.held_until is None


def test_a_lone_escape_is_held_for_25_ms_and_then_a_key() -> None:
    asking = TerminalQueries()
    asking.ask(b"?", lambda said: None, 0.0)
    assert asking.person_input(b"\x1b", 1.0) == b""
    assert asking.held_until == 1.025
    assert asking.release() == b"\x1b"
    assert asking.held_until is None


def test_a_query_without_a_reply_expires() -> None:
    asking = TerminalQueries()
    asking.ask(b"?", lambda said: None, 0.0)
    assert asking.person_input(THERE, 6.0) == THERE
    assert asking.person_input(b"\x1b", 7.0) == b"\x1b"


# The program sends the same queries.

CLIPBOARD = b"\x1b]52;c;?\x1b\\"
CLIPPED = b"\x1b]52;c;c2VjcmV0\x1b\\"


@given(
    st.integers(0, 2),
    st.integers(0, 2),
    st.lists(st.integers(0, 200), max_size=5),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_replies_to_queries_of_the_program_reach_the_program(
    before: int, after: int, cuts: list[int], output_cuts: list[int]
) -> None:
    asking = TerminalQueries()
    said: list[bytes] = []
    output = b"x" + QUERY_MARK * before
    at = sorted({0, *[cut for cut in output_cuts if cut < len(output)], len(output)})
    for a, b in itertools.pairwise(at):
        asking.program_output(output[a:b], 0.0)
    asking.ask(b"?", said.append, 0.0)
    asking.program_output(QUERY_MARK * after, 0.0)
    asking.ask(b"!", said.append, 0.0)
    answers = [b"\x1b[1;1R", b"\x1b[2;2R"]
    ours = [THERE + answer + THERE for answer in answers]
    stream = THERE * before + ours[0] + THERE * after + ours[1]
    at = sorted({0, *[cut for cut in cuts if cut < len(stream)], len(stream)})
    passed = b"".join([asking.person_input(stream[a:b], 0.0) for a, b in itertools.pairwise(at)])
    assert said == answers
    assert passed == THERE * (before + after)


@given(st.integers(0, 4))
def test_a_reply_to_the_program_before_our_query_is_not_expected_again(cut: int) -> None:
    asking = TerminalQueries()
    said: list[bytes] = []
    asking.program_output(QUERY_MARK, 0.0)
    passed = asking.person_input(THERE[:cut], 0.0)
    assert passed == THERE[:cut]  # nothing is held back
    asking.ask(b"?", said.append, 0.0)
    stream = THERE[cut:] + THERE + b"\x1b[1;1R" + THERE
    assert asking.person_input(stream, 0.0) == THERE[cut:]
    assert said == [b"\x1b[1;1R"]


def test_a_mark_of_the_program_without_a_reply_is_forgotten() -> None:
    asking = TerminalQueries()
    said: list[bytes] = []
    asking.program_output(QUERY_MARK, 0.0)
    asking.ask(b"?", said.append, 6.0)
    assert asking.person_input(THERE + b"\x1b[1;1R" + THERE, 6.0) == b""
    assert said == [b"\x1b[1;1R"]


# The clipboard, about which a terminal may ask its user.


def test_the_clipboard_is_waited_for_beyond_the_marks() -> None:
    asking = TerminalQueries()
    said: list[bytes] = []
    asking.ask(CLIPBOARD, said.append, 0.0)
    assert asking.person_input(THERE + THERE, 0.0) == b""
    assert said == []
    assert asking.person_input(b"a\x1b[A" + CLIPPED + b"b", 20.0) == b"a\x1b[Ab"
    assert said == [CLIPPED]
    assert asking.person_input(b"\x1b", 20.0) == b"\x1b"


def test_a_clipboard_reply_between_the_marks_is_delivered_at_once() -> None:
    asking = TerminalQueries()
    said: list[bytes] = []
    asking.ask(CLIPBOARD, said.append, 0.0)
    assert asking.person_input(THERE + CLIPPED + THERE, 0.0) == b""
    assert said == [CLIPPED]


def test_a_clipboard_reply_after_the_wait_does_not_reach_the_program() -> None:
    asking = TerminalQueries()
    asking.ask(CLIPBOARD, lambda said: None, 0.0)
    asking.person_input(THERE + THERE, 0.0)
    passed = [asking.person_input(bytes([byte]), 2 * reply_seconds(CLIPBOARD)) for byte in CLIPPED]
    assert b"".join(passed) == b""


def test_other_queries_work_while_the_clipboard_is_waited_for() -> None:
    asking = TerminalQueries()
    clip: list[bytes] = []
    other: list[bytes] = []
    asking.ask(CLIPBOARD, clip.append, 0.0)
    asking.person_input(THERE + THERE, 0.0)
    asking.program_output(QUERY_MARK, 1.0)
    assert asking.person_input(THERE, 1.0) == THERE
    asking.ask(b"?", other.append, 1.0)
    assert asking.person_input(THERE + CLIPPED + b"\x1b[1;1R" + THERE, 1.0) == b""
    assert (clip, other) == ([CLIPPED], [b"\x1b[1;1R"])


def test_while_only_the_clipboard_is_waited_for_other_replies_and_keys_are_not_held() -> None:
    asking = TerminalQueries()
    asking.ask(CLIPBOARD, lambda said: None, 0.0)
    asking.person_input(THERE + THERE, 0.0)
    assert asking.person_input(b"\x1b[", 1.0) == b"\x1b["
    assert asking.person_input(b"1;5", 1.0) == b"1;5"
    assert asking.held_until is None


def test_an_expired_query_holds_no_key_and_takes_no_slot() -> None:
    asking = TerminalQueries()
    for _ in range(limits.ATTRIBUTE_QUESTIONS):
        assert asking.ask(b"?", lambda said: None, 0.0)
    assert asking.ask(b"?", lambda said: None, 1.0) is None
    assert asking.person_input(b"\x1b", 6.0) == b"\x1b"
    assert asking.ask(b"?", lambda said: None, 6.0)
