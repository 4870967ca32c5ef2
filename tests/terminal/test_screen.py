"""The screen: what a person would see, however the bytes are cut, and quickly."""

from __future__ import annotations

import base64
import gc
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from telex.terminal import emulator, limits
from telex.terminal.cells import BLANK, PLAIN, Cell, Cursor, Row, Size, Style
from telex.terminal.screen import Screen

ESC = "\x1b"


def shown(text: str | bytes, cols: int = 10, rows: int = 4) -> Screen:
    screen = Screen(Size(rows, cols))
    screen.feed(text.encode() if isinstance(text, str) else text)
    return screen


def lines(screen: Screen) -> list[str]:
    texts = [row.text for row in screen.rows()]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def at(screen: Screen) -> tuple[int, int]:
    return screen.cursor.row, screen.cursor.col


# What xterm shows: input on a screen of 4 rows and 10 columns, the rows, and the cursor.
CASES = {
    "text": ("ab", ["ab"], (0, 2)),
    "line feed keeps the column": ("ab\ncd", ["ab", "  cd"], (1, 4)),
    "carriage return": ("ab\rc", ["cb"], (0, 1)),
    "backspace moves and erases nothing": ("ab\b", ["ab"], (0, 1)),
    "backspace stops at the margin": ("\b\bx", ["x"], (0, 1)),
    "wrap is pending in the last column": ("0123456789", ["0123456789"], (0, 9)),
    "wrap happens with the next character": ("0123456789a", ["0123456789", "a"], (1, 1)),
    "a carriage return forgets a pending wrap": ("0123456789\rx", ["x123456789"], (0, 1)),
    "no wrap with DECAWM off": ("\x1b[?7l0123456789ab", ["012345678b"], (0, 9)),
    "the last line scrolls": ("1\r\n2\r\n3\r\n4\r\n5", ["2", "3", "4", "5"], (3, 1)),
    "reverse index scrolls down at the top": ("a\x1b[H\x1bMb", ["b", "a"], (0, 1)),
    "tabs stop every eight": ("\ta\tb", ["        ab"], (0, 9)),
    "a tab set by HTS": ("   \x1bH\r\tx", ["   x"], (0, 4)),
    "tabs cleared by TBC": ("\x1b[3g\tx", ["         x"], (0, 9)),
    "back tab": ("         \x1b[Zx", ["        x"], (0, 9)),
    "CUP": ("\x1b[2;3Hx", ["", "  x"], (1, 3)),
    "CUP is clamped": ("\x1b[99;99Hx", ["", "", "", "         x"], (3, 9)),
    "CUP of zero is one": ("\x1b[0;0Hx", ["x"], (0, 1)),
    "CUU and CUF are clamped": ("\x1b[9A\x1b[99Cx", ["         x"], (0, 9)),
    "CHA and VPA": ("\x1b[3G\x1b[2dx", ["", "  x"], (1, 3)),
    "CNL and CPL": ("ab\x1b[2Ec\x1b[Fd", ["ab", "d", "c"], (1, 1)),
    "EL to the end": ("abcdef\x1b[3G\x1b[K", ["ab"], (0, 2)),
    "EL from the start": ("abcdef\x1b[3G\x1b[1K", ["   def"], (0, 2)),
    "EL of all": ("abcdef\x1b[3G\x1b[2K", [], (0, 2)),
    "ED below": ("a\r\nb\r\nc\x1b[2;1H\x1b[J", ["a"], (1, 0)),
    "ED above": ("a\r\nb\r\nc\x1b[2;1H\x1b[1J", ["", "", "c"], (1, 0)),
    "ED of all leaves the cursor": ("a\r\nbc\x1b[2J", [], (1, 2)),
    "ECH": ("abcdef\x1b[2G\x1b[2X", ["a  def"], (0, 1)),
    "ICH": ("abc\x1b[2G\x1b[2@", ["a  bc"], (0, 1)),
    "DCH": ("abcdef\x1b[2G\x1b[2P", ["adef"], (0, 1)),
    "IL": ("a\r\nb\r\nc\x1b[2H\x1b[L", ["a", "", "b", "c"], (1, 0)),
    "DL": ("a\r\nb\r\nc\x1b[2H\x1b[M", ["a", "c"], (1, 0)),
    "insert mode": ("abc\r\x1b[4hx", ["xabc"], (0, 1)),
    "REP": ("x\x1b[3b", ["xxxx"], (0, 4)),
    "DECALN": ("\x1b#8", ["EEEEEEEEEE"] * 4, (0, 0)),
    "a scroll region": ("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\nx", ["1", "3", "x", "4"], (2, 1)),
    "SU": ("1\r\n2\r\n3\r\n4\x1b[S", ["2", "3", "4"], (3, 1)),
    "SD": ("1\r\n2\r\n3\r\n4\x1b[T", ["", "1", "2", "3"], (3, 1)),
    "origin mode": ("\x1b[2;3r\x1b[?6h\x1b[1;1Hx", ["", "x"], (1, 1)),
    "origin mode keeps inside": ("\x1b[2;3r\x1b[?6h\x1b[9;1Hx", ["", "", "x"], (2, 1)),
    "left and right margins": ("\x1b[?69h\x1b[3;5s\x1b[1;3Habcde", ["  abc", "  de"], (1, 4)),
    "save and restore": ("ab\x1b7cd\x1b8X", ["abXd"], (0, 3)),
    "line drawing": ("\x1b(0lqk\x1b(Bq", ["┌─┐q"], (0, 4)),
    "shift out": ("\x1b)0a\x0ex\x0fx", ["a│x"], (0, 3)),
    "alternate screen and back": ("ab\x1b[?1049hxyz\x1b[?1049l", ["ab"], (0, 2)),
    "wide characters": ("中文", ["中文"], (0, 4)),
    "a wide character wraps whole": ("012345678中", ["012345678", "中"], (1, 2)),
    "writing over half a wide character": ("中\rx", ["x"], (0, 1)),
    "combining marks": ("e\u0301x", ["e\u0301x"], (0, 2)),
    "an emoji": ("a😀b", ["a😀b"], (0, 4)),
    "RIS": ("abc\x1b[31m\x1bcx", ["x"], (0, 1)),
    "DECSTR": ("\x1b[?6h\x1b[!pab", ["ab"], (0, 2)),
    "an unknown CSI is not shown": ("a\x1b[?77;3zb", ["ab"], (0, 2)),
    "an unknown OSC is not shown": ("a\x1b]777;x;y\x07b", ["ab"], (0, 2)),
    "a DCS is not shown": ("a\x1bPq#0;2;0\x1b\\b", ["ab"], (0, 2)),
    "an APC is not shown": ("a\x1b_Gi=1;AAAA\x1b\\b", ["ab"], (0, 2)),
    "CAN ends a sequence": ("a\x1b[3\x18b", ["ab"], (0, 2)),
    "a control inside a sequence is obeyed": ("a\x1b[\r1Cb", ["ab"], (0, 2)),
    "a hundred parameters": (f"a\x1b[{'1;' * 100}mb", ["ab"], (0, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_screen_shows_the_same_as_xterm(name: str) -> None:
    data, expected, cursor = CASES[name]
    screen = shown(data)
    assert (lines(screen), at(screen)) == (expected, cursor)


def style(sgr: str) -> Style:
    return shown(f"\x1b[{sgr}mx").rows()[0].cells[0].style


@pytest.mark.parametrize(
    ("sgr", "expected"),
    [
        ("0", PLAIN),
        ("1", Style(bold=True)),
        ("2", Style(dim=True)),
        ("3", Style(italic=True)),
        ("4", Style(underline=True)),
        ("21", Style(underline=True, underline_style="double")),
        ("4:3", Style(underline=True, underline_style="curly")),
        ("4:4;58:5:9", Style(underline=True, underline_style="dotted", underline_color="idx:9")),
        (
            "4:5;58:2::1:2:3",
            Style(underline=True, underline_style="dashed", underline_color="rgb:1:2:3"),
        ),
        ("58:5:9", PLAIN),
        ("4:0", PLAIN),
        ("5", Style(blink=True)),
        ("7", Style(inverse=True)),
        ("8", Style(invisible=True)),
        ("9", Style(strikethrough=True)),
        ("1;22", PLAIN),
        ("31", Style(foreground="idx:1")),
        ("97", Style(foreground="idx:15")),
        ("42", Style(background="idx:2")),
        ("100", Style(background="idx:8")),
        ("38;5;200", Style(foreground="idx:200")),
        ("38:5:200", Style(foreground="idx:200")),
        ("48;2;1;2;3", Style(background="rgb:1:2:3")),
        ("38:2::1:2:3", Style(foreground="rgb:1:2:3")),
        ("31;39", PLAIN),
        ("1;31;48;5;7;4;9", Style("idx:1", "idx:7", bold=True, underline=True, strikethrough=True)),
    ],
)
def test_colours_and_attributes_are_those_of_the_wire(sgr: str, expected: Style) -> None:
    assert style(sgr) == expected


def test_a_cell_that_was_never_written_is_blank() -> None:
    row = shown("a").rows()[0]
    assert row.cells == (Cell("a"), *[BLANK] * 9)
    assert row.cells[1] is BLANK


def test_a_wide_character_covers_the_cell_after_it() -> None:
    cells = shown("中x").rows()[0].cells
    assert cells[:3] == (Cell("中", width=2), Cell("", width=0), Cell("x"))


def test_combining_marks_stay_with_their_character() -> None:
    row = shown("e\u0301\u0323x").rows()[0]
    assert row.cells[0] == Cell("e\u0301\u0323")
    assert row.text == "e\u0301\u0323x"


def test_emoji_clusters_are_one_cell_when_the_program_asks_for_it() -> None:
    family = "👨\u200d👩\u200d👧"
    row = shown(f"\x1b[?2027h{family}x").rows()[0]
    assert row.cells[0] == Cell(family, width=2)
    assert row.text == f"{family}x"


def test_erasing_keeps_the_background() -> None:
    row = shown("\x1b[44m\x1b[Kab").rows()[0]
    assert {cell.style.background for cell in row.cells} == {"idx:4"}
    assert row.text == "ab"
    assert shown("\x1b[48;2;1;2;3m\x1b[K").rows()[0].cells[5].style.background == "rgb:1:2:3"


def test_the_text_of_a_coloured_row_is_that_of_its_cells() -> None:
    row = shown("\x1b[31ma\x1b[44m\x1b[K 中\x1b[0m é").rows()[0]
    assert row.text == "a 中 é"
    assert row.text == "".join(cell.text or " " for cell in row.cells if cell.width).rstrip()


def test_a_row_that_was_too_long_is_marked_as_wrapped() -> None:
    assert [row.wrapped for row in shown("0123456789ab").rows()] == [True, False, False, False]


def test_modes_are_reported() -> None:
    screen = shown("")
    assert not screen.application_cursor
    assert not screen.application_keypad
    assert not screen.bracketed_paste
    assert not screen.mouse_tracking
    assert not screen.alternate_screen
    screen.feed(b"\x1b[?1h\x1b=\x1b[?2004h\x1b[?1000h\x1b[?1049h\x1b[?25l")
    assert screen.application_cursor
    assert screen.application_keypad
    assert screen.bracketed_paste
    assert screen.mouse_tracking
    assert screen.alternate_screen
    assert not screen.cursor.visible


def test_a_snapshot_holds_the_moment() -> None:
    screen = shown("\x1b]2;here\x07ab\r\ncd  \r\n\r\n")
    before = screen.snapshot(7)
    screen.feed(b"\x1b[2J\x1b[Hgone\x1b[?25l")
    assert before.plain_text == "ab\ncd"
    assert before.title == "here"
    assert before.cursor == Cursor(3, 0)
    assert before.sequence == 7
    assert before.rows[0].cells[0] == Cell("a")
    assert screen.snapshot(8).plain_text == "gone"


def test_cells_asked_for_later_are_those_of_their_moment() -> None:
    screen = shown("\x1b[31mred\x1b[0m e\u0301")
    row = screen.rows()[0]
    screen.feed(b"\x1bc\x1b[32m\x1b[1mother\x1b[4mstyles\x1b[0m")
    screen.rows()
    screen.close()
    assert row.cells[0] == Cell("r", Style(foreground="idx:1"))
    assert row.cells[4] == Cell("e\u0301")


def test_rows_that_did_not_change_are_the_same_objects() -> None:
    screen = shown("a\r\nb\r\nc")
    before = screen.rows()
    assert screen.rows() is before
    screen.feed(b"\x1b[2;1Hx")
    after = screen.rows()
    assert [one is other for one, other in zip(before, after, strict=True)] == [
        True,
        False,
        True,
        True,
    ]


def test_a_read_that_changes_nothing_visible_leaves_the_same_tuple() -> None:
    screen = shown("abc")
    before = screen.rows()
    screen.feed(b"\x1b]2;title\x07\x1b[?1h\x1b[1;1Habc")
    assert screen.rows() is before


def test_an_unchanged_screen_is_the_same_snapshot() -> None:
    screen = shown("abc")
    assert screen.snapshot(3) is screen.snapshot(3)
    assert screen.snapshot(4) is not screen.snapshot(3)


def test_rows_stay_the_same_when_many_other_screens_were_read() -> None:
    screen = shown("\x1b[31mabc\x1b[0m", 80, 24)
    before = screen.rows()
    others = [shown(f"other {n}", 80, 24) for n in range(60)]
    for other in others:
        assert other.rows()[0].text.startswith("other")
    screen.feed(b"\r\n")
    assert screen.rows() is before
    screen.feed(b"x")
    assert screen.rows()[0] is before[0]
    assert screen.rows()[1].text == "x"


# Titles


def test_there_is_no_title_until_the_program_sets_it() -> None:
    screen = shown("abc")
    assert screen.title is None
    screen.feed(b"\x1b]0;one\x07")
    assert screen.title == "one"
    screen.feed("\x1b]2;zwei – 二\x1b\\".encode())
    assert screen.title == "zwei – 二"


def test_a_title_has_one_line_and_an_end() -> None:
    screen = shown("\x1b]2;a\u0085b\u009bc\u2028d\x07")
    assert screen.title == "abcd"
    screen.feed(b"\x1b]2;" + b"x" * 100_000 + b"\x07")
    assert screen.title is None or len(screen.title) <= limits.TITLE_CHARS


@given(st.binary(max_size=200))
def test_no_title_holds_a_control_character(raw: bytes) -> None:
    screen = shown(b"\x1b]2;" + raw + b"\x07")
    title = screen.title or ""
    assert all(char.isprintable() or ord(char) > 0xA0 for char in title)


# Scrollback


def test_ten_thousand_rows_are_kept_and_can_be_read() -> None:
    screen = Screen(Size())
    screen.feed(b"".join(b"line %d\r\n" % n for n in range(15_000)))
    assert screen.scrollback_length == 10_000
    oldest = 15_000 - 23 - 10_000
    kept = [row.text for row in screen.scrollback(0, 20_000)]
    assert kept == [f"line {n}" for n in range(oldest, oldest + 10_000)]
    assert [row.text for row in screen.scrollback(9_999, 5)] == [f"line {15_000 - 24}"]
    assert screen.scrollback(10_000, 5) == ()
    assert screen.rows()[0].text == f"line {15_000 - 23}"


@pytest.mark.parametrize("cols", [2, 20, 80, 200])
def test_as_many_rows_are_kept_when_they_are_full_of_colours(cols: int) -> None:
    screen = Screen(Size(24, cols))
    line = b"".join(b"\x1b[38;5;%dmx" % (n * 7 % 256) for n in range(cols - 1)) + b"\r\n"
    for _ in range(12):
        screen.feed(line * 1000)
    assert screen.scrollback_length == 10_000


def test_the_end_of_the_scrollback_is_read_anew_after_more_has_scrolled_by() -> None:
    screen, other = Screen(Size(4, 10)), Screen(Size(4, 10))
    for n in range(60):
        screen.feed(b"%d\r\n" % (n * n % 7))
        count = min(20, screen.scrollback_length)
        screen.scrollback(screen.scrollback_length - count, count)
    other.feed(b"".join(b"%d\r\n" % (n * n % 7) for n in range(60)))
    end = screen.scrollback_length - 20
    read = [row.text for row in screen.scrollback(end, 20)]
    assert read == [row.text for row in other.scrollback(end, 20)]


def test_blank_rows_are_one_and_the_same() -> None:
    rows = shown("words").rows()
    assert rows[1] is rows[2] is rows[3]


def test_reading_the_scrollback_changes_nothing() -> None:
    screen = shown("".join(f"\x1b[3{n % 8}mline {n}\r\n" for n in range(40)))
    before = screen.rows()
    assert screen.scrollback(2, 1)[0].cells[0] == Cell("l", Style(foreground="idx:2"))
    screen.feed(b"")
    assert screen.rows() is before
    screen.feed(b"next\r\n")
    assert screen.rows()[2].text == "next"


def test_the_alternate_screen_has_no_scrollback() -> None:
    screen = shown("1\r\n2\r\n3\r\n4\r\n5\r\n\x1b[?1049h" + "x\r\n" * 20)
    assert screen.scrollback_length == 0
    assert screen.scrollback(0, 10) == ()
    screen.feed(b"\x1b[?1049l")
    assert screen.scrollback_length == 2


def test_a_screen_can_do_without_scrollback() -> None:
    screen = Screen(Size(4, 10), scrollback=0)
    screen.feed(b"x\r\n" * 1000)
    assert screen.scrollback_length == 0


# Sizes


def test_lines_reflow_when_the_width_changes() -> None:
    screen = shown("0123456789abcdef")
    assert lines(screen) == ["0123456789", "abcdef"]
    screen.resize(Size(4, 20))
    assert lines(screen) == ["0123456789abcdef"]
    screen.resize(Size(4, 5))
    assert lines(screen) == ["01234", "56789", "abcde", "f"]
    assert screen.size == Size(4, 5)
    assert all(len(row.cells) == 5 for row in screen.rows())


def test_a_screen_may_be_as_small_as_one_cell_and_as_large_as_a_thousand() -> None:
    screen = shown("abc", 1, 1)
    assert lines(screen) == ["c"]
    screen.resize(Size(1000, 1000))
    assert len(screen.rows()) == 1000
    assert len(screen.rows()[999].cells) == 1000


# Hostile bytes

PIECES = (
    *("\x1b[", "\x1b]", "\x1bP", "\x1b_", "\x1b", "\x07", "\x1b\\", "\x18", "0", "1", "99", "65536"),
    *(";", ":", "?", ">", "H", "J", "K", "m", "r", "s", "L", "M", "P", "@", "X", "b", "h", "l", "S"),
    *("1049", "69", "6", "2027", "\x1b#8", "\x1bc", "\x1bM", "\x1b7", "\x1b8", "\x1b(0", "\t", "\b"),
    *("\r", "\n", "abc", "中", "😀", "e\u0301", "\u200d", "\ufe0f", "38;5;1m", "48;2;1;2;3m", "0123456789"),
)  # fmt: skip
hostile = st.lists(
    st.sampled_from([piece.encode() for piece in PIECES]) | st.binary(max_size=4), max_size=60
).map(b"".join)


def looks(screen: Screen) -> tuple[object, ...]:
    rows = [(row.cells, row.wrapped, row.text) for row in screen.rows()]
    return rows, screen.cursor, screen.title, screen.alternate_screen, screen.application_cursor


@given(hostile, st.integers(1, 24), st.integers(1, 7))
def test_where_the_reads_are_cut_never_matters(data: bytes, cols: int, step: int) -> None:
    whole, cut = shown(data, cols), shown(b"", cols)
    for start in range(0, len(data), step):
        cut.feed(data[start : start + step])
    assert looks(whole) == looks(cut)


@given(st.lists(hostile, max_size=6))
@settings(deadline=None)
def test_reading_rows_between_feeds_never_matters(reads: list[bytes]) -> None:
    looked, blind = shown(b""), shown(b"")
    for data in reads:
        looked.feed(data)
        looked.rows()
        blind.feed(data)
    assert looks(looked) == looks(blind)


@given(hostile)
@example("\x1b[44m\x1b[Ka中".encode())
def test_the_text_of_a_row_is_that_of_its_cells(data: bytes) -> None:
    for row in shown(data).rows():
        assert row.text == Row(row.cells).text


@pytest.mark.counted
def test_nothing_raises_for_hostile_bytes_and_sizes(counted: object) -> None:
    chance = random.Random(4)
    pieces = [piece.encode() for piece in PIECES]
    screen = Screen(Size(24, 80))
    for _ in range(counted(60, 20_000)):  # type: ignore[operator]
        if chance.random() < 0.2:
            side = chance.choice((1, 2, 10, 80, 1000))
            screen.resize(Size(chance.randint(1, side), chance.randint(1, side)))
        noise = bytes(chance.randrange(256) for _ in range(50))
        screen.feed(b"".join(chance.choices([*pieces, noise], k=chance.randint(1, 100))))
        size = screen.size
        assert [len(row.cells) for row in screen.rows()] == [size.cols] * size.rows
        assert 0 <= screen.cursor.row < size.rows
        assert 0 <= screen.cursor.col < size.cols
        assert len(screen.scrollback(0, 3)) == min(3, screen.scrollback_length)


# Memory


def test_closing_frees_the_emulator_and_earlier_snapshots_stay() -> None:
    screen = shown("abc")
    rows, known = screen.rows(), len(emulator._callback_states)
    screen.close()
    screen.close()
    assert len(emulator._callback_states) == known - 1
    assert rows[0].cells[0] == Cell("a")


def test_an_unclosed_screen_is_freed_when_it_is_collected() -> None:
    gc.collect()
    known = len(emulator._callback_states)
    screen = shown("abc")
    screen.rows()
    assert len(emulator._callback_states) == known + 1
    gc.disable()  # no cycle: the last reference frees it
    try:
        del screen
        assert len(emulator._callback_states) == known
    finally:
        gc.enable()


def test_a_flood_of_bells_is_counted_up_to_a_limit() -> None:
    screen = Screen(Size(2, 10))
    for _ in range(3):
        screen.feed(b"\a" * 40_000 + b"x")
    assert screen.bells == limits.BELLS_COUNTED
    assert screen.rows()[0].text == "xxx"


def test_the_last_copied_text_is_kept_in_part_and_nothing_is_sent_back() -> None:
    screen = Screen(Size(2, 10))
    for text in (b"one", b"\xff" * 10, b"x" * (limits.COPIED_BYTES + 1)):
        assert screen.feed(b"\x1b]52;c;" + base64.b64encode(text) + b"\a\x1b]52;c;?\a") == b""
        assert screen.clipboard is not None
        assert len(screen.clipboard) <= limits.COPIED_BYTES
        assert screen.clipboard_cut == (len(text) > limits.COPIED_BYTES)


def test_an_empty_copy_clears_the_clipboard_and_a_cut_one_ends_with_a_whole_character() -> None:
    screen = Screen(Size(2, 10))

    def copy(text: str) -> str | None:
        screen.feed(b"\x1b]52;c;" + base64.b64encode(text.encode()) + b"\a")
        return screen.clipboard

    assert copy("one") == "one"
    assert copy("") == ""
    assert copy("日" * (limits.COPIED_BYTES // 3 + 1)) == "日" * (limits.COPIED_BYTES // 3)
    assert screen.clipboard_cut
    assert copy("") == ""
    assert not screen.clipboard_cut


def test_links_are_found_in_each_row_and_neighbours_are_told_apart() -> None:
    screen = Screen(Size(3, 10))
    open_a, open_b, end = b"\x1b]8;;a:1\x1b\\", b"\x1b]8;;b:2\x1b\\", b"\x1b]8;;\x1b\\"
    screen.feed(b"12345678" + open_a + b"long" + open_b + b"er" + end + b"\r\nplain")
    assert screen.links() == [(0, 8, 2, "a:1"), (1, 0, 2, "a:1"), (1, 2, 2, "b:2")]


@pytest.mark.parametrize("selection", ["c", "cp", "pc", "s0", "cpqs01234567", ""])
def test_a_copy_to_several_selections_is_kept_wherever_a_read_ends(selection: str) -> None:
    copy = f"a\x1b]52;{selection};bmV3\x07b\x1b".encode()
    for at in range(len(copy)):
        screen = Screen(Size(2, 10))
        for data in (copy[:at], copy[at:], b"[1mccc"):
            screen.feed(data)
        assert (screen.clipboard, screen.rows()[0].text) == ("new", "abccc"), at
        screen.close()
    screen = Screen(Size(2, 10))
    for byte in copy:
        screen.feed(bytes([byte]))
    assert (screen.clipboard, screen.rows()[0].text) == ("new", "ab")
    screen.close()
