"""Texts and patterns see one screen: printed blanks count, and a wrapped line is one line."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import telex
from telex import match
from telex.terminal.cells import Cursor, Row, Size
from telex.terminal.patterns import Pattern
from telex.terminal.screen import Screen
from telex.terminal.waits.conditions import AbsentText, ScreenPattern, ScreenText
from telex.terminal.waits.evidence import PrintedLines, printed_lines

if TYPE_CHECKING:
    from telex.terminal.waits.evidence import Moment

COLS = 12


@dataclass
class Shown:
    """A moment, as far as these conditions look."""

    rows: tuple[Row, ...]
    cursor: Cursor

    @property
    def text(self) -> str:
        return "\n".join(row.text for row in self.rows).rstrip("\n")

    @property
    def lines(self) -> tuple[PrintedLines, ...]:
        return printed_lines(self.rows, self.cursor)


def shown(output: str, cols: int = COLS) -> Any:
    """The moment after a program has printed this."""
    screen = Screen(Size(6, cols))
    screen.feed(output.encode())
    return Shown(screen.rows(), screen.cursor)


def finds(moment: Moment, wanted: str) -> tuple[bool, bool]:
    """Whether a text, and a pattern that means the same, are on the screen."""
    literal = Pattern("".join(f"[{char}]" if char not in "^\n" else char for char in wanted))
    pattern = ScreenPattern(literal).look(moment) is not None
    text = ScreenText(wanted).look(moment) is not None
    assert (AbsentText(wanted).look(moment) is None) is text
    return text, pattern


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        ("$ ", "$ "),
        ("a\r\n$ ", "a\n$ "),
        ("name:  \r\nnext", "name:  \nnext"),
        ("\x1b[44m$ \x1b[K", "$ "),
        ("$\x1b[3C", "$   "),  # the cursor was moved there
        ("日\x1b[2C", "日  "),
        ("the end of the line", "the line"),
        ("0123456789  blanks", "89  blanks"),  # the blanks are at the margin
        ("0123456789a日本", "a日本"),  # the wide character did not fit
        ("one\r\n" + "x" * 30 + "end\r\n$ ", "xend\n$ "),
        ("saved     \r\nclosed    \r\n", "saved\nclosed"),  # a program that pads its rows
    ],
)
def test_text_and_pattern_find_what_was_printed(output: str, wanted: str) -> None:
    assert finds(shown(output), wanted) == (True, True)


@pytest.mark.parametrize(
    ("output", "wanted"),
    [("$", "$  x"), ("the end of\r\nthe line", "of the line"), ("a\x1b[5C", "b")],
)
def test_text_and_pattern_do_not_find_what_was_not_printed(output: str, wanted: str) -> None:
    assert finds(shown(output), wanted) == (False, False)


@pytest.mark.parametrize("pattern", [r"\$ $", r"(?m)^\$ $", r"done\n\$ $", r"\$\s$", r"\$$"])
def test_a_pattern_that_ends_at_the_end_of_the_screen_finds_a_prompt(pattern: str) -> None:
    moment = shown("done\r\n$ ")
    assert ScreenPattern(Pattern(pattern)).look(moment)


def test_the_row_of_a_wrapped_text_is_the_one_where_it_begins() -> None:
    moment = shown("top\r\n" + "x" * COLS + "y" * COLS + "END OF IT\r\n$ ")
    for wanted, row in [("yyEND", 2), ("xy", 1), ("$ ", 4), ("top\nxx", 0)]:
        why = AbsentText(wanted).explain(moment)["why"]
        assert why == f"the text is still on the screen, in row {row}"


@given(st.lists(st.text("ab 日", max_size=30), max_size=4), st.integers(2, 15))
def test_every_line_is_one_line_whatever_the_width_and_each_offset_has_its_row(
    lines: list[str], cols: int
) -> None:
    screen = Screen(Size(80, cols))
    screen.feed("\r\n".join(lines).encode())
    rows = screen.rows()
    readings = printed_lines(rows, screen.cursor)
    text = readings[-1].text if readings else "\n".join(row.text for row in rows).rstrip("\n")
    assert text == "\n".join(lines).rstrip("\n")
    for reading in readings:
        for offset, char in enumerate(reading.text):
            row = rows[reading.row_at(offset)]
            assert char == "\n" or char in row.printed_text.ljust(cols)
    assert [row.printed_text for row in rows] == [Row(row.cells).printed_text for row in rows]


def test_a_new_prompt_is_told_from_the_one_before_it() -> None:
    shell = telex.spawn("bash --norc --noediting", env={"PS1": "$ "}, cols=30)
    prompt = match.regex(r"\$ $")
    with shell as term:
        term.wait(prompt)
        mark = term.type("printf 'go\\n'; read x\n")
        term.wait("go", since=mark)
        with pytest.raises(telex.TimedOut):
            term.wait(prompt, 0.05, since=mark)
        mark = term.press("enter")
        term.wait(prompt, since=mark)


def test_a_new_line_that_wraps_is_found_and_its_wrapped_echo_is_not() -> None:
    with telex.spawn("cat", cols=30) as term:
        mark = term.type("a line that is longer than the terminal is wide\n")
        for wanted in ("longer than the terminal", match.regex("longer than the term[i]nal")):
            found = term.wait(wanted, since=mark)
            assert found.snapshot.plain_text.count("\n") >= 2  # the echo has two rows
    with telex.spawn("sh -c 'stty -icanon min 1; cat >/dev/null'", cols=30) as term:
        mark = term.type("a line that is longer than the terminal is wide")
        term.wait("wide")
        with pytest.raises(telex.TimedOut, match=r"row 0 has it, but as the echo"):
            term.wait("longer than the terminal", 0.01, since=mark)


def test_the_capture_of_a_wrapped_match_is_whole_also_when_secrets_are_masked() -> None:
    with telex.spawn("echo 'the answer is forty-two and more'", cols=20, redact=True) as term:
        found = term.wait(match.regex(r"answer is (\S+ and)"))
        assert found.evidence["capture"] == "forty-two and"


def test_the_largest_screen_is_read_in_little_time() -> None:
    rows = tuple(Row.of("x" * 1000, 1000, wrapped=n % 2 == 0) for n in range(1000))
    begun = time.process_time()
    assert printed_lines(rows, Cursor(5, 5))[0].text.count("\n") == 499
    assert time.process_time() - begun < 5
