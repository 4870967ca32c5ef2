"""The screens of a recording: any moment of it, and every text that stood on one."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import telex
from telex.redaction import Redactor
from telex.terminal import playback as playback_module
from telex.terminal.cells import Size
from telex.terminal.patterns import Pattern
from telex.terminal.playback import FrameIndex, Playback
from telex.terminal.recording import (
    Header,
    InputEvent,
    MarkerEvent,
    OutputEvent,
    RecordedEvent,
    Recording,
    SizeEvent,
)
from telex.terminal.recording_search import REDRAW_SECONDS, Sighting, search, text_pattern

SMALL = Size(rows=4, cols=20)


def recording(*events: RecordedEvent | str, size: Size = SMALL) -> Recording:
    """A recording; a text is printed a second after the event before it."""
    timed, at = [], 0.0
    for event in events:
        at = at + 1 if isinstance(event, str) else event.time
        timed.append(OutputEvent(at, event) if isinstance(event, str) else event)
    return Recording(Header(2, size), tuple(timed))


def screen(of: Recording, at: float) -> list[str]:
    with Playback(of) as playback:
        playback.play(at)
        return playback.snapshot().plain_text.split("\n")


def seen(of: Recording, text: str) -> list[tuple[float, float | None, int, int]]:
    found = search(of, text_pattern(text), None)
    return [(one.appeared, one.gone, one.row, one.col) for one in found]


# One moment.


def test_a_moment_has_everything_printed_up_to_it() -> None:
    of = recording("one\r\n", MarkerEvent(1.5, "here"), InputEvent(1.6, "x"), "two")
    assert screen(of, 0.9) == [""]
    assert screen(of, 1) == screen(of, 2.5) == ["one"]
    assert screen(of, 2.6) == screen(of, 1e9) == ["one", "two"]


def test_a_size_changes_the_screen_and_a_size_without_cells_does_not() -> None:
    of = recording("a" * 30, SizeEvent(2.0, Size(4, 40)), SizeEvent(3.0, Size(0, 0)))
    assert screen(of, 1) == ["a" * 20, "a" * 10]
    assert screen(of, 3) == ["a" * 30]


def test_a_control_string_for_telex_is_not_drawn() -> None:
    of = recording('before \x1b]23198;4;{"a"', ":1}\x1b\\after")
    assert "23198" not in screen(of, 9)[0]


def test_a_secret_that_has_partly_scrolled_away_is_masked() -> None:
    of = recording("password=" + "hunter2" * 12)
    with Playback(of) as playback:
        playback.play(9)
        assert "hunter2" in playback.masked(None).plain_text
        assert "hunter2" not in playback.masked(Redactor()).plain_text


# Any moment.


def busy_recording(events: int = 300) -> Recording:
    """Everything that hides state: alternate screens, saved cursors, regions, sizes, wide text."""
    chance = random.Random(17)
    kinds = [
        lambda n: f"line {n} of a log\r\n" * chance.randint(1, 6),
        lambda n: f"\x1b[{chance.randint(1, 4)};{chance.randint(1, 20)}H\x1b[3{n % 8};1mx{n}\x1b[m",
        lambda n: "\x1b[?1049h\x1b[2J\x1b[Hover",
        lambda n: "\x1b[?1049l",
        lambda n: "\x1b7\x1b[H",
        lambda n: "\x1b8",
        lambda n: "\x1b[2;3r",
        lambda n: "\x1b[r",
        lambda n: f"宽{n}é́",
        lambda n: f"\x1b]2;title {n}\x07",
        lambda n: Size(rows=chance.randint(2, 9), cols=chance.randint(5, 30)),
    ]
    made: list[RecordedEvent] = []
    for n in range(events):
        what = chance.choice(kinds)(n)
        at = n / 10
        made.append(SizeEvent(at, what) if isinstance(what, Size) else OutputEvent(at, what))
    return Recording(Header(2, SMALL), tuple(made))


@pytest.mark.parametrize("steps", [1, 7, 64])
def test_the_index_has_every_screen_in_any_order(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playback_module, "SEGMENT_STEPS", steps)
    of = busy_recording()
    shown = {}
    with Playback(of) as playback:
        for at in playback.steps():
            shown[at] = playback.snapshot()
    index = FrameIndex(of)
    times = list(shown)
    random.Random(3).shuffle(times)
    for at in [*times, *times[:40]]:
        frame, wanted = index.frame(at), shown[at]
        assert [row.cells for row in frame.rows] == [row.cells for row in wanted.rows]
        assert [row.wrapped for row in frame.rows] == [row.wrapped for row in wanted.rows]
        assert (frame.cursor, frame.title, frame.size) == (
            wanted.cursor,
            wanted.title,
            wanted.size,
        )
        assert frame.alternate_screen == wanted.alternate_screen
    assert index.frame(1e9).plain_text == shown[max(shown)].plain_text


def test_the_index_reads_only_as_far_as_it_is_asked() -> None:
    def events() -> tuple[RecordedEvent, ...]:
        return tuple(OutputEvent(n, f"{n}\r\n") for n in range(1, 100))

    index = FrameIndex(Recording(Header(2, SMALL), events()))
    assert index.frame(0.5).plain_text == ""
    assert index.frame(2.5).plain_text == "1\n2"
    assert len(index._times) < 10
    assert index.frame(99).plain_text == "97\n98\n99"
    assert index.frame(1).plain_text == "1"


def test_an_empty_recording_has_an_empty_screen() -> None:
    assert FrameIndex(recording()).frame(5).plain_text == ""
    assert search(recording(), text_pattern("x"), None) == []


# Texts.


def test_a_text_has_each_time_it_stood_with_its_place() -> None:
    of = recording("say hello", "\x1b[2J\x1b[H", "\r\n  hello")
    assert search(of, text_pattern("hello"), None) == [
        Sighting(1.0, 2.0, 0, 4, "say hello"),
        Sighting(3.0, None, 1, 2, "  hello"),
    ]


def test_texts_on_the_screen_at_once_are_counted_each() -> None:
    of = recording("error\r\n", "error error")
    assert seen(of, "error") == [(1.0, None, 0, 0), (2.0, None, 1, 0), (2.0, None, 1, 6)]


def test_a_text_that_scrolls_is_the_same_until_it_leaves_the_screen() -> None:
    of = recording("first\r\n", *[f"line {n}\r\n" for n in range(4)])
    assert seen(of, "first") == [(1.0, 4.0, 0, 0)]
    log = recording(*[f"{n}: same\r\n" for n in range(8)])
    assert [(a, g) for a, g, _, _ in seen(log, "same")] == [
        *[(n, n + 3.0) for n in range(1, 6)],
        *[(n, None) for n in range(6, 9)],
    ]


def test_a_text_redrawn_at_once_has_not_gone_and_one_redrawn_later_has() -> None:
    def redrawn(after: float) -> list[tuple[float, float | None, int, int]]:
        events = ("menu", OutputEvent(2.0, "\x1b[2J\x1b[H"), OutputEvent(2.0 + after, "menu"))
        return seen(recording(*events), "menu")

    assert redrawn(REDRAW_SECONDS / 2) == [(1.0, None, 0, 0)]
    assert len(redrawn(REDRAW_SECONDS * 2)) == 2


def test_a_text_is_found_where_its_row_changes_beside_it() -> None:
    of = recording("status: ok", "\x1b[1;15H1", "\x1b[1;15H2")
    assert seen(of, "status") == [(1.0, None, 0, 0)]


def test_a_line_wrapped_at_the_margin_is_one_line() -> None:
    of = recording("0123456789012345 needle in hay")
    (found,) = search(of, text_pattern("needle in"), None)
    assert (found.row, found.col) == (0, 17)
    assert found.line == "0123456789012345 needle in hay"


def test_columns_are_those_of_the_screen_beside_wide_characters() -> None:
    assert seen(recording("宽宽 x"), "x") == [(1.0, None, 0, 5)]


def test_blanks_count_where_the_program_printed_them() -> None:
    prompt = recording("$ ")
    assert search(prompt, Pattern(r"\$ $"), None)
    assert seen(prompt, "$ ") == [(1.0, None, 0, 0)]
    assert not search(recording("$"), Pattern(r"\$ $"), None)


def test_a_regular_expression_and_the_case_of_letters() -> None:
    of = recording("Passed: 3")
    assert search(of, Pattern(r"passed|failed"), None) == []
    assert search(of, Pattern(r"[Pp]assed: \d+"), None)[0].col == 0
    assert search(of, text_pattern("PASSED", ignore_case=True), None)
    assert search(of, text_pattern("a.c"), None) == []
    assert search(of, Pattern("x*"), None) == []


def test_a_secret_is_found_and_its_line_is_masked() -> None:
    of = recording("login\r\npassword=hunter2secret", size=Size(4, 60))
    (found,) = search(of, text_pattern("password="), Redactor())
    assert "hunter2" not in found.line
    assert found.line.startswith("password=")


# From Python.

EXAMPLES = Path(__file__).parent.parent.parent / "examples/recordings"


def test_a_recording_is_read_searched_drawn_and_compared_from_python(tmp_path: Path) -> None:
    passed, again, failed = [
        telex.recordings.read(EXAMPLES / f"{name}.cast") for name in ("passed", "again", "failed")
    ]
    assert (passed.text(), passed.text(at=0)) == ("checking 3 files\npassed in 1.2 s", "")
    assert failed.duration == pytest.approx(1.70708)
    (seen,) = failed.when(re.compile("FAILED", re.IGNORECASE))
    assert (seen.row, seen.col, seen.gone) == (1, 0, None)
    assert failed.when("fa.led") == []
    failed.screenshot(tmp_path / "failed.svg", at=seen.appeared)
    assert "failed" in (tmp_path / "failed.svg").read_text()
    assert passed.differences(again) == []
    assert passed.differences(failed)[0] == "row 1, columns 0-5: green → red; 'passed' → 'failed'"
    ignore = re.compile("(passed|failed).*")
    assert passed.differences(failed, ignore=(ignore,)) == ["exit code: 0 → 1"]
    with pytest.raises(telex.recordings.NotARecording, match="line 1"):
        telex.recordings.read(__file__)
