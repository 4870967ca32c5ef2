"""What a caller may add: literals, regexes and another marker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from redaction.examples import some
from telex.redaction import (
    MARKER,
    LiteralRefused,
    Redactor,
    RegexesNeedWholeText,
    RegexRefused,
    RuleRefused,
)
from telex.redaction.limits import HELD_SECRET_CHARS


def in_feeds(redactor: Redactor, feeds: list[str]) -> str:
    stream = redactor.stream()
    return "".join(map(stream.feed, feeds)) + stream.finish()


@pytest.mark.parametrize(
    "literal", ["correct horse", "aaab", "пароль", "x" * 200 + "y", "ab\ud800cd"]
)
def test_a_literal_is_hidden_wherever_it_stands_and_however_it_is_cut(literal: str) -> None:
    redactor = Redactor(extra_literals=(literal,))
    text = f"{literal}aa{literal[:-1]} и a{literal}{literal}."
    said = f"{MARKER}aa{literal[:-1]} и a{MARKER}."
    assert redactor.redact(text) == said
    assert in_feeds(redactor, list(text)) == said
    for cut in range(len(text)):
        assert in_feeds(redactor, [text[:cut], text[cut:]]) == said


def test_overlapping_literals_are_all_hidden() -> None:
    assert Redactor(extra_literals=("abcdef", "defghi")).redact("-abcdefghi-") == f"-{MARKER}-"
    assert Redactor(extra_literals=("abab",)).redact("-ababab-") == f"-{MARKER}-"


def test_literals_side_by_side_have_one_marker_even_with_sequences_between() -> None:
    literal = "hunter" + "z" * 100  # long enough that its beginning is forgotten
    redactor = Redactor(extra_literals=(literal,))
    feeds = [literal, "\x1b[1m", "\x1b[2m", literal]
    assert in_feeds(redactor, feeds) == redactor.redact("".join(feeds))
    assert redactor.redact("".join(feeds)) == f"{MARKER}\x1b[1m\x1b[2m"


def test_a_literal_that_begins_after_much_text_and_many_sequences_is_not_overlooked() -> None:
    redactor = Redactor(extra_literals=("hunter22",))
    text = "plain " * 500 + "y\x1b[0m" * 38 + "\x1b[0m" * 15
    assert in_feeds(redactor, [f"{text} h", "unter22 ok"]) == f"{text} {MARKER} ok"


def test_a_literal_with_colours_inside_is_hidden() -> None:
    redactor = Redactor(extra_literals=("hunter22",))
    assert redactor.redact("\x1b[1mhun\x1b[2mter22\x1b[0m") == f"\x1b[1m{MARKER}\x1b[2m\x1b[0m"


@pytest.mark.counted
def test_a_flood_of_escapes_inside_a_literal_neither_fills_memory_nor_frees_it(
    counted: Callable[[int, int], int],
) -> None:
    """It is recognised by four characters; with fewer before the flood, three are let go."""
    redactor = Redactor(extra_literals=("hunter22",))
    for given in range(1, 8) if counted(0, 1) else (3, 4):
        text = "a " + "hunter22"[:given] + "\x1b[1m" * 1100 + "hunter22"[given:] + " b"
        said = redactor.redact(text)
        assert in_feeds(redactor, list(text)) == said
        shown = said.replace("\x1b[1m", "").replace(MARKER, "")
        assert shown == ("a hun b" if given < 4 else "a  b")


def test_a_literal_of_several_lines_is_hidden_line_by_line() -> None:
    """A terminal makes `\\r\\n` of `\\n`, and a program may indent."""
    redactor = Redactor(extra_literals=("first line\n  second line\n==\n",))
    text = "  first line\r\n\tsecond line\r\n=="
    assert redactor.redact(text) == f"  {MARKER}\r\n\t{MARKER}\r\n=="


@pytest.mark.parametrize("literal", ["", "  ", "\n \n", "\x1b[1m", "\t"])
def test_a_literal_of_blanks_alone_is_refused(literal: str) -> None:
    with pytest.raises(LiteralRefused, match="literal 2 is empty") as refused:
        Redactor(extra_literals=("long enough", literal))
    assert isinstance(refused.value, RuleRefused)


@pytest.mark.parametrize(
    ("literal", "text", "said"),
    [
        ("a", "a cat", f"{MARKER} c{MARKER}t"),
        ("é", "café", f"caf{MARKER}"),
        ("ab", "cab ab a b", f"c{MARKER} {MARKER} a b"),
        ("abc", "xabcabcx", f"x{MARKER}x"),
        ("  abc  ", "abc", MARKER),
        ("\x1b[1mab", "ab", MARKER),
        ("ab", "a\x1b[1mb", f"{MARKER}\x1b[1m"),
        ("aa", "aaa", MARKER),
        ("a\nb", "a b c", f"{MARKER} {MARKER} c"),
        ("long line\n}", "} long line", f"}} {MARKER}"),
    ],
)
def test_a_literal_may_be_short_and_is_hidden_wherever_it_stands(
    literal: str, text: str, said: str
) -> None:
    redactor = Redactor(extra_literals=(literal,))
    assert redactor.redact(text) == said
    assert in_feeds(redactor, list(text)) == said


def test_nothing_of_a_short_literal_escapes_wherever_the_reads_fall() -> None:
    text = "the pin is 42; 4\x1b[0m2 is it, and 4 2 is not, nor is 24"
    redactor = Redactor(extra_literals=("42", "7"))
    whole = redactor.redact(text)
    assert "42" not in whole.replace("\x1b[0m", "")
    for cut in range(len(text) + 1):
        assert in_feeds(redactor, [text[:cut], text[cut:]]) == whole


def test_a_literal_too_long_to_be_held_is_refused() -> None:
    Redactor(extra_literals=("x" * (HELD_SECRET_CHARS - 1),))
    with pytest.raises(LiteralRefused, match="literal 1 is too long"):
        Redactor(extra_literals=("x" * HELD_SECRET_CHARS,))


def test_a_redactor_does_not_show_its_literals() -> None:
    assert "hunter22" not in repr(Redactor(extra_literals=("hunter22",)))


def test_a_redactor_is_a_value() -> None:
    one, other = (Redactor(extra_literals=("hunter22",)) for _ in range(2))
    assert one == other
    assert len({one, other, Redactor()}) == 2


def test_what_a_regex_matches_is_hidden_beside_the_default_rules() -> None:
    redactor = Redactor(extra_regexes=(r"\bID-\d+\b", "(?s)<<.*?>>"))
    text = "ID-123 token=abc <<two\nlines>> XID-9"
    assert redactor.redact(text) == f"{MARKER} token={MARKER} {MARKER} XID-9"
    assert redactor.spans("see ID-7.") == [(4, 8)]


def test_a_regex_reads_what_is_visible_and_each_control_string() -> None:
    redactor = Redactor(extra_regexes=("ID-[0-9]+",))
    text = "I\x1b[1mD-1\x1b[0m2 é漢\ud800 \x1b]0;ID-3\x07ID-\x1b]0;x\x07456 token=z"
    assert redactor.redact(text) == (
        f"{MARKER}\x1b[1m\x1b[0m é漢\ud800 \x1b]0;{MARKER}\x07{MARKER}\x1b]0;x\x07 token={MARKER}"
    )


def test_a_regex_that_matches_nothing_hides_nothing() -> None:
    assert Redactor(extra_regexes=("x*",)).redact("abc") == "abc"


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("[a", "missing ]"),
        ("(?<=a)b", "invalid perl operator"),
        ("a**", "bad repetition"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_bad_regex_is_refused_with_its_problem(
    pattern: str, problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RegexRefused, match=problem) as refused:
        Redactor(extra_regexes=(pattern,))
    assert isinstance(refused.value, RuleRefused)
    assert capfd.readouterr().err == ""


def test_a_stream_with_regexes_is_refused_instead_of_leaking() -> None:
    with pytest.raises(RegexesNeedWholeText):
        Redactor(extra_regexes=("a+",)).stream()


@pytest.mark.parametrize("marker", ["", "***", "<hidden value>", "[REDACTED]"])
def test_the_marker_is_the_callers(marker: str) -> None:
    redactor = Redactor(replacement=marker)
    text = f"token=abc sk-{some(20)} ok"
    said = f"token={marker} {marker} ok"
    assert redactor.redact(text) == said
    assert in_feeds(redactor, list(text)) == said
    assert marker == "" or redactor.redact(said) == said
