"""Escape sequences in, around and instead of secrets."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from redaction.examples import EXAMPLES, some
from telex.redaction import MARKER, Redactor

REDACTOR = Redactor()
SECRET = f"sk-{some(20)}"

SEQUENCES = {
    "colour": "\x1b[38;5;9m",
    "charset": "\x1b(B",
    "save cursor": "\x1b7",
    "shift in": "\x0f",
    "title, BEL": "\x1b]0;title\x07",
    "link, ST": "\x1b]8;;https://example.org/\x1b\\",
    "request": "\x1bP$qm\x1b\\",
    "8-bit control": "\x9c",
    "zero-width space": "\u200b",
    "soft hyphen": "\u00ad",
    "byte order mark": "\ufeff",
}


@pytest.mark.counted
@pytest.mark.parametrize("number", range(len(SEQUENCES)), ids=SEQUENCES)
def test_a_sequence_anywhere_in_a_text_is_kept_and_hides_no_secret_from_us(
    number: int, counted: Callable[[int, int], int]
) -> None:
    """Each sequence is tried in other places of a text than the one before it."""
    sequence = [*SEQUENCES.values()][number]
    for example in EXAMPLES:
        text = example.text
        step = 1 + len(text) // counted(12, 1000)
        for at in range(number % step, len(text) + 1, step):
            said = REDACTOR.redact(text[:at] + sequence + text[at:])
            assert said.count(sequence) == 1
            assert said.replace(sequence, "") == example.redacted, f"at {at}"


def test_the_colours_inside_a_secret_follow_its_marker_so_that_none_runs_away() -> None:
    assert REDACTOR.redact(f"\x1b[31m{SECRET[:9]}\x1b[32m{SECRET[9:]}\x1b[0m ok") == (
        f"\x1b[31m{MARKER}\x1b[32m\x1b[0m ok"
    )


def test_spans_leave_out_the_sequences_inside() -> None:
    text = f"a {SECRET[:9]}\x1b[32m{SECRET[9:]} b"
    assert "".join(text[slice(*span)] for span in REDACTOR.spans(text)) == SECRET


def test_a_coloured_secret_cut_anywhere_does_not_escape() -> None:
    text = "see " + "\x1b[1;31m".join(SECRET) + "\x1b[0m."
    whole = REDACTOR.redact(text)
    assert re.sub(r"\x1b\[[0-9;]*m", "", whole) == f"see {MARKER}."
    for cut in range(len(text)):
        stream = REDACTOR.stream()
        assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.finish() == whole


@pytest.mark.parametrize("end", ["\x07", "\x1b\\"])
def test_the_body_of_a_control_string_is_a_text_of_its_own(end: str) -> None:
    said = REDACTOR.redact(f"token=ab\x1b]0;password=xyz{end}cd ok")
    assert said == f"token={MARKER}\x1b]0;password={MARKER}{end} ok"


def test_a_control_string_that_never_ends_is_redacted_too() -> None:
    assert REDACTOR.redact(f"\x1b]0;{'x' * 5000} {SECRET}") == f"\x1b]0;{'x' * 5000} {MARKER}"


def test_a_key_may_begin_right_after_a_sequence_since_the_cursor_may_have_moved() -> None:
    for sequence in ("\x1b[20G", "\x1b]0;title\x07", "\x1b[20G\x1b7"):
        assert REDACTOR.redact(f"API key{sequence}{SECRET}") == f"API key{sequence}{MARKER}"


def test_an_overlong_sequence_is_text_after_all() -> None:
    text = f"\x1b[{'0' * 300}m token=abc"
    said = f"\x1b[{'0' * 300}m token={MARKER}"
    assert REDACTOR.redact(text) == said
    stream = REDACTOR.stream()
    assert "".join(map(stream.feed, text)) + stream.finish() == said
