"""`telex.match`: short words for the matchers of the protocol."""

from __future__ import annotations

import re

import pytest

from telex import match
from telex.protocols import pty_automation as spec


def test_a_plain_string_is_text_on_the_screen() -> None:
    assert match.matcher("ok") == spec.ContainsText("ok")


def test_a_matcher_stays_what_it_is() -> None:
    assert match.matcher(spec.Title("vi")) == spec.Title("vi")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (0, "a.b"),
        (re.IGNORECASE, "(?i)a.b"),
        (re.MULTILINE | re.DOTALL, "(?ms)a.b"),
        (re.IGNORECASE | re.MULTILINE | re.DOTALL, "(?ims)a.b"),
    ],
)
def test_a_compiled_pattern_keeps_its_flags(flags: int, said: str) -> None:
    assert match.matcher(re.compile("a.b", flags)) == spec.ScreenRegex(said)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (re.compile("a b", re.VERBOSE), "VERBOSE"),
        (re.compile("a", re.ASCII), "ASCII"),
        (re.compile(b"a"), "not of bytes"),
    ],
)
def test_a_pattern_that_would_mean_something_else_there_is_refused(
    pattern: re.Pattern[str], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        match.matcher(pattern)


def test_each_word_is_one_matcher() -> None:
    assert match.text("a", 3) == spec.ContainsText("a", 3)
    assert match.regex("a", "m1") == spec.ScreenRegex("a", "m1")
    assert match.printed("a") == spec.TranscriptContains("a")
    assert match.absent("a") == spec.TextAbsent("a")
    assert match.title("a") == spec.Title("a")
    assert match.cursor(1, 2) == spec.CursorAt(spec.Place(1, 2))
    assert match.stable(100) == spec.ScreenStable(spec.Stability(100, "change"))
    assert match.exited() == spec.ProcessExited()
    assert match.exited(0) == spec.ExitCode(0)


def test_words_go_into_one_another() -> None:
    a, b = spec.ContainsText("a"), spec.ScreenRegex("b")
    assert match.any_of("a", re.compile("b")) == spec.AnyOf((a, b))
    assert match.all_of("a", match.none_of(re.compile("b"))) == spec.AllOf(
        (a, spec.Not(spec.AnyOf((b,))))
    )
