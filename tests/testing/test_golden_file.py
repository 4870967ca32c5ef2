"""Golden screens as text: what is written is read again, and a difference is told in words."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.automation.protocol import CellStyle
from telex.terminal.screen_difference import differences, told
from telex.terminal.shown_screen import (
    BLANK,
    from_text,
    row_text,
    shown_cell,
    shown_rows,
    style_words,
)
from telex.testing.golden_file import (
    BadGolden,
    GoldenCell,
    GoldenFile,
    GoldenScreen,
    NewerGolden,
    PatternMask,
    RegionMask,
    mask_screen,
    read_golden,
    write_golden,
)

COLOURS = st.one_of(
    st.just("default"),
    st.integers(0, 255).map("idx:{}".format),
    st.tuples(*[st.integers(0, 255)] * 3).map(lambda rgb: "rgb:{}:{}:{}".format(*rgb)),
)
UNDERLINES = st.sampled_from(["single", "double", "curly", "dotted", "dashed"])
STYLES = st.builds(CellStyle, COLOURS, COLOURS, *[st.booleans()] * 8, UNDERLINES, COLOURS).map(
    style_words
)
FEW_STYLES = st.one_of(st.just(""), st.just("inverse"), STYLES)
CHARACTERS = st.one_of(
    st.sampled_from(" ab|:~\\;\"'-0"),
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Mn", "Me", "Mc")),
    st.sampled_from(["e\u0301", "👩\u200d🔬", "🇩🇪"]),
)


@st.composite
def rows(draw: st.DrawFn, cols: int) -> tuple[GoldenCell, ...]:
    cells: list[GoldenCell] = []
    while len(cells) < cols:
        style = draw(FEW_STYLES)
        cells.append(shown_cell(draw(CHARACTERS), False, style))
        if draw(st.booleans()) and len(cells) < cols:
            cells.append(GoldenCell("", cells[-1].style))
    return tuple(cells)


@st.composite
def screens(draw: st.DrawFn, cols: int | None = None, height: int | None = None) -> GoldenScreen:
    cols = cols or draw(st.integers(1, 5))
    height = height or draw(st.integers(1, 3))
    blank = st.just((BLANK,) * cols)
    content = draw(st.tuples(*[st.one_of(blank, rows(cols)) for _ in range(height)]))
    cursor = draw(st.none() | st.tuples(st.integers(0, height - 1), st.integers(0, cols - 1)))
    title = draw(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=5))
    return GoldenScreen(shown_rows(content, height, cols), cols, cursor, title)


MASKS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=("Cs",)), max_size=5).map(
            lambda text: PatternMask(re.escape(text))
        ),
        st.sampled_from([r"\w", r"\S+", "[^a]", "b*"]).map(PatternMask),
        st.builds(RegionMask, *[st.integers(0, 6)] * 4),
    ),
    max_size=3,
).map(tuple)


@given(screens(), MASKS)
def test_a_file_is_read_as_written_also_after_an_editor_has_changed_line_ends_and_blanks(
    screen: GoldenScreen, masks: tuple[PatternMask | RegionMask, ...]
) -> None:
    golden = GoldenFile(mask_screen(screen, masks), masks)
    text = write_golden(golden)
    assert read_golden(text) == golden
    assert read_golden(text.encode().decode().replace("\n", "\r\n")) == golden
    stripped = "\n".join([line.rstrip(" ") for line in text.split("\n")])
    assert read_golden(stripped) == golden


@given(screens(4, 2) | screens(), screens(4, 2))
def test_there_is_no_difference_exactly_between_equal_screens(
    one: GoldenScreen, other: GoldenScreen
) -> None:
    assert differences(one, one) == []
    assert bool(differences(one, other)) == (one != other)
    assert bool(told(one, other, 80)) == (one != other)


@given(st.text())
def test_no_text_makes_the_reader_fail_in_another_way(text: str) -> None:
    for candidate in (text, f"telex golden 1\n{text}", f"telex golden 1\nsize 2x2\n{text}"):
        with contextlib.suppress(BadGolden):
            read_golden(candidate)


def test_a_newer_file_is_named_as_such_and_not_taken_for_a_broken_one() -> None:
    with pytest.raises(NewerGolden, match=r"line 1 has version 2 .* reads up to 1: use a"):
        read_golden("telex golden 2\nwhatever\n")


def test_a_file_is_readable() -> None:
    cells = [
        GoldenCell(char, "bold red on blue" if n < 4 else "") for n, char in enumerate("Todo ")
    ]
    first = (*cells, GoldenCell("日"), GoldenCell(""), GoldenCell("e\u0301"), BLANK)
    screen = GoldenScreen((first, (BLANK,) * 9), 9, (0, 4), "Todo")
    golden = GoldenFile(screen, (PatternMask(r"\d+"), RegionMask(0, 1, 5, 8)))
    assert write_golden(golden) == (
        "telex golden 1\n"
        "size 9x2\n"
        "cursor row 0 column 4\n"
        'title "Todo"\n'
        'mask "\\\\d+"\n'
        "mask rows 0-1 columns 5-8\n"
        "\n"
        "  0|Todo 日e\u0301\n"
        "  0: 0-3 bold red on blue\n"
        "  0~ wide 5; joined 7:2\n"
    )


def test_of_a_blank_only_the_visible_style_counts() -> None:
    assert shown_cell(" ", False, "bold red on blue").style == "on blue"
    assert shown_cell("", False, "bold red").style == ""
    assert shown_cell(" ", False, "underline red").style == "underline red"
    assert shown_cell("x", False, "bold red").style == "bold red"
    drawn = [shown_cell(char, False, "bold on blue") for char in "a b  "]
    erased = [*drawn[:1], shown_cell("", False, "red on blue"), *drawn[2:]]
    assert shown_rows([drawn], 1, 5) == shown_rows([erased], 1, 5)
    assert [cell.style for cell in shown_rows([drawn], 1, 5)[0]] == ["bold on blue"] * 3 + [
        "on blue"
    ] * 2


def test_a_style_may_be_written_in_any_order() -> None:
    text = (
        "telex golden 1\nsize 4x1\ncursor hidden\n\n  0|abcd\n  0: 1-2 red underline bold on cyan\n"
    )
    assert read_golden(text).screen.rows[0][1].style == "bold underline red on cyan"


HEAD = "telex golden 1\nsize 4x2\ncursor hidden\n\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1 "),
        ("telex golden 0\n", "line 1 .*the first version is 1"),
        ("telex golden 1\n", "line 2 .* there is no 'size'"),
        ("telex golden 1\nsize 4x1\ncursor row x\n\n", "line 3 .*'row x' does not fit 'cursor'"),
        ("telex golden 1\nsize 4x1\ncursor hidden\n\n  0|abcde\n", "longer than 4 columns"),
        ("telex golden 1\nsize 4x1\ncursor hidden\n\n  0|a\n  0: 0-1 fat\n", "line 6 .*'fat'"),
        ('telex golden 1\nsize 4x1\ncursor hidden\nmask "("\n\n', "line 4 "),
        ('telex golden 1\nsize 4x1\ncursor hidden\nmask "a{99999999999}"\n\n', "line 4 "),
        ('telex golden 1\nsize 4x1\ntitle "a"b"\ncursor hidden\n\n  0|a\n', "line 3 "),
        ("telex golden 1\nsize 4x1\nsize 4x2\n", "line 3 .*second 'size'"),
        (f"{HEAD}  0|abcde\n  1|\n", "line 5 .*longer than 4 columns"),
        (f"{HEAD}  0|a\n  0: 2-4 bold\n", "line 6 .*column 4 is outside of a screen of 4 col"),
        (f"{HEAD}  0|a\n  0: 9-9 bold\n", "line 6 .*column 9 is outside"),
        (f"{HEAD}  2|a\n", "line 5 .*row 2 is outside of a screen of 2 rows"),
        (f"{HEAD}  0|a\n  0|b\n", "line 6 .*second row 0"),
        (f"{HEAD}<<<<<<< ours\n", "line 5 .*a row is its number"),
        (f"{HEAD}  0|a\n  0~\n", "line 6 .*neither"),
        (f"{HEAD}  0|a\n  0~ wide x\n", "line 6 .*'x' is not a column"),
        (f"{HEAD}  0|a\n  0~ wide 4\n", "line 6 .*column 4 is outside"),
        (f"{HEAD}  0|a\n  0~ wide 3\n", "line 6 .*longer than 4"),
        (f"{HEAD}  0|a\n  0~ joined 0\n", "line 6 .*'0' is not COLUMN:CHARACTERS"),
        (f"{HEAD}  0|a\n  0~ joined 0:0\n", "line 6 .*'0:0' is not COLUMN:CHARACTERS"),
    ],
)
def test_a_broken_file_is_named_by_its_line(text: str, said: str) -> None:
    with pytest.raises(BadGolden, match=said):
        read_golden(text)


def styled(text: str, *runs: tuple[int, int, str]) -> GoldenScreen:
    screen = from_text(text, 5, 30)
    cells = [list(row) for row in screen.rows]
    for first, last, style in runs:
        for col in range(first, last + 1):
            cells[3][col] = GoldenCell(cells[3][col].text, style)
    return GoldenScreen(tuple(map(tuple, cells)), 30, (0, 0), "demo")


def test_a_difference_is_told_in_words() -> None:
    old = styled("\n\n\n     Save  Quit", (5, 8, "bold"))
    new = styled("\n\n\n     Safe  Quit")
    assert list(map(str, differences(old, new))) == [
        "row 3, columns 5-8: bold → plain; 'Save' → 'Safe'"
    ]
    moved = GoldenScreen(old.rows, 30, (1, 2), "")
    assert list(map(str, differences(old, moved))) == [
        "cursor: row 0 column 0 → row 1 column 2",
        "title: 'demo' → ''",
    ]
    gone = styled("\n\n\n           Quit", (11, 14, "red on blue"))
    assert list(map(str, differences(styled("\n\n\n     Save  Quit"), gone))) == [
        "row 3, columns 5-8: 'Save' → blank",
        "row 3, columns 11-14: plain → red on blue",
    ]
    small = from_text("", 4, 30)
    assert str(differences(old, small)[0]) == "size: 30x5 → 30x4"


def test_changed_rows_are_shown_side_by_side_and_marked() -> None:
    old = styled("\n\n\n     Save  Quit", (5, 8, "bold"))
    new = styled("\n\n\n     Safe  Quit")
    assert told(old, new, 80)[1:] == [
        "",
        "      golden          │ screen",
        "    3      Save  Quit │      Safe  Quit",
        "           ^^^^       │      ^^^^",
    ]


def test_a_difference_of_everything_still_fits_on_a_screen() -> None:
    old, new = from_text("\n".join(["one"] * 100), 100, 200), from_text("x" * 199, 100, 200)
    lines = told(old, new, 80)
    assert len(lines) <= 40
    assert max(map(len, lines[16:])) <= 80
    assert "  … and 86 more" in lines
    assert lines[-1] == "  … and 90 more rows"


def test_masks_hide_text_by_pattern_and_by_place() -> None:
    screen = styled("at 12:34 ok\n日本語 7\n", (0, 3, "bold"))
    shown = mask_screen(
        screen, [PatternMask(r"\d+:\d+"), RegionMask(1, 1, 0, 1), RegionMask(3, 9, 0, 99)]
    )
    assert row_text(shown.rows[0]) == "at ▒▒▒▒▒ ok"
    assert row_text(shown.rows[1]) == "▒▒語 7" or row_text(shown.rows[1]).startswith("▒▒")
    assert shown.rows[3][0] == GoldenCell("▒")
    wide = GoldenScreen(((GoldenCell("日"), GoldenCell(""), GoldenCell("x")),), 3)
    assert row_text(mask_screen(wide, [RegionMask(0, 0, 1, 1)]).rows[0]) == "▒▒x"
    assert row_text(mask_screen(wide, [PatternMask("日")]).rows[0]) == "▒▒x"
