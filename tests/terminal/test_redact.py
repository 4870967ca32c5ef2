"""Secrets out of a screen, in place: wrapped, coloured, boxed, scrolled away."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from redaction.examples import EXAMPLES, INNOCENT, KEY_LINES, Example, some
from telex.redaction import MARKER, Redactor
from telex.terminal.cells import BLANK, PLAIN, Cell, Cursor, Row, Size, Snapshot, Style
from telex.terminal.redact import FILL, Masker, mask, mask_rows
from telex.terminal.screen import Screen

REDACTOR = Redactor()
SECRET = f"sk-{some(40)}"
RED = Style(foreground="idx:1")
BOLD = Style(bold=True)
MASK_CHARACTERS = set(MARKER + FILL)


def line(text: str, cols: int, styles: Callable[[int], Style] = lambda at: PLAIN) -> list[Row]:
    """A line as a terminal lays it out: soft-wrapped, wide characters never cut."""
    rows: list[list[Cell]] = [[]]
    for at, char in enumerate(text):
        wide = ord(char) > 0x2E80
        if len(rows[-1]) + 1 + wide > cols:
            rows.append([])
        rows[-1].append(Cell(char, styles(at), 2 if wide else 1))
        if wide:
            rows[-1].append(Cell("", styles(at), 0))
    last = len(rows) - 1
    return [
        Row((*cells, *[BLANK] * (cols - len(cells))), number != last)
        for number, cells in enumerate(rows)
    ]


def screen(text: str, cols: int, styles: Callable[[int], Style] = lambda at: PLAIN) -> Snapshot:
    rows = [row for each in text.split("\n") for row in line(each, cols, styles)]
    return Snapshot(Size(len(rows), cols), Cursor(), 7, tuple(rows))


def texts(rows: tuple[Row, ...]) -> list[str]:
    return [row.text for row in rows]


def assert_whole(before: Snapshot, after: Snapshot) -> None:
    """Same grid, same styles, and every cell in its place."""
    for old, new in zip(before.rows, after.rows, strict=True):
        assert [cell.style for cell in new.cells] == [cell.style for cell in old.cells]
        assert sum(cell.width for cell in new.cells) == sum(cell.width for cell in old.cells)
        assert new.wrapped == old.wrapped


# Generated: every kind of secret, at every width, in every colouring.

ON_SCREEN = [
    Example(each.rule, each.marked.replace("\r\n", "\n"))
    for each in EXAMPLES
    if not re.search(
        r"\r(?!\n)", each.text
    )  # a line editor's margin: a terminal shows no such thing
]
COLOURINGS = {
    "plain": lambda at: PLAIN,
    "each character": lambda at: (RED, BOLD, PLAIN)[at % 3],
    "halves": lambda at: RED if at < 20 else BOLD,
}


def hidden_flags(example: Example) -> Iterator[bool]:
    hidden = False
    for char in example.marked:
        if char in "«»":
            hidden = char == "«"
        elif char != "\n":
            yield hidden


def assert_hidden(example: Example, cols: int, styles: Callable[[int], Style]) -> None:
    before = screen(example.text, cols, styles)
    after = mask(before, REDACTOR)
    assert_whole(before, after)
    olds = [cell for row in before.rows for cell in row.cells if cell.text]
    news = [new for old, new in cells_of(before, after) if old.text]
    for hidden, old, new in zip(hidden_flags(example), olds, news, strict=True):
        if hidden:
            assert new is not old
            assert new.text in MASK_CHARACTERS
    shown = after.plain_text.replace("\n", "")
    runs = "".join(run.text for row in after.rows for run in row.runs)
    for part in example.marked.split("«")[1:]:
        for secret in part.partition("»")[0].split("\n"):
            if len(secret) >= 8:
                assert secret not in shown
                assert secret not in runs


def cells_of(before: Snapshot, after: Snapshot) -> Iterator[tuple[Cell, Cell]]:
    for old, new in zip(before.rows, after.rows, strict=True):
        yield from zip(old.cells, new.cells, strict=True)


@pytest.mark.counted
@pytest.mark.parametrize("colouring", COLOURINGS)
def test_no_secret_is_left_whatever_the_width(
    colouring: str, counted: Callable[[int, int], int]
) -> None:
    """Each colouring is tried at other widths than the one before it."""
    first = 2 + [*COLOURINGS].index(colouring)
    for example in ON_SCREEN:
        longest = max(map(len, example.text.split("\n")))
        step = 1 + longest // counted(15, 1000)
        for cols in range(first if step > 2 else 2, longest + 2, step):
            assert_hidden(example, cols, COLOURINGS[colouring])


@pytest.mark.parametrize("text", INNOCENT[:-1])
def test_innocent_text_is_left_alone(text: str) -> None:
    before = screen(text.replace("\r", ""), 200)
    assert mask(before, REDACTOR) is before


# By example.


def test_the_replacement_lies_over_the_secret_and_nothing_after_it_moves() -> None:
    before = screen(f"key {SECRET} end", 80)
    after = mask(before, REDACTOR)
    assert after.plain_text == f"key {MARKER}{'*' * 33} end"
    assert len(after.plain_text) == len(before.plain_text)
    assert (after.sequence, after.cursor, after.size) == (7, before.cursor, before.size)


def test_a_secret_shorter_than_the_replacement_is_all_stars() -> None:
    assert mask(screen("password=abc x", 80), REDACTOR).plain_text == "password=*** x"


def test_a_secret_wrapped_over_two_rows_is_masked_in_both() -> None:
    after = mask(screen(f"key {SECRET} end", 30), REDACTOR)
    assert texts(after.rows) == [f"key {MARKER}{'*' * 16}", f"{MARKER}{'*' * 7} end"]


def test_a_lead_wrapped_over_two_rows_is_still_a_lead() -> None:
    for cols in range(2, 16):
        shown = mask(screen("password=hunter2hunter2", cols), REDACTOR).plain_text
        assert "hunter"[:cols] not in shown


def test_rows_without_secrets_are_the_same_objects() -> None:
    before = screen(f"one\n{SECRET}\nthree", 80)
    after = mask(before, REDACTOR)
    assert after.rows[0] is before.rows[0]
    assert after.rows[1] is not before.rows[1]
    assert after.rows[2] is before.rows[2]
    quiet = screen("nothing here", 80)
    assert mask_rows(quiet.rows, REDACTOR) is quiet.rows


def test_wide_characters_before_a_secret_keep_their_places() -> None:
    before = screen(f"漢字 {SECRET} 漢", 80)
    after = mask(before, REDACTOR)
    assert after.plain_text == f"漢字 {MARKER}{'*' * 33} 漢"
    assert_whole(before, after)


@pytest.mark.parametrize("cols", range(3, 40))
def test_a_wide_secret_becomes_narrow_masks_over_the_same_cells(cols: int) -> None:
    literal = "漢字と仮名とe\u0301かな"
    before = screen(f"ab{literal}cd", cols)
    after = mask(before, Redactor(extra_literals=(literal,)))
    assert_whole(before, after)
    left = after.plain_text.replace("\n", "").replace(" ", "")
    assert set(left) <= set("abcd") | MASK_CHARACTERS
    assert left.startswith("a")
    assert left.endswith("d")


def test_a_secret_in_a_title_is_redacted() -> None:
    before = Snapshot(Size(1, 10), Cursor(), 1, (Row.of("ok", 10),), title=f"key {SECRET}")
    after = mask(before, REDACTOR)
    assert after.title == f"key {MARKER}"
    assert after.rows is before.rows


def test_a_replacement_that_does_not_fit_in_cells_is_not_laid_over_them() -> None:
    for replacement in ("🔒", "漢字", "e\u0301", "a\x1b[1m", ""):
        after = mask(screen(f"key {SECRET}", 80), Redactor(replacement=replacement))
        assert after.plain_text == "key " + "*" * len(SECRET)
        assert len(after.rows[0].cells) == 80
    assert mask(screen("password=abc", 80), Redactor(replacement="X")).plain_text == "password=X**"


def test_a_regex_of_the_caller_reads_wrapped_lines_too() -> None:
    redactor = Redactor(extra_regexes=(r"ID-\d{8}",))
    assert texts(mask_rows(screen("see ID-12345678.", 9).rows, redactor)) == [
        "see *****",
        "******.",
    ]


# What a stream cannot know and a screen shows (decision 0009).


def drawn_by(data: bytes) -> Snapshot:
    screen = Screen(Size(4, 60))
    try:
        screen.feed(data)
        return screen.snapshot(1)
    finally:
        screen.close()


def test_a_prefix_that_is_drawn_last_gives_its_secret_away_on_the_screen() -> None:
    """The bytes came the other way round, and a stream had let the rest go by then."""
    prefix, rest = "ghp_", some(36)
    written = f"key \x1b[1;9H{rest} ok\x1b[1;5H{prefix}"
    assert mask(drawn_by(written.encode()), REDACTOR).plain_text.rstrip() == (
        f"key {MARKER}{FILL * 30} ok"
    )
    assert rest in REDACTOR.redact(written)


def test_characters_without_a_width_do_not_break_a_secret_on_the_screen() -> None:
    secret = "ghp_" + some(36)
    for mark in ("\u200b", "\u00ad", "\ufeff"):
        shown = mask(drawn_by(f"key {secret[:9]}{mark}{secret[9:]} ok".encode()), REDACTOR)
        assert not {secret[at : at + 8] for at in range(33)} & set(windows(shown.plain_text))


def windows(text: str) -> Iterator[str]:
    dense = "".join(c for c in text if c.isprintable())
    return (dense[at : at + 8] for at in range(len(dense)))


def test_a_line_break_of_the_program_ends_a_secret_unless_the_row_was_full() -> None:
    """A break in the middle of a row may as well begin something else."""
    secret = "ghp_" + some(36)
    broken = drawn_by(f"{secret[:30]}\r\n{secret[30:]}".encode())
    assert mask(broken, REDACTOR).plain_text.split() == [f"{MARKER}{FILL * 20}", secret[30:]]


# Blocks of several rows.

BLOCK = ["-----BEGIN RSA PRIVATE KEY-----", *KEY_LINES, "-----END RSA PRIVATE KEY-----"]


def test_a_private_key_is_masked_on_all_its_rows_and_its_frame_is_shown() -> None:
    after = mask(screen("\n".join(["$ cat key", *BLOCK, "$ "]), 80), REDACTOR)
    stars = MARKER + "*" * 54
    assert texts(after.rows)[1:-1] == [BLOCK[0], *[stars] * 6, BLOCK[-1]]


def test_a_private_key_that_continues_below_the_screen_is_masked() -> None:
    after = mask(screen("\n".join(BLOCK[:4]), 80), REDACTOR)
    assert KEY_LINES[0][:8] not in after.plain_text


def test_rows_above_the_screen_reveal_secrets_in_the_first_rows() -> None:
    rows = screen("\n".join(BLOCK), 80).rows
    after = mask_rows(rows[3:], REDACTOR, above=rows[:3])
    assert texts(after) == [MARKER + "*" * 54] * 4 + [BLOCK[-1]]
    wrapped = screen(f"password={'x' * 40} end", 20).rows
    assert texts(mask_rows(wrapped[1:], REDACTOR, wrapped[:1])) == [
        MARKER + "*" * 10,
        "********* end",
    ]


# As drawn: programs that break their lines themselves.


def drawn(*rows: str) -> tuple[Row, ...]:
    cols = max(map(len, rows))
    return tuple(Row.of(row, cols) for row in rows)


def test_a_secret_broken_at_the_margin_by_the_program_itself_is_masked() -> None:
    rows = drawn(f"key: {SECRET[:15]}", SECRET[15:35], SECRET[35:] + " end")
    assert texts(mask_rows(rows, REDACTOR)) == [
        f"key: {MARKER}*****",
        MARKER + "*" * 10,
        "******** end",
    ]


def test_a_word_at_the_margin_does_not_hide_a_secret_at_the_start_of_the_next_row() -> None:
    rows = drawn("x" * 43, SECRET)
    assert texts(mask_rows(rows, REDACTOR)) == ["x" * 43, MARKER + "*" * 33]


def test_a_secret_broken_inside_a_box_is_masked_and_the_box_stays() -> None:
    rows = drawn(
        "╭──────────────────────╮",
        f"│ key: {SECRET[:15]} │",
        f"│   {SECRET[15:33]} │",
        f"│   {SECRET[33:]:18} │",
        "╰──────────────────────╯",
    )
    assert texts(mask_rows(rows, REDACTOR))[1:4] == [
        f"│ key: {MARKER}***** │",
        f"│   {MARKER}******** │",
        f"│   {MARKER}         │",
    ]


def test_a_box_need_not_reach_the_margin_of_the_screen() -> None:
    rows = (
        Row.of(f"│ {SECRET[:15]} │", 80),
        Row.of(f"│ {SECRET[15:30]} │", 80),
    )
    assert texts(mask_rows(rows, REDACTOR)) == [f"│ {MARKER}***** │"] * 2


def test_a_wide_secret_broken_inside_a_box_is_masked() -> None:
    rows = (line("│漢字と│", 8)[0], line("│仮名は│", 8)[0])
    masked = mask_rows(rows, Redactor(extra_literals=("漢字と仮名は",)))
    assert texts(masked) == ["│******│"] * 2


def test_a_secret_broken_in_one_of_two_panes_is_masked() -> None:
    rows = drawn(
        f"left one  │token={'s' * 14}",
        f"left two  │{'s' * 20}",
        f"left three│{'s' * 9} shown   ",
    )
    assert texts(mask_rows(rows, REDACTOR)) == [
        f"left one  │token={MARKER}****",
        f"left two  │{MARKER}**********",
        "left three│********* shown",
    ]


def test_a_private_key_in_a_box_leaves_the_box() -> None:
    rows = drawn(*[f"│ {each:70} │" for each in BLOCK])
    after = mask_rows(rows, REDACTOR)
    assert KEY_LINES[0][:8] not in "\n".join(texts(after))
    assert all(row.text.startswith("│") and row.text.endswith("│") for row in after)


# One screen, again and again.


def test_a_masker_answers_for_an_unchanged_screen_with_the_same_rows() -> None:
    masker = Masker(REDACTOR)
    rows = screen(f"one\n{SECRET}\n{SECRET}x", 80).rows
    first = masker.rows(rows)
    assert masker.rows(rows) is first
    changed = (Row.of("changed", 80), *rows[1:])
    second = masker.rows(changed)
    assert second[0] is changed[0]
    assert second[1] is first[1]
    assert second[2] is first[2]
    assert masker.rows((rows[0],)) == (rows[0],)


def test_a_row_is_masked_again_when_its_neighbours_reveal_more() -> None:
    masker = Masker(REDACTOR)
    row = Row.of("abc token=def", 40)
    assert masker.rows((Row.of("x", 40), row))[1].text == "abc token=***"
    assert masker.rows((Row.of("password=" + "x" * 31, 40, wrapped=True), row))[1].text == (
        "*** token=***"
    )


def test_one_row_object_in_two_places_is_masked_in_each_as_it_must_be() -> None:
    row = Row.of(some(20), 20)
    after = mask_rows((Row.of("token=abcdefghijklmn", 20, wrapped=True), row, row), REDACTOR)
    assert after[1].text == MARKER + "*" * 10
    blank = Row.of("", 20)
    assert texts(mask_rows((blank, row, blank), REDACTOR)) == ["", some(20), ""]


@pytest.mark.parametrize("text", ["sk-", "password=", "│", "-----BEGIN PRIVATE KEY-----", "://a:"])
def test_a_hostile_screen_is_masked_in_bounded_time(text: str) -> None:
    rows = tuple(Row.of(text * 1000, 200) for _ in range(60))
    began = time.process_time()
    mask_rows(rows, REDACTOR)
    assert time.process_time() - began < 20  # minutes if it were quadratic
