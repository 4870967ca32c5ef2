"""What is new since a mark: on a real emulator, by hand and by chance, and on real programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telex.terminal import actions
from telex.terminal.cells import Cursor, Size
from telex.terminal.screen import Screen
from telex.terminal.session import Program, PtySession
from telex.terminal.waits import matchers
from telex.terminal.waits.engine import WaitTimedOut
from telex.terminal.waits.since import Mark, NewSpans, new_in_transcript, new_on_screen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Words:
    """What was printed, as far as it is kept."""

    def __init__(self, text: str, kept: int) -> None:
        self.cursor = len(text)
        self.tail = text[-16384:]
        self._text, self._kept = text, kept

    def since(self, cursor: int) -> str:
        return self._text[max(cursor, self.cursor - self._kept) :]


class Terminal:
    """An emulated screen and what was printed on it. It is a moment, as far as `since` looks."""

    def __init__(self, rows: int = 6, cols: int = 20, kept: int = 1_000_000) -> None:
        self.screen = Screen(Size(rows, cols))
        self._printed, self._kept = "", kept

    def print(self, text: str) -> Terminal:
        self.screen.feed(text.encode())
        self._printed += text
        return self

    def mark(self, typed: str = "") -> Mark:
        texts = tuple(row.text for row in self.rows)
        return Mark(1, texts, self.cursor, len(self._printed), typed)

    def new(self, mark: Mark, text: str) -> bool:
        """Whether it is new on the screen. A moment has more, which nobody here looks at."""
        moment: Any = self
        return new_on_screen(mark, moment).finds(text, self.text)

    def printed_new(self, mark: Mark, text: str) -> bool:
        printed = self.transcript.since(mark.transcript)
        return new_in_transcript(mark, printed).finds(text, printed)

    @property
    def rows(self) -> tuple[Any, ...]:
        return self.screen.rows()

    @property
    def text(self) -> str:
        return "\n".join(row.text for row in self.rows).rstrip("\n")

    @property
    def cursor(self) -> Cursor:
        return self.screen.cursor

    @property
    def transcript(self) -> Words:
        return Words(self._printed, self._kept)


# Old and new.


def test_nothing_is_new_while_nothing_was_printed() -> None:
    term = Terminal().print("READY\r\n$ ")
    mark = term.mark()
    term.screen.resize(Size(6, 4))
    assert not term.new(mark, "READ")


def test_text_of_before_is_old_and_the_same_text_printed_again_is_new() -> None:
    term = Terminal().print("READY\r\n$ ")
    mark = term.mark()
    assert not term.print("\r\nwait\r\n").new(mark, "READY")
    assert term.print("READY\r\n").new(mark, "READY")


def test_the_same_prompt_again_is_new_even_on_a_screen_full_of_prompts() -> None:
    term = Terminal().print("$ \r\n" * 10 + "$ ")
    mark = term.mark("\n")
    assert not term.print("\r\n").new(mark, "$")
    assert term.print("$ ").new(mark, "$")


def test_a_screen_that_looks_the_same_again_is_new_when_it_was_printed_again() -> None:
    listing = "".join(f"{n}\r\n" for n in range(30)) + "$ "
    term = Terminal().print(listing)
    mark = term.mark("seq\n")
    before = term.text
    term.print("seq\r\n" + listing)
    assert term.text == before
    assert term.new(mark, "29")
    assert term.new(mark, "$")


def test_a_line_written_over_is_new_where_it_differs() -> None:
    term = Terminal().print("Loading 10%")
    mark = term.mark()
    term.print("\rLoading 20%")
    assert term.new(mark, "20%")
    assert not term.new(mark, "Loading")
    assert not term.new(mark, "0%")


def test_rows_that_stay_are_old_when_a_program_moves_about() -> None:
    term = Terminal().print("\x1b[H\x1b[2Jitem one\r\nitem two\x1b[6;1Hstatus READY\x1b[2;1H")
    mark = term.mark()
    term.print("\x1b[3;1Hitem three\x1b[6;1Hstatus READY\x1b[2;1H")
    assert term.new(mark, "item three")
    assert not term.new(mark, "READY")
    assert not term.new(mark, "item one")


@pytest.mark.parametrize("scroll", ["\x1b[1;5r\x1b[5;1H\n\x1b[r", "\x1b[1;5r\x1b[1;1H\x1bM\x1b[r"])
def test_rows_that_scroll_either_way_under_a_status_row_are_old(scroll: str) -> None:
    rows = "".join(f"line {n}\r\n" for n in range(5))
    term = Terminal().print(rows + "status READY\x1b[1;1H")
    mark = term.mark()
    term.print(scroll + "\x1b[6;1H")
    assert not term.new(mark, "line 2")
    assert not term.new(mark, "READY")


@pytest.mark.parametrize("clear", ["\x1b[H\x1b[2J", "\x1b[H\x1b[J", "\x1bc", "\x1b[?1049h\x1b[H"])
def test_after_a_clear_everything_is_new(clear: str) -> None:
    term = Terminal().print("READY\r\n$ ")
    mark = term.mark("clear\n")
    term.print("clear\r\n" + clear)
    assert not term.new(mark, "READY")
    assert term.print("READY").new(mark, "READY")


def test_a_screen_that_comes_back_from_the_alternate_one_is_as_old_as_it_was() -> None:
    term = Terminal().print("READY\r\n$ ")
    mark = term.mark("vim\n")
    term.print("vim\r\n\x1b[?1049h\x1b[H\x1b[2JREADY inside\x1b[?1049l$ ")
    assert not term.new(mark, "READY")
    assert term.new(mark, "$")


def test_a_transcript_that_lost_its_beginning_leaves_the_rows_to_compare() -> None:
    term = Terminal(kept=4).print("one\r\nREADY\r\n$ ")
    mark = term.mark()
    term.print("\r\nmuch more text\r\n")
    assert not term.new(mark, "READY")
    assert term.new(mark, "more")


def test_a_mark_with_no_rows_makes_everything_new() -> None:
    term = Terminal().print("a\r\nREADY\r\n$ ")
    assert term.new(Mark(0, (), Cursor(), 0), "READY")


def test_an_empty_match_is_new_beside_something_new() -> None:
    new = NewSpans([(3, 5)])
    assert [at for at in range(8) if new.touches(at, at)] == [3, 4, 5]
    assert not NewSpans([]).finds("", "abc")


texts = st.text("ab cdé本", max_size=30)
lines = st.lists(texts, max_size=12).map(lambda rows: "".join(f"{row}\r\n" for row in rows))


@settings(max_examples=200)
@given(before=lines, prompt=texts, after=lines, cols=st.integers(5, 24))
def test_text_that_stays_in_its_place_is_never_new(
    before: str, prompt: str, after: str, cols: int
) -> None:
    term = Terminal(cols=cols).print("XYZ\r\n" + before + prompt)
    mark = term.mark()
    assert not term.print(after).new(mark, "XYZ")


@settings(max_examples=200)
@given(before=lines, prompt=texts, after=lines, more=texts, cols=st.integers(5, 24))
def test_a_line_printed_later_is_new_while_it_is_visible(
    before: str, prompt: str, after: str, more: str, cols: int
) -> None:
    term = Terminal(cols=cols).print("XYZ\r\n" + before + prompt)
    mark = term.mark()
    term.print("\r\n" + after + "XYZ\r\n" + more)
    assert term.new(mark, "XYZ") == ("XYZ" in term.text)


# Echo.

SCENES = [
    # typed at, typed, what comes, what is waited for, whether it is new
    ("$ ", "echo READY\n", "echo READY\r\n", "READY", False),
    ("$ ", "echo READY\n", "echo RE", "RE", False),
    ("$ ", "echo READY\n", "echo READY\r\n\x1b[?2004l\rREADY\r\n", "READY", True),
    ("$ ", "echo READY and much more\n", "echo READY and much more\r\n", "more", False),
    ("$ ", "echo READY and much more\n", "echo READY and much more\r\nmore", "more", True),
    ("", "hello\n", "hello\r\n", "hello", False),
    ("", "hello\n", "hello\r\nhello\r\n", "hello", True),
    ("", "a1\na2\n", "a1\r\na2\r\n", "a2", False),
    ("", "a1\na2\n", "a1\r\na2\r\na1\r\na2\r\n", "a2", True),
    ("Password: ", "ready\n", "\r\n", "ready", False),
    ("Password: ", "ready\n", "\r\nready\r\n", "ready", True),
    (">>> ", "print(7*6)\n", "print(7*6)\r\n42\r\n>>> ", "42", True),
    (">>> ", "print(7*6)\n", "print(7*6)\r\n42\r\n>>> ", "print", False),
    (">>> ", "print(7*6)\n", "print(7*6)\r\n42\r\n>>> ", ">>>", True),
    ("$ ", "true\necho B\n", "true\r\n$ echo B\r\n", "B", False),
    ("$ ", "true\necho B\n", "true\r\n$ echo B\r\nB\r\n$ ", "B", True),
    ("$ ", "cat\nxyz\n", "cat\r\nxyz\r\n", "xyz", False),
    ("$ ", "cat\nxyz\n", "cat\r\nxyz\r\nxyz\r\n", "xyz", True),
    ("", "echo B\n", "echo B\r\n$ echo B\r\n", "B", False),
    ("", "echo B\n", "echo B\r\n$ echo B\r\nB\r\n", "B", True),
    ("", "echo B\n", "bash> echo B\r\n", "B", False),
    ("", "echo BCD\n", "bash> echo BC", "BC", False),
    ("", "echo B\n", "bash> echo B\r\nB\r\n", "B", True),
    ("$ ", "\necho B\n", "\r\necho B$ echo B\r\n", "B", False),
    ("$ ", "\necho B\n", "\r\necho B$ echo B\r\nB\r\n", "B", True),
    ("$ echo", "echo RE\n", " RE\r\n", "RE", False),
    ("$ echo", "echo RE\n", " RE\r\nRE\r\n", "RE", True),
    ("$ ", "lsx\x7f\n", "ls\r\n", "ls", False),
    ("$ ", "lsxyz\x7f\x7f\x7f\n", "ls\r\n", "ls", False),
    ("Continue? ", "y", "yes, on we go", "yes", True),
]


@pytest.mark.parametrize("rows", [6, 3])
@pytest.mark.parametrize(("prompt", "typed", "comes", "wanted", "new"), SCENES)
def test_the_echo_of_the_typing_is_not_new_on_the_screen(
    prompt: str, typed: str, comes: str, wanted: str, new: bool, rows: int
) -> None:
    term = Terminal(rows).print("old\r\n" * 4 + prompt)
    mark = term.mark(typed)
    assert term.print(comes).new(mark, wanted) is new


@pytest.mark.parametrize(("prompt", "typed", "comes", "wanted", "new"), SCENES)
def test_the_echo_of_the_typing_is_not_new_in_the_transcript(
    prompt: str, typed: str, comes: str, wanted: str, new: bool
) -> None:
    term = Terminal().print("old\r\n" + prompt)
    mark = term.mark(typed)
    assert term.print(comes).printed_new(mark, wanted) is new


@pytest.mark.parametrize(
    "echoed",
    [
        "\x1b[32mecho\x1b[m RE\x1b[1mADY\x1b[m\x1b[K\r\n",
        "e\x08echo READY\x1b[?2004l\r\r\n",
        "echo R \rEADY\r\n",
        "\x1b]0;echo READY\x07echo READY\r\n",
    ],
)
def test_an_echo_may_be_coloured_wrapped_and_written_over(echoed: str) -> None:
    term = Terminal().print("$ ")
    mark = term.mark("echo READY\n")
    assert not term.print(echoed).printed_new(mark, "ADY")
    assert term.print("READY\r\n").printed_new(mark, "READY")


def test_wide_characters_left_of_the_cursor_do_not_shift_the_echo() -> None:
    term = Terminal().print("本本$ ")
    mark = term.mark("echo 本x\n")
    assert not term.print("echo 本x\r\n").new(mark, "本x")
    assert term.print("本x").new(mark, "本x")


# Real programs.


async def started(argv: tuple[str, ...], prompt: str, size: Size, **env: str) -> PtySession:
    session = PtySession(
        Program(argv, env={"PS1": prompt, "INPUTRC": "/dev/null", **env}, size=size)
    )
    await session.wait(matchers.ContainsText(prompt.strip()))
    return session


async def marked(session: PtySession, text: str) -> str:
    return await session.act(actions.Text(text))


@pytest.mark.parametrize("size", [Size(24, 80), Size(5, 30)])
async def test_bash_answers_and_its_echo_is_not_the_answer(
    program: Callable[[str], Path], size: Size
) -> None:
    bash = (str(program("bash")), "--norc", "--noprofile")
    async with await started(bash, "bash> ", size) as session:
        for turn in range(4):
            long = "x" * 40 if turn % 2 else ""
            mark = await marked(session, f"echo READY{long}; sleep 0.2; echo LATER\n")
            found = await session.wait(matchers.ContainsText("READY", since=mark), 5)
            rows = [row.text for row in found.moment.rows]
            assert any(row.startswith("READY") for row in rows)
            found = await session.wait(matchers.TranscriptContains("LATER", since=mark), 5)
            assert found.moment.elapsed > 0.05
            await session.wait(matchers.ContainsText("bash>", since=mark), 5)


async def test_bash_typed_at_in_pieces_has_an_echo_too(program: Callable[[str], Path]) -> None:
    bash = (str(program("bash")), "--norc", "--noprofile")
    async with await started(bash, "bash> ", Size()) as session:
        await marked(session, "sleep 0.1; echo REA")
        mark = await marked(session, "DY\n")
        with pytest.raises(WaitTimedOut):
            await session.wait(matchers.ContainsText("; echo READY", since=mark), 0.5)
        await session.wait(matchers.ContainsText("READY", since=mark), 5)


async def test_input_typed_before_a_shell_reads_is_echoed_twice_and_is_not_new(
    program: Callable[[str], Path],
) -> None:
    argv = (str(program("bash")), "--norc", "--noprofile")
    async with PtySession(Program(argv, env={"PS1": "bash> "})) as session:
        mark = await marked(session, "sleep 0.2; echo READY\n")
        found = await session.wait(matchers.ContainsText("READY", since=mark), 5)
        assert any(row.text == "READY" for row in found.moment.rows)


async def test_a_python_prompt_is_new_each_time(program: Callable[[str], Path]) -> None:
    argv = (str(program("python3")), "-q")
    async with await started(argv, ">>> ", Size(6, 40), PYTHONSTARTUP="") as session:
        for _ in range(6):
            mark = await marked(session, "print(6*7)\n")
            await session.wait(matchers.ContainsText("42", since=mark), 5)
            await session.wait(matchers.ScreenRegex("(?m)^>>>$", since=mark), 5)


async def test_cat_prints_a_line_twice_and_the_second_is_new(
    program: Callable[[str], Path],
) -> None:
    async with PtySession(Program((str(program("cat")),))) as session:
        mark = await marked(session, "hello\n")
        found = await session.wait(matchers.ContainsText("hello", since=mark), 5)
        assert found.moment.text == "hello\nhello"
