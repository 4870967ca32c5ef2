"""The nearest miss: each reason a wait usually fails for is named, and finding it is cheap."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest

from telex.terminal.cells import Cursor, Row
from telex.terminal.patterns import Pattern
from telex.terminal.waits.evidence import PrintedLines, printed_lines
from telex.terminal.waits.near_misses import NearMiss, NearMissSearch
from telex.terminal.waits.since import Mark


class Words:
    def __init__(self, text: str) -> None:
        self.tail, self.cursor = text, len(text)

    def since(self, cursor: int) -> str:
        return self.tail[cursor:]


@dataclass
class Scene:
    rows: tuple[Row, ...]
    printed: str = "printed"
    cursor: Cursor = Cursor(1, 0)  # noqa: RUF009 - frozen

    @property
    def text(self) -> str:
        return "\n".join(row.text for row in self.rows).rstrip("\n")

    @property
    def lines(self) -> tuple[PrintedLines, ...]:
        return printed_lines(self.rows, self.cursor)

    @property
    def transcript(self) -> Words:
        return Words(self.printed)


def scene(*lines: str, printed: str = "printed", wrapped: int = -1) -> Any:
    rows = [Row.of(line, 20, wrapped=n == wrapped) for n, line in enumerate(lines)]
    return Scene(tuple(rows), printed)


def told(miss: NearMiss | None) -> tuple[str, int | None]:
    assert miss is not None
    return miss.kind, miss.row


def test_a_text_in_other_capitals() -> None:
    miss = NearMissSearch(scene("login", "Ready now")).for_text("READY", None)
    assert told(miss) == ("case", 1)
    assert miss
    assert miss.render() == {
        "kind": "case",
        "says": "row 1 has it in different case",
        "row": 1,
        "line": "Ready now",
    }


def test_a_text_wrapped_over_two_rows_in_other_capitals_or_older_than_the_mark() -> None:
    wrapping = scene("x", "it will be ready ver", "y soon", "z", wrapped=1)
    wrapping.cursor = Cursor(3, 0)
    mark = Mark(1, ("x", "it will be ready ver", "y soon"), Cursor(3, 0), 0)
    for wanted, since, reason in [("VERY soon", None, "case"), ("very soon", mark, "older")]:
        assert told(NearMissSearch(wrapping).for_text(wanted, since)) == (reason, 1)
        pattern = Pattern(wanted.replace("s", "[s]"))
        assert told(NearMissSearch(wrapping).for_pattern(pattern, since)) == (reason, 1)
    assert told(NearMissSearch(wrapping).for_text("Y SOON\nZ", None)) == ("case", 2)


def test_a_text_with_other_blanks_within() -> None:
    assert told(NearMissSearch(scene("all is", "well")).for_text("all is well", None)) == (
        "spacing",
        None,
    )


def test_a_prompt_waited_for_with_its_blank() -> None:
    assert told(NearMissSearch(scene("x", "login:")).for_text("login: ", None)) == ("blanks", 1)


def test_a_text_that_scrolled_away() -> None:
    gone = scene("nothing", printed="RE\x1b[1mADY\x1b[m\r\nnothing")
    assert told(NearMissSearch(gone).for_text("READY", None)) == ("gone", None)
    assert told(NearMissSearch(gone).for_pattern(Pattern("READ."), None)) == ("gone", None)


def test_a_text_older_than_the_mark_and_an_echo() -> None:
    old = Mark(1, ("READY", "$"), Cursor(1, 2), 0, "echo READY\n")
    shown = scene("READY", "$", printed="x")
    assert told(NearMissSearch(shown).for_text("READY", old)) == ("older", 0)
    assert told(NearMissSearch(shown).for_pattern(Pattern("READY"), old)) == ("older", 0)
    echoed = scene("all", "$ echo READY", printed="echo READY")
    mark = Mark(1, ("all", "$"), Cursor(1, 2), 0, "echo READY\n")
    assert told(NearMissSearch(echoed).for_text("READY", mark)) == ("echo", 1)
    assert told(NearMissSearch(echoed).for_printed("READY", mark)) == ("older", None)


def test_a_misspelt_text() -> None:
    miss = NearMissSearch(scene("one", "connection refused", "two")).for_text(
        "conection refused", None
    )
    assert told(miss) == ("similar", 1)
    assert NearMissSearch(scene("one", "two", "three")).for_text("conection refused", None) is None


def test_a_pattern_in_other_capitals() -> None:
    assert told(NearMissSearch(scene("x", "Ready 1")).for_pattern(Pattern(r"ready \d"), None)) == (
        "case",
        1,
    )


def test_a_text_printed_with_escapes_inside() -> None:
    coloured = scene("READY", printed="RE\x1b[1mADY")
    assert told(NearMissSearch(coloured).for_printed("READY", None)) == ("escapes", None)
    assert told(NearMissSearch(coloured).for_printed_pattern(Pattern("READ."), None)) == (
        "escapes",
        None,
    )
    assert told(NearMissSearch(coloured).for_printed("ady", None)) == ("case", None)


def test_a_large_tree_gets_a_few_answers() -> None:
    search = NearMissSearch(scene("ready"))
    answers = [search.for_text("READY", None) for _ in range(100)]
    assert sum(answer is not None for answer in answers) == 8


@pytest.mark.parametrize("line", ["abcdefghij" * 100, "a" * 1000])
def test_the_largest_screen_does_not_take_quadratic_time(line: str) -> None:
    rows = (Row.of(line, 1000),) * 1000
    large: Any = Scene(rows)
    assert len(large.text) > 1_000_000
    took = []
    for wanted in ("abcdefghijabcdefghijX" * 8, "aXbXc" * 40, "zzz"):
        begun = time.process_time()
        NearMissSearch(large).for_text(wanted, None)
        took.append(time.process_time() - begun)
    assert min(took) < 5  # what is quadratic takes hours; the benchmark has the figure


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (r"\d+ passed", True),
        ("[0-9]+ passed", True),
        ("1. passed.*s", True),
        ("passed|failed", True),
        ("passed in 3s$", True),
        ("^tests: 12", True),
        (r"\d+ failed", False),
        (r"\d+ passe(", False),
        ("12 pas?", False),  # a question
        ("12 pass.d", False),
    ],
)
def test_a_pattern_that_was_given_as_a_text(text: str, meant: bool) -> None:
    there = scene("tests: 12", "12 passed in 3s")
    there.printed = there.text
    shown = NearMissSearch(there).for_text(text, None)
    printed = NearMissSearch(there).for_printed(text, None)
    assert [one is not None and one.kind == "pattern" for one in (shown, printed)] == [meant] * 2
    if shown and meant:
        assert "use telex.match.regex" in shown.says
