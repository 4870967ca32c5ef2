"""The terminal's reply to DA1 with our attribute: which input is searched and held back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from telex.passthrough.query_replies import AttributeFilter

ANSWER = b"\x1b[?62;4;22c"
TOLD = b"\x1b[?62;4;22;23198c"


def asked(question: bytes = b"\x1b[c", at: float = 0.0) -> AttributeFilter:
    attributes = AttributeFilter(23198)
    attributes.program_output(question, at)
    return attributes


def test_a_reply_gets_our_attribute() -> None:
    assert asked().person_input(b"a" + ANSWER + b"b", 0.1) == b"a" + TOLD + b"b"
    assert asked(b"\x1b[0c").person_input(ANSWER, 0.1) == TOLD


def test_without_a_question_nothing_is_looked_at() -> None:
    attributes = asked(b"\x1b[31mred \x1b[5c \x1b[>c \x1b[=c")
    assert attributes.person_input(ANSWER, 0.1) == ANSWER
    assert attributes.person_input(b"\x1b", 0.1) == b"\x1b"
    assert attributes.held_until is None


def test_each_query_has_one_reply() -> None:
    attributes = asked(b"\x1b[c\x1b[c")
    assert attributes.person_input(ANSWER * 3, 0.1) == TOLD * 2 + ANSWER
    assert attributes.person_input(b"\x1b", 0.1) == b"\x1b"


def test_other_replies_and_keys_are_unchanged() -> None:
    others = b"\x1b[>1;10;0c\x1b[?1;2R\x1b[A\x1bOA\x1b[<0;1;1M"
    assert asked().person_input(others, 0.1) == others


def test_a_lone_escape_is_a_key_after_a_moment() -> None:
    attributes = asked()
    assert attributes.person_input(b"x\x1b", 1.0) == b"x"
    assert attributes.held_until == 1.025
    assert attributes.release() == b"\x1b"
    assert attributes.held_until is None
    assert attributes.person_input(b"\x1b", 2.0) == b""
    assert attributes.person_input(b"j", 2.01) == b"\x1bj"


def test_a_query_without_a_reply_is_given_up() -> None:
    attributes = asked()
    assert attributes.person_input(b"\x1b", 6.0) == b"\x1b"
    assert attributes.person_input(ANSWER, 6.1) == ANSWER


@given(st.data())
def test_cuts_make_no_difference(data: st.DataObject) -> None:
    pieces = [b"\x1b[c", b"\x1b[0c", b"text", b"\x1b[31m", b"\x1b"]
    printed = b"".join(data.draw(st.lists(st.sampled_from(pieces), max_size=6)))
    keys = [ANSWER, b"\x1b", b"\x1b[A", b"\x1b[?", b"c", b"q", b"\x1b[?1;2c"]
    typed = b"".join(data.draw(st.lists(st.sampled_from(keys), max_size=8)))
    whole, cut = AttributeFilter(23198), AttributeFilter(23198)
    whole.program_output(printed, 0.0)
    at = data.draw(st.integers(0, len(printed)))
    cut.program_output(printed[:at], 0.0)
    cut.program_output(printed[at:], 0.0)
    want = whole.person_input(typed, 0.1) + whole.release()
    at = data.draw(st.integers(0, len(typed)))
    got = cut.person_input(typed[:at], 0.1) + cut.person_input(typed[at:], 0.1) + cut.release()
    assert got == want
    assert got.replace(b";23198", b"") == typed
