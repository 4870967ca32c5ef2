"""Two recordings of one program: their times and pieces never matter, their screens do."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from telex.redaction import Redactor
from telex.terminal.cells import Size
from telex.terminal.patterns import Pattern
from telex.terminal.recording import (
    ExitEvent,
    Header,
    InputEvent,
    MarkerEvent,
    OutputEvent,
    RecordedEvent,
    Recording,
    SizeEvent,
)
from telex.terminal.recording_comparison import RecordingDifference, compare

SMALL = Size(rows=6, cols=40)


def recording(*events: RecordedEvent | str, every: float = 1.0, size: Size = SMALL) -> Recording:
    """A recording; a text is printed some time after the event before it."""
    timed, at = [], 0.0
    for event in events:
        at = at + every if isinstance(event, str) else event.time
        timed.append(OutputEvent(at, event) if isinstance(event, str) else event)
    return Recording(Header(2, size), tuple(timed))


def cut(of: Recording, seed: int) -> Recording:
    """The same output at other times, in other pieces."""
    chance = random.Random(seed)
    text = "".join(event.text for event in of.events if isinstance(event, OutputEvent))
    events, at, time = [], 0, 0.0
    while at < len(text):
        size = chance.choice([1, 2, 5, 40, 300])
        time += chance.choice([0.001, 0.05, 0.3])
        events.append(OutputEvent(time, text[at : at + size]))
        at += size
    return replace(of, events=tuple(events))


def difference(old: Recording, new: Recording, **how) -> RecordingDifference:
    found = compare(old, new, None, **how)
    assert isinstance(found, RecordingDifference)
    return found


SESSION = (
    "$ ",
    "make\r\n",
    "\x1b[32mcompiling\x1b[m",
    *"....",
    " done\r\n$ ",
    "top\r\n",
    "\x1b[?1049h\x1b[2J\x1b[H\x1b[7mPID\x1b[m 宽 load",
    "\x1b[2;1H1 init",
    "\x1b[?1049l",
    "$ exit\r\n",
)


@pytest.mark.parametrize("seed", range(8))
def test_times_and_pieces_do_not_matter(seed: int) -> None:
    of = recording(*SESSION)
    assert isinstance(compare(of, cut(of, seed), None), int)
    assert isinstance(compare(cut(of, seed), cut(of, seed + 100), None), int)


@pytest.mark.parametrize("seed", range(8))
def test_pauses_do_not_matter_where_the_bytes_differ(seed: int) -> None:
    """One run begins with another sequence that shows the same."""
    of = recording(*SESSION)
    other = recording("\x1b[0m\x1b[H", *SESSION)
    assert isinstance(compare(cut(of, seed), cut(other, seed + 100), None), int)
    assert isinstance(compare(cut(other, seed), of, None), int)


def test_the_same_recording_has_no_difference() -> None:
    of = recording("one\r\n", "two", ExitEvent(3.0, 0))
    assert compare(of, of, None) == 2
    assert compare(recording(), recording(), None) == 1


def test_the_first_difference_has_its_step_and_both_times() -> None:
    old = recording("one\r\n", "two\r\n", "three")
    new = recording("one\r\n", "TWO\r\n", "three", every=2.0)
    found = difference(old, new)
    assert found.first is not None
    assert [(step.number, step.time) for step in found.first] == [(2, 2.0), (2, 4.0)]
    assert [step.screen.plain_text for step in found.first] == ["one\ntwo", "one\nTWO"]
    assert [step.screen.plain_text for step in found.last] == ["one\ntwo\nthree", "one\nTWO\nthree"]
    assert not found.same_end


def test_a_difference_that_is_gone_at_the_end_is_found() -> None:
    old = recording("\x1b[?1049hmenu: open", "\x1b[?1049l", "$ ", every=0.01)
    new = recording("\x1b[?1049hmenu: shut", "\x1b[?1049l", "$ ", every=0.01)
    found = difference(old, new)
    assert found.first is not None
    assert "menu: open" in found.first[0].screen.plain_text
    assert found.same_end


def test_a_screen_that_one_run_lacks_is_a_difference() -> None:
    old = recording("one", "\x1b[2J\x1b[Hwarning", "\x1b[2J\x1b[Hone")
    new = recording("one")
    for pair in ((old, new), (new, old)):
        found = difference(*pair)
        assert found.first is not None
        assert {step.screen.plain_text for step in found.first} == {"one", "warning"}
        assert found.same_end


def test_a_screen_before_input_or_a_marker_is_a_step() -> None:
    for event in (InputEvent(1.001, "x"), MarkerEvent(1.001, "here")):
        old = recording("one", event, OutputEvent(1.002, "\x1b[2J\x1b[Hend"))
        new = recording("two", event, OutputEvent(1.002, "\x1b[2J\x1b[Hend"))
        assert difference(old, new).first is not None


def test_a_short_flicker_is_no_difference() -> None:
    old = recording("ok", OutputEvent(1.01, "\x1b[2J"), OutputEvent(1.02, "\x1b[Hok"))
    new = recording("ok", OutputEvent(1.01, "\x1b[H??"), OutputEvent(1.02, "\x1b[Hok"))
    assert compare(old, new, None) == 1
    assert difference(old, new, pause=0).first is not None


def test_styles_cursor_title_size_and_exit_are_compared() -> None:
    base = recording("ok")
    assert difference(base, recording("\x1b[1mok\x1b[m")).first is not None
    assert not difference(base, recording("ok", OutputEvent(1.0, "\x1b[5;5H"))).same_end
    assert not difference(base, recording("ok", OutputEvent(1.0, "\x1b]2;t\x07"))).same_end
    assert difference(base, recording("ok", size=Size(7, 40))).first is not None
    assert difference(base, recording("ok", SizeEvent(3.0, Size(7, 40)))).first is not None
    found = difference(base, recording("ok", ExitEvent(2.0, 1)))
    assert (found.first, found.same_end, found.exits) == (None, True, (None, 1))


def test_printed_blanks_look_like_blanks() -> None:
    assert compare(recording("ok"), recording("ok   \x1b[1;3H"), None) == 1


def test_ignored_text_is_equal_to_other_ignored_text() -> None:
    old, new = recording("took \x1b[1m9\x1b[m s\r\n$ "), recording("took 10 s\r\n$ ")
    assert isinstance(compare(old, new, None), RecordingDifference)
    assert compare(old, new, None, ignored=[Pattern(r"\d+ s")]) == 1
    for text in ("\x1b[1mtook\x1b[m 9", "tuck 9"):
        found = difference(
            recording("took 9 s\r\nand 7 s"),
            recording("took 8 s\r\nand " + text),
            ignored=[Pattern(r"\d+ s")],
        )
        assert {one.row for one in found.told(*found.last)} - {None} == {1}
    other = recording("cost 10 s\r\n$ ")
    assert isinstance(compare(old, other, None, ignored=[Pattern(r"\d+ s")]), RecordingDifference)


def test_much_output_between_two_pauses_is_compared_by_lines() -> None:
    log = "".join([f"line {n}\r\n" for n in range(6000)])
    old, new = recording("a", "\x1b[H" + log, "end"), recording("b", "\x1b[H" + log, "end")
    assert difference(old, new).same_end
    other = recording("\x1b[ma", "\x1b[H" + log + "end")
    assert compare(old, other, None) == 2


def test_secrets_that_differ_are_a_difference_and_masked() -> None:
    old, new = recording("password=hunter2secret"), recording("password=swordfish12")
    found = compare(old, new, Redactor())
    assert isinstance(found, RecordingDifference)
    assert found.first is not None
    for step in found.first:
        assert "hunter2" not in step.screen.plain_text
        assert "swordfish" not in step.screen.plain_text


# Words.


def told(old: Recording, new: Recording) -> list[str]:
    found = difference(old, new)
    return [str(one) for one in found.told(*(found.first or found.last))]


def test_a_difference_is_told_in_the_words_of_goldens() -> None:
    assert told(recording("File Save Quit"), recording("File Safe Quit")) == [
        "row 0, columns 5-8: 'Save' → 'Safe'"
    ]
    assert told(recording("\x1b[1mSave"), recording("Save")) == ["row 0, columns 0-3: bold → plain"]
    assert told(recording("\x1b[2;91mab"), recording("\x1b[38;5;99mab")) == [
        "row 0, columns 0-1: dim bright-red → color99"
    ]
    assert told(recording("a b"), recording("a b c")) == [
        "row 0, column 4: blank → 'c'",
        "cursor: row 0 column 3 → row 0 column 5",
    ]


def test_a_look_that_no_person_can_tell_apart_is_no_difference() -> None:
    blanks = recording("one\x1b[31m   \x1b[m\x1b[?25l\x1b[5;5H")
    assert compare(blanks, recording("one\x1b[?25l"), None) == 1
