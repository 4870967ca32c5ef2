"""`telex.match`: short words for the matchers of the protocol."""

from __future__ import annotations

import re

import pytest

from telex import match
from telex.terminal.waits import matchers


def test_a_plain_string_is_text_on_the_screen() -> None:
    assert match.matcher("ok") == matchers.ContainsText("ok")


def test_a_matcher_is_returned_unchanged() -> None:
    assert match.matcher(matchers.Title("vi")) == matchers.Title("vi")


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
    assert match.matcher(re.compile("a.b", flags)) == matchers.ScreenRegex(said)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (re.compile("a b", re.VERBOSE), "VERBOSE"),
        (re.compile("a", re.ASCII), "ASCII"),
        (re.compile(b"a"), "is of bytes"),
    ],
)
def test_a_pattern_with_another_meaning_in_re2_is_refused(
    pattern: re.Pattern[str], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        match.matcher(pattern)


def test_each_function_makes_one_matcher() -> None:
    assert match.text("a", since=3) == matchers.ContainsText("a", 3)
    assert match.regex("a", since="m1") == matchers.ScreenRegex("a", "m1")
    assert match.printed("a") == matchers.TranscriptContains("a")
    assert match.absent("a") == matchers.TextAbsent("a")
    assert match.title("a") == matchers.Title("a")
    assert match.cursor(1, 2) == matchers.CursorAt(matchers.CellPosition(1, 2))
    assert match.stable(100) == matchers.ScreenStable(matchers.Stability(100, "change"))
    assert match.exited() == matchers.ProcessExited()
    assert match.exited(0) == matchers.ExitCode(0)


def test_matchers_can_be_nested() -> None:
    a, b = matchers.ContainsText("a"), matchers.ScreenRegex("b")
    assert match.any_of("a", re.compile("b")) == matchers.AnyOf((a, b))
    assert match.all_of("a", match.none_of(re.compile("b"))) == matchers.AllOf(
        (a, matchers.Not(matchers.AnyOf((b,))))
    )
